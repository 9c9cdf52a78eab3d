/// \file
/// Packed layouts on a device: from lengths or bounds in device memory, from a host layout, and
/// with a capacity, for CUDA graphs.
#pragma once

#include <cuda_runtime_api.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <concepts>
#include <cstdint>
#include <cub/device/device_scan.cuh>
#include <span>
#include <string>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/pack/adopt.hpp"
#include "seqpack/pack/bounds.hpp"
#include "seqpack/pack/layout.hpp"
#include "seqpack/pack/layout_access.hpp"
#include "seqpack/pack/layout_view.hpp"

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
  /// Slot -> batch row, in device memory; read while the layout is built, then not needed any more.
  /// None: slot k is row k.
  basic_slot_order<Index> order = {};
};

/// What the scan leaves on the device besides the arrays: all sizes and the status.
struct device_summary {
  bounds_plan plan{};
  /// /// A slot that was found to have the batch row of another one, and that row, in the high and the low
  /// 32 bits; all bits set: none was. Of a row that three slots have, either later one may be named.
  std::uint64_t repeated = no_repetition;

  static constexpr std::uint64_t no_repetition = ~std::uint64_t{0};

  SEQPACK_HD layout_status status() const noexcept {
    if (!plan.status.ok() || repeated == no_repetition) return plan.status;
    return {layout_error::order_repeats, static_cast<offset_t>(repeated >> 32),
            static_cast<offset_t>(repeated & 0xFFFFFFFFU), 0};
  }
};

namespace building {

/// Sums over the slots so far. Saturating, so that no device data can make them wrap.
struct scan_state {
  offset_t real = 0;
  offset_t content = 0;
  offset_t longest = 0;
  offset_t longest_padded = 0;
  offset_t first_bad = max_tokens;  ///< the first slot that was refused
};

struct combine {
  SEQPACK_HD scan_state operator()(const scan_state& a, const scan_state& b) const {
    return {min_of(a.real + b.real, saturated_sum), min_of(a.content + b.content, saturated_sum),
            max_of(a.longest, b.longest), max_of(a.longest_padded, b.longest_padded),
            min_of(a.first_bad, b.first_bad)};
  }
};

/// Lengths in device memory, in batch order, with their number known on the host or on the device.
template <class Length, layout_index Index, class Count, bool Ordered>
struct length_input {
  static constexpr bool has_order = Ordered;
  static std::string name(offset_t row) { return entry_name("lengths", row); }

  const Length* lengths;
  const Index* order;  // read only if Ordered
  offset_t slots;      // the largest number of sequences
  offset_t batch;
  const Count* counted;  // null: all slots
  offset_t max_seqlen;

  SEQPACK_HD offset_t raw_count() const {
    return counted == nullptr ? slots : layout_inputs::to_offset(*counted);
  }
  SEQPACK_HD offset_t count() const { return max_of(min_of(raw_count(), slots), 0); }
  SEQPACK_HD offset_t row(offset_t slot) const {
    if constexpr (Ordered) {
      return static_cast<offset_t>(order[slot]);
    } else {
      return slot;
    }
  }
  SEQPACK_HD bool row_exists(offset_t slot) const { return row(slot) >= 0 && row(slot) < batch; }
  SEQPACK_HD offset_t length(offset_t slot) const {
    return layout_inputs::to_offset(lengths[row(slot)]);
  }
  template <class Rules>
  SEQPACK_HD layout_status check(const Rules& rules, offset_t slot) const {
    if (!row_exists(slot)) return {layout_error::order_out_of_range, slot, row(slot), batch - 1};
    return named(rules.check(slot, count(), length(slot)));
  }
  /// Errors name the batch row of a length, not its slot.
  SEQPACK_HD layout_status named(layout_status status) const {
    if (status.entry >= 0) status.entry = row(status.entry);
    return status;
  }
  template <class Rules>
  SEQPACK_HD offset_t padded_length(const Rules& rules, offset_t slot) const {
    return rules.padding.padded_length(length(slot));
  }
  SEQPACK_HD void describe_padded(bounds_plan&, offset_t) const {}
  SEQPACK_HD layout_status check_sums(const bounds_plan& plan) const {
    if (raw_count() != count()) {
      return {layout_error::count_out_of_range, -1, raw_count(), slots};
    }
    if (!plan.status.ok()) return named(plan.status);
    if (plan.longest_padded > max_seqlen) {
      return {layout_error::above_max_seqlen, -1, plan.longest_padded, max_seqlen};
    }
    return {};
  }
};

/// Bounds that another system made, in device memory.
template <class Bound, layout_index Index>
struct bounds_input {
  const Bound* cu;
  const Bound* cu_padded;
  offset_t slots;
  offset_t total;

