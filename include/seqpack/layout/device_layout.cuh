/// \file
/// Packed layouts with exact sizes on a device: from lengths or bounds in device memory, and from a
/// host layout.
#pragma once

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/access.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/scan.cuh"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// When lengths or bounds in device memory are checked.
enum class validation {
  checked,  ///< at once: one read-back, which waits for the stream, then throws as the host does
  deferred  ///< never waits: a status word on the device, which the caller may read later
};

/// Options of make_layout from lengths on a device.
template <layout_index Index>
struct device_layout_options {
  /// S: lengths above it are refused.
  offset_t width = max_tokens;
  /// Slot -> sequence, in device memory; read while the layout is built, then not needed any more.
  /// None: slot k holds sequence k.
  basic_slot_order<Index> order = {};
};

/// A layout whose arrays are in device memory. Sizes are host integers.
///
/// It frees its memory in the order of the stream that it was made with; work of other streams that
/// uses it must be ordered before that. Copies share the memory.
template <context_parallel_policy ContextParallel, layout_index Index = std::int32_t>
class device_layout : public detail::layout_access<device_layout<ContextParallel, Index>> {
 public:
  static constexpr bool on_device = true;
  using context_parallel_type = ContextParallel;
  using index_type = Index;
  using view_type = layout_view<ContextParallel, Index>;

  /// Takes over memory that holds the arrays of a view. The library's own factories call it.
  device_layout(std::shared_ptr<void> memory, const view_type& view, const device_summary* summary,
                detail::building::name_function name)
      : memory_(std::move(memory)), view_(view), summary_(summary), name_(name) {}
  device_layout(detail::building::built<Index> built, const ContextParallel& cp)
      : device_layout(std::move(built.memory), built.view(cp), built.arrays.summary, built.name) {}
  /// The same layout with its policy chosen at run time.
  template <context_parallel_policy Other>
    requires std::convertible_to<Other, ContextParallel> && (!std::same_as<Other, ContextParallel>)
  device_layout(device_layout<Other, Index> other)
      : device_layout(std::move(other.memory_), other.view_, other.summary_, other.name_) {}

  /// Its arrays are device memory, valid as long as the layout.
  const view_type& view() const noexcept { return view_; }

  /// Exact sizes and the status, in device memory, once the stream reaches that point. In a layout
  /// that came from the host only the status means something.
  const device_summary* summary() const noexcept { return summary_; }

  /// Waits for the stream and throws what the device found: lengths or bounds whose validation was
  /// deferred, or a value that a call with this layout could not write (see labels).
  /// \throws invalid_input as make_layout and per_token do on the host.
  void check(cudaStream_t stream) const {
    detail::building::throw_if_refused(detail::building::read_summary(summary_, stream), name_);
  }

 private:
  template <context_parallel_policy, layout_index>
  friend class device_layout;

  std::shared_ptr<void> memory_;
  view_type view_;
  const device_summary* summary_;
  detail::building::name_function name_;
};

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
device_layout<C, Index> make_layout(const cuda_stream<Memory, Pinned>& where,
                                    std::span<const Length> lengths, const P& padding = {},
                                    const C& cp = {},
                                    const device_layout_options<Index>& options = {}) {
  auto rules =
      detail::rules_of<Index>(detail::rounding_on_device(padding), padding, cp, options.width);
  if (options.order && options.order.size() == 0) rules = rules.for_no_slots();
  const auto batch = static_cast<offset_t>(lengths.size());
  detail::building::require_sizes(batch, options.width);
  const auto make = [&](const auto& input) -> device_layout<C, Index> {
    return {detail::building::build<false>(where, input, rules, batch, rules.known_total()), cp};
  };
  if (!options.order) {
    return make(detail::building::length_input<Length, Index, offset_t, false>{
        lengths.data(), nullptr, batch, batch, nullptr, max_tokens});
  }
  const auto slots = static_cast<offset_t>(options.order.size());
  detail::building::require_sizes(slots, options.width);
  return make(detail::building::length_input<Length, Index, offset_t, true>{
      lengths.data(), options.order.sequences().data(), slots, batch, nullptr, max_tokens});
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
device_layout<C, Index> from_cu_seqlens(const cuda_stream<Memory, Pinned>& where,
                                        std::span<const Bound> cu, std::span<const Bound> cu_padded,
                                        offset_t total, const C& cp = {},
                                        offset_t width = max_tokens) {
  if (cu.empty()) reject("size of cu_seqlens", 0, "it must have at least 1 entry");
  if (cu_padded.size() != cu.size()) {
    reject("number of entries of cu_seqlens_padded", static_cast<offset_t>(cu_padded.size()),
           {"it must be ", cu.size(), ", as many as cu_seqlens has"});
  }
  const auto slots = static_cast<offset_t>(cu.size()) - 1;
  detail::building::require_sizes(slots, width);
  if (total < 0 || total > detail::max_total<Index>) {
    reject("total", total, {"it must be from 0 to ", detail::max_total<Index>});
  }
  if (When == validation::deferred && slots == 0 && total != 0) {
    reject("total", total, "it must be 0, as there are no sequences");
  }
  if (When == validation::deferred && total % cp.total_divisor() != 0) {
    reject("total", total,
           {"it must be a multiple of ", cp.total_divisor(), ", what the sharding divides by"});
  }
  const auto rules = detail::rules_of_bounds<Index>(cp, width);
  const detail::building::bounds_input<Bound, Index> input{cu.data(), cu_padded.data(), slots,
                                                           total};
  constexpr bool deferred = When == validation::deferred;
  return {detail::building::build<deferred>(where, input, rules, slots, total), cp};
}

/// Copies a host layout to the device of any executor that the library can allocate for. The host
/// layout may go away when the call has returned.
///
/// A cuda_stream never waits, unless the pool of pinned memory must grow. Arrays of up to 31,500
/// bytes together (about 3,900 sequences with 32-bit bounds) travel as parameters of one launch,
/// which may be captured: the bounds are part of the graph then. Longer ones are one copy from memory
/// of where.pinned, which a graph could not keep.
/// \throws cuda_error; cudaErrorStreamCaptureUnsupported for longer ones in a capture.
///
/// One allocation; one launch or one copy. O(B).
template <memory_executor E, context_parallel_policy C, layout_index Index>
  requires device_executor<E>
device_layout<C, Index> to_device(const E& where, const packed_layout<C, Index>& layout) {
  const auto from = layout.view();
  const bool ordered = from.slot_of != nullptr;  // also for an order of no slots
  const detail::building::memory_map<Index> map(from.segments + 1, from.sequences, from.batch,
                                                ordered, 0);
  using traits = executor_traits<E>;
  auto memory = traits::allocate(where, static_cast<offset_t>(map.bytes()));
  traits::write(where, memory.get(), static_cast<offset_t>(map.image_bytes()),
                [&](void* image) { detail::building::write_image(from, map, image); });
  const auto arrays = map.arrays(memory.get());
  auto view = from;
  view.cu = arrays.cu;
  view.cu_padded = arrays.cu_padded;
  view.order = arrays.order;
  view.slot_of = arrays.slot_of;
  view.status = &arrays.summary->sizes.status;
  return {std::move(memory), view, arrays.summary, &detail::building::no_name};
}

}  // namespace seqpack
