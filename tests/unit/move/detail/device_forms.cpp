// The device form of every operation, run on the host: tiles in any order, or rows, and the rows in
// any pieces give bit for bit what one call over all rows gives.
#define BOOST_TEST_MODULE device_forms
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "seqpack/exec/tiled.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/counts.hpp"
#include "seqpack/tokens/mask.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/as_device.hpp"
#include "support/buffers.hpp"
#include "support/elements.hpp"
#include "support/layouts.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using detail::unpacking::write;

std::mt19937 random_source(61);

template <class Op>
void run_whole(const Op& op) {
  op.process(0, op.rows());
}

/// Pieces of any size, empty ones too, the last piece first.
template <class Op>
void run_pieces(const Op& op) {
  std::uniform_int_distribution<offset_t> cut(0, op.rows());
  std::vector<offset_t> cuts{0, op.rows(), cut(random_source), cut(random_source),
                             cut(random_source)};
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t k = cuts.size() - 1; k > 0; --k) op.process(cuts[k - 1], cuts[k]);
}

template <class Op>
void run_row_by_row(const Op& op) {
  for (offset_t row = op.rows() - 1; row >= 0; --row) op.process(row, row + 1);
}

/// All tiles, in runs of one thread each that begin anywhere; or all rows in any order.
template <class Op>
void run_device_form(const Op& op) {
  if constexpr (tiled_operation<Op>) {
    std::vector<offset_t> cuts{0, op.tiles()};
    for (offset_t k = 1; k < op.tiles(); ++k) {
      if (random_source() % 3 == 0) cuts.push_back(k);
    }
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t k = cuts.size() - 1; k > 0; --k) run_tiles(op, cuts[k - 1], cuts[k]);
  } else {
    std::vector<offset_t> order(static_cast<std::size_t>(op.rows()));
    std::iota(order.begin(), order.end(), offset_t{0});
    std::shuffle(order.begin(), order.end(), random_source);
    for (const offset_t row : order) op(row);
  }
}

/// make(out) gives an operation that writes to a poisoned buffer of `size` elements.
template <class T, class Make>
void same_in_all_forms(offset_t size, std::size_t offset, Make make) {
  poisoned_buffer<T> whole(size, offset);
  poisoned_buffer<T> device(size, offset);
  poisoned_buffer<T> pieces(size, offset);
  poisoned_buffer<T> rows(size, offset);
  run_whole(make(whole));
  run_device_form(make(device));
  run_pieces(make(pieces));
  run_row_by_row(make(rows));
  BOOST_TEST((device == whole));  // the guards are compared too
  BOOST_TEST((pieces == whole));
  BOOST_TEST((rows == whole));
  BOOST_TEST(whole.guards_intact());
}

template <class T>
void fill_elements(poisoned_buffer<T>& buffer) {
  for (std::size_t k = 0; k < buffer.size(); ++k) {
    const T value = make_element<T>(static_cast<offset_t>(k));
    buffer[k] = value;
  }
}

/// A function of the column for any element type.
template <class T>
struct column_element {
  T operator()(offset_t column) const { return make_element<T>(column + 40); }
};

const oracle::numbers lens{5, 0, 9, 1};

auto some_layout() {
  return make_layout(lens, padding{each_multiple_of<4>{}, fixed_total<32>{}, ghost_tail{}},
                     context_parallel<2>{});
}

