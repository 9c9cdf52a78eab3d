/// \file
/// Layouts with a capacity: shapes that do not depend on the lengths, for CUDA graphs.
#pragma once

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstdint>
#include <memory>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/layout/detail/access.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/scan.cuh"
#include "seqpack/layout/layout_status.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// What bounds the shapes of a layout whose lengths are not known on the host.
struct capacity {
  offset_t sequences = 0;  ///< the largest number of sequences: B of the batches
  /// S: longer sequences are refused, and batches must be at least as wide (or as the total, if
  /// that is less).
  offset_t width = max_tokens;
  offset_t max_seqlen = max_tokens;  ///< a bound of the longest padded length; default: the total
};

/// A layout with a capacity: all shapes are fixed when it is made, and build() can be called any
/// number of times with other lengths, and captured in a CUDA graph and replayed. Validation is
/// deferred.
///
/// Both arrays have sequences + 1 entries (+ 1 with a ghost); spare ones repeat the last value.
/// max_seqlen() is the bound of the capacity, has_padding() is true. Lengths that do not fit set
/// the status and touch nothing out of bounds; check() reads it.
///
/// \tparam Rounding how each sequence is padded: extent<> for all paddings of the library, whose
/// layouts are one type, else the user's own policy
template <context_parallel_policy ContextParallel, layout_index Index = std::int32_t,
          class Rounding = extent<>>
