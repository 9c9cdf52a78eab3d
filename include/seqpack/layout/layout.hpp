/// \file
/// Packed layouts on the host: from lengths, from cu_seqlens, from position ids.
#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/detail/access.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/move/detail/checks.hpp"

namespace seqpack {

/// A range of integers of any type: the lengths of the sequences, or bounds.
template <class R>
concept integer_range =
    std::ranges::input_range<R> && std::integral<std::ranges::range_value_t<R>> &&
    !std::same_as<std::ranges::range_value_t<R>, bool>;

/// What a layout from lengths may be told.
struct layout_options {
  /// S: lengths above it are refused.
  offset_t width = max_tokens;
  /// Slot -> sequence, each at most once. None: slot k is row k. With it, the lengths are those
  /// of the sequences, and rows that it leaves out are not packed.
  slot_order order = {};
};

/// Memory for the arrays of a layout, given by the caller.
template <layout_index Index>
struct layout_storage {
  std::span<Index> cu_seqlens;         ///< at least segments + 1 entries
  std::span<Index> cu_seqlens_padded;  ///< at least segments + 1 entries
  std::span<Index> order = {};         ///< with an order: its size
  std::span<Index> slot_of = {};       ///< with an order: B entries
};

namespace detail {

inline constexpr detail::subject of_storage{"the storage"};

template <class Iterator>
struct lengths_in_batch_order {
  Iterator first;
  offset_t size;

  using integer = std::iter_value_t<Iterator>;
  constexpr integer raw(offset_t k) const { return first[k]; }
  constexpr offset_t count() const noexcept { return size; }
  constexpr offset_t operator[](offset_t k) const { return to_offset(first[k]); }
  std::string name(offset_t k) const { return entry_name("lengths", k); }
};

template <class Iterator, class Row>
struct lengths_in_slot_order {
  Iterator first;
  std::span<const Row> order;

  using integer = std::iter_value_t<Iterator>;
  constexpr integer raw(offset_t k) const { return first[order[static_cast<std::size_t>(k)]]; }
  constexpr offset_t count() const noexcept { return static_cast<offset_t>(order.size()); }
  constexpr offset_t operator[](offset_t k) const {
    return to_offset(first[order[static_cast<std::size_t>(k)]]);
  }
  std::string name(offset_t k) const {
    return entry_name("lengths", order[static_cast<std::size_t>(k)]);
  }
};

/// \throws invalid_input for an entry outside [0, batch) or named twice.
///
/// O(batch) memory.
template <class Row>
constexpr void require_order(std::span<const Row> order, offset_t batch) {
  std::vector<bool> taken(static_cast<std::size_t>(batch));
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (order[k] < 0 || order[k] >= batch) {
      reject(entry_name("order", static_cast<offset_t>(k)), order[k],
             "it must be a sequence of the batch, from 0 to " + std::to_string(batch - 1));
    }
    if (taken[static_cast<std::size_t>(order[k])]) {
      reject(entry_name("order", static_cast<offset_t>(k)), order[k],
             "each sequence may be packed at most once");
    }
    taken[static_cast<std::size_t>(order[k])] = true;
  }
}

template <layout_index Index, class Row>
constexpr void write_order(std::span<const Row> order, std::span<Index> forward,
                           std::span<Index> slot_of) {
  for (Index& slot : slot_of) slot = -1;
  for (std::size_t k = 0; k < order.size(); ++k) {
    forward[k] = static_cast<Index>(order[k]);
    slot_of[static_cast<std::size_t>(order[k])] = static_cast<Index>(k);
  }
}

constexpr void require_room(const char* name, std::size_t size, offset_t needed) {
  if (static_cast<offset_t>(size) < needed) {
    reject(std::string("size of ") + name, static_cast<offset_t>(size),
           "it must hold at least " + std::to_string(needed) + " entries");
  }
}

/// \throws invalid_input for an array of the storage that is null or misaligned, or that shares memory with another one, with the
/// lengths or with the order, all of which are read while it is written. Not for constant
/// expressions, which have no addresses.
template <layout_index Index, class Lengths>
void require_apart(const Lengths& lengths, const slot_order& order,
                   const layout_storage<Index>& storage, offset_t entries) {
  detail::regions<2, 4> memory;
  if constexpr (std::ranges::contiguous_range<const Lengths>) {
    memory.read(
        bytes_of(std::ranges::data(lengths), static_cast<offset_t>(std::ranges::size(lengths))),
        detail::alone, "lengths");
  }
  order.visit([&](auto rows) {
    memory.read(bytes_of(rows.data(), static_cast<offset_t>(rows.size())), detail::alone, "order");
  });
  const auto write = [&](std::span<Index> array, offset_t count, const char* name) {
    detail::require_memory(of_storage, name, array.data(), count);
    memory.write(bytes_of(array.data(), count), of_storage, name);
  };
  write(storage.cu_seqlens, entries, "cu_seqlens");
  write(storage.cu_seqlens_padded, entries, "cu_seqlens_padded");
  if (order) {
    write(storage.order, static_cast<offset_t>(order.size()), "order");
    write(storage.slot_of, static_cast<offset_t>(std::ranges::size(lengths)), "slot_of");
  }
  memory.require_apart();
}

}  // namespace detail

