/// \file
/// packed_seq_params: what attention kernels for THD inputs take; bounds of shards, ragged offsets.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/tokens/detail/bounds_operation.hpp"
#include "seqpack/tokens/per_token.hpp"

namespace seqpack {

/// The bounds in cu_seqlens_q and cu_seqlens_kv.
enum class attention_bounds {
  padded,          ///< the padded bounds in all four fields: padding is attended like a token
  real_and_padded  ///< real bounds in cu_seqlens_q/kv, padded ones in the *_padded fields
};

/// The parameters of one packed row, in host or device memory as its layout is. All fields are
/// always set. Self-attention: the q and kv fields are the same.
template <layout_index Index>
struct packed_seq_params {
  std::span<const Index> cu_seqlens_q;
  std::span<const Index> cu_seqlens_kv;
  std::span<const Index> cu_seqlens_q_padded;
  std::span<const Index> cu_seqlens_kv_padded;
  offset_t max_seqlen_q = 0;
  offset_t max_seqlen_kv = 0;
  std::string_view qkv_format = "thd";
  bool has_padding = false;        ///< whether the real and the padded bounds differ, or can
  offset_t total_tokens = 0;       ///< T, whatever the context-parallel size is
  std::span<const Index> seq_idx;  ///< [T], the sequence index of the full row
  std::span<const Index> cu_seqlens_shard;  ///< the bounds in the shard, see shard_bounds
};

/// Writes where the sequences begin and end in a shard. Where each sequence is cut, it is
/// cu_seqlens_padded / CP, the same for every rank; with row_contiguous it is
/// clamp(cu_seqlens_padded - rank * T / CP, 0, T / CP), where sequences without a token in the shard
/// are empty.
/// \param out as many entries as cu_seqlens_padded
/// \throws invalid_input for a rank out of range or an array of the wrong size.
///
/// No allocation, no synchronisation, one launch.
template <executor E, layout L, class Out>
  requires runs_on<E, L>
void shard_bounds(const E& where, const L& layout, shard at, Out&& out) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_range<detail::token_functions::element_of<Out>>(detail::alone, "largest bound",
                                                                  view.shard_tokens());
  const row_view to(out);
  using To = typename std::remove_const_t<decltype(to)>::element_type;
  const auto from = view.cu_seqlens_padded();
  detail::require_bounds(from, to);
  detail::regions<0, 1> memory;
  memory.read_layout(view);
  memory.write(to.touched(), detail::alone, "bounds");
  memory.require_apart();
  execute(where,
          detail::shard_bounds_operation<std::remove_const_t<decltype(view)>, To>{view, at, to});
}

/// The same for shardings that cut each sequence, where it is the same for every rank.
/// \throws invalid_input also for one that cuts the whole row: its ranks have different bounds.
template <executor E, layout L, class Out>
  requires runs_on<E, L>
void shard_bounds(const E& where, const L& layout, Out&& out) {
  detail::require_equal_shards(layout.view().cp);
  shard_bounds(where, layout, shard{0}, std::forward<Out>(out));
}

/// Writes bounds in elements instead of tokens, for attention libraries that want ragged offsets:
/// bounds * heads * head_dim, in 64 bits.
/// \param bounds cu_seqlens, cu_seqlens_padded or the bounds of a shard, where `where` runs
/// \param out std::int64_t, as many entries as bounds
/// \throws invalid_input for an array of the wrong size, sizes below 1, and, where the bounds are
/// on the host, negative ones and offsets above 64 bits. On a device these become 0 and the largest
/// number.
template <executor E, layout_index Index, class Out>
void ragged_offsets(const E& where, std::span<const Index> bounds, offset_t heads,
                    offset_t head_dim, Out&& out) {
  static_assert(std::same_as<detail::token_functions::element_of<Out>, std::int64_t>,
                "ragged offsets count elements and pass 2^31 early: they are std::int64_t");
  if (heads < 1) reject("heads", heads, "it must be at least 1");
  if (head_dim < 1) reject("head_dim", head_dim, "it must be at least 1");
  const row_view<std::int64_t> to(out);
  detail::require_bounds(bounds, to);
  constexpr offset_t largest = std::numeric_limits<offset_t>::max();
  offset_t most = 1;  // of the bounds, where they can be read here
  if constexpr (host_executor<E>) {
    for (std::size_t k = 0; k < bounds.size(); ++k) {
      if (bounds[k] < 0) {
        reject(entry_name("bounds", static_cast<offset_t>(k)), bounds[k], "it must be at least 0");
      }
      most = max_of(most, bounds[k]);
    }
  }
  if (!detail::product_within(heads, head_dim, largest) ||
      !detail::product_within(heads * head_dim, most, largest)) {
    reject("heads * head_dim", {heads, " * ", head_dim},
           {"the last offset, ", most, " times that, must be at most ", largest});
  }
  execute(where, detail::bounds_operation<Index, std::int64_t, detail::times>{
                     bounds.data(), to, {heads * head_dim, largest / (heads * head_dim)}});
}

