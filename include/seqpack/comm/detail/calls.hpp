/// \file
/// What surrounds the calls of a group: the memory that it may still use after an error, and the
/// name that errors have for what it was asked for.
// For the folders above too.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack::detail {

/// Whether the groups of a communicator never have more than one rank.
template <class C>
inline constexpr bool one_rank = requires { requires C::one_rank; };

/// Makes a call that moves memory of the library. Where it throws and the engine may still read
/// that memory or write to it, the group keeps it; what is refused has not come to the engine.
template <communicator C, class Call>
void keeping(C& group, std::initializer_list<std::shared_ptr<void>> memory, const Call& call) {
  try {
    call();
  } catch (const invalid_input&) {
    throw;
  } catch (...) {
    if constexpr (requires(const std::shared_ptr<void>& one) { group.keep(one); }) {
      for (const auto& one : memory) {
        if (one != nullptr) group.keep(one);
      }
    }
    throw;
  }
}
/// The same for one piece of memory.
template <communicator C, class Call>
void keeping(C& group, const std::shared_ptr<void>& memory, const Call& call) {
  keeping(group, {memory}, call);
}

/// A name for all that a group is asked for while the result lives, for errors: the outermost one
/// counts. Nothing where the group takes no names.
template <class C>
[[nodiscard]] auto name_operation(C& group, std::string_view name) {
  if constexpr (requires { group.name_operation(name); }) {
    return group.name_operation(name);
  } else {
    return nullptr;
  }
}

}  // namespace seqpack::detail
