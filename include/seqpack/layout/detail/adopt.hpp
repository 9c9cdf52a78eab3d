/// \file
/// What bounds, position ids and segment ids that another system made must satisfy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/detail/build.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout_status.hpp"

namespace seqpack::detail {

/// Copies bounds after checking what can be checked of one array.
template <layout_index Index, class Bounds>
std::vector<Index> checked_bounds(Bounds&& bounds, const char* name, layout_error decreases) {
  std::vector<Index> result;
  offset_t previous = 0;
  for (const auto entry : bounds) {
    const offset_t value = to_offset(entry);
    const auto index = static_cast<offset_t>(result.size());
    if (index == 0 && value != 0) {
      reject(entry_name(name, 0), entry, "the first entry must be 0");
    }
    if (value < previous) throw_status({decreases, index, value, previous}, "");
    if (value > max_total<Index>) {
      throw_status({layout_error::above_range, index, value, max_total<Index>},
                   entry_name(name, index), std::to_string(entry));
    }
    result.push_back(static_cast<Index>(value));
    previous = value;
  }
  if (result.empty()) {
    reject({"size of ", name}, 0, "it must have at least 1 entry");
  }
  return result;
}

/// Checks the sequences of adopted bounds, and finds the longest.
template <layout_index Index>
void require_sequences(const std::vector<Index>& cu, const std::vector<Index>& cu_padded,
                       const bounds_rules<Index, extent<>>& rules, layout_sizes& sizes) {
  for (std::size_t k = 0; k + 1 < cu.size(); ++k) {
    const auto slot = static_cast<offset_t>(k);
    const offset_t real = cu[k + 1] - cu[k];
    const offset_t padded = cu_padded[k + 1] - cu_padded[k];
    const layout_status status = rules.check_adopted(slot, real, padded);
    if (!status.ok()) throw_status(status, error_text{"sequence ", k}.joined());
    if (slot == sizes.sequences && real != 0) {
      reject("real length of the ghost sequence", real, "it must be 0");
    }
    sizes.longest = max_of(sizes.longest, real);
    sizes.longest_padded = max_of(sizes.longest_padded, padded);
  }
}

/// \throws invalid_input for a claim that is less than what the bounds have.
inline void require_max_seqlen(offset_t claimed, const layout_sizes& sizes) {
  if (claimed != dynamic && sizes.longest_padded > claimed) {
    reject("max_seqlen", claimed,
           {"it must be at least ", sizes.longest_padded,
            ", the longest padded length of the bounds"});
  }
}

inline void require_entries(const char* name, std::size_t size, offset_t expected) {
  if (static_cast<offset_t>(size) != expected) {
    reject({"number of entries of ", name}, static_cast<offset_t>(size),
           {"it must be ", expected, ", one more than there are sequences"});
  }
}

/// \throws invalid_input for a number that no layout has.
template <layout_index Index, class Options>
void require_options(const Options& options) {
  const auto require = [](const char* name, offset_t value) {
    if (value == dynamic || (value >= 0 && value <= max_total<Index>)) return;
    reject(name, value, {"it must be from 0 to ", max_total<Index>});
  };
  require("number of sequences", options.sequences);
  require("max_seqlen", options.max_seqlen);
  require("batch", options.batch);
  require("tail", options.tail);
  constexpr offset_t most = max_tokens / 2;  // so that no row counts to the end of the ids
  if (options.position_start < -most || options.position_start > most) {
    reject("position_start", options.position_start, {"it must be from ", -most, " to ", most});
  }
}

template <class Options>
void require_no_start(const Options& options) {
  if (options.position_start != 0) {
    reject("position_start", options.position_start, "it goes with position ids");
  }
}
template <class Options>
void require_no_padding_id(const Options& options) {
  if (options.padding_id == 0) return;
  const std::string value = options.padding_id ? std::to_string(*options.padding_id) : "none";
  reject("padding_id", value, "it goes with segment ids");
}

/// The options of bounds. What goes with other arrays is refused.
template <class Options>
void require_plain_bounds(const Options& options) {
  if (options.tail != dynamic) {
    reject("tail", options.tail,
           "it goes with position ids and segment ids: bounds say where their tail is");
  }
  require_no_start(options);
  require_no_padding_id(options);
}

/// The options of position ids.
template <layout_index Index, class Options>
void require_positions(const Options& options) {
  require_options<Index>(options);
  require_no_padding_id(options);
  if (options.ghost && options.tail == dynamic) {
    reject("tail", "not given",
           "position ids do not tell a ghost from a sequence: say how many tokens it has");
  }
}

/// The options of segment ids.
template <layout_index Index, class Options>
void require_segments(const Options& options) {
  require_options<Index>(options);
  require_no_start(options);
  if (options.ghost && options.tail == dynamic && !options.padding_id) {
    reject("tail", "not given",
           "without a padding_id, segment ids do not tell a ghost from a sequence: say how many "
           "tokens it has");
  }
}

/// Checks bounds that were copied, and everything that the options say of them.
/// \param options adopt_options
template <layout_index Index, class Options>
made_layout<Index> adopt(std::vector<Index> cu, std::vector<Index> cu_padded, offset_t total,
                         const bounds_rules<Index, extent<>>& rules, const Options& options) {
  const auto entries = static_cast<offset_t>(cu.size());
  if (options.sequences != dynamic) {
    require_entries("cu_seqlens", cu.size(), options.sequences + options.ghost + 1);
  }
  require_entries("cu_seqlens_padded", cu_padded.size(), entries);
  if (options.ghost && entries < 2) {
    reject("number of entries of cu_seqlens", entries, "a ghost needs at least 2");
  }
  if (cu_padded.back() != total) {
    throw_status({layout_error::total_differs, entries - 1, cu_padded.back(), total}, "");
  }

  layout_sizes sizes{.sequences = entries - 1 - options.ghost,
                     .segments = entries - 1,
                     .real = cu.back(),
                     .total = total};
  require_sequences(cu, cu_padded, rules, sizes);
  const layout_status divided = rules.check_total(total);
  if (!divided.ok()) throw_status(divided, "");
  require_max_seqlen(options.max_seqlen, sizes);

  const offset_t batch = options.batch == dynamic ? sizes.sequences : options.batch;
  const std::size_t slots = options.order ? options.order.size() : 0;
  if (options.order && static_cast<offset_t>(slots) != sizes.sequences) {
    reject("size of order", static_cast<offset_t>(slots),
           {"it must be ", sizes.sequences, ", the number of sequences"});
  }
  if (!options.order && batch != sizes.sequences) {
    reject("batch", batch,
           {"without an order it must be ", sizes.sequences, ", the number of sequences"});
  }
  host_arrays<Index> arrays{std::move(cu), std::move(cu_padded), {}, {}};
  if (options.order) {
    arrays.order.resize(slots);
    arrays.slot_of.resize(static_cast<std::size_t>(batch));
    require_order(options.order, batch);
    write_order<Index>(options.order, arrays.order, arrays.slot_of);
  }
  return {sizes, batch, std::move(arrays)};
}

/// What an array with one entry for each token shows of a row.
struct found_sequences {
  std::vector<offset_t> begins;  ///< of the sequences that have tokens
  std::vector<offset_t> ends;    ///< of their real tokens, as far as the array tells
  offset_t content = 0;          ///< where the tail begins
  offset_t total = 0;
};

/// Where the tail of a row begins, whose options say how long it is.
/// \throws invalid_input for more than there is.
inline offset_t begin_of_tail(offset_t tail, offset_t total) {
  if (tail > total) {
    reject("tail", tail, {"it must be at most ", total, ", the tokens of the row"});
  }
  return total - tail;
}

/// What position ids tell of a row.
struct row_starts {
  std::vector<offset_t> starts;  ///< rows of the ids that start a sequence
  offset_t start = 0;            ///< the id that does
  offset_t total = 0;
  offset_t first_bad = max_tokens;  ///< the first id that neither starts a sequence nor counts on
  std::string bad_value;
  offset_t expected = 0;  ///< in its place, beside `start`

