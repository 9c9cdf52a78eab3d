/// \file
/// place_on: a layout of the host where an executor works.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout.hpp"

namespace seqpack {

/// The layout for calls of this executor: a view of it, for the host, or a copy on the device,
/// which owns its memory (see to_device, whose header makes executors of devices work here). It
/// answers `view()`; the layout must outlive a view.
template <executor E, class C, class Index>
auto place_on(const E& where, const packed_layout<C, Index>& layout) {
  if constexpr (host_executor<E>) {
    return layout.view();
  } else {
    static_assert(
        requires { to_device(where, layout); },
        "a layout goes to a device by a cuda_stream, which knows a memory resource; "
        "include seqpack/layout/device_layout.cuh");
    return to_device(where, layout);
  }
}

}  // namespace seqpack
