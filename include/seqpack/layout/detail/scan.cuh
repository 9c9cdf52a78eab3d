/// \file
/// The one scan that builds a layout on a device: both prefix sums, all sizes and the status.
#pragma once

#include <cuda_runtime_api.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cub/device/device_scan.cuh>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/cuda.cuh"
#include "seqpack/exec/detail/cuda_staging.cuh"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/build.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout_status.hpp"
#include "seqpack/layout/layout_view.hpp"

namespace seqpack {

namespace detail::building {

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
  static std::string name(offset_t sequence) { return entry_name("lengths", sequence); }

  const Length* lengths;
  const Index* order;  // read only if Ordered
  offset_t slots;      // the largest number of sequences
  offset_t batch;
  const Count* counted;  // null: all slots
  offset_t max_seqlen;

  SEQPACK_HD offset_t raw_count() const { return counted == nullptr ? slots : to_offset(*counted); }
  SEQPACK_HD offset_t count() const { return max_of(min_of(raw_count(), slots), 0); }
  SEQPACK_HD offset_t sequence(offset_t slot) const {
    if constexpr (Ordered) {
      return static_cast<offset_t>(order[slot]);
    } else {
      return slot;
    }
  }
  SEQPACK_HD bool sequence_exists(offset_t slot) const {
    return sequence(slot) >= 0 && sequence(slot) < batch;
  }
  SEQPACK_HD offset_t length(offset_t slot) const { return to_offset(lengths[sequence(slot)]); }
  template <class Rules>
  SEQPACK_HD layout_status check(const Rules& rules, offset_t slot) const {
    if (!sequence_exists(slot)) {
      return {layout_error::order_out_of_range, slot, sequence(slot), batch - 1};
    }
    return named(rules.check(slot, count(), length(slot)));
  }
  /// Errors name the sequence of a length, not its slot.
  SEQPACK_HD layout_status named(layout_status status) const {
    if (status.entry >= 0) status.entry = sequence(status.entry);
    return status;
  }
  template <class Rules>
  SEQPACK_HD offset_t padded_length(const Rules& rules, offset_t slot) const {
    return rules.padded(length(slot));
  }
  SEQPACK_HD void describe_padded(layout_sizes&, offset_t) const {}
  SEQPACK_HD layout_status check_sums(const layout_sizes& sizes) const {
    if (raw_count() != count()) {
      return {layout_error::count_out_of_range, -1, raw_count(), slots};
    }
    if (!sizes.status.ok()) return named(sizes.status);
    if (sizes.longest_padded > max_seqlen) {
      return {layout_error::above_max_seqlen, -1, sizes.longest_padded, max_seqlen};
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
  static std::string name(offset_t slot) { return error_text{"sequence ", slot}.joined(); }

  SEQPACK_HD offset_t count() const { return slots; }
  SEQPACK_HD offset_t at(const Bound* bounds, offset_t k) const { return to_offset(bounds[k]); }
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
    return rules.check_adopted(slot, length(slot), padded_length(rules, slot));
  }
  SEQPACK_HD layout_status check_bounds(const Bound* bounds, offset_t slot, layout_error not_zero,
                                        layout_error decreases) const {
    const offset_t begin = at(bounds, slot);
    const offset_t end = at(bounds, slot + 1);
    if (slot == 0 && begin != 0) return {not_zero, 0, begin, 0};
    if (end < begin || begin < 0) return {decreases, slot + 1, end, begin};
    return {};
  }
  /// The padding is in the bounds, not in a policy.
  SEQPACK_HD void describe_padded(layout_sizes& sizes, offset_t longest_padded) const {
    sizes.longest_padded = longest_padded;
  }
  SEQPACK_HD layout_status check_sums(const layout_sizes& sizes) const {
    if (sizes.content != total) return {layout_error::total_differs, slots, sizes.content, total};
    return sizes.status;
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
/// decrease and end at most at the total. Refused lengths count as 0, and what does not fit is cut
/// off.
template <class Input, class Rules, layout_index Index>
struct store_item {
  Input input;
  Rules rules;
  device_arrays<Index> arrays;
  offset_t known_total;  // the total where it does not depend on the lengths, else max_tokens

  SEQPACK_HD offset_t last_item() const { return input.slots + rules.ghost; }

  __device__ void operator()(offset_t item, const scan_state& state) const {
    const offset_t count = input.count();
    const offset_t cut = min_of(known_total, Rules::limit);
    offset_t content = min_of(state.content, cut);
    // Behind the last counted slot, and the ghost's end, everything is the total.
    const bool behind = item > 0 && item >= count + rules.ghost;
    if (behind || item == last_item()) {
      const layout_sizes sizes = finish(state, count);
      if (behind) content = min_of(sizes.total, cut);
      if (item == last_item()) arrays.summary->sizes = sizes;
    }
    arrays.cu_padded[item] = static_cast<Index>(content);
    arrays.cu[item] = static_cast<Index>(min_of(state.real, content));
    if (item > 0 && item <= count) write_order(item - 1);
  }

  __device__ layout_sizes finish(const scan_state& state, offset_t count) const {
    const bool last_is_good = count > 0 && input.check(rules, count - 1).ok();
    layout_sizes sizes = rules.finish({.sequences = count,
                                       .real = state.real,
                                       .content = state.content,
                                       .longest = state.longest,
                                       .last = last_is_good ? input.length(count - 1) : 0});
    input.describe_padded(sizes, state.longest_padded);
    sizes.status =
        state.first_bad < count ? input.check(rules, state.first_bad) : input.check_sums(sizes);
    return sizes;
  }

  __device__ void write_order(offset_t slot) const {
    if constexpr (Input::has_order) {
      if (arrays.order == nullptr) return;
      const bool exists = input.sequence_exists(slot);
      arrays.order[slot] = static_cast<Index>(exists ? input.sequence(slot) : 0);
      if (!exists) return;
      using word = std::conditional_t<sizeof(Index) == 4, int, unsigned long long>;
      const auto other = static_cast<Index>(atomicExch(
          reinterpret_cast<word*>(arrays.slot_of + input.sequence(slot)), static_cast<word>(slot)));
      if (other != -1) {
        const auto later = static_cast<unsigned long long>(max_of(slot, other));
        atomicMin(reinterpret_cast<unsigned long long*>(&arrays.summary->repeated),
                  later << 32 | static_cast<unsigned long long>(input.sequence(slot)));
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
  /// Of the arrays and the summary.
  std::size_t image_bytes() const noexcept {
    return summary_ + (sizeof(device_summary) + 15) / 16 * 16;
  }
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
    layout_sizes* const sizes = &arrays(base).summary->sizes;
    check_cuda(cudaMemsetAsync(sizes, 0, sizeof *sizes, stream));
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

/// One wait.
template <pinned_memory_resource Pinned = process_pinned_memory>
device_summary read_summary(const device_summary* from, cudaStream_t stream,
                            const Pinned& pinned = {}) {
  device_summary summary;
  detail::read_staged(stream, pinned, &summary, from, sizeof summary);
  return summary;
}

/// What errors call an entry.
using name_function = std::string (*)(offset_t);

/// For a layout whose lengths were checked on the host.
inline std::string no_name(offset_t) {
  return {};
}

inline void throw_if_refused(const device_summary& summary, name_function name) {
  const layout_status status = summary.status();
  if (!status.ok()) throw_status(status, name(status.entry));
}

/// The view of a layout in device memory.
template <class Index, class C>
layout_view<C, Index> view_of(const device_arrays<Index>& arrays, const layout_sizes& sizes,
                              offset_t batch, const C& cp) {
  layout_view<C, Index> view = view_of_sizes<Index>(sizes, batch, cp);
  view.cu = arrays.cu;
  view.cu_padded = arrays.cu_padded;
  view.order = arrays.order;
  view.slot_of = arrays.slot_of;
  view.status = &arrays.summary->sizes.status;
  return view;
}

/// A layout in device memory but for its policy.
template <layout_index Index>
struct built {
  std::shared_ptr<void> memory;
  device_arrays<Index> arrays;
  layout_sizes sizes;
  offset_t batch;
  name_function name;

  template <class C>
  layout_view<C, Index> view(const C& cp) const {
    return view_of(arrays, sizes, batch, cp);
  }
};

/// Allocates and scans; reads back and throws, unless validation is deferred. Then the sizes are
/// the bounds that the caller gave, the known total and the width, and there may be padding.
template <bool Deferred, class Memory, class Pinned, class Input, layout_index Index,
          class Rounding>
built<Index> build(const cuda_stream<Memory, Pinned>& where, const Input& input,
                   const bounds_rules<Index, Rounding>& rules, offset_t batch,
                   offset_t known_total) {
  if constexpr (!Deferred) require_no_capture(where.stream);
  store_item<Input, bounds_rules<Index, Rounding>, Index> store{input, rules, {}, known_total};
  std::size_t scan_bytes = 0;
  scan(nullptr, scan_bytes, store, where.stream);
  const memory_map<Index> map(store.last_item() + 1, input.slots, batch, Input::has_order,
                              scan_bytes);
  auto memory = detail::allocate(where.memory, where.stream, map.bytes());
  store.arrays = map.arrays(memory.get());
  map.prepare(memory.get(), where.stream);
  scan(map.scan_memory(memory.get()), scan_bytes, store, where.stream);

  layout_sizes sizes;
  if constexpr (Deferred) {
    sizes.real = -1;  // not known
    sizes.total = known_total;
    sizes.longest = min_of(rules.width, known_total);
    sizes.longest_padded = known_total;
  } else {
    const device_summary summary = read_summary(store.arrays.summary, where.stream, where.pinned);
    throw_if_refused(summary, &Input::name);
    sizes = summary.sizes;
  }
  sizes.sequences = input.slots;
  sizes.segments = input.slots + rules.ghost;
  return {std::move(memory), store.arrays, sizes, batch, &Input::name};
}

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

inline void require_sizes(offset_t sequences, offset_t width) {
  detail::require_width(width);
  constexpr offset_t limit = max_total<std::int32_t> - 2;
  if (sequences < 0 || sequences > limit) {
    reject("number of sequences", sequences, {"it must be from 0 to ", limit});
  }
}

}  // namespace detail::building

}  // namespace seqpack
