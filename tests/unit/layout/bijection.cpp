#define BOOST_TEST_MODULE bijection
#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/oracle.hpp"

// The map of a layout, both ways and in runs, against the oracle's lists: every small batch, every
// way of padding it, every number of ranks.

namespace {

using oracle::number;
using oracle::numbers;
using seqpack::all_shards;
using seqpack::full_row;
using seqpack::offset_t;
using seqpack::shard;

/// Every batch of at most `rows` rows with lengths from 0 to `width`.
std::vector<numbers> all_batches(number rows, number width) {
  std::vector<numbers> result{{}};
  for (std::size_t from = 0; from < result.size(); ++from) {
    if (static_cast<number>(result[from].size()) == rows) continue;
    for (number length = 0; length <= width; ++length) {
      numbers longer = result[from];
      longer.push_back(length);
      result.push_back(longer);
    }
  }
  return result;
}

std::string text(const oracle::request& r) {
  std::string lens;
  for (const number length : r.lens) lens += std::to_string(length) + " ";
  return "lens " + lens + "each " + std::to_string(r.each) + " multiple " +
         std::to_string(r.total_multiple.value_or(0)) + " fixed " +
         std::to_string(r.fixed_total.value_or(0)) +
         (r.tail_to == oracle::tail::ghost ? " ghost" : " absorb") + " cp " + std::to_string(r.cp) +
         " sharding " + std::to_string(static_cast<int>(r.sharding));
}

// Each check returns what is wrong, or nothing. One assertion for a whole layout keeps millions of
// comparisons fast.

bool same(const seqpack::token_ref& found, const oracle::token& expected, const numbers& lens) {
  return found.slot == expected.slot && found.index == expected.position &&
         found.length == lens[oracle::at(expected.slot)] && found.real() == expected.real;
}

/// Where the place holds each token: by slot and position, -1 where it does not.
std::vector<numbers> rows_by_token(const oracle::packed& p, const oracle::tokens& place) {
  std::vector<numbers> rows;
  for (const number padded : p.padded) rows.emplace_back(oracle::at(padded), -1);
  for (std::size_t k = 0; k < place.size(); ++k) {
    rows[oracle::at(place[k].slot)][oracle::at(place[k].position)] = static_cast<number>(k);
  }
  return rows;
}

template <class View, class Place>
std::string wrong_map(const View& view, Place at, const oracle::packed& p,
                      const oracle::tokens& place) {
  if (view.rows(at) != static_cast<offset_t>(place.size())) return "rows";
  for (std::size_t k = 0; k < place.size(); ++k) {
    if (!same(view.token_at(at, static_cast<offset_t>(k)), place[k], p.lens)) {
      return "token_at " + std::to_string(k);
    }
  }
  const auto rows = rows_by_token(p, place);
  for (std::size_t slot = 0; slot < rows.size(); ++slot) {
    for (std::size_t s = 0; s < rows[slot].size(); ++s) {
      const auto row = view.row_of(at, static_cast<offset_t>(slot), static_cast<offset_t>(s));
      if (row != rows[slot][s]) return "row_of " + std::to_string(slot) + " " + std::to_string(s);
    }
  }
  return "";
}

/// for_each_run over [first, last): the runs follow each other and hold the right tokens.
template <class View, class Place>
std::string wrong_runs(const View& view, Place at, const oracle::packed& p,
                       const oracle::tokens& place, offset_t first, offset_t last) {
  std::string wrong;
  offset_t next = first;
  seqpack::for_each_run(view, at, first, last, [&](offset_t row, const seqpack::token_run& run) {
    if (row != next || run.count < 1 || row + run.count > last) {
      wrong = "run at " + std::to_string(row);
      return;
    }
    for (offset_t k = 0; k < run.count; ++k) {
      const seqpack::token_ref token{run.first.slot, run.first.index + k, run.first.length};
      if (!same(token, place[oracle::at(row + k)], p.lens)) wrong = "run of " + std::to_string(row);
    }
    next += run.count;
  });
  if (first < last && next != last) wrong = "runs end at " + std::to_string(next);
  return wrong;
}

/// for_each_source_run over the tokens [first, last) of a slot.
template <class View, class Place>
std::string wrong_source_runs(const View& view, Place at, const numbers& rows, offset_t slot,
                              offset_t first, offset_t last) {
  std::string wrong;
  offset_t next = first;
  seqpack::for_each_source_run(view, at, slot, first, last,
                               [&](offset_t index, offset_t row, offset_t count) {
                                 if (index != next || count < 1 || index + count > last) {
                                   wrong = "source run at " + std::to_string(index);
                                   return;
                                 }
                                 for (offset_t k = 0; k < count; ++k) {
                                   const offset_t expected = row < 0 ? -1 : row + k;
                                   if (rows[oracle::at(index + k)] != expected) {
                                     wrong = "source run of " + std::to_string(index + k);
                                   }
                                 }
                                 next += count;
                               });
  if (first < last && next != last) wrong = "source runs end at " + std::to_string(next);
  return wrong;
}

/// Which subranges of [0, size) are tried: all of them, or the whole and the ones around a point
/// that differs from layout to layout.
struct subranges {
  bool all;
  std::size_t salt;

