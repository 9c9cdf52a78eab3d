/// \file
/// An executor and a group of ranks that work together: the same memory, stream and device.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/self.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/exec/executor.hpp"

namespace seqpack {

/// An executor and a group that work in the same memory: both on the host, or both on a device. The
/// group of one moves nothing, and goes with any executor.
template <class E, class C>
concept gathers_on =
    executor<E> && communicator<C> &&
    (std::same_as<C, self_communicator> ||
     bool{executor_traits<std::remove_cvref_t<E>>::on_device} == bool{C::on_device});

namespace detail {

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

}  // namespace detail

}  // namespace seqpack
