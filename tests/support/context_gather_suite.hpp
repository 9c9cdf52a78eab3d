/// \file
/// What all_gather_unpack, all_gather_rows and their transposes must do, over any group and in any
/// memory. Called by all ranks of a group of any size, which is the CP size.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/parallel/context_gather.hpp"
#include "support/findings.hpp"
#include "support/group_memory.hpp"
#include "support/layouts.hpp"
#include "support/oracle.hpp"

namespace seqpack::testing {

/// 12 bytes, no operators but equality.
struct point {
  float x, y, z;
  friend bool operator==(const point&, const point&) = default;
};

/// Values of tokens: all different, also in padding.
template <class T>
T gathered_value(oracle::number slot, oracle::number position, offset_t column) {
  const auto n = 1000 * (slot + 1) + position + 100'000 * column;
  if constexpr (std::is_same_v<T, point>) {
    return {static_cast<float>(n), static_cast<float>(-n), 0.5F};
  } else {
    return static_cast<T>(n);
  }
}
/// What nobody ever writes.
template <class T>
T untouched_value() {
  return gathered_value<T>(-6, 0, 0);
}

/// The rows of a place, all of them with a value.
template <class T>
std::vector<T> rows_of(const oracle::tokens& place, offset_t payload) {
  std::vector<T> rows;
  for (const auto& token : place) {
    for (offset_t d = 0; d < payload; ++d) {
      rows.push_back(gathered_value<T>(token.slot, token.position, d));
    }
  }
  return rows;
}

/// The batch of the real tokens, from the definition.
template <class T>
std::vector<T> batch_of(const oracle::tokens& place, offset_t batch, offset_t width,
                        offset_t payload, const T& fill) {
  std::vector<T> table(static_cast<std::size_t>(batch * width * payload), fill);
  for (const auto& token : place) {
    if (!token.real) continue;
    for (offset_t d = 0; d < payload; ++d) {
      table[static_cast<std::size_t>((token.row * width + token.position) * payload + d)] =
          gathered_value<T>(token.slot, token.position, d);
    }
  }
  return table;
}

/// Executor, group, and how a layout gets into their memory.
template <executor E, communicator C, class Place>
struct gather_frame {
  E where;
  C& group;
  Place place;
  findings& found;

  std::size_t me() const { return static_cast<std::size_t>(group.rank().value); }
  template <class T>
  using array = group_array<T, C>;
  template <class T>
  array<T> output(offset_t size) const {
    return array<T>(group, static_cast<std::size_t>(size), untouched_value<T>());
  }
};

template <class T>
std::vector<T> untouched(std::size_t size) {
  return std::vector<T>(size, untouched_value<T>());
}

/// Gathers over one layout: with a workspace, without, and in place.
template <class T, class Frame, class Layout, class Placed>
void check_gather(Frame& f, const Layout& layout, const Placed& placed,
                  const oracle::packed& expected, offset_t batch, offset_t payload) {
  const offset_t width = layout.max_length() + 1;
  const offset_t total = layout.total_tokens();
  const offset_t per_rank = layout.shard_tokens();
  const std::string what = " of " + std::to_string(total) + " x " + std::to_string(payload) +
                           " x " + std::to_string(sizeof(T)) + " bytes";
  const T fill = gathered_value<T>(7, 7, 7);
  const auto shard_rows = rows_of<T>(expected.shards[f.me()], payload);
  const auto all_rows = rows_of<T>(expected.all_shards, payload);
  const auto row = rows_of<T>(expected.row, payload);
  const auto table = batch_of<T>(expected.row, batch, width, payload, fill);

  // The layout's own way from all shards to the batch says the same.
  std::vector<T> direct(table.size(), untouched_value<T>());
  unpack(host, layout, all_shards,
         field(row_view(all_rows.data(), total, payload),
               batch_view(direct.data(), batch, width, payload), fill));
  f.found.equal(direct, table, "unpack" + what);

  auto mine = typename Frame::template array<T>(f.group, shard_rows);
  const row_view<const T> source(mine.data(), per_rank, payload);
  const auto gather_both = [&](const row_view<const T>& from, const std::string& how,
                               const auto&... more) {
    auto target = f.template output<T>(batch * width * payload);
    all_gather_unpack(f.where, f.group, placed,
                      field(from, batch_view(target.data(), batch, width, payload), fill), more...);
    f.found.equal(target.values(), table, "all_gather_unpack" + how + what);
    auto full = f.template output<T>(total * payload);
    all_gather_rows(f.where, f.group, placed, field(from, row_view<T>(full.data(), total, payload)),
                    more...);
    f.found.equal(full.values(), row, "all_gather_rows" + how + what);
  };
  auto memory = f.template output<T>(total * payload);
  const row_view<T> workspace(memory.data(), total, payload);
  gather_both(source, "", workspace);
  const bool gathers = f.group.size() > 1;
  f.found.equal(memory.values(), gathers ? all_rows : untouched<T>(all_rows.size()), "workspace");
  gather_both(source, ", allocating", context_gather_options{});
  gather_both(source, ", checked on all ranks", workspace,
              context_gather_options{.check_all_ranks = true});
  f.found.equal(mine.values(), shard_rows, "the source" + what);

  auto in_place = std::vector<T>(all_rows.size(), untouched_value<T>());
  std::copy(shard_rows.begin(), shard_rows.end(),
            in_place.begin() + static_cast<std::ptrdiff_t>(f.me() * shard_rows.size()));
  auto shared = typename Frame::template array<T>(f.group, in_place);
  gather_both({shared.data() + f.me() * shard_rows.size(), per_rank, payload}, ", in place",
              row_view<T>(shared.data(), total, payload));
}

/// Small integers, the same for all who ask for that rank.
template <class T>
std::vector<T> gradient_of(std::size_t rank, std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(rank) + 100);
  std::uniform_int_distribution<int> value(-50, 50);
  std::vector<T> values(size);
  for (T& v : values) v = static_cast<T>(value(random));
  return values;
}

