// A sharding of one's own: which of the library's it is, is known when the program runs. The price
// is a branch per question; in return everything is compiled once and not three times.
#pragma once

#include <seqpack/policy/sharding.hpp>

namespace train_text {

enum class sharding_kind { zigzag, contiguous, striped };

class chosen_sharding {
  using offset_t = seqpack::offset_t;

  template <class Question>
  SEQPACK_HD constexpr auto ask(const Question& question) const noexcept {
    switch (kind_) {
      case sharding_kind::contiguous: return question(seqpack::contiguous{});
      case sharding_kind::striped: return question(seqpack::striped{});
      default: return question(seqpack::zigzag{});
    }
  }

 public:
  constexpr explicit chosen_sharding(sharding_kind kind = sharding_kind::zigzag) : kind_(kind) {}

  SEQPACK_HD constexpr offset_t divisor(offset_t cp) const noexcept {
    return ask([&](auto s) { return s.divisor(cp); });
  }
  SEQPACK_HD constexpr seqpack::shard_position to_shard(offset_t token, offset_t length,
                                                        offset_t cp) const noexcept {
    return ask([&](auto s) { return s.to_shard(token, length, cp); });
  }
  SEQPACK_HD constexpr offset_t to_token(seqpack::shard_position p, offset_t length,
                                         offset_t cp) const noexcept {
    return ask([&](auto s) { return s.to_token(p, length, cp); });
  }
  SEQPACK_HD constexpr offset_t run(seqpack::shard_position p, offset_t length,
                                    offset_t cp) const noexcept {
    return ask([&](auto s) { return s.run(p, length, cp); });
  }

 private:
  sharding_kind kind_;
};

static_assert(seqpack::sharding<chosen_sharding>);

}  // namespace train_text