template <class T, class Place, class Fill>
void check_moves(Place at, offset_t payload, std::size_t from_offset, std::size_t to_offset,
                 Fill fill) {
  const auto layout = some_layout();
  const auto view = layout.view();
  const offset_t rows = view.rows(at);
  poisoned_buffer<T> batch(4 * 10 * payload, from_offset);
  poisoned_buffer<T> row(rows * payload, from_offset);
  fill_elements(batch);
  fill_elements(row);
  same_in_all_forms<T>(rows * payload, to_offset, [&](auto& out) {
    return detail::packing::make_operation(
        view, at,
        field(batch_view(batch.data(), 4, 10, payload), row_view(out.data(), rows, payload), fill));
  });
  const auto unpack_to = [&](auto& out) {
    return field(row_view(row.data(), rows, payload), batch_view(out.data(), 4, 10, payload), fill);
  };
  same_in_all_forms<T>(4 * 10 * payload, to_offset, [&](auto& out) {
    return detail::unpacking::make_operation<write::everything>(view, at, unpack_to(out));
  });
  same_in_all_forms<T>(4 * 10 * payload, to_offset, [&](auto& out) {
    return detail::unpacking::make_operation<write::held_tokens>(view, at, unpack_to(out));
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_alignment_and_width, Element, element_sizes) {
  using T = typename Element::type;
  for (const offset_t payload : {1, 2, 3, 4, 5, 8, 16, 17, 33}) {
    for (std::size_t offset = 0; offset < 16; offset += alignof(T)) {
      check_moves<T>(full_row, payload, 0, offset, make_element<T>(60));
      check_moves<T>(shard{1}, payload, offset, 0, make_element<T>(60));
      check_moves<T>(all_shards, payload, offset, offset, column_element<T>{});
    }
  }
}

BOOST_AUTO_TEST_CASE(widest_units_where_alignment_allows) {
  const auto layout = some_layout();
  const auto unit_bytes = [&](std::size_t from_offset, std::size_t to_offset, offset_t payload,
                              offset_t token_stride) {
    poisoned_buffer<fp8_like> batch(4 * 10 * token_stride, from_offset);
    poisoned_buffer<fp8_like> out(32 * payload, to_offset);
    const auto move = detail::packing::make_operation(
        layout.view(), full_row,
        field(batch_view(batch.data(), 4, 10, payload, 10 * token_stride, token_stride),
              row_view(out.data(), 32, payload)));
    const detail::unit_shape& units = move.moves.move.shape.units();
    BOOST_TEST(units.per_row() * units.bytes() == payload);
    return units.bytes();
  };
  BOOST_TEST(unit_bytes(0, 0, 64, 64) == 16);
  BOOST_TEST(unit_bytes(8, 0, 64, 64) == 8);
  BOOST_TEST(unit_bytes(0, 4, 64, 64) == 4);
  BOOST_TEST(unit_bytes(0, 2, 64, 64) == 2);
  BOOST_TEST(unit_bytes(1, 1, 64, 64) == 1);
  BOOST_TEST(unit_bytes(0, 0, 64, 72) == 8);  // the stride misaligns every other token
  BOOST_TEST(unit_bytes(0, 0, 33, 33) == 1);  // so does an odd width
  BOOST_TEST(unit_bytes(0, 0, 36, 48) == 4);
}

BOOST_AUTO_TEST_CASE(random_layouts_and_orders) {
  for (int round = 0; round < 6; ++round) {
    const oracle::numbers lengths = random_lengths(random_source, 5, 20);
    const oracle::numbers order =
        round % 2 == 0 ? oracle::numbers{} : random_order(random_source, 5);
    const oracle::numbers table = id_table(lengths, 22);
    for_each_layout(lengths, order, [&](const auto& layout, const auto& expected, const auto&) {
      const auto view = layout.view();
      for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
        const auto size = static_cast<offset_t>(tokens.size());
        same_in_all_forms<long long>(size, 8, [&](auto& out) {
          return detail::packing::make_operation(
              view, at, field(batch_view(table.data(), 5, 22), out.span(), -7));
        });
        const oracle::numbers rows = oracle::values(tokens, oracle::id, -1);
        same_in_all_forms<long long>(5 * 22, 0, [&](auto& out) {
          return detail::unpacking::make_operation<write::everything>(
              view, at, field(row_view(rows), batch_view(out.data(), 5, 22), -7));
        });
        same_in_all_forms<long long>(5 * 22, 0, [&](auto& out) {
          return detail::unpacking::make_operation<write::held_tokens>(
              view, at, field(row_view(rows), batch_view(out.data(), 5, 22), -7));
        });
      });
    });
  }
}

BOOST_AUTO_TEST_CASE(strided_targets_and_sources) {
  const auto layout = some_layout();
  std::vector<float> source(4 * 10 * 8);
  std::iota(source.begin(), source.end(), 1.0F);
  same_in_all_forms<float>(32 * 2, 0, [&](auto& out) {  // columns outermost
    return detail::packing::make_operation(
        layout.view(), all_shards,
        field(batch_view(source.data(), 4, 10, 2, 2, 8), row_view(out.data(), 32, 2)));
  });
  same_in_all_forms<float>(4 * 10 * 8, 0, [&](auto& out) {
    return detail::unpacking::make_operation<write::everything>(
        layout.view(), all_shards,
        field(row_view(source.data(), 32, 2), batch_view(out.data(), 4, 10, 2, 2, 8), 0.5F));
  });
}