  static constexpr bool has_order = false;
  static std::string name(offset_t slot) { return "sequence " + std::to_string(slot); }

  SEQPACK_HD offset_t count() const { return slots; }
  SEQPACK_HD offset_t at(const Bound* bounds, offset_t k) const {
    return layout_inputs::to_offset(bounds[k]);
  }
  SEQPACK_HD offset_t length(offset_t slot) const { return at(cu, slot + 1) - at(cu, slot); }
  template <class Rules>
  SEQPACK_HD offset_t padded_length(const Rules&, offset_t slot) const {
    return at(cu_padded, slot + 1) - at(cu_padded, slot);
  }
  template <class Rules>
  SEQPACK_HD layout_status check(const Rules& rules, offset_t slot) const {
    const layout_status real =
        check_bounds(cu, slot, layout_error::cu_first_not_zero, layout_error::cu_decreases);
    if (!real.ok()) return real;
    const layout_status padded = check_bounds(
        cu_padded, slot, layout_error::cu_padded_first_not_zero, layout_error::cu_padded_decreases);
    if (!padded.ok()) return padded;
    return adopted::check(rules, slot, length(slot), padded_length(rules, slot));
  }
  SEQPACK_HD layout_status check_bounds(const Bound* bounds, offset_t slot, layout_error not_zero,
                                        layout_error decreases) const {
    const offset_t begin = at(bounds, slot);
    const offset_t end = at(bounds, slot + 1);
    if (slot == 0 && begin != 0) return {not_zero, 0, begin, 0};
    if (end < begin) return {decreases, slot + 1, end, begin};
    return {};
  }
  /// The padding is in the bounds, not in a policy.
  SEQPACK_HD void describe_padded(bounds_plan& plan, offset_t longest_padded) const {
    plan.longest_padded = longest_padded;
  }
  SEQPACK_HD layout_status check_sums(const bounds_plan& plan) const {
    if (plan.content != total) return {layout_error::total_differs, slots, plan.content, total};
    return plan.status;
  }
};

/// The scan's item k is slot k - 1; item 0 gives the first entry of the arrays, 0.
template <class Input, class Rules>
struct load_item {
  Input input;
  Rules rules;

  SEQPACK_HD scan_state operator()(offset_t item) const {
    const offset_t slot = item - 1;
    if (slot < 0 || slot >= input.count()) return {};
    if (!input.check(rules, slot).ok()) return {.first_bad = slot};
    const offset_t length = input.length(slot);
    const offset_t padded = input.padded_length(rules, slot);
    return {length, padded, length, padded, max_tokens};
  }
};

/// Where the scan writes.
template <layout_index Index>
struct device_arrays {
  Index* cu = nullptr;
  Index* cu_padded = nullptr;
  Index* order = nullptr;    // null without an order
  Index* slot_of = nullptr;  // likewise
  device_summary* summary = nullptr;
};

/// Writes entry k of both arrays, the inverse of the order on the way, and the summary at the end.
///
/// Where the lengths were refused the arrays are still safe to use: they start at 0, do not
/// decrease and end at most at the total. Refused lengths count as 0, and what does not fit is cut off.
template <class Input, class Rules, layout_index Index>
struct store_item {
  Input input;
  Rules rules;
  device_arrays<Index> arrays;
  offset_t known_total;  // the total where it does not depend on the lengths, else max_tokens

  static constexpr bool ghost = has_ghost<decltype(rules.padding)>;

  SEQPACK_HD offset_t last_item() const { return input.slots + ghost; }

  __device__ void operator()(offset_t item, const scan_state& state) const {
    const offset_t count = input.count();
    const offset_t cut = min_of(known_total, Rules::limit);
    offset_t content = min_of(state.content, cut);
    // Behind the last counted slot, and the ghost's end, everything is the total.
    const bool behind = item > 0 && item >= count + ghost;
    if (behind || item == last_item()) {
      const bounds_plan plan = finish(state, count);
      if (behind) content = min_of(plan.total, cut);
      if (item == last_item()) arrays.summary->plan = plan;
    }
    arrays.cu_padded[item] = static_cast<Index>(content);
    arrays.cu[item] = static_cast<Index>(min_of(state.real, content));
    if (item > 0 && item <= count) write_order(item - 1);
  }