template <class T>
std::int64_t dot(const std::vector<T>& a, const std::vector<T>& b) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    sum += static_cast<std::int64_t>(a[k]) * static_cast<std::int64_t>(b[k]);
  }
  return sum;
}

template <class C>
std::int64_t sum_over_ranks(C& group, std::int64_t mine) {
  const group_array<std::int64_t, C> value(group, {mine});
  group.all_reduce(static_cast<const std::int64_t*>(value.data()), value.data(), 1, reduction::sum);
  return value.values().front();
}

/// The transposes: against the definition, and sum_r <gather(x)_r, g_r> == sum_r <x_r,
/// transpose(g)_r>.
template <class T, class Frame, class Layout, class Placed>
void check_transposes(Frame& f, const Layout& layout, const Placed& placed,
                      const oracle::packed& expected, offset_t batch, offset_t payload) {
  const offset_t width = layout.max_length() + 1;
  const offset_t total = layout.total_tokens();
  const offset_t per_rank = layout.shard_tokens();
  const auto ranks = static_cast<std::size_t>(f.group.size());
  const auto shard_size = static_cast<std::size_t>(per_rank * payload);
  const auto x = gradient_of<T>(f.me() + 1000, shard_size);
  auto mine = typename Frame::template array<T>(f.group, x);
  const row_view<const T> source(mine.data(), per_rank, payload);

  /// What the shard must get: entry(gradient, token) of every rank, summed.
  const auto summed = [&](std::size_t size, const auto& index) {
    std::vector<T> sum(shard_size, T{});
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto gradient = gradient_of<T>(r, size);
      std::size_t k = 0;
      for (const auto& token : expected.shards[f.me()]) {
        const std::optional<offset_t> first = index(token);
        for (offset_t d = 0; d < payload; ++d, ++k) {
          if (first) sum[k] += gradient[static_cast<std::size_t>(*first * payload + d)];
        }
      }
    }
    return sum;
  };
  const auto check = [&](const char* what, offset_t rows, const auto& view_of, const auto& gather,
                         const auto& transpose, const auto& index) {
    const auto size = static_cast<std::size_t>(rows * payload);
    auto gathered = f.template output<T>(rows * payload);
    gather(field(source, view_of(gathered.data())));
    const auto g = gradient_of<T>(f.me(), size);
    auto gradient = typename Frame::template array<T>(f.group, g);
    auto result = f.template output<T>(per_rank * payload);
    const auto back = field(view_of(static_cast<const T*>(gradient.data())),
                            row_view<T>(result.data(), per_rank, payload));
    auto memory = f.template output<T>(total * payload);
    transpose(back, row_view<T>(memory.data(), total, payload));
    const auto values = result.values();
    f.found.equal(values, summed(size, index), what);
    f.found.equal(sum_over_ranks(f.group, dot(gathered.values(), g)),
                  sum_over_ranks(f.group, dot(x, values)), std::string(what) + ", identity");
    f.found.equal(gradient.values(), g, std::string(what) + ", source");
    transpose(back, context_gather_options{.check_all_ranks = true});
    f.found.equal(result.values(), values, std::string(what) + ", allocating");
  };
  check(
      "pack_reduce_scatter", batch * width,
      [&](auto* data) { return batch_view(data, batch, width, payload); },
      [&](const auto& fld) { all_gather_unpack(f.where, f.group, placed, fld); },
      [&](const auto& fld, const auto& more) {
        pack_reduce_scatter(f.where, f.group, placed, fld, more);
      },
      [&](const oracle::token& t) {
        return t.real ? std::optional<offset_t>(t.row * width + t.position) : std::nullopt;
      });
  check(
      "reduce_scatter_rows", total, [&](auto* data) { return row_view(data, total, payload); },
      [&](const auto& fld) { all_gather_rows(f.where, f.group, placed, fld); },
      [&](const auto& fld, const auto& more) {
        reduce_scatter_rows(f.where, f.group, placed, fld, more);
      },
      [&](const oracle::token& t) {
        return std::optional<offset_t>(expected.cu_padded[oracle::at(t.slot)] + t.position);
      });
}

