/// \file
/// What a call needs of an executor and groups that work together: one stream, one current device.
// For the folders above too.
#pragma once

#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack::detail {

/// An executor that does not show its stream is taken at the caller's word.
template <class E, class C>
void require_same_stream(const E& where, const C& group) {
  if constexpr (requires { where.stream == group.stream(); }) {
    if (!(where.stream == group.stream())) {
      reject("stream of the executor", "another one than the group's",
             "both must put their work into the same stream");
    }
  }
}

/// The group's device, where it has one, as the current one: launches go to the device that is
/// current, whatever the stream.
template <communicator C>
auto make_current([[maybe_unused]] const C& group) {
  if constexpr (requires { group.make_current(); }) {
    return group.make_current();
  } else {
    return nullptr;
  }
}

/// The device of two groups, where they have one, as the current one for as long as it is kept.
template <communicator A, communicator B>
struct current_device {
  decltype(make_current(std::declval<const A&>())) of_first;
  decltype(make_current(std::declval<const B&>())) of_second;

  current_device(const A& first, const B& second)
      : of_first(make_current(first)), of_second(make_current(second)) {}
};

}  // namespace seqpack::detail
