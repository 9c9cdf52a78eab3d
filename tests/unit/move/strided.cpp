// Strided batches, as inputs and as targets, and mdspans.
#define BOOST_TEST_MODULE strided
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#if __has_include(<cuda/std/mdspan>)
#include <cuda/std/mdspan>
#endif

#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/buffers.hpp"
#include "support/layouts.hpp"
#include "support/refused.hpp"
#include "support/strided_span.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;
using oracle::numbers;

const numbers lens{5, 0, 3};
constexpr long long width = 6;

/// The content of element d of token (b, s).
long long content(long long b, long long s, long long d) {
  return 1000 * oracle::id(b, s) + d;
}

struct strides {
  offset_t batch;
  offset_t token;
};

/// A [3, 6, payload] batch with the given strides; everything else in memory is -1.
struct strided_batch {
  strided_batch(strides by, offset_t row_payload)
      : stride(by), payload(row_payload), memory(4096, -1) {
    for (long long b = 0; b < 3; ++b) {
      for (long long s = 0; s < lens[static_cast<std::size_t>(b)]; ++s) {
        for (long long d = 0; d < payload; ++d) {
          memory[static_cast<std::size_t>(middle + b * by.batch + s * by.token + d)] =
              content(b, s, d);
        }
      }
    }
  }
  auto view() const {
    return batch_view(memory.data() + middle, 3, width, payload, stride.batch, stride.token);
  }
  static constexpr offset_t middle = 2048;  // so that strides may be negative
  strides stride;
  offset_t payload;
  numbers memory;
};

/// Dense, padded rows, every other token, transposed, with room between tokens, backwards.
std::vector<strides> some_strides(offset_t payload) {
  return {{width * payload, payload},         {50 * payload, payload},
          {2 * width * payload, 2 * payload}, {payload, 3 * payload},
          {40 * payload, payload + 1},        {-width * payload, payload},
          {width * payload, -payload},        {-50 * payload, -3 * payload}};
}

template <class F>
void for_each_shard_layout(F&& f) {
  for (const oracle::number cp : {1, 2}) {
    const oracle::request r{.lens = lens, .each = 4, .cp = cp};
    f(make_layout(lens, padding{each_multiple_of<4>{}}, context_parallel{cp}), oracle::pack(r));
  }
}