template <class Frame, class Padding, class ContextParallel>
void check_policies(Frame& f, const oracle::request& request, const Padding& how,
                    const ContextParallel& cp) {
  const oracle::packed expected = oracle::pack(request);
  if (expected.refused == oracle::refusal::nobody_absorbs) return;
  f.found.check(expected.refused == oracle::refusal::none, "a row as the oracle has it");
  const std::vector<offset_t> order(request.order.begin(), request.order.end());
  layout_options options;
  if (!order.empty()) options.order = order;
  const auto layout = make_layout(request.lens, how, cp, options);
  const auto placed = f.place(layout);
  const auto batch = static_cast<offset_t>(request.lens.size());
  for (const offset_t payload : {1, 3, 16}) {
    check_gather<std::int64_t>(f, layout, placed, expected, batch, payload);
    check_transposes<std::int64_t>(f, layout, placed, expected, batch, payload);
  }
  if constexpr (std::is_same_v<ContextParallel, context_parallel<>>) {
    for (const offset_t payload : {1, 3, 16}) {
      check_gather<float>(f, layout, placed, expected, batch, payload);
      check_gather<point>(f, layout, placed, expected, batch, payload);
    }
    check_transposes<float>(f, layout, placed, expected, batch, 3);
  }
}

/// Random lengths and orders under every sharding and padding. CP size = group size.
template <class Frame>
void check_random_layouts(Frame& f, int rounds) {
  using enum oracle::kind;
  std::mt19937 random(5);
  const oracle::number cp = f.group.size();
  for (int round = 0; round < rounds; ++round) {
    oracle::request r{.lens = random_lengths(random, round % 6, 30)};
    const auto batch = static_cast<int>(r.lens.size());
    if (round % 2 == 1) r.order = random_order(random, batch);
    r.cp = cp;
    r.each = 2 * cp;
    const each_multiple_of<> each{r.each};
    r.total_multiple = round % 3 == 0 ? 2 * cp : 6 * cp;
    const total_multiple_of<> multiple{*r.total_multiple};
    check_policies(f, r, padding{each, multiple}, context_parallel{cp});

    r.tail_to = oracle::tail::ghost;
    r.sharding = striped;
    check_policies(f, r, padding{each, multiple, ghost_tail{}},
                   context_parallel{cp, seqpack::striped{}});

    oracle::number content = 0;
    for (const auto length : oracle::slot_lengths(r)) {
      content += oracle::next_multiple(length, r.each);
    }
    r.total_multiple.reset();
    r.fixed_total = oracle::next_multiple(content + 1, 2 * cp);
    const fixed_total<> total{*r.fixed_total};
    r.sharding = contiguous;
    check_policies(f, r, padding{each, total, ghost_tail{}},
                   context_parallel{cp, seqpack::contiguous{}});
    r.tail_to = oracle::tail::absorb;
    r.sharding = zigzag;
    check_policies(f, r, padding{each, total}, context_parallel{cp});

    r.sharding = row_contiguous;
    r.each = 1;
    check_policies(f, r, padding{total}, context_parallel{cp, seqpack::row_contiguous{}});
  }
}

