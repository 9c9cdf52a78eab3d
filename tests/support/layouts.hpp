/// \file
/// Layouts of many policies beside what the oracle says about them.
#pragma once

#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "support/oracle.hpp"

namespace seqpack::testing {

/// Makes the layout that a request describes and calls f(layout, oracle's answer, request).
template <class Padding, class ContextParallel, class F>
void with_layout(const oracle::request& request, const Padding& how, const ContextParallel& cp,
                 F&& f) {
  const oracle::packed expected = oracle::pack(request);
  if (expected.refused == oracle::refusal::nobody_absorbs) return;
  BOOST_REQUIRE(expected.refused == oracle::refusal::none);
  const std::vector<offset_t> order(request.order.begin(), request.order.end());
  layout_options options;
  if (!order.empty()) options.order = order;
  f(make_layout(request.lens, how, cp, options), expected, request);
}

/// Calls f(layout, expected, request) for these lengths under static and dynamic sizes, both tails,
/// all shardings and several context-parallel sizes. A fixed total leaves a tail.
template <class F>
void for_each_layout(const oracle::numbers& lens, const oracle::numbers& order, F&& f) {
  using oracle::kind;
  using enum oracle::tail;
  const oracle::request plain{.lens = lens, .order = order};
  with_layout(plain, no_padding{}, no_context_parallel{}, f);

  oracle::request fixed = plain;
  fixed.each = 8;
  fixed.cp = 4;
  with_layout(fixed, padding{each_multiple_of<8>{}}, context_parallel<4>{}, f);

  for (const oracle::number cp : {1, 2, 3, 5}) {
    oracle::request r = plain;
    r.cp = cp;
    r.each = 2 * cp;
    const each_multiple_of<> each{r.each};
    r.total_multiple = 6 * cp;
    with_layout(r, padding{each, total_multiple_of<>{6 * cp}}, context_parallel{cp}, f);

    r.sharding = kind::striped;
    r.tail_to = ghost;
    with_layout(r, padding{each, total_multiple_of<>{6 * cp}, ghost_tail{}},
                context_parallel{cp, striped{}}, f);

    oracle::number content = 0;
    for (const auto length : oracle::slot_lengths(r))
      content += oracle::next_multiple(length, r.each);
    r.total_multiple.reset();
    r.fixed_total = oracle::next_multiple(content + 1, 2 * cp);
    r.sharding = kind::contiguous;
    with_layout(r, padding{each, fixed_total<>{*r.fixed_total}, ghost_tail{}},
                context_parallel{cp, contiguous{}}, f);

    r.sharding = kind::zigzag;
    r.tail_to = absorb;
    with_layout(r, padding{each, fixed_total<>{*r.fixed_total}}, context_parallel{cp}, f);

    // Lengths that nothing divides.
    r.sharding = kind::row_contiguous;
    r.each = 1;
    with_layout(r, padding{fixed_total<>{*r.fixed_total}}, context_parallel{cp, row_contiguous{}},
                f);
    r.tail_to = ghost;
    r.fixed_total.reset();
    r.total_multiple = 3 * cp;
    with_layout(r, padding{total_multiple_of<>{3 * cp}, ghost_tail{}},
                context_parallel{cp, row_contiguous{}}, f);
  }
}

/// Calls f(place, its tokens) for the full row, each shard and all shards.
template <class F>
void for_each_place(const oracle::packed& expected, F&& f) {
  f(full_row, expected.row);
  for (std::size_t r = 0; r < expected.shards.size(); ++r) {
    f(shard{static_cast<offset_t>(r)}, expected.shards[r]);
  }
  f(all_shards, expected.all_shards);
}

/// Lengths from 0 to `longest`, about a fifth of them 0.
inline oracle::numbers random_lengths(std::mt19937& random, int batch, int longest) {
  std::uniform_int_distribution<int> length(-longest / 4, longest);
  oracle::numbers lens;
  for (int b = 0; b < batch; ++b) lens.push_back(std::max(0, length(random)));
  return lens;
}

/// Some of the rows of a batch, in any order; at least one if there is one.
inline oracle::numbers random_order(std::mt19937& random, int batch) {
  oracle::numbers order;
  for (int b = 0; b < batch; ++b) order.push_back(b);
  std::shuffle(order.begin(), order.end(), random);
  if (batch > 1) order.resize(1 + random() % static_cast<unsigned>(batch));
  return order;
}

/// for_each_layout for batches of 0 to 5 random sequences, every other one in a random order.
template <class F>
void for_random_layouts(unsigned seed, const F& f) {
  std::mt19937 random(seed);
  for (int round = 0; round < 12; ++round) {
    const int batch = round % 6;
    const oracle::numbers lens = random_lengths(random, batch, 25);
    const oracle::numbers order = round % 2 == 0 ? oracle::numbers{} : random_order(random, batch);
    for_each_layout(lens, order, f);
  }
}

/// A batch of ids as the oracle has them; columns behind a length hold -1, which must never come
/// out of anything.
inline oracle::numbers id_table(const oracle::numbers& lens, oracle::number width) {
  oracle::numbers table;
  for (std::size_t b = 0; b < lens.size(); ++b) {
    for (oracle::number s = 0; s < width; ++s) {
      table.push_back(s < lens[b] ? oracle::id(static_cast<oracle::number>(b), s) : -1);
    }
  }
  return table;
}

}  // namespace seqpack::testing