  __device__ bounds_plan finish(const scan_state& state, offset_t count) const {
    const bool last_is_good = count > 0 && input.check(rules, count - 1).ok();
    bounds_plan plan = rules.finish({.sequences = count,
                                     .real = state.real,
                                     .content = state.content,
                                     .longest = state.longest,
                                     .last = last_is_good ? input.length(count - 1) : 0});
    input.describe_padded(plan, state.longest_padded);
    plan.status =
        state.first_bad < count ? input.check(rules, state.first_bad) : input.check_sums(plan);
    return plan;
  }

  __device__ void write_order(offset_t slot) const {
    if constexpr (Input::has_order) {
      if (arrays.order == nullptr) return;
      const bool exists = input.row_exists(slot);
      arrays.order[slot] = static_cast<Index>(exists ? input.row(slot) : 0);
      if (!exists) return;
      using word = std::conditional_t<sizeof(Index) == 4, int, unsigned long long>;
      const auto other = static_cast<Index>(atomicExch(
          reinterpret_cast<word*>(arrays.slot_of + input.row(slot)), static_cast<word>(slot)));
      if (other != -1) {
        const auto later = static_cast<unsigned long long>(max_of(slot, other));
        atomicMin(reinterpret_cast<unsigned long long*>(&arrays.summary->repeated),
                  later << 32 | static_cast<unsigned long long>(input.row(slot)));
      }
    }
  }
};

/// The one scan: both prefix sums, the maximum and the status. With temp null it only sets bytes.
template <class Input, class Rules, layout_index Index>
void scan(void* temp, std::size_t& bytes, const store_item<Input, Rules, Index>& store,
          cudaStream_t stream) {
  const load_item<Input, Rules> load{store.input, store.rules};
  check_cuda(cub::DeviceScan::InclusiveScan(
      temp, bytes, thrust::transform_iterator(thrust::counting_iterator<offset_t>(0), load),
      thrust::make_tabulate_output_iterator(store), combine{}, store.last_item() + 1, stream));
}

/// How one block of device memory is divided. The inverse of the order and the summary are
/// neighbours, so that one memset prepares both.
template <layout_index Index>
class memory_map {
 public:
  memory_map(offset_t entries, offset_t slots, offset_t batch, bool ordered, std::size_t scan_bytes)
      : ordered_(ordered), scan_bytes_(scan_bytes) {
    const auto after = [](std::size_t offset, offset_t count) {
      const std::size_t end = offset + static_cast<std::size_t>(count) * sizeof(Index);
      return (end + alignment - 1) / alignment * alignment;
    };
    cu_padded_ = after(0, entries);
    order_ = after(cu_padded_, entries);
    slot_of_ = after(order_, ordered ? slots : 0);
    summary_ = after(slot_of_, ordered ? batch : 0);
    scan_ = summary_ + alignment;
    static_assert(sizeof(device_summary) <= alignment);
  }

  std::size_t bytes() const noexcept { return scan_ + scan_bytes_; }
  std::size_t scan_bytes() const noexcept { return scan_bytes_; }
  void* scan_memory(void* base) const { return static_cast<char*>(base) + scan_; }

  device_arrays<Index> arrays(void* base) const {
    char* const at = static_cast<char*>(base);
    const auto index = [at](std::size_t offset) { return reinterpret_cast<Index*>(at + offset); };
    return {index(0), index(cu_padded_), ordered_ ? index(order_) : nullptr,
            ordered_ ? index(slot_of_) : nullptr, reinterpret_cast<device_summary*>(at + summary_)};
  }

  /// The layout of no sequences.
  void clear(void* base, cudaStream_t stream) const {
    check_cuda(cudaMemsetAsync(base, 0, slot_of_, stream));
    prepare(base, stream);
    bounds_plan* const plan = &arrays(base).summary->plan;
    check_cuda(cudaMemsetAsync(plan, 0, sizeof *plan, stream));
  }

  /// All bits set: no slot has a row yet, and no row has two slots.
  void prepare(void* base, cudaStream_t stream) const {
    check_cuda(
        cudaMemsetAsync(static_cast<char*>(base) + slot_of_, 0xFF, scan_ - slot_of_, stream));
  }

