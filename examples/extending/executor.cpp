// Packs with a user-defined executor, and runs operations on it that look at what it does.
#include "executor.hpp"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <numeric>
#include <seqpack/seqpack.hpp>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace seqpack;

/// Notes which thread does a row.
struct note_threads {
  std::thread::id* of;

  offset_t rows() const { return 1024; }
  /// Bytes that a row writes, for the executor's choice of pieces.
  offset_t row_bytes() const { return 4096; }
  void process(offset_t first, offset_t last) const {
    std::fill(of + first, of + last, std::this_thread::get_id());
  }
};

/// Fails in its last row.
struct fail {
  offset_t rows() const { return 1024; }
  offset_t row_bytes() const { return 4096; }
  void process(offset_t, offset_t last) const {
    if (last == rows()) throw std::runtime_error("the last row");
  }
};

bool uses_threads(const jthreads& where, std::size_t count) {
  std::vector<std::thread::id> ids(1024);
  execute(where, note_threads{ids.data()});
  return std::set(ids.begin(), ids.end()).size() == count;
}

bool lets_errors_through(const jthreads& where) {
  try {
    execute(where, fail{});
  } catch (const std::runtime_error&) {
    return true;
  }
  return false;
}

bool packs(const jthreads& where) {
  constexpr offset_t payload = 128;
  const auto layout = make_layout(std::vector{900, 17, 1024, 256}, padding{each_multiple_of<16>{}},
                                  context_parallel<4>{});
  std::vector<float> hidden(std::size_t{4} * 1024 * payload);
  std::iota(hidden.begin(), hidden.end(), 1.0F);
  const auto packed_by = [&](const auto& executor) {
    std::vector<float> shards(static_cast<std::size_t>(layout.total_tokens() * payload));
    pack(executor, layout, all_shards,
         field(batch_view(hidden.data(), 4, 1024, payload),
               row_view(shards.data(), layout.total_tokens(), payload)));
    return shards;
  };
  return packed_by(where) == packed_by(host);
}

int main() {
  const jthreads four{.count = 4};
  const bool right = uses_threads(four, 4) && lets_errors_through(four) && packs(four);
  std::cout << "executor: four threads, " << (right ? "as expected" : "WRONG") << '\n';
  return right && std::cout.flush() ? 0 : 1;
}