/// Builds a layout into the caller's memory: the core of make_layout. Allocates nothing but, with
/// an order, one bit per sequence for its check. Usable in constant expressions.
///
/// \param lengths real tokens per sequence, tokens; any random-access range of integers
/// \param storage must outlive the view; its sizes are checked
/// \returns a view of the storage
/// \throws invalid_input as make_layout does, and for an array of the storage in the memory of another
/// one, of the order or, where they are contiguous, of the lengths; before anything is written.
///
/// O(B), two passes.
template <layout_index Index, std::ranges::random_access_range Lengths, padding_policy P,
          context_parallel_policy C>
  requires integer_range<Lengths> && std::ranges::sized_range<Lengths>
constexpr layout_view<P, C, Index> build_layout(const Lengths& lengths, const P& padding,
                                                const C& cp, layout_storage<Index> storage,
                                                const layout_options& options = {}) {
  namespace inputs = detail;
  const auto batch = static_cast<offset_t>(std::ranges::size(lengths));
  if (batch > max_total<Index> - 2) {
    reject("number of sequences", batch,
           "it must be at most " + std::to_string(max_total<Index> - 2));
  }
  inputs::require_width(options.width);
  const auto first = std::ranges::begin(lengths);
  using Iterator = std::remove_const_t<decltype(first)>;
  const auto build = [&](const auto& slots) {
    bounds_plan plan = plan_bounds<Index>(slots, padding, cp, options.width);
    inputs::require_room("cu_seqlens", storage.cu_seqlens.size(), plan.segments + 1);
    inputs::require_room("cu_seqlens_padded", storage.cu_seqlens_padded.size(), plan.segments + 1);
    if (!std::is_constant_evaluated()) {
      inputs::require_apart(lengths, options.order, storage, plan.segments + 1);
    }
    write_bounds(plan, slots, padding, storage.cu_seqlens.data(), storage.cu_seqlens_padded.data());
    return layout_view<P, C, Index>{.cu = storage.cu_seqlens.data(),
                                    .cu_padded = storage.cu_seqlens_padded.data(),
                                    .sequences = plan.sequences,
                                    .segments = plan.segments,
                                    .batch = batch,
                                    .total = plan.total,
                                    .longest = plan.longest,
                                    .longest_padded = plan.longest_padded,
                                    .padded = plan.total != plan.real,
                                    .padding = padding,
                                    .cp = cp};
  };
  if (!options.order) return build(inputs::lengths_in_batch_order<Iterator>{first, batch});

  return options.order.visit([&]<class Row>(std::span<const Row> order) {
    inputs::require_order(order, batch);
    inputs::require_room("order", storage.order.size(), static_cast<offset_t>(order.size()));
    inputs::require_room("slot_of", storage.slot_of.size(), batch);
    auto view = build(inputs::lengths_in_slot_order<Iterator, Row>{first, order});
    inputs::write_order(order, storage.order,
                        storage.slot_of.first(static_cast<std::size_t>(batch)));
    view.order = storage.order.data();
    view.slot_of = storage.slot_of.data();
    return view;
  });
}