 private:
  static constexpr std::size_t alignment = 256;
  std::size_t cu_padded_, order_, slot_of_, summary_, scan_;
  bool ordered_;
  std::size_t scan_bytes_;
};

/// A capture would record the read-back instead of doing it, and the sizes would be those of
/// nothing.
inline void require_no_capture(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status));
  if (status != cudaStreamCaptureStatusNone) throw cuda_error(cudaErrorStreamCaptureUnsupported);
}

inline device_summary read_summary(const device_summary* from, cudaStream_t stream) {
  require_no_capture(stream);
  device_summary summary;
  // To pageable memory: the copy has ended when the call returns, so this is the one wait.
  check_cuda(cudaMemcpyAsync(&summary, from, sizeof summary, cudaMemcpyDeviceToHost, stream));
  return summary;
}

/// What errors call an entry.
using name_function = std::string (*)(offset_t);

inline void throw_if_refused(const device_summary& summary, name_function name) {
  const layout_status status = summary.status();
  if (!status.ok()) throw_status(status, name(status.entry));
}

}  // namespace building

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
                building::name_function name)
      : memory_(std::move(memory)), view_(view), summary_(summary), name_(name) {}

  /// Its arrays are device memory, valid as long as the layout.
  const view_type& view() const noexcept { return view_; }

  /// Exact sizes and the status, in device memory, once the stream has got there; null for a layout
  /// that came from the host, where all was checked.
  const device_summary* summary() const noexcept { return summary_; }

  /// Waits for the stream and throws what the device found. For deferred validation.
  /// \throws invalid_input as make_layout does.
  void check(cudaStream_t stream) const {
    if (summary_ != nullptr) {
      building::throw_if_refused(building::read_summary(summary_, stream), name_);
    }
  }

 private:
  device_buffer<Memory> memory_;
  view_type view_;
  const device_summary* summary_;
  building::name_function name_;
};

namespace building {

template <class Index, class P, class C>
layout_view<P, C, Index> view_of(const device_arrays<Index>& arrays, const P& padding, const C& cp,
                                 offset_t slots, offset_t batch) {
  return {.cu = arrays.cu,
          .cu_padded = arrays.cu_padded,
          .order = arrays.order,
          .slot_of = arrays.slot_of,
          .sequences = slots,
          .segments = slots + has_ghost<P>,
          .batch = batch,
          .padding = padding,
          .cp = cp};
}

/// Allocates and scans; reads back and throws, unless validation is deferred. Then the sizes are
/// the bounds that the caller gave: the known total and the width.
template <validation When, layout_index Index, class Memory, class Input, class P, class C>
device_layout<P, C, Index, Memory> make(const cuda_stream<Memory>& where, const Input& input,
                                        const bounds_rules<Index, P, C>& rules, offset_t batch,
                                        offset_t known_total) {
  if constexpr (When == validation::checked) require_no_capture(where.stream);
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
    const device_summary summary = read_summary(store.arrays.summary, where.stream);
    throw_if_refused(summary, &Input::name);
    view.total = summary.plan.total;
    view.longest = summary.plan.longest;
    view.longest_padded = summary.plan.longest_padded;
    view.padded = summary.plan.total != summary.plan.real;
  }
  return {std::move(memory), view, store.arrays.summary, &Input::name};
}

inline void require_sizes(offset_t sequences, offset_t width) {
  layout_inputs::require_width(width);
  constexpr offset_t limit = max_total<std::int32_t> - 2;
  if (sequences < 0 || sequences > limit) {
    reject("number of sequences", sequences, "it must be from 0 to " + std::to_string(limit));
  }
}

}  // namespace building

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
template <layout_index Index = std::int32_t, class Memory, std::integral Length,
          padding_policy P = no_padding, context_parallel_policy C = no_context_parallel>