/// Makes the attention parameters of a layout.
///
///     auto params = make_packed_seq_params<attention_bounds::real_and_padded>(
///         host, layout, shard{rank}, seq_idx, bounds);
///
/// \tparam Bounds which bounds the cu_seqlens_q and cu_seqlens_kv fields hold
/// \param at whose bounds `cu_seqlens_shard` are; all else is of the full row
/// \param seq_idx [T] entries, written; the params point to it
/// \param shard_cu as many entries as cu_seqlens_padded, written; the params point to it
/// \returns spans of the layout's arrays and of the two outputs: both must outlive it
/// \throws invalid_input for a rank out of range or arrays of the wrong size.
///
/// No allocation, no synchronisation, two launches.
template <attention_bounds Bounds = attention_bounds::padded, executor E, layout L>
  requires runs_on<E, L>
packed_seq_params<typename L::index_type> make_packed_seq_params(
    const E& where, const L& layout, shard at, std::span<typename L::index_type> seq_idx,
    std::span<typename L::index_type> shard_cu) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_equal(detail::alone, "seq_idx", static_cast<offset_t>(seq_idx.size()), view.total,
                        "the tokens of the layout");
  detail::require_equal(detail::alone, "bounds", static_cast<offset_t>(shard_cu.size()),
                        view.segments + 1, "the entries of cu_seqlens");
  detail::require_memory(detail::alone, "bounds", shard_cu.data(), view.segments + 1);
  detail::regions<0, 2> memory;
  memory.read_layout(view);
  memory.write(row_view(seq_idx).touched(), detail::alone, "seq_idx");
  memory.write(row_view(shard_cu).touched(), detail::alone, "bounds");
  memory.require_apart();
  per_token(where, layout, full_row, sequence_index(seq_idx));
  shard_bounds(where, layout, at, shard_cu);
  const auto padded = view.cu_seqlens_padded();
  const auto bounds = Bounds == attention_bounds::padded ? padded : view.cu_seqlens();
  return {.cu_seqlens_q = bounds,
          .cu_seqlens_kv = bounds,
          .cu_seqlens_q_padded = padded,
          .cu_seqlens_kv_padded = padded,
          .max_seqlen_q = view.longest_padded,
          .max_seqlen_kv = view.longest_padded,
          .has_padding = view.padded,
          .total_tokens = view.total,
          .seq_idx = seq_idx,
          .cu_seqlens_shard = shard_cu};
}

/// The same for shardings that cut each sequence, whose bounds in a shard are the same for every rank.
/// \throws invalid_input also for one that cuts the whole row.
template <attention_bounds Bounds = attention_bounds::padded, executor E, layout L>
  requires runs_on<E, L>
packed_seq_params<typename L::index_type> make_packed_seq_params(
    const E& where, const L& layout, std::span<typename L::index_type> seq_idx,
    std::span<typename L::index_type> shard_cu) {
  detail::require_equal_shards(layout.view().cp);
  return make_packed_seq_params<Bounds>(where, layout, shard{0}, seq_idx, shard_cu);
}

}  // namespace seqpack
