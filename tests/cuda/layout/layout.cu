// Layouts from lengths and bounds in device memory, against the oracle and the host.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/golden.hpp"
#include "support/oracle.hpp"

BOOST_AUTO_TEST_SUITE(layout_layout)

using namespace seqpack;
using testing::captured_call;
using testing::device_array;
using testing::needs_device;
using testing::read_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

template <class Layout>
void check_sizes(const Layout& layout, const oracle::packed& expected) {
  BOOST_TEST(oracle::to_numbers(read_device(layout.cu_seqlens())) == expected.cu,
             boost::test_tools::per_element());
  BOOST_TEST(oracle::to_numbers(read_device(layout.cu_seqlens_padded())) == expected.cu_padded,
             boost::test_tools::per_element());
  BOOST_TEST(layout.total_tokens() == expected.total);
  BOOST_TEST(layout.max_seqlen() == expected.max_seqlen);
  BOOST_TEST(layout.has_padding() == expected.has_padding);
  const auto longest = std::max_element(expected.lens.begin(), expected.lens.end());
  BOOST_TEST(layout.max_length() == (expected.lens.empty() ? 0 : *longest));
}

std::vector<int> random_lengths(std::mt19937& random, int batch, int longest) {
  std::vector<int> lengths(static_cast<std::size_t>(batch));
  for (int& length : lengths) length = static_cast<int>(random() % (longest + 1));
  return lengths;
}

/// What the host says to the same lengths, or "" if it accepts them.
template <class Make>
std::string refusal(const Make& make) {
  try {
    make();
  } catch (const invalid_input& e) {
    return e.what();
  }
  return "";
}

const int batches[] = {0, 1, 2, 3, 31, 255, 256, 257, 1000, 5000};

}  // namespace

BOOST_AUTO_TEST_CASE(absorbed_tails_agree_with_the_oracle) {
  const testing::test_stream stream;
  std::mt19937 random(1);
  for (const int batch : batches) {
    for (const int cp : {1, 2, 3}) {
      const offset_t each = 2 * cp;
      const offset_t multiple = 2 * cp * 5;
      const auto lengths = random_lengths(random, batch, 20);
      const device_array<int> on_device(lengths);
      const auto layout = make_layout(
          stream.executor(), std::span<const int>(on_device.data(), lengths.size()),
          padding{each_multiple_of<>{each}, total_multiple_of<>{multiple}}, context_parallel{cp});
      check_sizes(layout, oracle::bounds({.lens = oracle::to_numbers(lengths),
                                          .each = each,
                                          .total_multiple = multiple,
                                          .cp = cp}));
    }
  }
}

BOOST_AUTO_TEST_CASE(ghost_tails_agree_with_the_oracle) {
  const testing::test_stream stream;
  std::mt19937 random(2);
  for (const int batch : batches) {
    const auto lengths = random_lengths(random, batch, 20);
    const device_array<int> on_device(lengths);
    const auto layout = make_layout<std::int64_t>(
        stream.executor(), std::span<const int>(on_device.data(), lengths.size()),
        padding{each_multiple_of<4>{}, total_multiple_of<>{48}, ghost_tail{}},
        context_parallel<2>{});
    check_sizes(layout, oracle::bounds({.lens = oracle::to_numbers(lengths),
                                        .each = 4,
                                        .total_multiple = 48,
                                        .tail_to = oracle::tail::ghost,
                                        .cp = 2}));
    BOOST_TEST(layout.cu_seqlens().size() == lengths.size() + 2);
  }
}

BOOST_AUTO_TEST_CASE(the_reference_bounds_come_out) {
  const testing::test_stream stream;
  int compared = 0;
  for (const auto& c : golden::pack_cases()) {
    const std::vector<int> lengths(c.seq_lengths.begin(), c.seq_lengths.end());
    const device_array<int> on_device(lengths);
    const std::span<const int> span(on_device.data(), lengths.size());
    const auto check = [&](const auto& policy) {
      const auto layout = make_layout(stream.executor(), span, policy, context_parallel{c.cp_size},
                                      {.width = c.width});
      BOOST_TEST(oracle::to_numbers(read_device(layout.cu_seqlens())) == c.cu_seqlens, c.name);
      BOOST_TEST(oracle::to_numbers(read_device(layout.cu_seqlens_padded())) == c.cu_seqlens_padded,
                 c.name);
      BOOST_TEST(layout.max_seqlen() == c.max_seqlen, c.name);
      BOOST_TEST(layout.total_tokens() == c.total_tokens, c.name);
      ++compared;
    };
    with_padding(
        {.each = c.pad_each, .total_multiple = c.pad_total_multiple, .fixed_total = c.pad_total_to},
        check);
  }
  BOOST_TEST(compared == 80);
}