device_layout<P, C, Index, Memory> make_layout(const cuda_stream<Memory>& where,
                                               std::span<const Length> lengths,
                                               const P& padding = {}, const C& cp = {},
                                               const device_layout_options<Index>& options = {}) {
  require_policies_fit(padding, cp);
  const auto batch = static_cast<offset_t>(lengths.size());
  building::require_sizes(batch, options.width);
  const bounds_rules<Index, P, C> rules{padding, cp, options.width};
  const offset_t total = P::has_fixed_total ? padding.fixed_total() : max_tokens;
  const auto make = [&](const auto& input) {
    return building::make<validation::checked, Index>(where, input, rules, batch, total);
  };
  if (!options.order) {
    return make(building::length_input<Length, Index, offset_t, false>{
        lengths.data(), nullptr, batch, batch, nullptr, max_tokens});
  }
  const auto slots = static_cast<offset_t>(options.order.size());
  building::require_sizes(slots, options.width);
  return make(building::length_input<Length, Index, offset_t, true>{
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
          std::integral Bound, context_parallel_policy C = no_context_parallel>
device_layout<no_padding, C, Index, Memory> from_cu_seqlens(const cuda_stream<Memory>& where,
                                                            std::span<const Bound> cu,
                                                            std::span<const Bound> cu_padded,
                                                            offset_t total, const C& cp = {},
                                                            offset_t width = max_tokens) {
  if (cu.empty()) reject("size of cu_seqlens", 0, "it must have at least 1 entry");
  if (cu_padded.size() != cu.size()) {
    reject("number of entries of cu_seqlens_padded", static_cast<offset_t>(cu_padded.size()),
           "it must be " + std::to_string(cu.size()) + ", as many as cu_seqlens has");
  }
  const auto slots = static_cast<offset_t>(cu.size()) - 1;
  building::require_sizes(slots, width);
  if (total < 0 || total > max_total<Index>) {
    reject("total", total, "it must be from 0 to " + std::to_string(max_total<Index>));
  }
  if (When == validation::deferred && total % cp.divisor() != 0) {
    reject("total", total,
           "it must be a multiple of " + std::to_string(cp.divisor()) +
               ", what the sharding divides by");
  }
  const bounds_rules<Index, no_padding, C> rules{{}, cp, width};
  const building::bounds_input<Bound, Index> input{cu.data(), cu_padded.data(), slots, total};
  return building::make<When, Index>(where, input, rules, slots, total);
}

/// Copies a host layout to the device. Nothing is launched and nothing is read back; the copies
/// come from pageable memory, so CUDA may wait for the stream until they are staged, and the host
/// layout may go away when the call has returned.
/// \throws cuda_error.
///
/// One allocation, up to four host-to-device copies. O(B).
template <class Memory, padding_policy P, context_parallel_policy C, layout_index Index>
device_layout<P, C, Index, Memory> to_device(const cuda_stream<Memory>& where,
                                             const packed_layout<P, C, Index>& layout) {
  const auto from = layout.view();
  const bool ordered = from.slot_of != nullptr;  // also for an order of no slots
  const building::memory_map<Index> map(from.segments + 1, from.sequences, from.batch, ordered, 0);
  device_buffer<Memory> memory(where, map.bytes());
  const auto arrays = map.arrays(memory.data());
  const auto copy = [&](Index* to, const Index* source, offset_t count) {
    check_cuda(cudaMemcpyAsync(to, source, static_cast<std::size_t>(count) * sizeof(Index),
                               cudaMemcpyHostToDevice, where.stream));
  };
  copy(arrays.cu, from.cu, from.segments + 1);
  copy(arrays.cu_padded, from.cu_padded, from.segments + 1);
  if (ordered) {
    copy(arrays.order, from.order, from.sequences);
    copy(arrays.slot_of, from.slot_of, from.batch);
  }
  auto view = from;
  view.cu = arrays.cu;
  view.cu_padded = arrays.cu_padded;
  view.order = arrays.order;
  view.slot_of = arrays.slot_of;
  return {std::move(memory), view, nullptr, nullptr};
}

/// What bounds the shapes of a layout whose lengths are not known on the host.
struct capacity {
  offset_t sequences = 0;  ///< the largest number of sequences: B of the batches
  /// S: longer sequences are refused, and batches must be at least as wide (or as the total, if that is
  /// less).
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
template <padding_policy Padding, context_parallel_policy ContextParallel,
          layout_index Index = std::int32_t, device_memory_resource Memory = stream_ordered_memory>
class capacity_layout
    : public layout_access<capacity_layout<Padding, ContextParallel, Index, Memory>> {
  static_assert(Padding::has_fixed_total,
                "deferred validation needs a capacity: give the padding policy a fixed_total");

 public:
  static constexpr bool on_device = true;
  using padding_type = Padding;
  using context_parallel_type = ContextParallel;
  using index_type = Index;
  using view_type = layout_view<Padding, ContextParallel, Index>;

  /// Allocates everything; the layout is one of no sequences until it is built. One allocation,
  /// three memsets, no synchronisation.
  /// \throws invalid_input for policies that do not fit, a total that Index cannot hold, a negative
  /// capacity; cuda_error
  capacity_layout(const cuda_stream<Memory>& where, const capacity& bound, const Padding& padding,
                  const ContextParallel& cp, bool ordered = false)
      : rules_{padding, cp, bound.width},
        max_seqlen_(min_of(bound.max_seqlen, padding.fixed_total())),
        map_(0, 0, 0, false, 0) {
    require_policies_fit(padding, cp);
    building::require_sizes(bound.sequences, bound.width);
    if (bound.max_seqlen < 0) reject("max_seqlen", bound.max_seqlen, "it must be at least 0");
    if (padding.fixed_total() > max_total<Index>) {
      throw_status({layout_error::total_above_range, -1, padding.fixed_total(), max_total<Index>},
                   "");
    }
    const offset_t entries = bound.sequences + 1 + has_ghost<Padding>;
    std::size_t scan_bytes = 0;
    // The temporary memory depends on the number of items and on the type of the sums alone.
    using input = building::length_input<Index, Index, Index, false>;
    building::scan(nullptr, scan_bytes,
                   store_for(input{nullptr, nullptr, bound.sequences, 0, nullptr, 0}),
                   where.stream);
    map_ =
        building::memory_map<Index>(entries, bound.sequences, bound.sequences, ordered, scan_bytes);
    memory_ = device_buffer<Memory>(where, map_.bytes());
    map_.clear(memory_.data(), where.stream);
    arrays_ = map_.arrays(memory_.data());
    view_ = building::view_of(arrays_, padding, cp, bound.sequences, bound.sequences);
    view_.total = padding.fixed_total();
    view_.longest = min_of(bound.width, view_.total);
    view_.longest_padded = max_seqlen_;
    view_.padded = true;
  }

  const view_type& view() const noexcept { return view_; }

  /// Exact sizes and the status of the last build, in device memory.
  const device_summary* summary() const noexcept { return arrays_.summary; }

  /// Builds the layout of other lengths. Two launches and one memset; allocates nothing, never
  /// synchronises, may be captured.
  /// \param lengths device memory, one entry per batch row; the first *count are read
  /// \param count device memory: the number of sequences; with an order, of slots
  /// \param order device memory, as many entries as there are slots; only for a layout made with
  /// ordered = true
  template <std::integral Length, std::integral Count>
  void build(cudaStream_t stream, const Length* lengths, const Count* count,
             const Index* order = nullptr) {
    if ((order != nullptr) != (arrays_.order != nullptr)) {
      reject("order", order == nullptr ? "missing" : "given",
             "a layout is made with or without an order");
    }
    if (count == nullptr) reject("count", "null", "it must point to the number of sequences");
    if (lengths == nullptr && view_.sequences > 0) {
      reject("lengths", "null", "it must point to one length per batch row");
    }
    const auto run = [&](const auto& input) {
      std::size_t bytes = map_.scan_bytes();
      map_.prepare(memory_.data(), stream);
      building::scan(map_.scan_memory(memory_.data()), bytes, store_for(input), stream);
    };
    const offset_t slots = view_.sequences;
    if (order == nullptr) {
      run(building::length_input<Length, Index, Count, false>{lengths, nullptr, slots, slots, count,
                                                              max_seqlen_});
    } else {
      run(building::length_input<Length, Index, Count, true>{lengths, order, slots, slots, count,
                                                             max_seqlen_});
    }
  }

  /// Waits for the stream and throws what the device found in the last build.
  /// \throws invalid_input with the texts of make_layout
  void check(cudaStream_t stream) const {
    using input = building::length_input<Index, Index, Index, false>;
    building::throw_if_refused(building::read_summary(arrays_.summary, stream), &input::name);
  }

 private:
  using rules_type = bounds_rules<Index, Padding, ContextParallel>;

  template <class Input>
  building::store_item<Input, rules_type, Index> store_for(const Input& input) const {
    return {input, rules_, arrays_, rules_.padding.fixed_total()};
  }

  rules_type rules_;
  offset_t max_seqlen_;
  building::memory_map<Index> map_;
  device_buffer<Memory> memory_;
  building::device_arrays<Index> arrays_{};
  view_type view_{};
};

}  // namespace seqpack