numbers packed_content(const oracle::tokens& tokens, long long payload) {
  numbers rows;
  for (const auto& token : tokens) {
    for (long long d = 0; d < payload; ++d) {
      rows.push_back(token.real ? content(token.row, token.position, d) : 0);
    }
  }
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_CASE(inputs) {
  for_each_shard_layout([](const auto& layout, const auto& expected) {
    for (const offset_t payload : {1, 3}) {
      for (const strides by : some_strides(payload)) {
        const strided_batch from(by, payload);
        for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
          poisoned_buffer<long long> out(static_cast<offset_t>(tokens.size()) * payload);
          pack(host, layout, at,
               field(from.view(),
                     row_view(out.data(), static_cast<offset_t>(tokens.size()), payload)));
          BOOST_TEST(out.values() == packed_content(tokens, payload), per_element());
          BOOST_TEST(out.guards_intact());
        });
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(targets) {
  for_each_shard_layout([](const auto& layout, const auto& expected) {
    for (const offset_t payload : {1, 3}) {
      for (const strides by : some_strides(payload)) {
        for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
          const numbers rows = packed_content(tokens, payload);
          numbers out(4096, -1);
          unpack(host, layout, at,
                 field(row_view(rows.data(), static_cast<offset_t>(tokens.size()), payload),
                       batch_view(out.data() + strided_batch::middle, 3, width, payload, by.batch,
                                  by.token),
                       -7));
          numbers wanted(4096, -1);  // what lies between the positions stays as it is
          const auto at_position = [&](long long b, long long s, long long d) -> long long& {
            return wanted[static_cast<std::size_t>(strided_batch::middle + b * by.batch +
                                                   s * by.token + d)];
          };
          for (long long b = 0; b < 3; ++b) {
            for (long long s = 0; s < width; ++s) {
              for (long long d = 0; d < payload; ++d) at_position(b, s, d) = -7;
            }
          }
          for (const auto& token : tokens) {
            if (!token.real) continue;
            for (long long d = 0; d < payload; ++d) {
              at_position(token.row, token.position, d) = content(token.row, token.position, d);
            }
          }
          BOOST_TEST(out == wanted, per_element());
        });
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(broadcast_inputs) {
  const auto layout = make_layout(numbers{2, 1}, padding{each_multiple_of<2>{}});
  const numbers one{7, 8};
  numbers out(4, 777);
  // One token for all, then one row for all.
  pack(host, layout, full_row, field(batch_view(one.data(), 2, 2, 1, 0, 0), out));
  BOOST_TEST(out == (numbers{7, 7, 7, 0}), per_element());
  pack(host, layout, full_row, field(batch_view(one.data(), 2, 2, 1, 0, 1), out));
  BOOST_TEST(out == (numbers{7, 8, 7, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(overlapping_inputs) {
  // Windows of one signal: legal to read.
  const auto layout = make_layout(numbers{3, 3});
  const numbers signal{1, 2, 3, 4};
  numbers out(6, 777);
  pack(host, layout, full_row, field(batch_view(signal.data(), 2, 3, 1, 1, 1), out));
  BOOST_TEST(out == (numbers{1, 2, 3, 2, 3, 4}), per_element());
}

BOOST_AUTO_TEST_CASE(overlapping_targets_are_refused) {
  const auto layout = make_layout(numbers{3, 2});
  const numbers rows(5 * 2, 5);
  poisoned_buffer<long long> out(64);
  const auto refuse = [&](strides by, offset_t payload) {
    BOOST_CHECK_EXCEPTION(
        unpack(host, layout, full_row,
               field(row_view(rows.data(), 5, payload),
                     batch_view(out.data() + 32, 2, 3, payload, by.batch, by.token))),
        invalid_input,
        refused("field 0's target strides",
                std::to_string(by.batch) + " and " + std::to_string(by.token), "overlap"));
    BOOST_TEST(out.untouched());
  };
  refuse({0, 1}, 1);   // all rows in one
  refuse({3, 0}, 1);   // all tokens in one
  refuse({1, 1}, 1);   // windows
  refuse({2, 1}, 1);   // the last token of a row is the first of the next
  refuse({3, 1}, 2);   // tokens narrower than their payload
  refuse({1, 2}, 2);   // interleaved rows narrower than their payload
  refuse({2, 3}, 2);   // interleaved rows that reach into the next token
  refuse({-2, 1}, 1);  // backwards
  refuse({2, -1}, 1);
  refuse({8, 1}, 2);  // rows far apart do not help tokens that overlap
  refuse({1, 4}, 2);  // room for both rows in a token's stride, but they overlap
}

BOOST_AUTO_TEST_CASE(targets_may_follow_each_other_without_room) {
  const auto layout = make_layout(numbers{3, 2});
  const numbers rows{1, 2, 3, 4, 5};
  // Every other element; the second row begins behind the last token of the first.
  numbers out(10, 777);
  unpack(host, layout, full_row, field(rows, batch_view(out.data(), 2, 3, 1, 5, 2)));
  BOOST_TEST(out == (numbers{1, 777, 2, 777, 3, 4, 777, 5, 777, 0}), per_element());
  // Rows that interleave fill a token's stride to its end.
  out.assign(6, 777);
  unpack(host, layout, full_row, field(rows, batch_view(out.data(), 2, 3, 1, 1, 2)));
  BOOST_TEST(out == (numbers{1, 4, 2, 5, 3, 0}), per_element());
}

BOOST_AUTO_TEST_CASE(one_row_or_one_column_needs_no_stride) {
  const numbers rows{1, 2, 3};
  numbers out(3, 777);
  unpack(host, make_layout(numbers{3}), full_row,
         field(rows, batch_view(out.data(), 1, 3, 1, 0, 1)));
  BOOST_TEST(out == rows, per_element());
  out.assign(3, 777);
  unpack(host, make_layout(numbers{1, 1, 1}), full_row,
         field(rows, batch_view(out.data(), 3, 1, 1, 1, 0)));
  BOOST_TEST(out == rows, per_element());
}

BOOST_AUTO_TEST_CASE(mdspan_like_batches) {
  const auto layout = make_layout(numbers{2, 3});
  const std::vector<float> memory{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::vector<float> out(5, 777);
  // [2, 3] in columns: element (b, s) is memory[2 s + b].
  const strided_span<const float, 2> columns(memory.data(), {2, 3}, {1, 2});
  pack(host, layout, full_row, field(batch_view(columns), out));
  BOOST_TEST(out == (std::vector<float>{0, 2, 1, 3, 5}), per_element());

  // [2, 3, 1, 2]: the payload of 2 is contiguous, whatever the stride of a dimension of 1 is.
  const strided_span<const float, 4> nested(memory.data(), {2, 3, 1, 2}, {6, 2, 99, 1});
  std::vector<float> wide(10, 777);
  pack(host, layout, full_row,
       field(batch_view(nested), strided_span<float, 2>(wide.data(), {5, 2}, {2, 1})));
  BOOST_TEST(wide == (std::vector<float>{0, 1, 2, 3, 6, 7, 8, 9, 10, 11}), per_element());

  // And back through a target of rank 3.
  std::vector<float> back(12, 777);
  unpack(host, layout, full_row,
         field(strided_span<const float, 3>(wide.data(), {5, 1, 2}, {2, 2, 1}),
               batch_view(strided_span<float, 3>(back.data(), {2, 3, 2}, {6, 2, 1}))));
  BOOST_TEST(back == (std::vector<float>{0, 1, 2, 3, 0, 0, 6, 7, 8, 9, 10, 11}), per_element());
}

BOOST_AUTO_TEST_CASE(payloads_that_are_not_contiguous_are_refused) {
  std::vector<float> memory(64);
  using span3 = strided_span<float, 3>;
  using span4 = strided_span<float, 4>;
  BOOST_CHECK_EXCEPTION(batch_view(span3(memory.data(), {2, 3, 4}, {24, 8, 2})), invalid_input,
                        refused("stride of dimension 2", "2", "1"));
  BOOST_CHECK_EXCEPTION(batch_view(span4(memory.data(), {2, 2, 2, 3}, {16, 8, 4, 1})),
                        invalid_input, refused("stride of dimension 2", "4", "3"));
  BOOST_CHECK_EXCEPTION(batch_view(span3(memory.data(), {2, 3, 4}, {12, 4, 0})), invalid_input,
                        refused("stride of dimension 2", "0", "1"));
  // Packed rows must be contiguous as a whole.
  BOOST_CHECK_EXCEPTION(row_view(strided_span<float, 2>(memory.data(), {5, 2}, {3, 1})),
                        invalid_input, refused("stride of dimension 0", "3", "2"));
  BOOST_CHECK_EXCEPTION(row_view(strided_span<float, 1>(memory.data(), {5}, {2})), invalid_input,
                        refused("stride of dimension 0", "2", "1"));
}

#if __has_include(<cuda/std/mdspan>)
BOOST_AUTO_TEST_CASE(mdspans) {
  const auto layout = make_layout(numbers{2, 3});
  const std::vector<float> memory{0, 1, 2, 3, 4, 5};
  std::vector<float> out(5, 777);
  using extents = cuda::std::dextents<int, 2>;
  const cuda::std::mdspan<const float, extents, cuda::std::layout_left> columns(memory.data(), 2,
                                                                                3);
  pack(host, layout, full_row, field(batch_view(columns), out));
  BOOST_TEST(out == (std::vector<float>{0, 2, 1, 3, 5}), per_element());
  const cuda::std::mdspan<const float, extents> rows(memory.data(), 2, 3);
  pack(host, layout, full_row, field(batch_view(rows), out));
  BOOST_TEST(out == (std::vector<float>{0, 1, 3, 4, 5}), per_element());
}
#endif