/// A gather of ids to a batch, on every rank.
template <class Frame, class Layout>
std::vector<std::int64_t> gather_ids(Frame& f, const Layout& layout,
                                     const std::vector<std::int64_t>& mine, offset_t width,
                                     std::int64_t fill) {
  auto source = typename Frame::template array<std::int64_t>(f.group, mine);
  auto target = f.template output<std::int64_t>(layout.batch_size() * width);
  all_gather_unpack(f.where, f.group, f.place(layout),
                    field(row_view<const std::int64_t>(source.data(), layout.shard_tokens()),
                          batch_view(target.data(), layout.batch_size(), width), fill));
  return target.values();
}

/// Failures that happened to others, over a group of two.
template <class Frame>
void check_cases(Frame& f) {
  using ids = std::vector<std::int64_t>;
  const bool first = f.me() == 0;
  const each_multiple_of<4> four;
  const context_parallel<2> two;

  // What an all-gather leaves is not the order of the sequences: chunks of 1 and of 2 tokens.
  const auto even = make_layout(std::vector{4, 8}, padding{four}, two);
  f.found.equal(
      gather_ids(f, even,
                 first ? ids{100, 103, 200, 201, 206, 207} : ids{101, 102, 202, 203, 204, 205}, 8,
                 -1),
      ids{100, 101, 102, 103, -1, -1, -1, -1, 200, 201, 202, 203, 204, 205, 206, 207},
      "lengths 4 and 8 in the order of their tokens");
  f.found.template throws<invalid_input>(
      [&] { make_layout(std::vector{4, 7}, no_padding{}, two); },
      "padded length of lengths[1] is 7: it must be a multiple of 4, what the sharding divides by",
      "a length that two ranks cannot share");

  // Rows in the order of the caller, who packed them in another.
  const std::vector<offset_t> order{2, 0, 1};
  const auto ordered = make_layout(std::vector{4, 8, 4}, padding{four}, two, {.order = order});
  f.found.equal(gather_ids(f, ordered,
                           first ? ids{300, 303, 100, 103, 200, 201, 206, 207}
                                 : ids{301, 302, 101, 102, 202, 203, 204, 205},
                           8, 0),
                ids{100, 101, 102, 103, 0,   0,   0,   0,   200, 201, 202, 203,
                    204, 205, 206, 207, 300, 301, 302, 303, 0,   0,   0,   0},
                "order 2, 0, 1");
  const std::vector<offset_t> longest_first{1, 0, 2};
  const auto sorted =
      make_layout(std::vector{2, 5, 1}, padding{four}, two, {.order = longest_first});
  f.found.equal(gather_ids(f, sorted,
                           first ? ids{200, 201, -9, -9, 100, -9, 300, -9}
                                 : ids{202, 203, 204, -9, 101, -9, -9, -9},
                           5, 0),
                ids{100, 101, 0, 0, 0, 200, 201, 202, 203, 204, 300, 0, 0, 0, 0},
                "lengths 2, 5, 1 packed as 5, 2, 1");
}

/// Calls that one rank or all get wrong, checked on all ranks. Nothing is written, and the group is
/// usable after each.
template <class Frame>
struct refusals {
  using T = float;
  Frame& f;
  offset_t size = f.group.size();
  offset_t odd = size - 1;
  bool is_odd = f.group.rank().value == odd;

