/// \file
/// Output of several ranks in the order of the ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include <seqpack/comm/communicator.hpp>

/// Rank 0 prints one line for each rank. Collective.
template <seqpack::communicator C>
void ranks_speak(C& group, const std::string& text) {
  using line = std::array<char, 256>;
  line mine{};
  std::copy_n(text.begin(), std::min(text.size(), mine.size() - 1), mine.begin());
  std::vector<line> all(static_cast<std::size_t>(group.size()));
  group.exchange(reinterpret_cast<const std::byte*>(&mine),
                 reinterpret_cast<std::byte*>(all.data()), sizeof(line));
  if (group.rank().value != 0) return;
  for (std::size_t r = 0; r < all.size(); ++r) {
    std::cout << "rank " << r << ": " << all[r].data() << '\n';
  }
}
