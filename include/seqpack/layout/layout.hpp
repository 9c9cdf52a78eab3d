/// \file
/// Packed layouts on the host, from the lengths of the sequences.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <span>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/access.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/build.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// A range of integers of any type: the lengths of the sequences, or bounds.
template <class R>
concept integer_range =
    std::ranges::input_range<R> && std::integral<std::ranges::range_value_t<R>> &&
    !std::same_as<std::ranges::range_value_t<R>, bool>;

/// Options of make_layout and build_layout.
struct layout_options {
  /// S: lengths above it are refused.
  offset_t width = max_tokens;
  /// Slot -> sequence, each at most once. None: slot k holds sequence k. With it, the lengths are
  /// those of the sequences, and sequences that it leaves out are not packed. With an order of no
  /// slots and a total in the padding, the row is a tail that belongs to no sequence, as a ghost,
  /// also under absorb_tail.
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

/// A layout and its memory, on the host. Layouts of all paddings are one type, and so are adopted
/// ones; with context_parallel<dynamic, any_sharding>, to which the others convert, all are.
///
/// Copies are deep. Sizes are host integers; nothing synchronises, because nothing is on a device.
template <context_parallel_policy ContextParallel, layout_index Index = std::int32_t>
class packed_layout : public detail::layout_access<packed_layout<ContextParallel, Index>> {
 public:
  static constexpr bool on_device = false;
  using context_parallel_type = ContextParallel;
  using index_type = Index;
  using view_type = layout_view<ContextParallel, Index>;

  /// Takes over arrays that a view was built in. The library's own factories call it.
  packed_layout(const view_type& built, detail::host_arrays<Index> arrays)
      : sizes_(built), arrays_(std::move(arrays)) {}
  /// The same layout with its policy chosen at run time; the arrays of a temporary move.
  template <context_parallel_policy Other>
    requires std::convertible_to<Other, ContextParallel> && (!std::same_as<Other, ContextParallel>)
  packed_layout(packed_layout<Other, Index> other)
      : sizes_(other.sizes_), arrays_(std::move(other.arrays_)) {}

  /// Valid until the layout is destroyed, moved from or assigned to.
  view_type view() const noexcept {
    view_type v = sizes_;
    v.cu = arrays_.cu_seqlens.data();
    v.cu_padded = arrays_.cu_seqlens_padded.data();
    v.order = arrays_.order.empty() ? nullptr : arrays_.order.data();
    v.slot_of = arrays_.slot_of.empty() ? nullptr : arrays_.slot_of.data();
    return v;
  }

  /// Real tokens of all packed sequences.
  offset_t real_tokens() const noexcept { return static_cast<offset_t>(arrays_.cu_seqlens.back()); }

 private:
  template <context_parallel_policy, layout_index>
  friend class packed_layout;

  view_type sizes_;
  detail::host_arrays<Index> arrays_;
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
/// by; a padded length, or with row_contiguous a total, that it does not divide; content above the
/// fixed total; a tail that no
/// sequence can absorb; sums above Index; an order that is not a selection of sequences.
///
/// Allocates the arrays. O(B).
template <layout_index Index = std::int32_t, integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> make_layout(Lengths&& lengths, const P& padding = {}, const C& cp = {},
                                    const layout_options& options = {}) {
  const auto rules =
      detail::rules_of<Index>(detail::rounding_of(padding), padding, cp, options.width);
  auto made = detail::make(lengths, rules, options.order);
  return {detail::view_of_sizes<Index>(made.sizes, made.batch, cp), std::move(made.arrays)};
}

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
constexpr layout_view<C, Index> build_layout(const Lengths& lengths, const P& padding, const C& cp,
                                             layout_storage<Index> storage,
                                             const layout_options& options = {}) {
  const auto batch = static_cast<offset_t>(std::ranges::size(lengths));
  const auto rules =
      detail::rules_of<Index>(detail::rounding_of(padding), padding, cp, options.width);
  const layout_sizes sizes =
      detail::build(detail::first_of(lengths), batch, rules, options.order, storage);
  layout_view<C, Index> view = detail::view_of_sizes<Index>(sizes, batch, cp);
  view.cu = storage.cu_seqlens.data();
  view.cu_padded = storage.cu_seqlens_padded.data();
  if (options.order) {
    view.order = storage.order.data();
    view.slot_of = storage.slot_of.data();
  }
  return view;
}

/// The layout of a batch that is not packed: every sequence takes all of the width. What is true of
/// packed rows is true of it: shards, labels, log-probabilities and losses need no second form.
///
/// \param lengths real tokens of each sequence
/// \param width S; what the sharding divides by must divide it
/// \param cp one that cuts each sequence
/// \throws invalid_input as make_layout does; for a sharding that cuts the whole row.
///
/// Allocates the arrays. O(B).
template <layout_index Index = std::int32_t, integer_range Lengths,
          context_parallel_policy C = no_context_parallel>
packed_layout<C, Index> unpacked_layout(const Lengths& lengths, offset_t width, const C& cp = {}) {
  detail::require_cuts_sequences(cp, "a batch that is not packed is cut sequence by sequence");
  const detail::bounds_rules<Index, detail::whole_width> rules{
      .rounding = {width}, .divisor = fast_divisor(cp.divisor()), .width = width, .each = width};
  auto made = detail::make(lengths, rules, {});
  return {detail::view_of_sizes<Index>(made.sizes, made.batch, cp), std::move(made.arrays)};
}

/// The slots [first, first + count) of a layout as a layout of their own, whose rows are those from
/// `layout.view().share_begin(first)` on in every shard, and from `begin_of(first)` in the full
/// row.
///
/// \returns a layout of `count` sequences, in the order of the slots, without a ghost
/// \throws invalid_input for slots that do not exist, and for a sharding that cuts the whole row.
///
/// Allocates the arrays. O(count).
template <class C, class Index>
packed_layout<C, Index> layout_part(const packed_layout<C, Index>& layout, offset_t first,
                                    offset_t count) {
  const auto view = layout.view();
  detail::require_cuts_sequences(view.cp, "a part of the row would be cut elsewhere");
  if (first < 0 || first > view.sequences) {
    reject("first slot", first, {"it must be from 0 to ", view.sequences});
  }
  if (count < 0 || count > view.sequences - first) {
    reject("number of slots", count,
           {"it must be from 0 to ", view.sequences - first, ", those of the layout from slot ",
            first, " on"});
  }
  detail::host_arrays<Index> arrays;
  arrays.cu_seqlens.resize(static_cast<std::size_t>(count) + 1);
  arrays.cu_seqlens_padded.resize(arrays.cu_seqlens.size());
  layout_sizes sizes{.sequences = count, .segments = count};
  for (offset_t k = 0; k < count; ++k) {
    const offset_t length = view.length(first + k);
    sizes.real += length;
    sizes.total += view.padded_length(first + k);
    sizes.longest = max_of(sizes.longest, length);
    sizes.longest_padded = max_of(sizes.longest_padded, view.padded_length(first + k));
    const auto end = static_cast<std::size_t>(k) + 1;
    arrays.cu_seqlens[end] = static_cast<Index>(sizes.real);
    arrays.cu_seqlens_padded[end] = static_cast<Index>(sizes.total);
  }
  return {detail::view_of_sizes<Index>(sizes, count, view.cp), std::move(arrays)};
}

}  // namespace seqpack