  void require_good_before(offset_t end) const {
    if (first_bad >= end) return;
    const std::string entry = entry_name("position_ids", first_bad);
    if (first_bad == 0) reject(entry, bad_value, {"the first must be ", start});
    reject(entry, bad_value, {"it must be ", start, " or ", expected, ", one more than the last"});
  }
};

template <class Ids>
row_starts find_starts(Ids&& position_ids, offset_t start) {
  row_starts found;
  found.start = start;
  offset_t expected = start;
  for (const auto entry : position_ids) {
    const offset_t id = to_bounded_offset(entry);
    if (id == start) {
      found.starts.push_back(found.total);
    } else if (id != expected && found.first_bad == max_tokens) {
      found.first_bad = found.total;
      found.bad_value = std::to_string(entry);
      found.expected = expected;
    }
    expected = id + 1;
    ++found.total;
  }
  return found;
}

/// The sequences that position ids show; all their tokens are real.
/// \param options adopt_options
template <class Ids, class Options>
found_sequences sequences_in_positions(Ids&& position_ids, const Options& options) {
  row_starts row = find_starts(position_ids, options.position_start);
  const offset_t end = begin_of_tail(options.tail == dynamic ? 0 : options.tail, row.total);
  row.require_good_before(end);
  while (!row.starts.empty() && row.starts.back() >= end) row.starts.pop_back();
  found_sequences found{
      .begins = std::move(row.starts), .ends = {}, .content = end, .total = row.total};
  if (!found.begins.empty()) {
    found.ends.assign(found.begins.begin() + 1, found.begins.end());
    found.ends.push_back(end);
  }
  return found;
}

/// Tokens of one id that are neighbours.
template <class Id>
struct segment_run {
  Id id;
  offset_t begin;
  offset_t end;
};

/// \throws invalid_input for an id that has more than one run, naming the first entry that shows it.
///
/// O(n) for ids that grow, else O(n log n).
template <class Id>
void require_one_run_each(const std::vector<segment_run<Id>>& runs) {
  using run = segment_run<Id>;
  const auto does_not_grow = [](const run& a, const run& b) { return a.id >= b.id; };
  if (std::adjacent_find(runs.begin(), runs.end(), does_not_grow) == runs.end()) return;
  std::vector<const run*> by_id;
  for (const run& each : runs) by_id.push_back(&each);
  std::sort(by_id.begin(), by_id.end(), [](const run* a, const run* b) {
    return a->id != b->id ? a->id < b->id : a->begin < b->begin;
  });
  const run* before = nullptr;
  const run* again = nullptr;
  for (std::size_t k = 1; k < by_id.size(); ++k) {
    if (by_id[k]->id != by_id[k - 1]->id) continue;
    if (again != nullptr && again->begin < by_id[k]->begin) continue;
    before = by_id[k - 1];
    again = by_id[k];
  }
  if (again == nullptr) return;
  reject(entry_name("segment_ids", again->begin), again->id,
         {"the tokens of a sequence must be neighbours, and this id ended at entry ",
          before->end - 1});
}

/// The sequences that segment ids show; padding between them belongs to the one before.
/// \param options adopt_options
template <class Ids, class Options>
found_sequences sequences_in_segments(Ids&& segment_ids, const Options& options) {
  using id_type = std::remove_cv_t<std::ranges::range_value_t<Ids>>;
  const bool any_padding = options.padding_id && holds<id_type>(*options.padding_id);
  const id_type padding = any_padding ? static_cast<id_type>(*options.padding_id) : id_type{};
  std::vector<segment_run<id_type>> runs;
  found_sequences found;
  bool goes_on = false;  // the entry before was a token of the last run
  for (const id_type id : segment_ids) {
    const offset_t row = found.total++;
    const bool real = !(any_padding && id == padding);
    if (real && !(goes_on && id == runs.back().id)) runs.push_back({id, row, row});
    if (real) runs.back().end = row + 1;
    goes_on = real;
  }

  found.content = begin_of_tail(options.tail == dynamic ? 0 : options.tail, found.total);
  while (!runs.empty() && runs.back().begin >= found.content) runs.pop_back();
  const offset_t first = runs.empty() ? found.content : runs.front().begin;
  const bool some_follows = !runs.empty() || (options.ghost && options.tail != dynamic);
  if (first > 0 && some_follows) {
    reject("segment_ids[0]", padding, "padding before the first sequence belongs to none");
  }
  if (!runs.empty()) runs.back().end = min_of(runs.back().end, found.content);
  require_one_run_each(runs);
  for (const auto& run : runs) {
    found.begins.push_back(run.begin);
    found.ends.push_back(run.end);
  }
  if (runs.empty()) {
    found.content = 0;
  } else if (options.ghost && options.tail == dynamic) {
    found.content = found.ends.back();
  }
  return found;
}

/// Lengths that go with an array that was adopted, as offsets.
/// \throws invalid_input for what no sequence has.
template <class Lengths>
std::vector<offset_t> lengths_of_slots(Lengths&& lengths) {
  std::vector<offset_t> result;
  for (const auto entry : lengths) {
    const offset_t value = to_offset(entry);
    if (value < 0 || value > max_tokens) {
      reject(entry_name("lengths", static_cast<offset_t>(result.size())), entry,
             {"a length must be from 0 to ", max_tokens});
    }
    result.push_back(value);
  }
  return result;
}

/// Both bounds of a row, the real ones and the padded ones.
struct row_bounds {
  std::vector<offset_t> cu{0};
  std::vector<offset_t> cu_padded;

