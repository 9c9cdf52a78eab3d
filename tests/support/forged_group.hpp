/// \file
/// A group of two of which only one is there: what the other one sends is forged.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/split.hpp"

namespace seqpack::testing {

/// Rank 0 of {0, 3}. Rank 1 sends what rank 0 does, changed. Data do not move.
class forged_group : public communicator_base<forged_group> {
 public:
  static constexpr bool on_device = false;
  template <class T>
  static constexpr bool reduces = element<T>;
  using change = std::function<void(std::span<std::byte> record)>;

  explicit forged_group(change how = [](std::span<std::byte>) {})
      : communicator_base(group_members({{0}, {3}}), world_rank{0}), change_(std::move(how)) {}

  memory_location location() const { return memory_location::host(); }
  memory_location location_of(const void*) const { return memory_location::host(); }
  void exchange(const std::byte* mine, std::byte* all, offset_t bytes) {
    const auto n = static_cast<std::size_t>(bytes);
    std::memcpy(all, mine, n);
    std::memcpy(all + n, mine, n);
    if (n == sizeof(detail::envelope)) {
      change_(std::span(all + n + offsetof(detail::envelope, record), detail::records::room));
    }
  }
  void join_broadcast(offset_t, group_rank) { ++data_moves; }
  void wait() {}
  forged_group split(std::optional<offset_t> colour, offset_t key) {
    members_of_split(*this, colour, key);
    return forged_group(change_);
  }
  std::shared_ptr<void> allocate(offset_t bytes) {
    return {::operator new(static_cast<std::size_t>(bytes)), [](void* p) { ::operator delete(p); }};
  }

  int data_moves = 0;

 private:
  friend communicator_base<forged_group>;
  void require_usable() const { require_member(); }
  void gather_bytes(const void*, void*, offset_t) { ++data_moves; }
  void broadcast_bytes(void*, offset_t, group_rank) { ++data_moves; }
  template <class T>
  void reduce(const T*, T*, offset_t, reduction) {
    ++data_moves;
  }
  template <class T>
  void reduce_blocks(const T*, T*, offset_t, reduction) {
    ++data_moves;
  }

  change change_;
};
static_assert(communicator<forged_group>);

/// Changes a number of the record, at a place in bytes.
template <class T>
forged_group::change put_at(std::size_t place, T value) {
  return [=](std::span<std::byte> record) {
    std::memcpy(record.data() + place, &value, sizeof value);
  };
}

/// What an error says of a number of the forged record, before its value.
inline const std::string from_1 = " in the record of rank 1 (world rank 3) is ";

/// Checks that a call is refused in exactly these words, with rank 1 to blame.
template <class Call>
void refuse(const Call& call, const std::string& text) {
  BOOST_CHECK_EXCEPTION(call(), collective_mismatch, [&](const collective_mismatch& e) {
    BOOST_TEST(e.what() == text);
    BOOST_TEST(e.rank().value == 1);
    return true;
  });
}

}  // namespace seqpack::testing
