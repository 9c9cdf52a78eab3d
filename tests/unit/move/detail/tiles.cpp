// Tiles and windows, run on the host: many sequences, wide rows, rows of several tiles, misaligned
// rows. Tiles give bit for bit what the host form gives, which has tests of its own.
#define BOOST_TEST_MODULE tiles
#include "seqpack/move/detail/tiles.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "seqpack/exec/team.hpp"
#include "seqpack/exec/tiled.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/move/detail/windows.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/buffers.hpp"
#include "support/elements.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using detail::unpacking::write;

std::mt19937 random_source(97);

/// Runs the tiles in runs of `run` tiles, in any order, and counts them.
template <class Op>
offset_t run_tiles(const Op& op, offset_t run) {
  auto scratch = std::make_unique<typename Op::scratch_type>();
  constexpr single_thread threads;
  std::vector<offset_t> starts;
  for (offset_t tile = 0; tile < op.tiles(); tile += run) starts.push_back(tile);
  std::shuffle(starts.begin(), starts.end(), random_source);
  for (const offset_t start : starts) {
    std::memset(static_cast<void*>(scratch.get()), 0xA5, sizeof *scratch);
    op.prepare(threads, *scratch);
    for (offset_t tile = start; tile < std::min(start + run, op.tiles()); ++tile) {
      op.tile(threads, *scratch, tile, tile > start);
    }
  }
  return op.tiles();
}

/// make(out) gives an operation; the least number of tiles is checked, so that a test of several
/// tiles is one.
template <class T, class Make>
void same_as_host(offset_t size, std::size_t offset, offset_t least_tiles, Make make) {
  poisoned_buffer<T> whole(size, offset);
  const auto op = make(whole);
  op.process(0, op.rows());
  BOOST_TEST(whole.guards_intact());
  for (const offset_t run : {1, 3, 1000}) {
    poisoned_buffer<T> tiles(size, offset);
    BOOST_TEST(run_tiles(make(tiles), run) >= least_tiles);
    BOOST_TEST((tiles == whole));  // the guards are compared too
  }
}

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random_source());
  return bytes;
}

std::vector<std::int32_t> lengths_below(offset_t batch, int limit, int empty_of_ten) {
  std::vector<std::int32_t> lengths;
  for (offset_t b = 0; b < batch; ++b) {
    const bool empty = static_cast<int>(random_source() % 10) < empty_of_ten;
    lengths.push_back(empty ? 0 : static_cast<std::int32_t>(random_source() % limit));
  }
  return lengths;
}

/// Packs, unpacks, rearranges and lists the tokens of a layout, of every place.
template <class T, class Layout>
void check_layout(const Layout& layout, offset_t width, offset_t payload, std::size_t from_offset,
                  std::size_t to_offset, offset_t least_tiles) {
  const auto view = layout.view();
  const offset_t batch = layout.batch_size();
  poisoned_buffer<T> source(batch * width * payload, from_offset);
  poisoned_buffer<T> packed(view.total * payload, from_offset);
  const auto fill_random = [](auto& buffer) {
    const auto bytes = random_bytes(buffer.size() * sizeof(T));
    if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  };
  fill_random(source);
  fill_random(packed);
  const auto fill = make_element<T>(60);
  const auto check = [&](auto at) {
    const offset_t rows = view.rows(at);
    same_as_host<T>(rows * payload, to_offset, least_tiles, [&](auto& out) {
      return detail::packing::make_operation(view, at,
                                             field(batch_view(source.data(), batch, width, payload),
                                                   row_view(out.data(), rows, payload), fill));
    });
    same_as_host<T>(batch * width * payload, to_offset, least_tiles, [&](auto& out) {
      return detail::unpacking::make_operation<write::everything>(
          view, at,
          field(row_view(packed.data(), rows, payload),
                batch_view(out.data(), batch, width, payload), fill));
    });
    same_as_host<T>(rows * payload, to_offset, least_tiles, [&](auto& out) {
      return detail::rearranging::make_operation(
          view, full_row, at,
          field(row_view(packed.data(), view.total, payload), row_view(out.data(), rows, payload)));
    });
    same_as_host<std::int32_t>(rows, 0, 1, [&](auto& out) {
      const auto array = sequence_index(out.span());
      using operation = detail::token_functions::token_operation<
          std::remove_const_t<decltype(view)>, decltype(at), std::remove_const_t<decltype(array)>>;
      return operation{view, at, {array}, 4};
    });
  };
  check(full_row);
  check(shard{1});
  check(all_shards);
}

}  // namespace