  template <class Padding>
  auto layout_of(const std::vector<int>& lens, const Padding& how) {
    return make_layout(lens, how, context_parallel{size});
  }
  auto usual() { return layout_of({3, 5}, padding{each_multiple_of<>{8 * size}}); }
  std::string on_odd() const { return " on rank " + std::to_string(odd) + " is "; }

  /// Sizes of one rank's call; what is not given is right.
  struct call {
    std::optional<offset_t> source_rows = std::nullopt;
    std::optional<offset_t> work_rows = std::nullopt;
    std::optional<offset_t> target_width = std::nullopt;
    offset_t payload = 2;
    bool null = false;
    bool alias = false;
  };

  /// Which functions: the same on all ranks.
  struct functions {
    bool gathers = true;
    bool scatters = true;
    bool rows = true;  ///< also those between shards and the full row
  };
  static constexpr functions all{};
  static constexpr functions gathers{.scatters = false};
  static constexpr functions scatters{.gathers = false};
  static constexpr functions unpacks{.scatters = false, .rows = false};
  static constexpr functions packs{.gathers = false, .rows = false};

  /// Calls of these functions throw this, and have written nothing.
  template <class Placed>
  void expect(const Placed& placed, const call& c, const std::string& text, bool together,
              const functions& which = all) {
    const offset_t total = placed.total_tokens();
    const offset_t per_rank = c.source_rows.value_or(placed.shard_tokens());
    const offset_t width = c.target_width.value_or(5);
    auto shard_rows = f.template output<T>(total * 4);
    auto batch = f.template output<T>(2 * 9 * 4);
    auto row = f.template output<T>(total * 4);
    auto memory = f.template output<T>(total * 4);
    T* const mine = c.null ? nullptr : c.alias ? memory.data() + 1 : shard_rows.data();
    const row_view<T> shard_view(mine, per_rank, c.payload);
    const batch_view<T> batch_target(batch.data(), 2, width, c.payload);
    const row_view<T> row_target(row.data(), total, c.payload);
    const row_view<T> work(memory.data(), c.work_rows.value_or(total), c.payload);
    const context_gather_options options{.check_all_ranks = together};
    const auto refuse = [&](const char* what, const auto& make) {
      if (together) {
        f.found.template throws<collective_mismatch>(make, text, what);
      } else {
        f.found.template throws<invalid_input>(make, text, what);
      }
      for (const auto* array : {&shard_rows, &batch, &row, &memory}) {
        f.found.equal(array->values(), untouched<T>(array->size()),
                      std::string("nothing written by ") + what);
      }
      if (together) {
        f.found.equal(sum_over_ranks(f.group, 1), f.group.size(), "the group is usable");
      }
    };
    if (which.gathers) {
      refuse("all_gather_unpack", [&] {
        all_gather_unpack(f.where, f.group, placed, field(shard_view, batch_target), work, options);
      });
      if (which.rows) {
        refuse("all_gather_rows", [&] {
          all_gather_rows(f.where, f.group, placed, field(shard_view, row_target), work, options);
        });
      }
    }
    if (which.scatters) {
      refuse("pack_reduce_scatter", [&] {
        pack_reduce_scatter(f.where, f.group, placed, field(batch_target, shard_view), work,
                            options);
      });
      if (which.rows) {
        refuse("reduce_scatter_rows", [&] {
          reduce_scatter_rows(f.where, f.group, placed, field(row_target, shard_view), work,
                              options);
        });
      }
    }
  }

  /// One rank is wrong, and all ranks say so.
  void on_one_rank() {
    const auto layout = usual();
    const auto placed = f.place(layout);
    const std::string rows = std::to_string(layout.shard_tokens());
    const std::string in_one_shard = ", the tokens of the layout in one shard";
    const auto only_odd = [&](call c) { return is_odd ? c : call{}; };
    expect(placed, only_odd({.source_rows = 3}),
           "source rows" + on_odd() + "3: it must be " + rows + in_one_shard, true, gathers);
    expect(placed, only_odd({.source_rows = 3}),
           "target rows" + on_odd() + "3: it must be " + rows + in_one_shard, true, scatters);
    expect(placed, only_odd({.null = true}),
           "source" + on_odd() + "null: it must point to " +
               std::to_string(layout.shard_tokens() * 2) + " elements",
           true, gathers);
    expect(placed, only_odd({.target_width = 4}),
           "target width" + on_odd() +
               "4: it must be at least 5, the longest real length of the layout",
           true, unpacks);
    if (size == 1) return;
    expect(placed, only_odd({.work_rows = 3}),
           "workspace rows" + on_odd() + "3: it must be " + std::to_string(layout.total_tokens()) +
               ", the tokens of all shards",
           true);
    expect(placed, only_odd({.payload = 3}), "payload" + on_odd() + "3: it must be 2, as on rank 0",
           true);
  }

