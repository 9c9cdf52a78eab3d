/// \file
/// An executor and a group of ranks that work together: the same memory, stream and device.
#pragma once

#include <concepts>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/self.hpp"
#include "seqpack/exec/executor.hpp"

namespace seqpack {

/// An executor and a group that work in the same memory: both on the host, or both on a device. The
/// group of one moves nothing, and goes with any executor.
template <class E, class C>
concept gathers_on =
    executor<E> && communicator<C> &&
    (std::same_as<C, self_communicator> ||
     bool{executor_traits<std::remove_cvref_t<E>>::on_device} == bool{C::on_device});

}  // namespace seqpack
