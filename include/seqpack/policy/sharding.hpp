/// \file
/// Which context-parallel rank owns which token of a padded sequence, or of the whole row.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/core/math.hpp"

namespace seqpack {

/// A token's place in the ranks' shares of what is cut, a sequence or the row: the rank that owns it,
/// and its position among the tokens of it that the rank owns.
struct shard_position {
  offset_t rank;
  offset_t index;

  friend constexpr bool operator==(const shard_position&, const shard_position&) = default;
};

/// A sharding is a bijection, for one padded sequence, between its tokens and the ranks' shares.
/// All four functions are asked only for cp >= 2 and a length that divisor(cp) divides; every rank
/// owns length / cp tokens.
///
/// - `s.divisor(cp)`: what must divide every padded length; itself a multiple of cp
/// - `s.to_shard(token, length, cp)`: who owns the token, and where
/// - `s.to_token(position, length, cp)`: the inverse
/// - `s.run(position, length, cp)`: how many tokens, this one included, follow each other
///   both in the sequence and in the shard (at least 1). It is what lets the host copy in blocks.
///
/// One that cuts the whole row instead, as row_contiguous does, has two functions more:
///
/// - `s.cuts_row()`: true; the others are then asked about the row as if it were one sequence, with
///   its rows as tokens and T as the length, and rank r must own the rows [r * T / cp, (r + 1) * T / cp)
/// - `s.total_divisor(cp)`: what must divide T; `s.divisor(cp)` is 1
///
/// They are pure arithmetic, the same on all ranks: constexpr where layouts shall be, without
/// exceptions, and called from several threads at once; on a device too, where a user's own must be
/// SEQPACK_HD. The library takes their word: what is no bijection packs wrong.
///
/// One that chooses at run time among others may have `s.visit(f)`, which calls f with the chosen one:
/// loops of the host then ask once.
template <class S>
concept sharding =
    std::is_trivially_copyable_v<S> && requires(const S& s, offset_t n, shard_position p) {
      { s.divisor(n) } -> std::same_as<offset_t>;
      { s.to_shard(n, n, n) } -> std::same_as<shard_position>;
      { s.to_token(p, n, n) } -> std::same_as<offset_t>;
      { s.run(p, n, n) } -> std::same_as<offset_t>;
    };

/// Each sequence is cut into 2 * CP chunks; rank r owns chunk r, then chunk 2 * CP - 1 - r, which
/// balances the work of causal attention.
struct zigzag {
  SEQPACK_HD static constexpr offset_t divisor(offset_t cp) noexcept { return 2 * cp; }

  SEQPACK_HD static constexpr shard_position to_shard(offset_t token, offset_t length,
                                                      offset_t cp) noexcept {
    const offset_t size = divide(length, 2 * cp);
    const offset_t chunk = divide(token, size);
    const offset_t within = token - chunk * size;
    return chunk < cp ? shard_position{chunk, within}
                      : shard_position{2 * cp - 1 - chunk, size + within};
  }

  SEQPACK_HD static constexpr offset_t to_token(shard_position p, offset_t length,
                                                offset_t cp) noexcept {
    const offset_t size = divide(length, 2 * cp);
    return p.index < size ? p.rank * size + p.index
                          : (2 * cp - 1 - p.rank) * size + (p.index - size);
  }

  SEQPACK_HD static constexpr offset_t run(shard_position p, offset_t length,
                                           offset_t cp) noexcept {
    const offset_t size = divide(length, 2 * cp);
    // The last rank's two chunks are neighbours in the sequence too.
    const bool joined = p.rank == cp - 1;
    return (p.index < size && !joined ? size : 2 * size) - p.index;
  }
};

/// Each sequence is cut into CP chunks; rank r owns chunk r.
struct contiguous {
  SEQPACK_HD static constexpr offset_t divisor(offset_t cp) noexcept { return cp; }

  SEQPACK_HD static constexpr shard_position to_shard(offset_t token, offset_t length,
                                                      offset_t cp) noexcept {
    const offset_t size = divide(length, cp);
    const offset_t rank = divide(token, size);
    return {rank, token - rank * size};
  }

  SEQPACK_HD static constexpr offset_t to_token(shard_position p, offset_t length,
                                                offset_t cp) noexcept {
    return p.rank * divide(length, cp) + p.index;
  }

  SEQPACK_HD static constexpr offset_t run(shard_position p, offset_t length,
                                           offset_t cp) noexcept {
    return divide(length, cp) - p.index;
  }
};

/// Token j of each sequence belongs to rank j mod CP.
struct striped {
  SEQPACK_HD static constexpr offset_t divisor(offset_t cp) noexcept { return cp; }

  SEQPACK_HD static constexpr shard_position to_shard(offset_t token, offset_t /*length*/,
                                                      offset_t cp) noexcept {
    const offset_t index = divide(token, cp);
    return {token - index * cp, index};
  }

  SEQPACK_HD static constexpr offset_t to_token(shard_position p, offset_t /*length*/,
                                                offset_t cp) noexcept {
    return p.index * cp + p.rank;
  }