  /// One rank has another layout, and is right as far as it can see.
  void other_layouts() {
    if (size == 1) return;
    const auto swap_on_odd = [&](const auto& other, const std::string& text) {
      expect(f.place(is_odd ? other : usual()), {}, text, true);
    };
    swap_on_odd(layout_of({3, 5}, padding{each_multiple_of<>{16 * size}}),
                "total tokens" + on_odd() + std::to_string(32 * size) + ": it must be " +
                    std::to_string(16 * size) + ", as on rank 0");
    const auto swapped = layout_of({5, 3}, padding{each_multiple_of<>{8 * size}});
    if constexpr (host_executor<decltype(f.where)>) {
      swap_on_odd(swapped, "layout hash" + on_odd() + detail::hex(layout_hash(swapped)) +
                               ": it must be " + detail::hex(layout_hash(usual())) +
                               ", as on rank 0");
    }
  }

  /// All ranks are wrong alike, so that nobody waits for anybody.
  void on_all_ranks() {
    const auto layout = usual();
    const auto placed = f.place(layout);
    const std::string rows = std::to_string(layout.shard_tokens());
    const std::string total = std::to_string(layout.total_tokens());
    const std::string in_one_shard = ", the tokens of the layout in one shard";
    expect(placed, {.source_rows = 3}, "source rows is 3: it must be " + rows + in_one_shard, false,
           gathers);
    expect(placed, {.source_rows = 3}, "target rows is 3: it must be " + rows + in_one_shard, false,
           scatters);
    expect(placed, {.null = true},
           "target is null: it must point to " + std::to_string(2 * layout.shard_tokens()) +
               " elements",
           false, scatters);
    expect(placed, {.target_width = 4},
           "target width is 4: it must be at least 5, the longest real length of the layout", false,
           unpacks);
    expect(placed, {.target_width = 4},
           "source width is 4: it must be at least 5, the longest real length of the layout", false,
           packs);
    const auto more = make_layout(std::vector{3, 5}, padding{each_multiple_of<>{8 * size}},
                                  context_parallel{2 * size});
    expect(f.place(more), {},
           "context-parallel size of the layout is " + std::to_string(2 * size) + ": it must be " +
               std::to_string(size) + ", the ranks of the group",
           false);
    if (size == 1) return;
    expect(placed, {.work_rows = 3},
           "workspace rows is 3: it must be " + total + ", the tokens of all shards", false);
    expect(placed, {.alias = true}, "workspace is in the memory of source: outputs must not alias",
           false, gathers);
    expect(placed, {.alias = true}, "workspace is in the memory of target: outputs must not alias",
           false, scatters);
  }
};

template <class Frame>
void check_refusals_of_gathers(Frame& f) {
  refusals<Frame> r{f};
  r.on_one_rank();
  r.other_layouts();
  r.on_all_ranks();
}

/// \param place puts a layout of the host where the executor works
template <executor E, communicator C, class Place>
void check_context_gather(const E& where, C& group, findings& found, const Place& place,
                          int rounds) {
  gather_frame<E, C, Place> frame{where, group, place, found};
  check_random_layouts(frame, rounds);
  check_refusals_of_gathers(frame);
  if (group.size() < 2) return;
  C pair = group.split(group.rank().value < 2 ? std::optional<offset_t>(0) : std::nullopt, 0);
  if (pair.is_member()) {
    gather_frame<E, C, Place> in_pair{where, pair, place, found};
    check_cases(in_pair);
  }
}

}  // namespace seqpack::testing
