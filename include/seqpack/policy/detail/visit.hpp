/// \file
/// A context-parallel policy with its sharding known at compile time.
// For the folders above too.
#pragma once

#include <utility>

#include "seqpack/core/config.hpp"

namespace seqpack::detail {

/// Whether a policy may cut the whole row: what only these do is not compiled for the others.
template <class ContextParallel>
inline constexpr bool may_cut_row = true;
template <class ContextParallel>
  requires requires { typename ContextParallel::sharding_type; }
inline constexpr bool may_cut_row<ContextParallel> =
    requires(const typename ContextParallel::sharding_type& s) { s.cuts_row(); };

/// Whether a policy does so with more than one rank, whatever its numbers are.
template <class ContextParallel>
inline constexpr bool always_cuts_row = false;
template <class ContextParallel>
  requires requires { requires ContextParallel::sharding_type::cuts_row(); }
inline constexpr bool always_cuts_row<ContextParallel> = true;

/// Calls f with the policy or, where it chooses its sharding at run time, with the same policy of a
/// static one: a loop over runs then asks once, and is the static one.
template <class ContextParallel, class F>
constexpr void with_static_sharding(const ContextParallel& cp, F&& f) {
  if constexpr (requires { cp.visit([](const auto&) {}); }) {
    cp.visit(std::forward<F>(f));
  } else {
    f(cp);
  }
}

}  // namespace seqpack::detail