BOOST_AUTO_TEST_CASE(an_order_on_the_device_selects_and_permutes) {
  const testing::test_stream stream;
  const std::vector<int> lengths{2, 5, 1, 7};
  const device_array<int> on_device(lengths);
  const std::vector<int> order{3, 0, 1};
  const device_array<int> order_on_device(order);
  const auto layout =
      make_layout(stream.executor(), std::span<const int>(on_device.data(), 4),
                  padding{each_multiple_of<>{4}}, no_context_parallel{},
                  {.width = 8, .order = std::span<const int>(order_on_device.data(), 3)});
  check_sizes(layout, oracle::bounds({.lens = {2, 5, 1, 7}, .each = 4, .order = {3, 0, 1}}));
  const auto view = layout.view();
  BOOST_TEST(read_device(std::span<const int>(view.order, 3)) == order,
             boost::test_tools::per_element());
  BOOST_TEST(read_device(std::span<const int>(view.slot_of, 4)) == (std::vector{1, 2, -1, 0}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_wrong_order_or_length_is_refused_as_on_the_host) {
  const testing::test_stream stream;
  const std::vector<int> lengths{2, 5, 1, -7};
  const device_array<int> on_device(lengths);
  for (const std::vector<offset_t>& order :
       {std::vector<offset_t>{0, 4}, {0, -1}, {1, 1}, {2, 0, 1, 2}, {0, 3}}) {
    const device_array<int> order_on_device(std::vector<int>(order.begin(), order.end()));
    const std::string expected = refusal([&] {
      make_layout(lengths, padding{each_multiple_of<>{4}}, no_context_parallel{}, {.order = order});
    });
    BOOST_TEST(!expected.empty());
    const std::string found = refusal([&] {
      make_layout(stream.executor(), std::span<const int>(on_device.data(), 4),
                  padding{each_multiple_of<>{4}}, no_context_parallel{},
                  {.order = std::span<const int>(order_on_device.data(), order.size())});
    });
    BOOST_TEST(found == expected);
  }
}

BOOST_AUTO_TEST_CASE(wrong_lengths_are_refused_with_the_texts_of_the_host) {
  const testing::test_stream stream;
  struct wrong {
    std::vector<int> lengths;
    offset_t each, multiple, cp, width;
  };
  for (const wrong& w : {wrong{{3, -1}, 1, 1, 1, 8},
                         {{3, 9, -1}, 1, 1, 1, 8},
                         {{4, 5, 3}, 1, 1, 2, 8},
                         {{4, 8, 3}, 1, 1, 2, 8},
                         {{4, 8}, 4, 9, 2, 8},
                         {{2147483647, 1}, 1, 1, 1, max_tokens},
                         {{2147483647}, 1, 2, 1, max_tokens}}) {
    const device_array<int> on_device(w.lengths);
    const padding policy{each_multiple_of<>{w.each}, total_multiple_of<>{w.multiple}};
    const context_parallel cp{w.cp};
    const std::string expected =
        refusal([&] { make_layout(w.lengths, policy, cp, {.width = w.width}); });
    BOOST_TEST(!expected.empty());
    const std::string found = refusal([&] {
      make_layout(stream.executor(), std::span<const int>(on_device.data(), w.lengths.size()),
                  policy, cp, {.width = w.width});
    });
    BOOST_TEST(found == expected);
  }
}

BOOST_AUTO_TEST_CASE(content_above_a_fixed_total_is_refused) {
  const testing::test_stream stream;
  const std::vector<int> lengths{6, 4};
  const device_array<int> on_device(lengths);
  const std::string found = refusal([&] {
    make_layout(stream.executor(), std::span<const int>(on_device.data(), 2),
                padding{each_multiple_of<>{1}, total_multiple_of<>{1}, fixed_total<>{8}},
                context_parallel{1});
  });
  BOOST_TEST(found == "content is 10: the padded lengths must sum to at most 8, the fixed total");
}

BOOST_AUTO_TEST_CASE(a_million_sequences) {
  const testing::test_stream stream;
  std::mt19937 random(3);
  const auto lengths = random_lengths(random, 1'000'000, 3);
  const device_array<int> on_device(lengths);
  const padding policy{each_multiple_of<>{2}, total_multiple_of<>{64}};
  const auto on_host = make_layout(lengths, policy, context_parallel{1});
  const auto layout =
      make_layout(stream.executor(), std::span<const int>(on_device.data(), lengths.size()), policy,
                  context_parallel{1});
  const auto cu_padded = read_device(layout.cu_seqlens_padded());
  BOOST_TEST(std::equal(cu_padded.begin(), cu_padded.end(), on_host.cu_seqlens_padded().begin()));
  const auto cu = read_device(layout.cu_seqlens());
  BOOST_TEST(std::equal(cu.begin(), cu.end(), on_host.cu_seqlens().begin()));
}

BOOST_AUTO_TEST_CASE(bounds_on_the_device_are_adopted) {
  const testing::test_stream stream;
  const device_array<int> cu(std::vector<int>{0, 3, 8, 8});
  const device_array<int> padded(std::vector<int>{0, 4, 16, 16});
  const auto layout =
      from_cu_seqlens(stream.executor(), std::span<const int>(cu.data(), 4),
                      std::span<const int>(padded.data(), 4), 16, context_parallel{2});
  BOOST_TEST(read_device(layout.cu_seqlens()) == (std::vector{0, 3, 8, 8}));
  BOOST_TEST(read_device(layout.cu_seqlens_padded()) == (std::vector{0, 4, 16, 16}));
  BOOST_TEST(layout.max_seqlen() == 12);
  BOOST_TEST(layout.max_length() == 5);
  BOOST_TEST(layout.has_padding());
}

BOOST_AUTO_TEST_CASE(wrong_bounds_are_refused_with_the_texts_of_the_host) {
  const testing::test_stream stream;
  struct wrong {
    std::vector<int> cu, padded;
    offset_t total, width;
  };
  for (const wrong& w : {
           wrong{{1, 4}, {0, 4}, 4, 9},
           {{0, 4}, {1, 4}, 4, 9},
           {{0, 3, 2, 4}, {0, 4, 8, 12}, 12, 9},
           {{0, 3, 4, 4}, {0, 8, 4, 12}, 12, 9},
           {{0, 3}, {0, 4}, 8, 9},
           {{0, 5}, {0, 4}, 4, 9},
           {{0, 4}, {0, 4}, 4, 3},
           {{0, 3, 4}, {0, 6, 8}, 8, 9},
       }) {
    const device_array<int> cu(w.cu);
    const device_array<int> padded(w.padded);
    const std::span<const int> cu_span(cu.data(), w.cu.size());
    const std::span<const int> padded_span(padded.data(), w.padded.size());
    const std::string expected = refusal(
        [&] { from_cu_seqlens(w.cu, w.padded, w.total, context_parallel{2}, {.width = w.width}); });
    BOOST_TEST(!expected.empty());
    BOOST_TEST(refusal([&] {
                 from_cu_seqlens(stream.executor(), cu_span, padded_span, w.total,
                                 context_parallel{2}, w.width);
               }) == expected);

    const auto deferred = from_cu_seqlens<std::int32_t, validation::deferred>(
        stream.executor(), cu_span, padded_span, w.total, context_parallel{2}, w.width);
    BOOST_TEST(refusal([&] { deferred.check(stream); }) == expected);
    const auto safe = read_device(deferred.cu_seqlens_padded());
    BOOST_TEST(std::is_sorted(safe.begin(), safe.end()));
    BOOST_TEST((safe.front() == 0 && safe.back() <= w.total));
  }
}

BOOST_AUTO_TEST_CASE(a_row_that_the_ranks_cannot_share_is_refused) {
  const testing::test_stream stream;
  const context_parallel cp{2, any_sharding{row_contiguous{}}};
  const std::vector<int> bounds{0, 5, 9};
  const device_array<int> lengths(std::vector<int>{5, 4});
  const device_array<int> cu(bounds);
  const std::span<const int> given(lengths.data(), 2);
  const std::span<const int> adopted(cu.data(), 3);
  BOOST_TEST(refusal([&] { make_layout(stream.executor(), given, any_padding{}, cp); }) ==
             refusal([&] { make_layout(std::vector<int>{5, 4}, any_padding{}, cp); }));
  BOOST_TEST(refusal([&] {
               make_layout(stream.executor(), given, any_padding{}, cp);
             }).starts_with("total is 9: it must be a multiple of 2"));
  BOOST_TEST(refusal([&] { from_cu_seqlens(stream.executor(), adopted, adopted, 9, cp); }) ==
             refusal([&] { from_cu_seqlens(bounds, bounds, 9, cp); }));
  const padding even{total_multiple_of<>{2}};
  BOOST_TEST(make_layout(stream.executor(), given, any_padding{even}, cp).shard_tokens() == 5);
}

BOOST_AUTO_TEST_CASE(deferred_bounds_never_wait_and_are_used_safely) {
  const testing::test_stream stream;
  const device_array<int> cu(std::vector<int>{0, 3, 8, 9});
  // Good; then bounds that decrease, that end short of the total, and behind it.
  for (const std::vector<int>& bounds :
       {std::vector<int>{0, 4, 16, 20}, {0, 4, 2, 20}, {0, 4, 8, 12}, {0, 4, 16, 40}}) {
    const device_array<int> padded(bounds);
    const device_array<int> batch(std::vector<int>(3 * 8, 7));
    const device_array<int> row(20), shard_row(10), back(3 * 8);
    const captured_call call(stream, [&] {
      const auto layout = from_cu_seqlens<std::int32_t, validation::deferred>(
          stream.executor(), std::span<const int>(cu.data(), 4),
          std::span<const int>(padded.data(), 4), 20, context_parallel{2}, 8);
      const batch_view<const int> tokens(batch.data(), 3, 8);
      pack(stream.executor(), layout, all_shards, field(tokens, row_view<int>(row.data(), 20)));
      pack(stream.executor(), layout, shard{1}, field(tokens, row_view<int>(shard_row.data(), 10)));
      unpack(stream.executor(), layout, all_shards,
             field(row_view<const int>(row.data(), 20), batch_view<int>(back.data(), 3, 8)));
    });
    BOOST_TEST(call.launches == 5);
    BOOST_TEST(call.memsets == 1);
    call.replay(stream);
    stream.wait();
    BOOST_TEST((row.guards_intact() && shard_row.guards_intact() && back.guards_intact()));
    for (const int token : row.values()) BOOST_TEST((token == 0 || token == 7));
  }
}

BOOST_AUTO_TEST_CASE(totals_that_cannot_be_are_refused_before_anything_is_enqueued) {
  const testing::test_stream stream;
  const device_array<int> cu(std::vector<int>{0, 3});
  const std::span<const int> span(cu.data(), 2);
  const auto adopt = [&](offset_t total) {
    return refusal([&] {
      from_cu_seqlens<std::int32_t, validation::deferred>(stream.executor(), span, span, total,
                                                          context_parallel{2});
    });
  };
  BOOST_TEST(adopt(-4) == "total is -4: it must be from 0 to 2147483647");
  BOOST_TEST(adopt(4294967296) == "total is 4294967296: it must be from 0 to 2147483647");
  BOOST_TEST(adopt(6) == "total is 6: it must be a multiple of 4, what the sharding divides by");
  // Tokens without a sequence: there would be no bounds to look them up in.
  const std::span<const int> nothing(cu.data(), 1);
  const std::string without_sequences = refusal([&] {
    from_cu_seqlens<std::int32_t, validation::deferred>(stream.executor(), nothing, nothing, 8,
                                                        context_parallel{2});
  });
  BOOST_TEST(without_sequences == "total is 8: it must be 0, as there are no sequences");
}

BOOST_AUTO_TEST_CASE(an_order_of_no_slots_packs_nothing) {
  const testing::test_stream stream;
  const std::vector<offset_t> none;
  const auto on_host =
      make_layout(std::vector{5, 3}, no_padding{}, no_context_parallel{}, {.order = none});
  const auto check = [&](const auto& layout) {
    BOOST_TEST(layout.total_tokens() == 0);
    const device_array<int> back(2 * 5);
    unpack(stream.executor(), layout, full_row,
           field(row_view<const int>(nullptr, 0), batch_view<int>(back.data(), 2, 5), -3));
    stream.wait();
    BOOST_TEST(back.values() == std::vector<int>(10, -3));
  };
  check(to_device(stream.executor(), on_host));
  const device_array<int> lengths(std::vector<int>{5, 3});
  check(make_layout(stream.executor(), std::span<const int>(lengths.data(), 2),
                    padding{each_multiple_of<>{1}}, no_context_parallel{},
                    {.order = std::span<const int>()}));
  // With a total it is all tail, also where sequences absorb tails.
  const auto tail = make_layout(stream.executor(), std::span<const int>(lengths.data(), 2),
                                padding{fixed_total<16>{}}, context_parallel<2>{},
                                {.order = std::span<const int>()});
  check_sizes(tail,
              oracle::bounds({.lens = {}, .fixed_total = 16, .tail_to = oracle::tail::ghost}));
}

BOOST_AUTO_TEST_CASE(a_host_layout_travels_as_it_is) {
  const testing::test_stream stream;
  const std::vector<offset_t> order{2, 0};
  const auto on_host = make_layout(std::vector{5, 3, 8}, padding{each_multiple_of<4>{}},
                                   context_parallel<2>{}, {.order = order});
  const auto layout = to_device(stream.executor(), on_host);
  stream.wait();
  const auto cu_padded = read_device(layout.cu_seqlens_padded());
  BOOST_TEST(std::equal(cu_padded.begin(), cu_padded.end(), on_host.cu_seqlens_padded().begin()));
  BOOST_TEST(read_device(std::span<const int>(layout.view().slot_of, 3)) ==
             (std::vector{1, -1, 0}));
  BOOST_TEST(layout.max_seqlen() == 8);
  BOOST_TEST(layout.total_tokens() == 16);
}

BOOST_AUTO_TEST_SUITE_END()