  SEQPACK_HD static constexpr offset_t run(shard_position, offset_t, offset_t) noexcept {
    return 1;
  }
};

/// The whole row is cut into CP pieces, whatever sequences they belong to: rank r owns the rows
/// [r * T / CP, (r + 1) * T / CP). No length needs a divisor; T must be a multiple of CP. For attention
/// over gathered keys, state-space and linear-attention models; shard_pieces (tokens/shard_pieces.hpp)
/// says what a rank has of which sequence.
struct row_contiguous : contiguous {
  SEQPACK_HD static constexpr bool cuts_row() noexcept { return true; }
  SEQPACK_HD static constexpr offset_t divisor(offset_t /*cp*/) noexcept { return 1; }
  SEQPACK_HD static constexpr offset_t total_divisor(offset_t cp) noexcept { return cp; }
};

/// The context-parallel policy: how many ranks share the row, static or dynamic, and how.
/// `context_parallel<4, zigzag>`, or `context_parallel<>{cp}`, or
/// `context_parallel<dynamic, my_sharding>{cp, my_sharding{...}}`.
///
/// What is static converts to what is chosen at run time: `context_parallel<4>` to
/// `context_parallel<>`, and both to `context_parallel<dynamic, any_sharding>`.
///
/// One rank owns everything in order, whatever the sharding is.
template <offset_t Size = dynamic, sharding Sharding = zigzag>
class context_parallel {
 public:
  using sharding_type = Sharding;
  static constexpr offset_t static_size = Size;

  constexpr context_parallel() = default;
  constexpr explicit context_parallel(Sharding how)
    requires(Size != dynamic)
      : sharding_(how) {}
  /// \throws invalid_input unless 1 <= size <= max_tokens.
  constexpr explicit context_parallel(offset_t size, Sharding how = {})
    requires(Size == dynamic)
      : size_(size, "context_parallel size"), sharding_(how) {}
  template <offset_t OtherSize, sharding Other>
    requires(Size == dynamic || Size == OtherSize) && std::convertible_to<Other, Sharding> &&
            (Size != OtherSize || !std::same_as<Other, Sharding>)
  constexpr context_parallel(const context_parallel<OtherSize, Other>& other) noexcept
      : sharding_(other.how()) {
    if constexpr (Size == dynamic) size_ = extent<>(other.size());
  }

  SEQPACK_HD constexpr offset_t size() const noexcept { return size_.value(); }
  /// The sharding, for 2 ranks and more.
  SEQPACK_HD constexpr const Sharding& how() const noexcept { return sharding_; }

  /// Whether what is cut is the whole row, and not each sequence; not for one rank.
  SEQPACK_HD constexpr bool cuts_row() const noexcept {
    if constexpr (requires(const Sharding& s) { s.cuts_row(); }) {
      return size() > 1 && sharding_.cuts_row();
    } else {
      return false;
    }
  }
  /// What must divide every padded length; 1 for one rank.
  SEQPACK_HD constexpr offset_t divisor() const noexcept {
    return size() == 1 ? 1 : sharding_.divisor(size());
  }
  /// What must divide T, whatever the lengths are: divisor(), or that of the row.
  SEQPACK_HD constexpr offset_t total_divisor() const noexcept {
    if constexpr (requires(const Sharding& s) { s.total_divisor(offset_t{}); }) {
      return size() == 1 ? 1 : sharding_.total_divisor(size());
    } else {
      return divisor();
    }
  }

  SEQPACK_HD constexpr shard_position to_shard(offset_t token, offset_t length) const noexcept {
    return size() == 1 ? shard_position{0, token} : sharding_.to_shard(token, length, size());
  }

  SEQPACK_HD constexpr offset_t to_token(shard_position p, offset_t length) const noexcept {
    return size() == 1 ? p.index : sharding_.to_token(p, length, size());
  }

  SEQPACK_HD constexpr offset_t run(shard_position p, offset_t length) const noexcept {
    return size() == 1 ? length - p.index : sharding_.run(p, length, size());
  }

  /// Calls f with this policy or, where the sharding is chosen at run time, with the same one of a
  /// static sharding. Host only.
  template <class F>
  constexpr void visit(F&& f) const {
    if constexpr (requires { sharding_.visit([](const auto&) {}); }) {
      sharding_.visit(
          [&]<class Chosen>(const Chosen& how) { f(context_parallel<Size, Chosen>(size_, how)); });
    } else {
      f(*this);
    }
  }

 private:
  template <offset_t, seqpack::sharding>
  friend class context_parallel;
  constexpr context_parallel(const extent<Size>& size, const Sharding& how)
      : size_(size), sharding_(how) {}

  extent<Size> size_;
  Sharding sharding_;
};

template <sharding Sharding = zigzag>
context_parallel(offset_t, Sharding = {}) -> context_parallel<dynamic, Sharding>;

/// One rank owns the whole row.
using no_context_parallel = context_parallel<1>;

/// What a layout asks of its context-parallel policy; `context_parallel` is the model.
template <class C>
concept context_parallel_policy =
    std::is_trivially_copyable_v<C> && requires(const C& c, offset_t n, shard_position p) {
      { c.size() } -> std::same_as<offset_t>;
      { c.cuts_row() } -> std::same_as<bool>;
      { c.divisor() } -> std::same_as<offset_t>;
      { c.total_divisor() } -> std::same_as<offset_t>;
      { c.to_shard(n, n) } -> std::same_as<shard_position>;
      { c.to_token(p, n) } -> std::same_as<offset_t>;
      { c.run(p, n) } -> std::same_as<offset_t>;
      typename std::integral_constant<offset_t, C::static_size>;
    };

namespace detail {

/// \throws invalid_input unless 0 <= rank < size.
constexpr void require_rank(offset_t rank, offset_t size) {
  if (rank < 0 || rank >= size) {
    reject("rank", rank, {"it must be from 0 to ", size - 1, ", the last context-parallel rank"});
  }
}

}  // namespace detail

}  // namespace seqpack
