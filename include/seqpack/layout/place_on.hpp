/// \file
/// resident: a layout of the host where an executor works.
#pragma once

#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout.hpp"

namespace seqpack {

/// How a layout gets to where an executor works. This form serves every executor of the host;
/// cuda_stream has its own.
template <class E>
struct layout_residence {
  static_assert(host_executor<E>,
                "a layout goes to a device by a cuda_stream, which knows a memory resource");

  /// A view of the layout itself.
  template <class P, class C, class Index>
  static auto place(const E&, const packed_layout<P, C, Index>& layout) {
    return layout.view();
  }
};

/// The layout for calls of this executor: a view of it, for the host, or a copy on the device,
/// which owns its memory (see to_device). It answers `view()`; the layout must outlive a view.
template <executor E, class P, class C, class Index>
auto place_on(const E& where, const packed_layout<P, C, Index>& layout) {
  return layout_residence<std::remove_cvref_t<E>>::place(where, layout);
}

}  // namespace seqpack