BOOST_AUTO_TEST_CASE(spans_cover_every_unit_once) {
  for (const offset_t row_bytes : {1, 2, 4, 16, 48, 100, 272, 4096, 32752, 32768, 32784, 300000}) {
    for (const std::uint64_t address : {0, 4, 1}) {
      for (const offset_t rows : {1, 2, 5, 4500}) {
        if (rows * row_bytes > 10'000'000) continue;
        const detail::tile_shape shape(detail::unit_shape(row_bytes, address), rows);
        std::vector<offset_t> next_unit(static_cast<std::size_t>(rows), 0);
        for (offset_t tile = 0; tile < shape.tiles(); ++tile) {
          const detail::tile_span span = shape.span(tile);
          BOOST_REQUIRE(span.units() > 0);
          BOOST_REQUIRE(span.units() <= detail::tile_shape::max_units);
          BOOST_REQUIRE(span.rows <= detail::tile_shape::max_rows);
          for (std::int32_t unit = 0; unit < span.units(); ++unit) {
            const std::int32_t row = span.row_of(unit);
            BOOST_REQUIRE(row == unit / span.width);
            const auto k = static_cast<std::size_t>(span.first_row + row);
            BOOST_REQUIRE(next_unit[k]++ == span.first_unit + unit % span.width);
          }
        }
        const std::int32_t bytes = shape.units().bytes();
        const offset_t expected = shape.blocks() ? (row_bytes + 14) / 16 + 1 : row_bytes / bytes;
        BOOST_TEST(std::all_of(next_unit.begin(), next_unit.end(),
                               [&](offset_t n) { return n == expected; }));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_only_where_rows_are_long_and_misaligned) {
  BOOST_TEST(!detail::tile_shape(detail::unit_shape(4096, 0), 100).blocks());
  BOOST_TEST(detail::tile_shape(detail::unit_shape(4096, 8), 100).blocks());
  BOOST_TEST(detail::tile_shape(detail::unit_shape(100514, 0), 100).blocks());
  BOOST_TEST(detail::tile_shape(detail::unit_shape(64, 1), 100).blocks());
  BOOST_TEST(!detail::tile_shape(detail::unit_shape(63, 0), 100).blocks());
  BOOST_TEST(detail::tile_shape(detail::unit_shape(0, 0), 100).tiles() == 0);
}

BOOST_AUTO_TEST_CASE(many_sequences) {
  // More segments in a tile than a window holds, and fewer; more than one round of every search.
  for (const auto& [batch, limit, empty] :
       {std::tuple{3000, 4, 2}, std::tuple{3000, 3, 9}, std::tuple{300, 60, 1}}) {
    const auto lengths = lengths_below(batch, limit, empty);
    const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
    check_layout<std::int32_t>(layout, limit, 1, 0, 0, 1);
    const auto ghost = make_layout<std::int64_t>(
        lengths, padding{each_multiple_of<4>{}, total_multiple_of<64>{}, ghost_tail{}},
        context_parallel<2, striped>{});
    check_layout<std::int16_t>(ghost, limit, 1, 2, 0, 1);
    const auto row = make_layout(lengths, padding{total_multiple_of<3>{}},
                                 context_parallel<3, row_contiguous>{});
    check_layout<std::int32_t>(row, limit, 1, 0, 0, 1);
  }
}

BOOST_AUTO_TEST_CASE(orders) {
  const auto lengths = lengths_below(700, 12, 2);
  std::vector<offset_t> order(600);
  std::iota(order.begin(), order.end(), offset_t{50});
  std::shuffle(order.begin(), order.end(), random_source);
  const auto layout = make_layout(lengths, padding{each_multiple_of<8>{}},
                                  context_parallel<2, contiguous>{}, {.order = order});
  check_layout<std::int32_t>(layout, 12, 1, 0, 0, 1);
  check_layout<std::uint8_t>(layout, 12, 40, 0, 0, 1);
}

BOOST_AUTO_TEST_CASE(wide_rows) {
  const std::vector<int> lengths{3, 0, 5, 1};
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  // Whole rows of several tiles; a last part of one unit; one row in a tile.
  check_layout<float>(layout, 5, 8200, 0, 0, 2);
  check_layout<float>(layout, 5, 8196, 0, 0, 2);
  check_layout<float>(layout, 5, 5000, 0, 0, 6);
  check_layout<std::uint8_t>(layout, 5, 33000, 0, 3, 2);  // in blocks
  check_layout<std::uint16_t>(layout, 5, 20001, 2, 6, 2);
}

BOOST_AUTO_TEST_CASE(misaligned_rows) {
  const std::vector<int> lengths{3, 0, 5, 1, 7};
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  for (const offset_t payload : {64, 65, 71, 79, 80, 81, 95, 96, 97, 200}) {
    for (const std::size_t from : {0, 1, 5, 8, 15}) {
      for (const std::size_t to : {0, 1, 4, 8, 11}) {
        check_layout<std::uint8_t>(layout, 7, payload, from, to, 1);
      }
    }
    check_layout<std::uint16_t>(layout, 7, payload, 2, 8, 1);
    check_layout<float>(layout, 7, payload, 4, 12, 1);
    check_layout<double>(layout, 7, payload, 8, 0, 1);
  }
}

BOOST_AUTO_TEST_CASE(fills_without_a_pattern) {
  const std::vector<int> lengths{3, 0, 5, 1};
  const auto layout = make_layout(lengths, padding{each_multiple_of<8>{}});
  const auto view = layout.view();
  std::vector<std::uint16_t> source(4 * 5 * 4001, 7);
  const auto column = [](offset_t c) { return c % 1000; };
  for (const offset_t payload : {1, 3, 8, 40, 4000, 4001}) {
    for (const std::size_t offset : {0, 2}) {
      same_as_host<std::uint16_t>(view.total * payload, offset, 1, [&](auto& out) {
        return detail::packing::make_operation(
            view, full_row,
            field(batch_view(source.data(), 4, 5, payload),
                  row_view(out.data(), view.total, payload), column));
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(fields_of_different_tiles) {
  const auto lengths = lengths_below(200, 40, 1);
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto view = layout.view();
  const auto source = random_bytes(200 * 40 * 48);
  const offset_t rows = view.total;
  same_as_host<std::uint8_t>(rows * (48 + 1 + 21 + 16), 0, 5, [&](auto& out) {
    std::uint8_t* const to = out.data();
    return detail::packing::make_operation(
        view, all_shards, field(batch_view(source.data(), 200, 40, 48), row_view(to, rows, 48)),
        field(batch_view(source.data(), 200, 40), row_view(to + rows * 48, rows), 3),
        field(batch_view(source.data(), 200, 40, 21), row_view(to + rows * 49, rows, 21),
              [](offset_t c) { return c; }),
        field(batch_view(source.data(), 200, 40, 16), row_view(to + rows * 70, rows, 16), 9));
  });
}

BOOST_AUTO_TEST_CASE(windows_hold_what_their_rows_need) {
  const auto lengths = lengths_below(2000, 20, 3);
  const auto layout = make_layout(lengths, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const auto view = layout.view();
  constexpr single_thread threads;
  detail::window_memory<std::int32_t> memory;
  prepare_window(threads, memory);
  // In any order: the search may go back.
  for (int round = 0; round < 300; ++round) {
    const auto first = static_cast<offset_t>(random_source() % static_cast<unsigned>(view.total));
    const offset_t last =
        std::min<offset_t>(first + static_cast<offset_t>(random_source() % 3000), view.total - 1);
    const auto near = window_of(threads, view, full_row, first, last, memory);
    BOOST_REQUIRE(near.last >= first);
    if (view.slot_at(last) - view.slot_at(first) < memory.capacity) {
      BOOST_TEST(near.last == last);
    }
    for (offset_t row = first; row <= near.last; row += 1 + (last - first) / 7) {
      const token_ref expected = view.token_at(full_row, row);
      const token_ref found = near.view.token_at(full_row, row);
      BOOST_REQUIRE(found.slot == expected.slot);
      BOOST_REQUIRE(found.index == expected.index);
      BOOST_REQUIRE(found.length == expected.length);
    }
  }
}

BOOST_AUTO_TEST_CASE(functions_of_tokens_see_the_whole_layout) {
  // More sequences than a window holds, and a function that asks of another one than its own.
  const auto layout = make_layout(std::vector<int>(1500, 3), padding{ghost_tail{}});
  const auto view = layout.view();
  const auto first_length_and_segments = [](const auto& whole, const token_ref&) {
    return static_cast<std::int32_t>(1000 * whole.length(0) + whole.segments);
  };
  poisoned_buffer<std::int32_t> out(view.total);
  using function = std::remove_const_t<decltype(first_length_and_segments)>;
  using array = token_array<std::int32_t, function>;
  using operation = detail::token_functions::token_operation<std::remove_const_t<decltype(view)>,
                                                             full_row_t, array>;
  const array one{row_view(out.span()), first_length_and_segments};
  BOOST_TEST(run_tiles(operation{view, full_row, {one}, 4}, 1) == 3);
  for (offset_t t = 0; t < view.total; ++t) {
    BOOST_REQUIRE(out[static_cast<std::size_t>(t)] == 3000 + view.segments);
  }
}

BOOST_AUTO_TEST_CASE(rows_without_a_sequence) {
  // What a capacity layout is before it is built, and where lengths were refused: the bounds end
  // before the total. The rows behind them are padding.
  constexpr offset_t total = 5000;
  for (const std::vector<std::int32_t>& bounds :
       {std::vector<std::int32_t>{0, 0}, std::vector<std::int32_t>{0, 40, 40, 56, 56, 56}}) {
    layout_view<context_parallel<2>> view;
    view.cu = bounds.data();
    view.cu_padded = bounds.data();
    view.sequences = view.segments = view.batch = static_cast<offset_t>(bounds.size()) - 1;
    view.total = total;
    std::vector<std::int32_t> source(static_cast<std::size_t>(view.batch * 40), 7);
    const auto check = [&](auto at) {
      const offset_t rows = view.rows(at);
      poisoned_buffer<std::int32_t> out(rows);
      run_tiles(
          detail::packing::make_operation(
              view, at, field(batch_view(source.data(), view.batch, 40), row_view(out.span()), -3)),
          1);
      BOOST_TEST(out.guards_intact());
      for (offset_t row = 0; row < rows; ++row) {
        const token_ref token = view.token_at(at, row);
        BOOST_REQUIRE(out[static_cast<std::size_t>(row)] == (token.real() ? 7 : -3));
      }
    };
    check(full_row);
    check(shard{1});
    check(all_shards);
    // What belongs to no sequence comes from nowhere.
    const std::vector<std::int32_t> gathered(static_cast<std::size_t>(total), 5);
    poisoned_buffer<std::int32_t> row(total);
    run_tiles(detail::rearranging::make_operation(view, all_shards, full_row,
                                                  field(row_view(gathered), row_view(row.span()))),
              1);
    BOOST_TEST(row.guards_intact());
    for (offset_t t = 0; t < total; ++t) {
      BOOST_REQUIRE(row[static_cast<std::size_t>(t)] == (t < bounds.back() ? 5 : 0));
    }
  }
}
