// Fields whose element type is only known at run time, against the definitions and typed fields.
#define BOOST_TEST_MODULE byte_field
#include "seqpack/move/byte_field.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/policy/any_padding.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "support/as_device.hpp"
#include "support/buffers.hpp"
#include "support/elements.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using bytes = std::vector<std::byte>;
using byte_buffer = poisoned_buffer<std::byte>;
using any_layout = packed_layout<context_parallel<dynamic, any_sharding>>;

std::mt19937 random_source(41);

void fill_at_random(std::span<std::byte> memory) {
  for (std::byte& b : memory) b = static_cast<std::byte>(random_source());
}
bytes random_bytes(offset_t count) {
  bytes result(static_cast<std::size_t>(count));
  fill_at_random(result);
  return result;
}

/// Everything about an element that is known at run time.
struct element_form {
  offset_t size;
  offset_t payload;
  bytes fill;  ///< of one element, or none

  offset_t row_bytes() const { return size * payload; }
  /// The payload of a token that nobody sent.
  bytes filled() const {
    bytes result(static_cast<std::size_t>(row_bytes()));
    for (std::size_t k = 0; k < result.size() && !fill.empty(); ++k) {
      result[k] = fill[k % fill.size()];
    }
    return result;
  }
};

const std::vector<offset_t> sizes{1, 2, 3, 4, 8, 12, 16, 24};
const std::vector<offset_t> payloads{1, 7, 64};

/// f(form) for elements of all sizes, with a fill and without.
template <class F>
void for_each_form(const F& f) {
  for (const offset_t size : sizes) {
    for (const offset_t payload : payloads) {
      BOOST_TEST_CONTEXT(size << " bytes, payload " << payload) {
        f(element_form{size, payload, size == 4 ? bytes{} : random_bytes(size)});
      }
    }
  }
}

/// Where the tokens of a [4, 10] batch lie in memory, in elements.
struct batch_form {
  offset_t batch_stride;
  offset_t token_stride;
  offset_t first;  ///< of token (0, 0)
  offset_t span;

  offset_t at(offset_t b, offset_t s) const { return first + b * batch_stride + s * token_stride; }
};
constexpr offset_t batch_size = 4;
constexpr offset_t width = 10;

/// One form where rows are long.
std::vector<batch_form> batch_forms(offset_t size, offset_t payload) {
  const offset_t dense = width * payload;
  const offset_t wide = width * (payload + 2) + 3;
  const std::vector<batch_form> all{
      {dense, payload, 0, batch_size * dense},
      {wide, payload + 2, 0, batch_size * wide},
      {payload, batch_size * payload, 0, batch_size * dense},            // columns outermost
      {-dense, payload, (batch_size - 1) * dense, batch_size * dense}};  // rows backwards
  if (payload < 64) return all;
  return {all[static_cast<std::size_t>(size % 4)]};
}

/// Layouts of 4 sequences of up to 10 tokens beside what the oracle says of them.
template <class F>
void for_some_layouts(const F& f) {
  using oracle::kind;
  const auto make = [&](oracle::request r, const any_padding& how, sharding_kind sharding) {
    const std::vector<offset_t> order(r.order.begin(), r.order.end());
    layout_options options;
    if (!order.empty()) options.order = order;
    const any_layout layout =
        make_layout(r.lens, how, context_parallel<dynamic, any_sharding>(r.cp, sharding), options);
    f(layout, oracle::pack(r));
  };
  const oracle::numbers lens{5, 0, 10, 1};
  make({.lens = lens}, no_padding{}, sharding_kind::zigzag);
  make({.lens = lens, .each = 4, .fixed_total = 32, .tail_to = oracle::tail::ghost, .cp = 2},
       padding{each_multiple_of<4>{}, fixed_total<32>{}, ghost_tail{}}, sharding_kind::zigzag);
  make({.lens = lens, .each = 3, .cp = 3, .sharding = kind::contiguous, .order = {3, 0, 2}},
       padding{each_multiple_of<3>{}}, sharding_kind::contiguous);
  make({.lens = lens, .each = 2, .total_multiple = 14, .cp = 2, .sharding = kind::striped},
       padding{each_multiple_of<2>{}, total_multiple_of<14>{}}, sharding_kind::striped);
}

std::span<std::byte> slice(std::span<std::byte> memory, offset_t first, offset_t count) {
  return memory.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}
