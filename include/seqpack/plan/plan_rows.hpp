/// \file
/// plan_rows: as few rows as can be found, rows of neighbours, or rows that cost about the same.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/plan/detail/plan_units.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/plan_options.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// Plans which sequences share a row.
///
///     const row_plan plan = plan_rows(lengths, 8192, padding{each_multiple_of<16>{}});
///     for (offset_t k = 0; k < plan.rows(); ++k) {
///       const auto layout = make_layout(lengths, padding, cp, {.order = plan.row(k)});
///     }
///
/// A row holds at most `capacity` tokens. How many it holds is asked of the padding: each length is
/// rounded as make_layout rounds it, the total multiple counts, and with a fixed total the padded
/// lengths of a row sum up to at most the smaller one of that and the capacity, while the row has the
/// fixed total. With a context-parallel policy make_layout accepts every row, or the plan is refused.
///
/// The methods (plan_method):
/// - decreasing: best fit of the longest first, and first fit of the longest first where that may be
///   better; the plan of fewer rows, of best fit where they are as many. Never more rows than
///   first-fit-decreasing: without a limit of sequences at most 11/9 of the fewest rows, and one. Slots
///   hold the longest sequence first.
/// - in_order: next fit. A row ends where the next sequence has no room. Rows and slots follow the
///   sequences.
/// - balanced: options.rows rows of about the same cost: largest differencing, then sequences move and
///   change places between the dearest rows and cheaper ones. Where the rows of differencing hold too
///   much, the dearest sequences go first to the cheapest rows with room. Slots follow the sequences.
///   Rows may stay empty.
///
/// An empty sequence takes no tokens; it is in a row like any other. Equal inputs give equal plans, on
/// every machine: of equal sequences the one of the lower number comes first.
///
/// Sequences that no row has room for (plan_options::too_long): `refuse` names the first one.
/// `truncate` keeps as many tokens as a row has room for, of a tuple the same number of each sequence
/// that is cut. `split` makes as few pieces as possible, as long as a row has room for, and a last one of
/// the rest. Both cut so that the sharding divides a piece that is full. The entries of the plan then
/// number pieces, those of sequence 0 first (row_plan::pieces), the tokens of which a piece_view shows
/// to pack and unpack:
///
///     const row_plan plan = plan_rows(lengths, 8192, padding, cp, {.too_long = too_long::split});
///     const auto layout = make_layout(plan.piece_lengths(), padding, cp, {.order = plan.row(k)});
///     pack(host, layout, full_row, field(piece_view(ids, plan.pieces()), packed));
///
/// \param lengths real tokens per sequence, any range of integers
/// \param capacity tokens of a row, from 1 to max_tokens; `dynamic`: the fixed total of the padding
/// \param padding, cp the policies of the layouts; what is wrong and static does not compile
/// \throws invalid_input, naming the entry, its value and the limit: a length below 0 or above
/// max_tokens; a sequence or a tuple that no row has room for; what make_layout would refuse of the
/// policies or of a row; a number of sequences that is no multiple of the tuple; costs below 0 or
/// of a sum above max_cost; balanced rows that are too few; more than 2^31 - 3 sequences or pieces.
///
/// Allocates O(B). O(B log B), balanced O(B log^2 B). Usable in constant expressions.
template <integer_range Lengths, padding_policy P = no_padding,
          context_parallel_policy C = no_context_parallel>
constexpr row_plan plan_rows(Lengths&& lengths, offset_t capacity, const P& padding = {},
                             const C& cp = {}, const plan_options& options = {}) {
  const auto rules = detail::row_rules_of(capacity, padding, cp);
  return detail::plan_sequences(rules, detail::lengths_of(lengths, rules), options);
}

}  // namespace seqpack
