/// \file
/// What is planned: sequences or pieces of them, as units that share a row wholly or not at all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/plan/detail/decreasing.hpp"
#include "seqpack/plan/detail/rooms.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/plan_options.hpp"
#include "seqpack/plan/row_plan.hpp"

namespace seqpack::detail {

/// What the entries of a plan number.
struct planned_items {
  std::vector<offset_t> lengths;
  std::vector<sequence_piece> pieces;  ///< empty: the items are the sequences
};

/// \throws invalid_input for options that contradict each other or the number of sequences.
constexpr void require_tuples(offset_t tuple, offset_t most_sequences) {
  if (tuple < 1 || tuple > max_tokens) {
    reject("tuple", tuple, {"it must be from 1 to ", max_tokens});
  }
  if (most_sequences < tuple) {
    if (tuple == 1) reject("most_sequences", most_sequences, "it must be at least 1");
    reject("most_sequences", most_sequences,
           {"it must be at least ", tuple, ", the sequences of a tuple"});
  }
}
constexpr void require_whole_tuples(offset_t sequences, offset_t tuple) {
  if (sequences % tuple != 0) {
    reject("number of sequences", sequences,
           {"it must be a multiple of ", tuple, ", the sequences of a tuple"});
  }
}
constexpr void require_split(too_long option, offset_t tuple) {
  if (option == too_long::split && tuple > 1) {
    reject("tuple", tuple, "it must be 1 with too_long::split, which takes a sequence apart");
  }
}

/// The padded lengths of some sequences together.
template <class Rounding>
constexpr offset_t content_of(const row_rules<Rounding>& rules, std::span<const offset_t> lengths,
                              offset_t longest = max_tokens) {
  offset_t content = 0;
  for (const offset_t length : lengths) {
    content = min_of(content + rules.padded(min_of(length, longest)), saturated_sum);
  }
  return content;
}

/// Throws for the sequences [first, first + count), of which a row has no room for.
template <class Rounding>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_too_long(const row_rules<Rounding>& rules,
                                                            offset_t first, offset_t count,
                                                            offset_t content) {
  const std::string limit = error_text{"it must be at most ", rules.most_content,
                                       ", what a row of capacity ", rules.capacity, " has room for"}
                                .joined();
  if (count == 1) reject({"padded length of lengths[", first, "]"}, content, limit);
  reject({"padded lengths of lengths[", first, "] to lengths[", first + count - 1, "], a tuple,"},
         content, limit);
}

/// Throws for a row that has not even room for a token.
template <class Rounding>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_small_row(const row_rules<Rounding>& rules,
                                                             offset_t least, bool of_tuple) {
  reject("capacity", rules.capacity,
         {"it must be at least ", least, ", the padded length of one token",
          of_tuple ? " of each sequence of a tuple" : ""});
}

/// Where the sequences of a tuple must be cut for a row to have room for them: the longest ones, to
/// one length.
/// \throws invalid_input where a row has not even room for a token of each.
template <class Rounding>
constexpr offset_t cut_of_tuple(const row_rules<Rounding>& rules,
                                std::span<const offset_t> lengths) {
  offset_t low = 0;
  offset_t high = rules.most_content;
  while (low < high) {
    const offset_t middle = high - (high - low) / 2;
    if (content_of(rules, lengths, middle) <= rules.most_content) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  if (low == 0) refuse_small_row(rules, content_of(rules, lengths, 1), lengths.size() > 1);
  return cut_within(rules, low);
}

/// One piece of each sequence, as long as a row has room for.
template <class Rounding>
constexpr planned_items truncated(const row_rules<Rounding>& rules, std::vector<offset_t> lengths,
                                  offset_t tuple) {
  planned_items items{.lengths = std::move(lengths), .pieces = {}};
  const std::span<offset_t> all = items.lengths;
  for (std::size_t first = 0; first < all.size(); first += nth(tuple)) {
    const std::span<offset_t> unit = all.subspan(first, nth(tuple));
    if (content_of(rules, unit) <= rules.most_content) continue;
    const offset_t cut = cut_of_tuple(rules, unit);
    for (offset_t& length : unit) length = min_of(length, cut);
  }
  items.pieces.reserve(all.size());
  for (const offset_t length : all) {
    items.pieces.push_back({static_cast<offset_t>(items.pieces.size()), 0, length});
  }
  return items;
}

/// Pieces as long as a row has room for, and then the rest.
template <class Rounding>
constexpr planned_items split(const row_rules<Rounding>& rules,
                              const std::vector<offset_t>& lengths) {
  const offset_t longest = longest_within(rules, rules.most_content);
  const offset_t piece = cut_within(rules, longest);
  offset_t count = 0;
  for (const offset_t length : lengths) {
    if (length > longest && piece == 0) refuse_small_row(rules, rules.padded(1), false);
    count += length <= longest ? 1 : divided_up(length, piece);
    if (count > most_planned) {
      reject("number of pieces", count, {"it must be at most ", most_planned});
    }
  }
  planned_items items;
  items.lengths.reserve(nth(count));
  items.pieces.reserve(nth(count));
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const offset_t length = lengths[s];
    const offset_t most = length <= longest ? longest : piece;
    offset_t first = 0;
    do {
      const offset_t size = min_of(length - first, most);
      items.pieces.push_back({static_cast<offset_t>(s), first, size});
      items.lengths.push_back(size);
      first += size;
    } while (first < length);
  }
  return items;
}

/// What becomes of sequences that no row has room for.
/// \throws invalid_input where they are refused, or where there are too many pieces.
template <class Rounding>
constexpr planned_items items_of(const row_rules<Rounding>& rules, std::vector<offset_t> lengths,
                                 too_long option, offset_t tuple) {
  require_whole_tuples(static_cast<offset_t>(lengths.size()), tuple);
  if (option == too_long::truncate) return truncated(rules, std::move(lengths), tuple);
  if (option == too_long::split) return split(rules, lengths);
  return {.lengths = std::move(lengths), .pieces = {}};
}

/// The padded lengths of each unit together.
/// \param named the number of the first sequence, for errors
/// \throws invalid_input for a unit that no row has room for.
template <class Rounding>
constexpr std::vector<offset_t> contents_of(const row_rules<Rounding>& rules,
                                            std::span<const offset_t> lengths, offset_t tuple,
                                            offset_t named = 0) {
  std::vector<offset_t> contents;
  contents.reserve(lengths.size() / nth(tuple));
  for (std::size_t first = 0; first < lengths.size(); first += nth(tuple)) {
    const offset_t content = content_of(rules, lengths.subspan(first, nth(tuple)));
    if (content > rules.most_content) {
      refuse_too_long(rules, named + static_cast<offset_t>(first), tuple, content);
    }
    contents.push_back(content);
  }
  return contents;
}

/// What each unit costs.
/// \throws invalid_input for a cost below 0, and costs that sum up to more than max_cost.
template <class Rounding>
constexpr std::vector<offset_t> costs_of(const row_rules<Rounding>& rules,
                                         std::span<const offset_t> lengths, offset_t tuple,
                                         const sequence_cost& cost_of) {
  std::vector<offset_t> costs(lengths.size() / nth(tuple), 0);
  offset_t sum = 0;
  for (std::size_t k = 0; k < lengths.size(); ++k) {
    const offset_t cost = cost_of(rules.padded(lengths[k]));
    if (cost < 0 || cost > max_cost) {
      reject({"cost of lengths[", k, "]"}, cost, {"it must be from 0 to ", max_cost});
    }
    sum += cost;
    if (sum > max_cost) {
      reject("sum of the costs", sum, {"it must be at most ", max_cost, "; smaller weights help"});
    }
    costs[k / nth(tuple)] += cost;
  }
  return costs;
}

}  // namespace seqpack::detail