class capacity_layout
    : public detail::layout_access<capacity_layout<ContextParallel, Index, Rounding>> {
 public:
  static constexpr bool on_device = true;
  using context_parallel_type = ContextParallel;
  using index_type = Index;
  using view_type = layout_view<ContextParallel, Index>;

  /// Allocates everything; the layout is one of no sequences until it is built. One allocation,
  /// three memsets, no synchronisation.
  /// \param padding with a fixed total
  /// \throws invalid_input for policies that do not fit, a total that Index cannot hold, a negative
  /// capacity; cuda_error
  template <class Memory, class Pinned, padding_policy Padding>
    requires std::same_as<detail::device_rounding<Padding>, Rounding>
  capacity_layout(const cuda_stream<Memory, Pinned>& where, const capacity& bound,
                  const Padding& padding, const ContextParallel& cp, bool ordered = false)
      : rules_(
            detail::rules_of<Index>(detail::rounding_on_device(padding), padding, cp, bound.width)),
        max_seqlen_(min_of(bound.max_seqlen, rules_.known_total())),
        map_(0, 0, 0, false, 0) {
    detail::require_fixed_total(padding);
    detail::building::require_sizes(bound.sequences, bound.width);
    if (bound.max_seqlen < 0) reject("max_seqlen", bound.max_seqlen, "it must be at least 0");
    const offset_t total = rules_.known_total();
    if (total > detail::max_total<Index>) {
      detail::throw_status({layout_error::total_above_range, -1, total, detail::max_total<Index>},
                           "");
    }
    const offset_t entries = bound.sequences + 1 + rules_.ghost;
    std::size_t scan_bytes = 0;
    // The temporary memory depends on the number of items and on the type of the sums alone.
    using input = detail::building::length_input<Index, Index, Index, false>;
    detail::building::scan(nullptr, scan_bytes,
                           store_for(input{nullptr, nullptr, bound.sequences, 0, nullptr, 0}),
                           where.stream);
    map_ = detail::building::memory_map<Index>(entries, bound.sequences, bound.sequences, ordered,
                                               scan_bytes);
    memory_ = detail::allocate(where.memory, where.stream, map_.bytes());
    map_.clear(memory_.get(), where.stream);
    arrays_ = map_.arrays(memory_.get());
    const layout_sizes sizes{.sequences = bound.sequences,
                             .segments = entries - 1,
                             .real = -1,  // not known
                             .total = total,
                             .longest = min_of(bound.width, total),
                             .longest_padded = max_seqlen_};
    view_ = detail::building::view_of(arrays_, sizes, bound.sequences, cp);
  }

  // A copy would share what build() writes.
  capacity_layout(capacity_layout&&) noexcept = default;
  capacity_layout& operator=(capacity_layout&&) noexcept = default;

  const view_type& view() const noexcept { return view_; }

  /// Exact sizes and the status of the last build, in device memory.
  const device_summary* summary() const noexcept { return arrays_.summary; }

  /// Builds the layout of other lengths. Two launches and one memset; allocates nothing, never
  /// synchronises, may be captured.
  /// \param lengths device memory, one entry per sequence; the first *count are read
  /// \param count device memory: the number of sequences; with an order, of slots
  /// \param order device memory, as many entries as there are slots; only for a layout made with
  /// ordered = true
  /// \throws invalid_input for a pointer that is null or misaligned, or that points into the
  /// layout's own memory, which is written; cuda_error
  template <std::integral Length, std::integral Count>
  void build(cudaStream_t stream, const Length* lengths, const Count* count,
             const Index* order = nullptr) {
    if ((order != nullptr) != (arrays_.order != nullptr)) {
      reject("order", order == nullptr ? "missing" : "given",
             "a layout is made with or without an order");
    }
    detail::require_memory(detail::alone, "count", count, 1);
    detail::require_memory(detail::alone, "lengths", lengths, view_.sequences);
    if (order != nullptr) detail::require_memory(detail::alone, "order", order, view_.sequences);
    require_apart(lengths, count, order);
    const auto run = [&](const auto& input) {
      std::size_t bytes = map_.scan_bytes();
      map_.prepare(memory_.get(), stream);
      detail::building::scan(map_.scan_memory(memory_.get()), bytes, store_for(input), stream);
    };
    const offset_t slots = view_.sequences;
    if (order == nullptr) {
      run(detail::building::length_input<Length, Index, Count, false>{lengths, nullptr, slots,
                                                                      slots, count, max_seqlen_});
    } else {
      run(detail::building::length_input<Length, Index, Count, true>{lengths, order, slots, slots,
                                                                     count, max_seqlen_});
    }
  }

  /// Waits for the stream and throws what the device found in the last build.
  /// \throws invalid_input with the texts of make_layout
  void check(cudaStream_t stream) const {
    using input = detail::building::length_input<Index, Index, Index, false>;
    detail::building::throw_if_refused(detail::building::read_summary(arrays_.summary, stream),
                                       &input::name);
  }

 private:
  using rules_type = detail::bounds_rules<Index, Rounding>;

  template <class Input>
  detail::building::store_item<Input, rules_type, Index> store_for(const Input& input) const {
    return {input, rules_, arrays_, rules_.known_total()};
  }

  /// The arrays of the last build may not be the lengths of the next one, which overwrites them.
  template <class Length, class Count>
  void require_apart(const Length* lengths, const Count* count, const Index* order) const {
    detail::regions<3, 1> memory;
    memory.read(bytes_of(lengths, view_.sequences), detail::alone, "lengths");
    memory.read(bytes_of(count, 1), detail::alone, "count");
    if (order != nullptr) memory.read(bytes_of(order, view_.sequences), detail::alone, "order");
    memory.write(
        bytes_of(static_cast<const char*>(memory_.get()), static_cast<offset_t>(map_.bytes())),
        detail::of_layout, "arrays");
    memory.require_apart();
  }

  rules_type rules_;
  offset_t max_seqlen_;
  detail::building::memory_map<Index> map_;
  std::shared_ptr<void> memory_;
  detail::building::device_arrays<Index> arrays_{};
  view_type view_{};
};

template <class Memory, class Pinned, padding_policy Padding,
          context_parallel_policy ContextParallel>
capacity_layout(const cuda_stream<Memory, Pinned>&, const capacity&, const Padding&,
                const ContextParallel&, bool = false)
    -> capacity_layout<ContextParallel, std::int32_t, detail::device_rounding<Padding>>;

}  // namespace seqpack
