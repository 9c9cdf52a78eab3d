/// \file
/// Packed layouts with exact sizes on a device: from lengths or bounds in device memory, and from a
/// host layout.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/exec/detail/cuda_upload.cuh"
#include "seqpack/layout/detail/access.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/scan.cuh"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/place_on.hpp"

namespace seqpack {

/// When lengths or bounds in device memory are checked.
enum class validation {
  checked,  ///< at once: one read-back, which waits for the stream, then throws as the host does
  deferred  ///< never waits: a status word on the device, which the caller may read later
};

/// What a layout from lengths on a device may be told.
template <layout_index Index>
struct device_layout_options {
  /// S: lengths above it are refused.
  offset_t width = max_tokens;
  /// Slot -> sequence, in device memory; read while the layout is built, then not needed any more.
  /// None: slot k is row k.
  basic_slot_order<Index> order = {};
};

/// A layout whose arrays are in device memory. Sizes are host integers.
///
/// It frees its memory in the order of the stream that it was made with; work of other streams that
/// uses it must be ordered before that. Movable, not copyable.
template <padding_policy Padding, context_parallel_policy ContextParallel,
          layout_index Index = std::int32_t, device_memory_resource Memory = stream_ordered_memory>
class device_layout : public layout_access<device_layout<Padding, ContextParallel, Index, Memory>> {
 public:
  static constexpr bool on_device = true;
  using padding_type = Padding;
  using context_parallel_type = ContextParallel;
  using index_type = Index;
  using view_type = layout_view<Padding, ContextParallel, Index>;

  /// Takes over memory that holds the arrays of a view. The library's own factories call it.
  device_layout(device_buffer<Memory> memory, const view_type& view, const device_summary* summary,
                detail::building::name_function name)
      : memory_(std::move(memory)), view_(view), summary_(summary), name_(name) {}

  /// Its arrays are device memory, valid as long as the layout.
  const view_type& view() const noexcept { return view_; }

  /// Exact sizes and the status, in device memory, once the stream has got there. In a layout that
  /// came from the host only the status means something.
  const device_summary* summary() const noexcept { return summary_; }

  /// Waits for the stream and throws what the device found: lengths or bounds whose validation was
  /// deferred, or a value that a call with this layout could not write (see labels).
  /// \throws invalid_input as make_layout and per_token do on the host.
  void check(cudaStream_t stream) const {
    detail::building::throw_if_refused(detail::building::read_summary(summary_, stream), name_);
  }