  template <class F>
  void operator()(offset_t size, F f) const {
    if (all) {
      for (offset_t first = 0; first <= size; ++first) {
        for (offset_t last = first; last <= size; ++last) f(first, last);
      }
      return;
    }
    const auto point = static_cast<offset_t>(salt * 7919 % (oracle::at(size) + 1));
    f(0, size);
    f(point, size);
    f(0, point);
    f(point / 2, point);
    f(point, point);
  }
};

template <class View, class Place>
std::string wrong_place(const View& view, Place at, const oracle::packed& p,
                        const oracle::tokens& place, const subranges& each_range) {
  std::string wrong = wrong_map(view, at, p, place);
  const auto keep = [&](const std::string& found) {
    if (wrong.empty()) wrong = found;
  };
  each_range(view.rows(at), [&](offset_t first, offset_t last) {
    keep(wrong_runs(view, at, p, place, first, last));
  });
  const auto rows = rows_by_token(p, place);
  for (std::size_t slot = 0; slot < rows.size(); ++slot) {
    each_range(static_cast<offset_t>(rows[slot].size()), [&](offset_t first, offset_t last) {
      keep(wrong_source_runs(view, at, rows[slot], static_cast<offset_t>(slot), first, last));
    });
  }
  return wrong;
}

template <class View>
std::string wrong_view(const View& view, const oracle::packed& p, const subranges& each_range) {
  std::string wrong = wrong_place(view, full_row, p, p.row, each_range);
  if (!wrong.empty()) return "full row: " + wrong;
  wrong = wrong_place(view, all_shards, p, p.all_shards, each_range);
  if (!wrong.empty()) return "all shards: " + wrong;
  for (std::size_t rank = 0; rank < p.shards.size(); ++rank) {
    wrong = wrong_place(view, shard{static_cast<offset_t>(rank)}, p, p.shards[rank], each_range);
    if (!wrong.empty()) return "shard " + std::to_string(rank) + ": " + wrong;
  }
  return "";
}

/// Counts what was tried, so that a loop that tries nothing fails.
struct tally {
  std::size_t made = 0;
  std::size_t refused = 0;
};

template <class Padding, class ContextParallel>
void compare(const oracle::request& r, const Padding& padding, const ContextParallel& cp,
             bool all_ranges, tally& count) {
  const oracle::packed p = oracle::pack(r);
  bool refused = false;
  std::string wrong;
  try {
    const auto layout = seqpack::make_layout(r.lens, padding, cp);
    wrong = wrong_view(layout.view(), p, {all_ranges, count.made + count.refused});
  } catch (const seqpack::invalid_input& error) {
    refused = true;
    wrong = error.what();
  }
  if (refused != (p.refused != oracle::refusal::none)) {
    BOOST_FAIL(text(r) << ": refused by one side alone: " << wrong);
  }
  if (!refused && !wrong.empty()) BOOST_FAIL(text(r) << ": " << wrong);
  ++(refused ? count.refused : count.made);
}

/// Calls f with the request and the same policies as the library's types.
template <class F>
void with_policies(const oracle::request& r, F f) {
  using namespace seqpack;
  const auto with_sharding = [&](const auto& padding) {
    switch (r.sharding) {
      case oracle::kind::zigzag: return f(padding, context_parallel{r.cp, zigzag{}});
      case oracle::kind::contiguous: return f(padding, context_parallel{r.cp, contiguous{}});
      case oracle::kind::striped: return f(padding, context_parallel{r.cp, striped{}});
      case oracle::kind::row_contiguous:
        return f(padding, context_parallel{r.cp, row_contiguous{}});
    }
  };
  const auto with_tail = [&](auto tail) {
    const each_multiple_of<> each{r.each};
    const total_multiple_of<> multiple{r.total_multiple.value_or(1)};
    const fixed_total<> fixed{r.fixed_total.value_or(1)};
    if (r.total_multiple && r.fixed_total) {
      with_sharding(padding{fixed, each, tail, multiple});
    } else if (r.fixed_total) {
      with_sharding(padding{each, fixed, tail});
    } else if (r.total_multiple) {
      with_sharding(padding{tail, multiple, each});
    } else {
      with_sharding(padding{each, tail});
    }
  };
  r.tail_to == oracle::tail::ghost ? with_tail(ghost_tail{}) : with_tail(absorb_tail{});
}

/// All paddings that matter for one batch, one number of ranks and one sharding.
std::vector<oracle::request> requests(const numbers& lens, number cp, oracle::kind sharding) {
  const number divisor = oracle::total_divisor(sharding, cp);
  std::vector<oracle::request> result;
  for (const number each : {number{1}, divisor, 2 * divisor, divisor + 1}) {
    for (const oracle::tail tail : {oracle::tail::absorb, oracle::tail::ghost}) {
      const auto add = [&](std::optional<number> multiple, std::optional<number> fixed) {
        result.push_back({.lens = lens,
                          .each = each,
                          .total_multiple = multiple,
                          .fixed_total = fixed,
                          .tail_to = tail,
                          .cp = cp,
                          .sharding = sharding});
      };
      add({}, {});
      add(3 * divisor, {});
      add(5, {});
      add({}, 8 * divisor);
      add(2 * divisor, 4 * divisor);
    }
  }
  return result;
}

constexpr oracle::kind all_shardings[] = {oracle::kind::zigzag, oracle::kind::contiguous,
                                          oracle::kind::striped, oracle::kind::row_contiguous};

/// Every `step`-th batch of a list, beginning with a different one for every number of ranks.
void compare_all(const std::vector<numbers>& batches, number first_cp, number last_cp,
                 std::size_t step, bool all_ranges, tally& count) {
  for (number cp = first_cp; cp <= last_cp; ++cp) {
    for (const oracle::kind sharding : all_shardings) {
      for (std::size_t k = oracle::at(cp) % step; k < batches.size(); k += step) {
        for (const oracle::request& r : requests(batches[k], cp, sharding)) {
          with_policies(r, [&](const auto& padding, const auto& policy) {
            compare(r, padding, policy, all_ranges, count);
          });
        }
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_list_of_batches_is_complete) {
  BOOST_TEST(all_batches(0, 5).size() == 1U);
  BOOST_TEST(all_batches(3, 5).size() == 1U + 6U + 36U + 216U);
  BOOST_TEST(all_batches(2, 1).back() == (numbers{1, 1}));
}

BOOST_AUTO_TEST_CASE(every_batch_of_up_to_three_rows_on_up_to_two_ranks) {
  tally count;
  compare_all(all_batches(3, 5), 1, 2, 1, false, count);
  BOOST_TEST(count.made > 15000U);
  BOOST_TEST(count.refused > 5000U);
}

BOOST_AUTO_TEST_CASE(every_number_of_ranks) {
  tally count;
  compare_all(all_batches(3, 5), 3, 8, 5, false, count);
  BOOST_TEST(count.made > 15000U);
  BOOST_TEST(count.refused > 5000U);
}

BOOST_AUTO_TEST_CASE(every_subrange_of_every_place) {
  tally count;
  compare_all(all_batches(3, 2), 1, 3, 3, true, count);
  BOOST_TEST(count.made > 500U);
}

BOOST_AUTO_TEST_CASE(sixty_four_bit_bounds_and_static_policies) {
  const oracle::request r{.lens = {5, 0, 3}, .each = 4, .total_multiple = 16, .cp = 2};
  const auto layout = seqpack::make_layout<std::int64_t>(
      r.lens, seqpack::padding{seqpack::each_multiple_of<4>{}, seqpack::total_multiple_of<16>{}},
      seqpack::context_parallel<2>{});
  BOOST_TEST(wrong_view(layout.view(), oracle::pack(r), {true, 0}) == "");
}

BOOST_AUTO_TEST_CASE(the_checks_notice_a_wrong_map) {
  const oracle::request r{.lens = {5, 3}, .each = 4, .cp = 2};
  const auto wrong = [&](const auto& padding, const auto& cp) {
    return wrong_view(seqpack::make_layout(r.lens, padding, cp).view(), oracle::pack(r), {true, 0});
  };
  using namespace seqpack;
  const padding each_4{each_multiple_of<4>{}};
  BOOST_TEST(wrong(each_4, context_parallel<2>{}) == "");
  BOOST_TEST(wrong(each_4, context_parallel<2, contiguous>{}) != "");
  BOOST_TEST(wrong(each_4, context_parallel<2, striped>{}) != "");
  BOOST_TEST(wrong(each_4, context_parallel<2, row_contiguous>{}) != "");
  BOOST_TEST(wrong(padding{each_multiple_of<8>{}}, context_parallel<2>{}) != "");
}

// The same map in constant expressions.

namespace {

template <std::size_t Entries>
struct bounds {
  std::array<std::int32_t, Entries> cu{};
  std::array<std::int32_t, Entries> cu_padded{};
};

/// Whether row_of undoes token_at for every row of a place.
template <class View, class Place>
constexpr bool inverse(const View& view, Place at) {
  for (offset_t row = 0; row < view.rows(at); ++row) {
    const seqpack::token_ref token = view.token_at(at, row);
    if (view.row_of(at, token.slot, token.index) != row) return false;
    if (token.index < 0 || token.index >= view.padded_length(token.slot)) return false;
  }
  return true;
}

template <class View>
constexpr bool inverse_everywhere(const View& view) {
  for (offset_t rank = 0; rank < view.cp.size(); ++rank) {
    if (!inverse(view, shard{rank})) return false;
  }
  return inverse(view, full_row) && inverse(view, all_shards);
}

template <class View, class Place>
constexpr offset_t tokens_in_runs(const View& view, Place at) {
  offset_t count = 0;
  seqpack::for_each_run(view, at, 0, view.rows(at),
                        [&](offset_t, const seqpack::token_run& run) { count += run.count; });
  return count;
}

template <std::size_t Entries, class Padding, class ContextParallel, std::size_t Batch>
constexpr bool proven(const std::array<int, Batch>& lens, const Padding& padding,
                      const ContextParallel& cp, offset_t total) {
  bounds<Entries> memory;
  const auto view =
      seqpack::build_layout<std::int32_t>(lens, padding, cp, {memory.cu, memory.cu_padded});
  return view.total == total && inverse_everywhere(view) &&
         tokens_in_runs(view, full_row) == total && tokens_in_runs(view, all_shards) == total;
}

using namespace seqpack;
constexpr std::array lens{5, 0, 3};

static_assert(proven<4>(lens, padding{each_multiple_of<8>{}}, context_parallel<4>{}, 16));
static_assert(proven<4>(lens, padding{each_multiple_of<>{8}}, context_parallel<>{4}, 16));
static_assert(proven<4>(lens, padding{each_multiple_of<4>{}}, context_parallel<4, contiguous>{},
                        12));
static_assert(proven<4>(lens, padding{each_multiple_of<4>{}}, context_parallel<4, striped>{}, 12));
static_assert(proven<4>(lens, no_padding{}, context_parallel<4, row_contiguous>{}, 8));
static_assert(proven<4>(lens, padding{total_multiple_of<3>{}},
                        context_parallel<3, row_contiguous>{}, 9));
static_assert(proven<4>(lens, padding{each_multiple_of<4>{}, fixed_total<24>{}},
                        context_parallel<2>{}, 24));
static_assert(proven<5>(lens, padding{each_multiple_of<4>{}, fixed_total<24>{}, ghost_tail{}},
                        context_parallel<2>{}, 24));
static_assert(proven<4>(lens, no_padding{}, no_context_parallel{}, 8));

// The tokens of one shard, one by one: lens 5 and 3, each 4, zigzag over 2 ranks.
constexpr bool first_shard_is_right() {
  bounds<3> memory;
  const auto view =
      build_layout<std::int32_t>(std::array{5, 3}, padding{each_multiple_of<4>{}},
                                 context_parallel<2>{}, {memory.cu, memory.cu_padded});
  constexpr offset_t sequence[] = {0, 0, 0, 0, 1, 1};
  constexpr offset_t index[] = {0, 1, 6, 7, 0, 3};
  for (offset_t k = 0; k < 6; ++k) {
    const token_ref token = view.token_at(shard{0}, k);
    if (token.slot != sequence[k] || token.index != index[k]) return false;
  }
  return view.rows(shard{0}) == 6;
}
static_assert(first_shard_is_right());

}  // namespace

BOOST_AUTO_TEST_CASE(case_5_positions_of_an_odd_sequence) {
  const std::array lengths{7};
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto view = layout.view();
  const offset_t first[] = {0, 1, 6, 7};
  const offset_t second[] = {2, 3, 4, 5};
  for (offset_t k = 0; k < 4; ++k) {
    BOOST_TEST(view.token_at(shard{0}, k).index == first[k]);
    BOOST_TEST(view.token_at(shard{0}, k).real() == (k < 3));
    BOOST_TEST(view.token_at(shard{1}, k).index == second[k]);
    BOOST_TEST(view.token_at(shard{1}, k).real());
  }
}

BOOST_AUTO_TEST_CASE(case_78_chunks_of_a_long_odd_sequence) {
  const std::array lengths{4803};
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto view = layout.view();
  BOOST_TEST(view.rows(shard{0}) == 2402);
  for (offset_t k = 0; k < 2402; ++k) {
    BOOST_TEST(view.token_at(shard{1}, k).index == 1201 + k);
    BOOST_TEST(view.token_at(shard{0}, k).index == (k < 1201 ? k : 3603 + k - 1201));
  }
  BOOST_TEST(!view.token_at(shard{0}, 2401).real());  // position 4803
  BOOST_TEST(view.token_at(shard{0}, 2400).real());
}

BOOST_AUTO_TEST_CASE(a_full_row_has_one_run_for_each_sequence_that_is_not_empty) {
  const std::array lengths{5, 0, 3, 0};
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  std::size_t runs = 0;
  for_each_run(layout.view(), full_row, 0, 12, [&](offset_t, const token_run&) { ++runs; });
  BOOST_TEST(runs == 2U);
}

BOOST_AUTO_TEST_CASE(runs_are_as_long_as_the_sharding_allows) {
  const std::array lengths{16};
  const padding each_16{each_multiple_of<16>{}};
  const auto runs = [&](const auto& cp, offset_t rank) {
    std::vector<offset_t> counts;
    const auto layout = make_layout(lengths, each_16, cp);
    for_each_run(layout.view(), shard{rank}, 0, layout.shard_tokens(),
                 [&](offset_t, const token_run& run) { counts.push_back(run.count); });
    return counts;
  };
  BOOST_TEST(runs(context_parallel<4>{}, 0) == (std::vector<offset_t>{2, 2}));
  BOOST_TEST(runs(context_parallel<4>{}, 3) == (std::vector<offset_t>{4}));
  BOOST_TEST(runs(context_parallel<4, contiguous>{}, 1) == (std::vector<offset_t>{4}));
  BOOST_TEST(runs(context_parallel<4, striped>{}, 1) == (std::vector<offset_t>{1, 1, 1, 1}));
}