/// A layout and its memory, on the host.
///
/// Copies are deep. Sizes are host integers; nothing synchronises, because nothing is on a device.
template <padding_policy Padding, context_parallel_policy ContextParallel,
          layout_index Index = std::int32_t>
class packed_layout : public layout_access<packed_layout<Padding, ContextParallel, Index>> {
 public:
  static constexpr bool on_device = false;
  using padding_type = Padding;
  using context_parallel_type = ContextParallel;
  using index_type = Index;
  using view_type = layout_view<Padding, ContextParallel, Index>;

  /// Takes over arrays that a view was built in. The library's own factories call it.
  packed_layout(view_type built, std::vector<Index> cu, std::vector<Index> cu_padded,
                std::vector<Index> order, std::vector<Index> slot_of)
      : sizes_(built),
        cu_(std::move(cu)),
        cu_padded_(std::move(cu_padded)),
        order_(std::move(order)),
        slot_of_(std::move(slot_of)) {}

  /// Valid until the layout is destroyed, moved from or assigned to.
  view_type view() const noexcept {
    view_type v = sizes_;
    v.cu = cu_.data();
    v.cu_padded = cu_padded_.data();
    v.order = order_.empty() ? nullptr : order_.data();
    v.slot_of = slot_of_.empty() ? nullptr : slot_of_.data();
    return v;
  }

  /// Real tokens of all packed sequences.
  offset_t real_tokens() const noexcept { return static_cast<offset_t>(cu_.back()); }

 private:
  view_type sizes_;
  std::vector<Index> cu_;
  std::vector<Index> cu_padded_;
  std::vector<Index> order_;
  std::vector<Index> slot_of_;
};

/// Makes a packed layout from the lengths of the sequences.
///
///     auto layout = make_layout(lengths, padding{each_multiple_of<8>{}}, context_parallel<4>{});
///
/// \tparam Index the type of cu_seqlens, std::int32_t or std::int64_t
/// \param lengths real tokens per sequence, any range of integers; B entries; copied first unless
/// it has a size and random access
/// \param padding, cp the policies; what is wrong and static does not compile
/// \throws invalid_input, naming the entry, its value and the limit: a length below 0 or above
/// options.width; an `each` or a fixed total that is not a multiple of what the sharding divides
/// by; a padded length that it does not divide; content above the fixed total; a tail that no
/// sequence can absorb; sums above Index; an order that is not a selection of sequences.
///
/// Allocates the arrays. O(B).
template <layout_index Index = std::int32_t, integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
packed_layout<P, C, Index> make_layout(Lengths&& lengths, const P& padding = {}, const C& cp = {},
                                       const layout_options& options = {}) {
  if constexpr (!std::ranges::random_access_range<const std::remove_cvref_t<Lengths>> ||
                !std::ranges::sized_range<const std::remove_cvref_t<Lengths>>) {
    std::vector<std::ranges::range_value_t<Lengths>> copy;
    for (const auto length : lengths) copy.push_back(length);
    return make_layout<Index>(copy, padding, cp, options);
  } else {
    const auto batch = static_cast<std::size_t>(std::ranges::size(lengths));
    const std::size_t slots = options.order ? options.order.size() : batch;
    std::vector<Index> cu(slots + 1 + has_ghost<P>);
    std::vector<Index> cu_padded(cu.size());
    std::vector<Index> order(options.order ? slots : 0);
    std::vector<Index> slot_of(options.order ? batch : 0);
    const auto view =
        build_layout<Index>(lengths, padding, cp, {cu, cu_padded, order, slot_of}, options);
    return {view, std::move(cu), std::move(cu_padded), std::move(order), std::move(slot_of)};
  }
}

}  // namespace seqpack