 private:
  device_buffer<Memory> memory_;
  view_type view_;
  const device_summary* summary_;
  detail::building::name_function name_;
};

namespace detail::building {

/// Allocates and scans; reads back and throws, unless validation is deferred. Then the sizes are
/// the bounds that the caller gave: the known total and the width.
template <validation When, layout_index Index, class Memory, class Pinned, class Input, class P,
          class C>
device_layout<P, C, Index, Memory> make(const cuda_stream<Memory, Pinned>& where,
                                        const Input& input, const bounds_rules<Index, P, C>& rules,
                                        offset_t batch, offset_t known_total) {
  if constexpr (When == validation::checked) detail::staging::require_no_capture(where.stream);
  store_item<Input, bounds_rules<Index, P, C>, Index> store{input, rules, {}, known_total};
  std::size_t scan_bytes = 0;
  scan(nullptr, scan_bytes, store, where.stream);
  const memory_map<Index> map(store.last_item() + 1, input.slots, batch, Input::has_order,
                              scan_bytes);
  device_buffer<Memory> memory(where, map.bytes());
  store.arrays = map.arrays(memory.data());
  map.prepare(memory.data(), where.stream);
  scan(map.scan_memory(memory.data()), scan_bytes, store, where.stream);

  auto view = view_of(store.arrays, rules.padding, rules.cp, input.slots, batch);
  if constexpr (When == validation::deferred) {
    view.total = known_total;
    view.longest = min_of(rules.width, known_total);
    view.longest_padded = known_total;
    view.padded = true;
  } else {
    const device_summary summary = read_summary(store.arrays.summary, where.stream, where.pinned);
    throw_if_refused(summary, &Input::name);
    view.total = summary.plan.total;
    view.longest = summary.plan.longest;
    view.longest_padded = summary.plan.longest_padded;
    view.padded = summary.plan.total != summary.plan.real;
  }
  return {std::move(memory), view, store.arrays.summary, &Input::name};
}

}  // namespace detail::building

/// Makes a layout with exact sizes from lengths in device memory.
///
///     auto layout = make_layout(cuda_stream{stream}, std::span(lengths, batch), padding{...});
///
/// \param where the stream, and the resource that the arrays come from
/// \param lengths device memory: B integers, read in the order of the stream
/// \param options the width; an order in device memory
/// \throws invalid_input with the same texts as make_layout on the host, naming the first length
/// that is wrong; cuda_error.
///
/// Two launches, one memset, one allocation, and one synchronisation: the sizes are read back.
/// O(B).
template <layout_index Index = std::int32_t, class Memory, class Pinned, std::integral Length,
          padding_policy P = no_padding, context_parallel_policy C = no_context_parallel>
device_layout<P, C, Index, Memory> make_layout(const cuda_stream<Memory, Pinned>& where,
                                               std::span<const Length> lengths,
                                               const P& padding = {}, const C& cp = {},
                                               const device_layout_options<Index>& options = {}) {
  require_policies_fit(padding, cp);
  const auto batch = static_cast<offset_t>(lengths.size());
  detail::building::require_sizes(batch, options.width);
  const bounds_rules<Index, P, C> rules{padding, cp, options.width};
  const offset_t total = P::has_fixed_total ? padding.fixed_total() : max_tokens;
  const auto make = [&](const auto& input) {
    return detail::building::make<validation::checked, Index>(where, input, rules, batch, total);
  };
  if (!options.order) {
    return make(detail::building::length_input<Length, Index, offset_t, false>{
        lengths.data(), nullptr, batch, batch, nullptr, max_tokens});
  }
  const auto slots = static_cast<offset_t>(options.order.size());
  detail::building::require_sizes(slots, options.width);
  return make(detail::building::length_input<Length, Index, offset_t, true>{
      lengths.data(), options.order.rows().data(), slots, batch, nullptr, max_tokens});
}

/// Adopts bounds in device memory, as from_cu_seqlens on the host does; the bounds are copied.
///
/// \tparam When checked: reads back, throws, and knows the exact sizes. deferred: never waits;
/// refused bounds count as empty sequences and set the status, which check() reads; max_length() is
/// the width and max_seqlen() the total.
/// \throws invalid_input with the texts of the host; cuda_error.
///
/// Two launches, one memset, one allocation; one synchronisation if checked, none if deferred.
/// O(B).
template <layout_index Index = std::int32_t, validation When = validation::checked, class Memory,
          class Pinned, std::integral Bound, context_parallel_policy C = no_context_parallel>
device_layout<no_padding, C, Index, Memory> from_cu_seqlens(
    const cuda_stream<Memory, Pinned>& where, std::span<const Bound> cu,
    std::span<const Bound> cu_padded, offset_t total, const C& cp = {},
    offset_t width = max_tokens) {
  if (cu.empty()) reject("size of cu_seqlens", 0, "it must have at least 1 entry");
  if (cu_padded.size() != cu.size()) {
    reject("number of entries of cu_seqlens_padded", static_cast<offset_t>(cu_padded.size()),
           "it must be " + std::to_string(cu.size()) + ", as many as cu_seqlens has");
  }
  const auto slots = static_cast<offset_t>(cu.size()) - 1;
  detail::building::require_sizes(slots, width);
  if (total < 0 || total > max_total<Index>) {
    reject("total", total, "it must be from 0 to " + std::to_string(max_total<Index>));
  }
  if (When == validation::deferred && slots == 0 && total != 0) {
    reject("total", total, "it must be 0, as there are no sequences");
  }
  if (When == validation::deferred && total % cp.divisor() != 0) {
    reject("total", total,
           "it must be a multiple of " + std::to_string(cp.divisor()) +
               ", what the sharding divides by");
  }
  const bounds_rules<Index, no_padding, C> rules{{}, cp, width};
  const detail::building::bounds_input<Bound, Index> input{cu.data(), cu_padded.data(), slots,
                                                           total};
  return detail::building::make<When, Index>(where, input, rules, slots, total);
}

namespace detail::building {

/// The arrays of a host layout as the block of memory that a map describes.
template <layout_index Index, class View>
void write_image(const View& from, const memory_map<Index>& map, void* image) {
  const auto arrays = map.arrays(image);
  const auto copy = [](Index* to, const Index* source, offset_t count) {
    if (to != nullptr) std::copy_n(source, count, to);
  };
  copy(arrays.cu, from.cu, from.segments + 1);
  copy(arrays.cu_padded, from.cu_padded, from.segments + 1);
  copy(arrays.order, from.order, from.sequences);
  copy(arrays.slot_of, from.slot_of, from.batch);
  new (arrays.summary) device_summary{};
}

}  // namespace detail::building

/// Copies a host layout to the device. Never waits, unless the pool of pinned memory must grow, and
/// the host layout may go away when the call has returned.
///
/// Arrays of up to 31,500 bytes together (about 3,900 sequences with 32-bit bounds) travel as
/// parameters of one launch, which may be captured: the bounds are part of the graph then. Longer
/// ones are one copy from memory of where.pinned, which a graph could not keep.
/// \throws cuda_error; cudaErrorStreamCaptureUnsupported for longer ones in a capture.
///
/// One allocation; one launch or one copy. O(B).
template <class Memory, class Pinned, padding_policy P, context_parallel_policy C,
          layout_index Index>
device_layout<P, C, Index, Memory> to_device(const cuda_stream<Memory, Pinned>& where,
                                             const packed_layout<P, C, Index>& layout) {
  const auto from = layout.view();
  const bool ordered = from.slot_of != nullptr;  // also for an order of no slots
  const detail::building::memory_map<Index> map(from.segments + 1, from.sequences, from.batch,
                                                ordered, 0);
  device_buffer<Memory> memory(where, map.bytes());
  const auto fill = [&](void* image) { detail::building::write_image(from, map, image); };
  if (map.image_bytes() <= detail::launching::most_launch_bytes) {
    detail::launching::upload(where.stream, memory.data(), map.image_bytes(), fill);
  } else {
    detail::staging::write(where.stream, where.pinned, memory.data(), map.image_bytes(), fill);
  }
  const auto arrays = map.arrays(memory.data());
  auto view = from;
  view.cu = arrays.cu;
  view.cu_padded = arrays.cu_padded;
  view.order = arrays.order;
  view.slot_of = arrays.slot_of;
  view.status = &arrays.summary->plan.status;
  return {std::move(memory), view, arrays.summary, &detail::building::no_name};
}

/// A copy on the device.
template <class Memory, class Pinned>
struct layout_residence<cuda_stream<Memory, Pinned>> {
  template <class P, class C, class Index>
  static auto place(const cuda_stream<Memory, Pinned>& where,
                    const packed_layout<P, C, Index>& layout) {
    return to_device(where, layout);
  }
};

}  // namespace seqpack