void put(std::span<std::byte> memory, offset_t first, std::span<const std::byte> values) {
  std::copy(values.begin(), values.end(), memory.begin() + first);
}

/// What pack must write.
bytes packed_bytes(const oracle::tokens& tokens, const element_form& form, const batch_form& where,
                   std::span<std::byte> source) {
  bytes expected;
  for (const oracle::token& token : tokens) {
    const bytes filled = form.filled();
    const auto part = token.real ? slice(source, where.at(token.row, token.position) * form.size,
                                         form.row_bytes())
                                 : std::span<const std::byte>(filled);
    expected.insert(expected.end(), part.begin(), part.end());
  }
  return expected;
}

template <class E>
void check_pack(const E& executor, const element_form& form, const batch_form& where,
                std::size_t offset) {
  byte_buffer source(where.span * form.size, offset);
  fill_at_random(source.span());
  const batch_view batch =
      byte_batch(static_cast<const void*>(source.data() + where.first * form.size), form.size,
                 batch_size, width, form.payload, where.batch_stride, where.token_stride);
  for_some_layouts([&](const any_layout& layout, const oracle::packed& expected) {
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      const auto rows = static_cast<offset_t>(tokens.size());
      byte_buffer out(rows * form.row_bytes(), 15 - offset);
      pack(executor, layout, at,
           byte_field(batch, byte_rows(out.data(), form.size, rows, form.payload), form.size,
                      form.fill));
      BOOST_TEST((out.values() == packed_bytes(tokens, form, where, source.span())));
      BOOST_TEST(out.guards_intact());
    });
  });
}

/// Writes what unpack must: the tokens of a place to a batch that is filled already, or is not.
void put_tokens(const oracle::tokens& tokens, const element_form& form, const batch_form& where,
                std::span<std::byte> rows, std::span<std::byte> target) {
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    if (!tokens[row].real) continue;
    put(target, where.at(tokens[row].row, tokens[row].position) * form.size,
        slice(rows, static_cast<offset_t>(row) * form.row_bytes(), form.row_bytes()));
  }
}