BOOST_AUTO_TEST_CASE(ragged_and_left_padded) {
  const auto layout = some_layout();
  const auto view = layout.view();
  std::vector<std::int16_t> source(32 * 3);
  std::iota(source.begin(), source.end(), std::int16_t{1});
  const std::vector<std::int32_t> offsets{0, 5, 5, 14, 15};
  const std::vector<std::int32_t> starts{2, 10, 1, 9};
  const row_view values(source.data(), 15, 3);
  const row_view rows(source.data(), 16, 3);
  same_in_all_forms<std::int16_t>(16 * 3, 2, [&](auto& out) {
    return detail::packing::make_operation(
        view, shard{1}, field(ragged_view(values, offsets.data(), 4), row_view(out.data(), 16, 3)));
  });
  same_in_all_forms<std::int16_t>(15 * 3, 2, [&](auto& out) {
    return detail::unpacking::make_operation<write::everything>(
        view, shard{1},
        field(rows, ragged_view(row_view(out.data(), 15, 3), offsets.data(), 4), std::int16_t{-1}));
  });
  const batch_view table(source.data(), 4, 10, 2);
  same_in_all_forms<std::int16_t>(16 * 2, 2, [&](auto& out) {
    return detail::packing::make_operation(
        view, shard{0}, field(left_padded_view(table, starts.data()), row_view(out.data(), 16, 2)));
  });
  same_in_all_forms<std::int16_t>(4 * 10 * 3, 2, [&](auto& out) {
    return detail::unpacking::make_operation<write::everything>(
        view, shard{0},
        field(rows, left_padded_view(batch_view(out.data(), 4, 10, 3), starts.data()),
              std::int16_t{-1}));
  });
}

BOOST_AUTO_TEST_CASE(several_fields_as_one_operation) {
  const auto layout = some_layout();
  const auto view = layout.view();
  poisoned_buffer<float> hidden(4 * 10 * 5);
  poisoned_buffer<std::int8_t> ids(4 * 10);
  fill_elements(hidden);
  fill_elements(ids);
  // Both targets lie in one buffer, so that one comparison covers them.
  same_in_all_forms<float>(32 * 5 + 8, 0, [&](auto& out) {
    return detail::packing::make_operation(
        view, full_row,
        field(batch_view(hidden.data(), 4, 10, 5), row_view(out.data(), 32, 5), 0.5F),
        field(batch_view(ids.data(), 4, 10),
              row_view(reinterpret_cast<std::int8_t*>(out.data() + 32 * 5), 32)));
  });
  // Targets with different numbers of positions: 4 * 10 and 4 * 9.
  poisoned_buffer<float> rows(32 * 5);
  fill_elements(rows);
  same_in_all_forms<float>(4 * 10 * 5 + 4 * 9 * 5, 0, [&](auto& out) {
    const row_view source(rows.data(), 32, 5);
    return detail::unpacking::make_operation<write::everything>(
        view, full_row, field(source, batch_view(out.data(), 4, 10, 5)),
        field(source, batch_view(out.data() + 4 * 10 * 5, 4, 9, 5), 0.5F));
  });
}

BOOST_AUTO_TEST_CASE(per_token_arrays) {
  const oracle::numbers table = id_table(lens, 9);
  const auto layout = some_layout();
  const auto view = layout.view();
  const auto check = [&](auto at, auto make_array) {
    same_in_all_forms<long long>(view.rows(at), 0, [&](auto& out) {
      const auto array = make_array(row_view(out.span()));
      using array_type = std::remove_const_t<decltype(array)>;
      using operation =
          detail::token_functions::token_operation<std::remove_const_t<decltype(view)>,
                                                   decltype(at), array_type>;
      return operation{view, at, {array}, 8};
    });
  };
  const auto check_all = [&](auto at) {
    check(at, [](auto out) { return position_ids(out); });
    check(at, [](auto out) { return sequence_index(out); });
    check(at, [](auto out) { return padding_mask(out); });
    check(at, [](auto out) { return batch_index(out, 9); });
    check(at, [](auto out) { return row_index(out); });
    for (const offset_t shift : {1, 4}) {
      check(at, [&](auto out) {
        return labels(batch_view(table.data(), 4, 9), out, {.shift = shift});
      });
    }
  };
  check_all(full_row);
  check_all(shard{0});
  check_all(shard{1});
  check_all(all_shards);
}

BOOST_AUTO_TEST_CASE(counts_and_masks) {
  const auto layout = some_layout();
  using view_type = std::remove_const_t<decltype(layout.view())>;
  same_in_all_forms<long long>(4, 0, [&](auto& out) {
    return detail::count_operation<view_type, long long>{layout.view(), shard{1},
                                                         row_view(out.span())};
  });
  const std::vector<std::uint8_t> mask{0, 1, 1, 1, 0, 1, 0, 0, 0};
  same_in_all_forms<int>(6, 0, [&](auto& out) {
    return detail::mask_operation<const std::uint8_t, int, int>{
        batch_view(mask.data(), 3, 3), row_view(out.data(), 3), row_view(out.data() + 3, 3)};
  });
}
