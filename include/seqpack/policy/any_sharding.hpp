/// \file
/// any_sharding: one of the shardings of the library, chosen at run time.
#pragma once

#include <concepts>
#include <cstdint>

#include "seqpack/core/config.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// The shardings of the library as a value.
enum class sharding_kind : std::int32_t { zigzag, contiguous, striped, row_contiguous };

/// Does what the sharding of its kind does. With it a program, or a binding for another language,
/// instantiates one `context_parallel<dynamic, any_sharding>` for all shardings and sizes, and
/// layouts of all of them are one type.
///
///     context_parallel cp{ranks, any_sharding{sharding_kind::striped}};
///     context_parallel<dynamic, any_sharding> same = context_parallel<4, striped>{};
struct any_sharding {
  sharding_kind kind = sharding_kind::zigzag;

  constexpr any_sharding() = default;
  constexpr any_sharding(sharding_kind how) noexcept : kind(how) {}
  /// The types themselves, not those that derive from them and may do something else.
  constexpr any_sharding(std::same_as<zigzag> auto) noexcept : kind(sharding_kind::zigzag) {}
  constexpr any_sharding(std::same_as<contiguous> auto) noexcept
      : kind(sharding_kind::contiguous) {}
  constexpr any_sharding(std::same_as<striped> auto) noexcept : kind(sharding_kind::striped) {}
  constexpr any_sharding(std::same_as<row_contiguous> auto) noexcept
      : kind(sharding_kind::row_contiguous) {}

  /// Calls f with the sharding itself, so that a loop over many runs asks for the kind once.
  template <class F>
  constexpr void visit(F&& f) const {
    switch (kind) {
      case sharding_kind::contiguous: return f(contiguous{});
      case sharding_kind::striped: return f(striped{});
      case sharding_kind::row_contiguous: return f(row_contiguous{});
      case sharding_kind::zigzag: break;
    }
    f(zigzag{});
  }

  SEQPACK_HD constexpr bool cuts_row() const noexcept {
    return kind == sharding_kind::row_contiguous;
  }
  SEQPACK_HD constexpr offset_t divisor(offset_t cp) const noexcept {
    if (kind == sharding_kind::zigzag) return zigzag::divisor(cp);
    return cuts_row() ? 1 : cp;
  }
  SEQPACK_HD constexpr offset_t total_divisor(offset_t cp) const noexcept {
    return kind == sharding_kind::zigzag ? zigzag::divisor(cp) : cp;
  }

  SEQPACK_HD constexpr shard_position to_shard(offset_t token, offset_t length,
                                               offset_t cp) const noexcept {
    switch (kind) {
      case sharding_kind::contiguous:
      case sharding_kind::row_contiguous: return contiguous::to_shard(token, length, cp);
      case sharding_kind::striped: return striped::to_shard(token, length, cp);
      case sharding_kind::zigzag: break;
    }
    return zigzag::to_shard(token, length, cp);
  }

  SEQPACK_HD constexpr offset_t to_token(shard_position p, offset_t length,
                                         offset_t cp) const noexcept {
    switch (kind) {
      case sharding_kind::contiguous:
      case sharding_kind::row_contiguous: return contiguous::to_token(p, length, cp);
      case sharding_kind::striped: return striped::to_token(p, length, cp);
      case sharding_kind::zigzag: break;
    }
    return zigzag::to_token(p, length, cp);
  }

  SEQPACK_HD constexpr offset_t run(shard_position p, offset_t length, offset_t cp) const noexcept {
    switch (kind) {
      case sharding_kind::contiguous:
      case sharding_kind::row_contiguous: return contiguous::run(p, length, cp);
      case sharding_kind::striped: return striped::run(p, length, cp);
      case sharding_kind::zigzag: break;
    }
    return zigzag::run(p, length, cp);
  }

  friend constexpr bool operator==(const any_sharding&, const any_sharding&) = default;
};

}  // namespace seqpack