  void add(offset_t begin, offset_t length) {
    cu_padded.push_back(begin);
    cu.push_back(cu.back() + length);
  }
  /// The end of the last slot and, with a ghost, its own.
  void finish(const found_sequences& found, bool ghost) {
    const auto slots = static_cast<offset_t>(cu_padded.size());
    if (slots == 0 && found.total > 0 && !ghost) {
      throw_status({layout_error::nobody_absorbs, -1, 0, found.total}, "");
    }
    if (ghost) add(found.content, 0);
    cu_padded.push_back(found.total);
  }
};

/// The bounds of sequences that all have tokens.
inline row_bounds bounds_of(const found_sequences& found, bool ghost) {
  row_bounds bounds;
  for (std::size_t k = 0; k < found.begins.size(); ++k) {
    bounds.add(found.begins[k], found.ends[k] - found.begins[k]);
  }
  bounds.finish(found, ghost);
  return bounds;
}

/// The bounds of sequences whose real lengths are given: the array does not show those without
/// tokens.
/// \throws invalid_input where it shows others, and for a length above the tokens of its sequence.
inline row_bounds bounds_of(const found_sequences& found, const std::vector<offset_t>& lengths,
                            bool ghost) {
  const std::size_t shown = found.begins.size();
  const auto empty = static_cast<std::size_t>(std::count(lengths.begin(), lengths.end(), 0));
  const std::size_t filled = lengths.size() - empty;
  // Nothing but a tail makes room for padding in a sequence without real tokens, unless all have it.
  const bool last_has_tail = shown == filled + 1 && !lengths.empty() && lengths.back() == 0;
  const bool all = shown == lengths.size();
  if (!all && shown != filled && !last_has_tail) {
    reject("number of lengths above 0", filled, {"the row shows ", shown, " sequences"});
  }
  row_bounds bounds;
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < lengths.size(); ++slot) {
    const bool has_tokens =
        all || lengths[slot] > 0 || (last_has_tail && slot + 1 == lengths.size());
    const offset_t begin = next < shown ? found.begins[next] : found.content;
    const offset_t room = has_tokens ? found.ends[next] - begin : 0;
    if (lengths[slot] > room) {
      reject(entry_name("lengths", static_cast<offset_t>(slot)), lengths[slot],
             {"it must be at most ", room, ", the tokens of its sequence in the row"});
    }
    bounds.add(begin, lengths[slot]);
    next += has_tokens ? 1 : 0;
  }
  bounds.finish(found, ghost);
  return bounds;
}

}  // namespace seqpack::detail