template <class E>
void check_unpack(const E& executor, const element_form& form, const batch_form& where,
                  std::size_t offset) {
  for_some_layouts([&](const any_layout& layout, const oracle::packed& expected) {
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      const auto rows = static_cast<offset_t>(tokens.size());
      byte_buffer source(rows * form.row_bytes(), offset);
      fill_at_random(source.span());
      byte_buffer out(where.span * form.size, 15 - offset);
      byte_buffer own(where.span * form.size, 15 - offset);
      byte_buffer all_expected(where.span * form.size, 15 - offset);
      byte_buffer own_expected(where.span * form.size, 15 - offset);
      for (offset_t b = 0; b < batch_size; ++b) {
        for (offset_t s = 0; s < width; ++s) {
          put(all_expected.span(), where.at(b, s) * form.size, form.filled());
        }
      }
      put_tokens(tokens, form, where, source.span(), all_expected.span());
      put_tokens(tokens, form, where, source.span(), own_expected.span());

      const auto field_to = [&](byte_buffer& target) {
        return byte_field(byte_rows(source.data(), form.size, rows, form.payload),
                          byte_batch(target.data() + where.first * form.size, form.size, batch_size,
                                     width, form.payload, where.batch_stride, where.token_stride),
                          form.size, form.fill);
      };
      unpack(executor, layout, at, field_to(out));
      BOOST_TEST((out == all_expected));  // guards and gaps too
      if constexpr (std::same_as<decltype(at), shard>) {
        unpack_own(executor, layout, at, field_to(own));
        BOOST_TEST((own == own_expected));
      }
    });
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(pack_in_all_places_and_at_all_addresses) {
  for_each_form([](const element_form& form) {
    std::size_t offset = 0;
    for (const batch_form& where : batch_forms(form.size, form.payload)) {
      check_pack(host, form, where, offset);
      check_pack(as_device{}, form, where, offset);
      check_pack(as_device{}, form, where, 8);
      offset += 5;
    }
  });
}

BOOST_AUTO_TEST_CASE(unpack_from_all_places_and_at_all_addresses) {
  for_each_form([](const element_form& form) {
    std::size_t offset = 15;
    for (const batch_form& where : batch_forms(form.size, form.payload)) {
      check_unpack(host, form, where, offset);
      check_unpack(as_device{}, form, where, offset);
      offset -= 5;
    }
  });
}

namespace {

/// A field of elements of a type against the same field of their bytes.
template <class T>
void check_against_typed() {
  constexpr auto size = static_cast<offset_t>(sizeof(T));
  constexpr offset_t payload = 3;
  const any_layout layout = make_layout(
      std::vector{5, 0, 10, 1}, any_padding(padding{each_multiple_of<4>{}, fixed_total<32>{}}),
      context_parallel<dynamic, any_sharding>(2, sharding_kind::zigzag));
  std::vector<T> batch(batch_size * width * payload);
  for (std::size_t k = 0; k < batch.size(); ++k) {
    batch[k] = make_element<T>(static_cast<offset_t>(k));
  }
  const T fill = make_element<T>(70);
  const std::span<const std::byte> fill_bytes = std::as_bytes(std::span(&fill, 1));
  poisoned_buffer<T> typed(32 * payload);
  poisoned_buffer<T> untyped(32 * payload);
  pack(host, layout, all_shards,
       field(batch_view<const T>(batch.data(), batch_size, width, payload),
             row_view(typed.data(), 32, payload), fill));
  pack(host, layout, all_shards,
       byte_field(byte_batch(batch.data(), size, batch_size, width, payload),
                  byte_rows(untyped.data(), size, 32, payload), size, fill_bytes));
  BOOST_TEST((typed == untyped));

  poisoned_buffer<T> typed_back(batch_size * width * payload);
  poisoned_buffer<T> untyped_back(batch_size * width * payload);
  unpack(host, layout, all_shards,
         field(row_view<const T>(typed.data(), 32, payload),
               batch_view(typed_back.data(), batch_size, width, payload), fill));
  unpack(host, layout, all_shards,
         byte_field(byte_rows(typed.data(), size, 32, payload),
                    byte_batch(untyped_back.data(), size, batch_size, width, payload), size,
                    fill_bytes));
  BOOST_TEST((typed_back == untyped_back));
}

struct three_bytes {
  std::uint8_t red, green, blue;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_same_as_fields_of_types) {
  check_against_typed<std::uint8_t>();
  check_against_typed<bfloat16_like>();
  check_against_typed<float>();
  check_against_typed<double>();
  check_against_typed<triple>();
  check_against_typed<record>();
}

BOOST_AUTO_TEST_CASE(left_padded_and_ragged_batches) {
  // Lengths 2 and 1 of elements of 3 bytes, written as their first byte.
  const auto elements = [](const std::vector<int>& firsts) {
    bytes result;
    for (const int first : firsts) {
      for (int k = 0; k < 3; ++k) result.push_back(static_cast<std::byte>(first + k));
    }
    return result;
  };
  const any_layout layout =
      make_layout(std::vector{2, 1}, any_padding(padding{each_multiple_of<2>{}}),
                  context_parallel<dynamic, any_sharding>());
  const bytes fill = elements({90});
  const bytes expected = elements({10, 20, 30, 90});
  const auto check_packed = [&](const auto& from) {
    byte_buffer out(12);
    pack(host, layout, full_row, byte_field(from, byte_rows(out.data(), 3, 4), 3, fill));
    BOOST_TEST((out.values() == expected));
  };
  const std::int32_t starts[] = {1, 2};
  const bytes left_padded = elements({200, 10, 20, 201, 202, 30});
  check_packed(left_padded_view(byte_batch(left_padded.data(), 3, 2, 3), starts));
  const std::int64_t offsets[] = {0, 2, 3};
  bytes values = elements({10, 20, 30});
  const void* const read_only_values = values.data();
  check_packed(ragged_view(byte_rows(read_only_values, 3, 3), offsets, 2));

  byte_buffer back(18);
  unpack(host, layout, full_row,
         byte_field(byte_rows(expected.data(), 3, 4),
                    left_padded_view(byte_batch(back.data(), 3, 2, 3), starts), 3, fill));
  BOOST_TEST((back.values() == elements({90, 10, 20, 90, 90, 30})));
  byte_buffer ragged(9);
  unpack(as_device{}, layout, full_row,
         byte_field(byte_rows(expected.data(), 3, 4),
                    ragged_view(byte_rows(ragged.data(), 3, 3), offsets, 2), 3, fill));
  BOOST_TEST((ragged.values() == elements({10, 20, 30})));
}

BOOST_AUTO_TEST_CASE(beside_fields_of_types_in_one_call) {
  const auto layout = make_layout(std::vector{2, 1}, padding{each_multiple_of<2>{}});
  const std::vector<int> ids{10, 11, 20, 21};
  const std::vector<three_bytes> colours{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {0, 0, 0}};
  const std::vector<double> weights{0.5, 0.25, 2, 4};
  const three_bytes grey{128, 128, 129};
  const double pad = -1;
  const auto check = [&](const auto& where) {
    poisoned_buffer<int> packed_ids(4);
    poisoned_buffer<three_bytes> packed_colours(4);
    poisoned_buffer<double> packed_weights(4);
    pack(where, layout, full_row, field(batch_view(ids.data(), 2, 2), packed_ids.span(), -7),
         byte_field(byte_batch(colours.data(), 3, 2, 2), byte_rows(packed_colours.data(), 3, 4), 3,
                    std::as_bytes(std::span(&grey, 1))),
         byte_field(byte_batch(weights.data(), 8, 2, 2), byte_rows(packed_weights.data(), 8, 4), 8,
                    std::as_bytes(std::span(&pad, 1))));
    BOOST_TEST(packed_ids.values() == (std::vector{10, 11, 20, -7}), per_element());
    BOOST_TEST(packed_weights.values() == (std::vector<double>{0.5, 0.25, 2, -1}), per_element());
    BOOST_TEST(int{packed_colours[2].green} == 8);
    BOOST_TEST(int{packed_colours[3].red} == 128);
    BOOST_TEST(int{packed_colours[3].blue} == 129);
    BOOST_TEST((packed_ids.guards_intact() && packed_colours.guards_intact() &&
                packed_weights.guards_intact()));
  };
  check(host);
  check(as_device{});
}

BOOST_AUTO_TEST_CASE(rows_are_rearranged) {
  const auto layout =
      make_layout(std::vector{3, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  bytes row;
  for (int k = 0; k < 8; ++k) row.insert(row.end(), 12, static_cast<std::byte>(k));
  const auto check = [&](const auto& where) {
    byte_buffer shards(96);
    rearrange(where, layout, full_row, all_shards,
              byte_field(byte_rows(row.data(), 4, 8, 3), byte_rows(shards.data(), 4, 8, 3), 4));
    const int order[] = {0, 3, 4, 7, 1, 2, 5, 6};
    for (std::size_t k = 0; k < 96; ++k) {
      BOOST_TEST(static_cast<int>(shards[k]) == order[k / 12]);
    }
  };
  check(host);
  check(as_device{});
}

BOOST_AUTO_TEST_CASE(fills_of_any_length) {
  // One token, and padding of more bytes than any block has.
  const auto check = [](offset_t size, offset_t rows, const bytes& fill) {
    const auto layout = make_layout(std::vector{1}, padding{fixed_total<>{rows}});
    const bytes token = random_bytes(size);
    const auto pack_by = [&](const auto& where) {
      byte_buffer out(size * rows);
      pack(where, layout, full_row,
           byte_field(byte_batch(token.data(), size, 1, 1), byte_rows(out.data(), size, rows), size,
                      fill));
      bool same = out.guards_intact();
      for (std::size_t k = 0; k < out.size(); ++k) {
        const std::size_t in_element = k % token.size();
        const std::byte padding = fill.empty() ? std::byte{0} : fill[in_element];
        same = same && out[k] == (k < token.size() ? token[in_element] : padding);
      }
      BOOST_TEST(same, size << " bytes, " << rows << " rows");
    };
    pack_by(host);
    pack_by(as_device{});
  };
  for (const offset_t rows : {2, 3, 5, 340, 341, 2000}) {
    for (const offset_t size : {1, 3, 8, 12, 24, 31, 32}) check(size, rows, random_bytes(size));
    check(24, rows, {});
    check(100, rows, {});
  }
  // An element of any size whose bytes repeat.
  bytes repeated = random_bytes(8);
  for (int k = 0; k < 3; ++k) repeated.insert(repeated.end(), repeated.begin(), repeated.end());
  BOOST_TEST(repeated.size() == 64U);
  check(64, 5, repeated);
  check(64, 500, repeated);
  check(4, 9, bytes(4, std::byte{7}));
  check(33, 9, bytes(33, std::byte{7}));
}

BOOST_AUTO_TEST_CASE(what_is_no_field_of_bytes_is_refused) {
  bytes memory(64);
  const auto rows = byte_rows(memory.data(), 4, 4);
  const auto batch = byte_batch(static_cast<const void*>(memory.data()), 4, 2, 2);
  BOOST_TEST(refusal([&] { byte_field(batch, rows, 4, random_bytes(8)); }) ==
             "size of fill is 8: it must be 4, the size of an element");
  BOOST_TEST(refusal([&] { byte_field(batch, rows, 0); }) ==
             "element size is 0: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal([&] { byte_field(batch, rows, 3); }) ==
             "source payload is 4: its bytes must be a multiple of 3, the size of an element");
  BOOST_TEST(refusal([&] { byte_field(batch, byte_rows(memory.data(), 6, 4), 4); }) ==
             "target payload is 6: its bytes must be a multiple of 4, the size of an element");
  bytes different(40);
  for (std::size_t k = 0; k < 40; ++k) different[k] = static_cast<std::byte>(k);
  BOOST_TEST(refusal([&] {
               byte_field(byte_batch(memory.data(), 40, 1, 1), byte_rows(memory.data(), 40, 1), 40,
                          different);
             }) ==
             "size of fill is 40: a fill has at most 32 bytes, unless they repeat themselves");
}

BOOST_AUTO_TEST_CASE(sizes_that_no_memory_has_are_refused) {
  std::byte* const nowhere = nullptr;
  BOOST_TEST(refusal([&] { byte_rows(nowhere, -1, 1); }) ==
             "element size is -1: it must be from 1 to 281474976710656");
  BOOST_TEST(refusal([&] { byte_rows(nowhere, 4, -1); }) ==
             "rows is -1: a size must be at least 0");
  BOOST_TEST(refusal([&] { byte_rows(nowhere, 4, 1, -1); }) ==
             "payload is -1: a size must be at least 0");
  BOOST_TEST(refusal([&] { byte_rows(nowhere, offset_t{1} << 40, 1, offset_t{1} << 40); }) ==
             "payload * element size is 1099511627776 * 1099511627776: a size must be at most "
             "281474976710656");
  BOOST_TEST(refusal([&] { byte_batch(nowhere, 8, 1, 1, 1, offset_t{1} << 60, 1); }) ==
             "batch stride is 1152921504606846976: it must be from -9007199254740992 to "
             "9007199254740992");
  BOOST_TEST(refusal([&] { byte_batch(nowhere, 8, 1, 4, 1, 1, -(offset_t{1} << 52)); }) ==
             "token stride is -4503599627370496: 4 steps must reach at most 9007199254740992 "
             "elements");
}

BOOST_AUTO_TEST_CASE(a_call_refuses_fields_of_bytes_like_others) {
  const auto layout = make_layout(std::vector{2, 1}, padding{each_multiple_of<2>{}});
  bytes memory(64);
  byte_buffer out(64);
  const auto refused = [&](const auto& from, const auto& to) {
    const std::string text =
        refusal([&] { pack(host, layout, full_row, byte_field(from, to, 4)); });
    BOOST_TEST(out.untouched());
    return text;
  };
  const auto batch = byte_batch(memory.data(), 4, 2, 2);
  BOOST_TEST(refused(batch, byte_rows(out.data(), 4, 3)) ==
             "field 0's target rows is 3: it must be 4, the tokens of the layout in this place");
  BOOST_TEST(refused(batch, byte_rows(out.data(), 4, 4, 2)) ==
             "field 0's target payload is 8: it must be 4, the payload of its source");
  BOOST_TEST(refused(byte_batch(memory.data(), 4, 2, 1), byte_rows(out.data(), 4, 4)) ==
             "field 0's source width is 1: it must be at least 2, the longest real length of the "
             "layout");
  BOOST_TEST(refused(batch, byte_rows(static_cast<void*>(nullptr), 4, 4)) ==
             "field 0's target is null: it must point to 16 elements");
  BOOST_TEST(refused(byte_batch(out.data() + 12, 4, 2, 2), byte_rows(out.data(), 4, 4)) ==
             "field 0's target is in the memory of field 0's source: outputs must not alias");
}
