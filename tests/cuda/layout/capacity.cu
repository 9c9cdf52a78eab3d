// Layouts with a capacity: any lengths, one shape, no wait, capturable.
#include <boost/test/unit_test.hpp>
#include <random>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/oracle.hpp"
#include "support/refused.hpp"

BOOST_AUTO_TEST_SUITE(layout_capacity)

using namespace seqpack;
using testing::captured_call;
using testing::device_array;
using testing::needs_device;
using testing::read_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr int sequences = 6;
constexpr offset_t width = 16;
constexpr offset_t total = 64;

/// The eager arrays, followed by repeats of their last entry.
oracle::numbers with_spares(oracle::numbers values, std::size_t size) {
  values.resize(size, values.back());
  return values;
}

template <class Tail>
auto make_capacity(const testing::test_stream& stream, bool ordered = false) {
  return capacity_layout(stream.executor(), {.sequences = sequences, .width = width},
                         padding{each_multiple_of<4>{}, fixed_total<total>{}, Tail{}},
                         context_parallel<2>{}, ordered);
}

template <class Layout>
void check_arrays(const Layout& layout, const oracle::packed& expected) {
  const std::size_t entries = layout.cu_seqlens().size();
  BOOST_TEST(
      oracle::to_numbers(read_device(layout.cu_seqlens())) == with_spares(expected.cu, entries),
      boost::test_tools::per_element());
  BOOST_TEST(oracle::to_numbers(read_device(layout.cu_seqlens_padded())) ==
                 with_spares(expected.cu_padded, entries),
             boost::test_tools::per_element());
}

/// Refused or not: both arrays start at 0, do not decrease and end at most at the total, and every
/// real length is within its padded one.
template <class Layout>
void check_safe(const Layout& layout) {
  const auto cu = read_device(layout.cu_seqlens());
  const auto padded = read_device(layout.cu_seqlens_padded());
  BOOST_TEST(cu.front() == 0);
  BOOST_TEST(padded.front() == 0);
  BOOST_TEST(padded.back() <= total);
  for (std::size_t k = 1; k < cu.size(); ++k) {
    BOOST_TEST(cu[k] >= cu[k - 1]);
    BOOST_TEST(padded[k] >= padded[k - 1]);
    BOOST_TEST(cu[k] <= padded[k]);
  }
}

template <class Layout>
std::string refusal(const Layout& layout, const testing::test_stream& stream) {
  try {
    layout.check(stream);
  } catch (const invalid_input& e) {
    return e.what();
  }
  return "";
}

/// A user's own padding: every sequence takes a power of two.
struct powers_of_two {
  static constexpr offset_t static_each = 1;
  static constexpr offset_t static_total_multiple = 1;
  static constexpr offset_t static_fixed_total = 64;
  static constexpr bool has_total = true;
  static constexpr bool has_fixed_total = true;
  static constexpr tail tail_goes_to = tail::ghost;

  SEQPACK_HD constexpr offset_t each() const { return 1; }
  SEQPACK_HD constexpr offset_t total_multiple() const { return 1; }
  SEQPACK_HD constexpr offset_t fixed_total() const { return 64; }
  SEQPACK_HD constexpr offset_t padded_length(offset_t length) const {
    offset_t power = length == 0 ? 0 : 1;
    while (power < length) power *= 2;
    return power;
  }
};

device_summary read_summary(const device_summary* from) {
  return read_device(std::span<const device_summary>(from, 1)).front();
}

}  // namespace

BOOST_AUTO_TEST_CASE(shapes_and_bounds_are_those_of_the_capacity) {
  const testing::test_stream stream;
  const auto absorb = make_capacity<absorb_tail>(stream);
  BOOST_TEST(absorb.cu_seqlens().size() == sequences + 1);
  BOOST_TEST(absorb.total_tokens() == total);
  BOOST_TEST(absorb.shard_tokens() == total / 2);
  BOOST_TEST(absorb.max_seqlen() == total);
  BOOST_TEST(absorb.max_length() == width);
  BOOST_TEST(absorb.batch_size() == sequences);
  BOOST_TEST(absorb.has_padding());
  const auto ghost = make_capacity<ghost_tail>(stream);
  BOOST_TEST(ghost.cu_seqlens().size() == sequences + 2);
}

BOOST_AUTO_TEST_CASE(before_the_first_build_it_is_a_layout_of_no_sequences) {
  const testing::test_stream stream;
  const auto layout = make_capacity<ghost_tail>(stream);
  BOOST_TEST(refusal(layout, stream) == "");
  const device_array<int> batch(std::vector<int>(sequences * width, 5));
  const device_array<int> row(total);
  pack(stream.executor(), layout, all_shards,
       field(batch_view<const int>(batch.data(), sequences, width),
             row_view<int>(row.data(), total)));
  stream.wait();
  BOOST_TEST(row.values() == std::vector<int>(total, 0));
}

BOOST_AUTO_TEST_CASE(null_inputs_are_refused) {
  const testing::test_stream stream;
  auto layout = make_capacity<absorb_tail>(stream);
  const device_array<int> some(std::vector<int>(sequences, 1));
  const int* const null = nullptr;
  const auto refuse = [&](const int* lengths, const int* count, const int* order,
                          const std::string& text) {
    BOOST_CHECK_EXCEPTION(layout.build(stream, lengths, count, order), invalid_input,
                          testing::refused_as(text));
  };
  const auto* const odd =
      reinterpret_cast<const int*>(reinterpret_cast<const char*>(some.data()) + 2);
  const std::string aligned =
      ": its address must be a multiple of 4, the alignment of its elements";
  refuse(null, some.data(), null, "lengths is null: it must point to 6 elements");
  refuse(some.data(), null, null, "count is null: it must point to 1 elements");
  refuse(odd, some.data(), null, "lengths is misaligned by 2" + aligned);
  refuse(some.data(), odd, null, "count is misaligned by 2" + aligned);
  refuse(some.data(), some.data(), some.data(),
         "order is given: a layout is made with or without an order");
}

BOOST_AUTO_TEST_CASE(every_build_gives_the_eager_arrays_and_spares) {
  const testing::test_stream stream;
  auto absorb = make_capacity<absorb_tail>(stream);
  auto ghost = make_capacity<ghost_tail>(stream);
  std::mt19937 random(4);
  for (int round = 0; round < 40; ++round) {
    const int count = 1 + static_cast<int>(random() % sequences);
    // What stands behind the counted lengths must not matter.
    std::vector<std::int64_t> lengths(sequences, -7);
    for (int k = 0; k < count; ++k) lengths[static_cast<std::size_t>(k)] = random() % 10;
    const device_array<std::int64_t> on_device(lengths);
    const device_array<int> count_on_device(std::vector<int>{count});
    absorb.build(stream, on_device.data(), count_on_device.data());
    ghost.build(stream, on_device.data(), count_on_device.data());
    BOOST_TEST(refusal(absorb, stream) == "");
    BOOST_TEST(refusal(ghost, stream) == "");
    oracle::request request{.lens = {lengths.begin(), lengths.begin() + count},
                            .each = 4,
                            .fixed_total = total,
                            .cp = 2};
    check_arrays(absorb, oracle::bounds(request));
    BOOST_TEST(read_summary(absorb.summary()).sizes.longest_padded ==
               oracle::bounds(request).max_seqlen);
    request.tail_to = oracle::tail::ghost;
    check_arrays(ghost, oracle::bounds(request));
    BOOST_TEST(read_summary(ghost.summary()).sizes.longest_padded ==
               oracle::bounds(request).max_seqlen);
    BOOST_TEST(read_summary(ghost.summary()).sizes.sequences == count);
  }
}

BOOST_AUTO_TEST_CASE(no_sequences_at_all) {
  const testing::test_stream stream;
  const device_array<int> lengths(std::vector<int>(sequences, 0));
  const device_array<int> none(std::vector<int>{0});
  auto ghost = make_capacity<ghost_tail>(stream);
  ghost.build(stream, lengths.data(), none.data());
  BOOST_TEST(refusal(ghost, stream) == "");
  check_arrays(
      ghost,
      oracle::bounds({.lens = {}, .fixed_total = total, .tail_to = oracle::tail::ghost, .cp = 2}));
  auto absorb = make_capacity<absorb_tail>(stream);
  absorb.build(stream, lengths.data(), none.data());
  BOOST_TEST(refusal(absorb, stream).find("number of sequences is 0") == 0);
  check_safe(absorb);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_sets_the_status_and_stays_inside) {
  const testing::test_stream stream;
  struct wrong {
    std::vector<int> lengths;
    int count;
    const char* says;
  };
  for (const wrong& w : {
           wrong{{3, -1, 2, 0, 0, 0}, 3, "lengths[1] is -1"},
           {{3, 1, 17, -2, 0, 0}, 4, "lengths[2] is 17: a length must be at most 16"},
           {{16, 16, 16, 13, 16, 1}, 6, "content is 84: the padded lengths must sum to at most 64"},
           {{1, 1, 1, 1, 1, 1}, 7, "number of sequences is 7: it must be from 0 to 6"},
           {{1, 1, 1, 1, 1, 1}, -1, "number of sequences is -1"},
           {{1, 1, 2147483647, 2147483647, 2147483647, 1}, 6, "lengths[2] is 2147483647"},
       }) {
    const device_array<int> lengths(w.lengths);
    const device_array<int> count(std::vector<int>{w.count});
    auto absorb = make_capacity<absorb_tail>(stream);
    auto ghost = make_capacity<ghost_tail>(stream);
    absorb.build(stream, lengths.data(), count.data());
    ghost.build(stream, lengths.data(), count.data());
    BOOST_TEST(refusal(absorb, stream).find(w.says) == 0, refusal(absorb, stream));
    BOOST_TEST(refusal(ghost, stream).find(w.says) == 0, refusal(ghost, stream));
    check_safe(absorb);
    check_safe(ghost);

    // Nothing that runs over a refused layout may touch anything outside either.
    const device_array<int> batch(std::vector<int>(sequences * width, 5));
    const auto use = [&](const auto& layout) {
      const device_array<int> row(total), shard_row(total / 2), back(sequences * width);
      const batch_view<const int> tokens(batch.data(), sequences, width);
      pack(stream.executor(), layout, full_row, field(tokens, row_view<int>(row.data(), total)));
      pack(stream.executor(), layout, shard{1},
           field(tokens, row_view<int>(shard_row.data(), total / 2)));
      pack(stream.executor(), layout, all_shards, field(tokens, row_view<int>(row.data(), total)));
      unpack(stream.executor(), layout, all_shards,
             field(row_view<const int>(row.data(), total),
                   batch_view<int>(back.data(), sequences, width)));
      stream.wait();
      BOOST_TEST((row.guards_intact() && shard_row.guards_intact() && back.guards_intact()));
      for (const int token : row.values()) BOOST_TEST((token == 0 || token == 5));
      for (const int token : back.values()) BOOST_TEST((token == 0 || token == 5));
    };
    use(absorb);
    use(ghost);
  }
}

BOOST_AUTO_TEST_CASE(a_bound_of_max_seqlen_is_checked) {
  const testing::test_stream stream;
  capacity_layout layout(
      stream.executor(), {.sequences = sequences, .width = width, .max_seqlen = 12},
      padding{each_multiple_of<4>{}, fixed_total<total>{}, ghost_tail{}}, context_parallel<2>{});
  BOOST_TEST(layout.max_seqlen() == 12);
  const device_array<int> lengths(std::vector<int>{12, 12, 12, 12, 12, 0});
  const device_array<int> five(std::vector<int>{5});
  layout.build(stream, lengths.data(), five.data());
  BOOST_TEST(refusal(layout, stream) == "");
  const device_array<int> one(std::vector<int>{1});
  layout.build(stream, lengths.data(), one.data());
  BOOST_TEST(refusal(layout, stream).find("longest padded length is 52") == 0);
}

BOOST_AUTO_TEST_CASE(built_and_packed_in_a_graph_and_replayed_with_other_lengths) {
  const testing::test_stream stream;
  auto layout = make_capacity<absorb_tail>(stream, true);
  device_array<int> lengths(std::vector<int>(sequences, 0));
  device_array<int> count(std::vector<int>{1});
  device_array<int> order(std::vector<int>{0, 1, 2, 3, 4, 5});
  std::vector<int> batch(sequences * width);
  for (int b = 0; b < sequences; ++b) {
    for (int s = 0; s < width; ++s) {
      batch[static_cast<std::size_t>(b * width + s)] = 100 * (b + 1) + s;
    }
  }
  const device_array<int> batch_on_device(batch);
  const device_array<int> shards(total);
  const device_array<int> back(sequences * width);
  stream.wait();
  const captured_call graph(stream, [&] {
    layout.build(stream, lengths.data(), count.data(), order.data());
    pack(stream.executor(), layout, all_shards,
         field(batch_view<const int>(batch_on_device.data(), sequences, width),
               row_view<int>(shards.data(), total)));
    unpack(stream.executor(), layout, all_shards,
           field(row_view<const int>(shards.data(), total),
                 batch_view<int>(back.data(), sequences, width), -1));
  });
  BOOST_TEST(graph.launches == 4);  // two of the scan, one of pack, one of unpack
  BOOST_TEST(graph.memsets == 1);
  BOOST_TEST(graph.others == 0);

  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<int> new_lengths(sequences);
    for (int& length : new_lengths) length = static_cast<int>(random() % 11);
    const int used = 1 + static_cast<int>(random() % sequences);
    std::vector<int> new_order{0, 1, 2, 3, 4, 5};
    std::shuffle(new_order.begin(), new_order.end(), random);
    lengths.upload(new_lengths);
    count.upload({used});
    order.upload(new_order);
    graph.replay(stream);
    BOOST_TEST(refusal(layout, stream) == "");
    const auto expected = oracle::pack({.lens = oracle::to_numbers(new_lengths),
                                        .each = 4,
                                        .fixed_total = total,
                                        .cp = 2,
                                        .order = {new_order.begin(), new_order.begin() + used}});
    const auto held = oracle::values(expected.all_shards, oracle::id, 0);
    BOOST_TEST(oracle::to_numbers(shards.values()) == held, boost::test_tools::per_element());
    BOOST_TEST(oracle::to_numbers(back.values()) ==
                   oracle::unpack(expected.all_shards, held, sequences, width, -1),
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(a_row_of_a_capacity_is_cut_as_a_whole) {
  const testing::test_stream stream;
  auto layout = capacity_layout(stream.executor(), {.sequences = sequences, .width = width},
                                padding{each_multiple_of<1>{}, fixed_total<total>{}, ghost_tail{}},
                                context_parallel<2, row_contiguous>{});
  const device_array<int> lengths(std::vector<int>{13, 16, 0, 11, 0, 0});
  const device_array<int> count(std::vector<int>{4});
  layout.build(stream, lengths.data(), count.data());
  const auto entries = static_cast<std::size_t>(sequences) + 2;
  const device_array<int> q(entries), kv(entries), rows(2);
  const auto params = make_gathered_key_params(
      stream.executor(), layout, shard{1}, std::span<int>(q.data(), entries),
      std::span<int>(kv.data(), entries), std::span<int>(rows.data(), 2));
  const device_array<int> positions(total / 2);
  per_token(stream.executor(), layout, shard{1},
            position_ids(row_view(positions.data(), total / 2)));
  stream.wait();
  BOOST_TEST(refusal(layout, stream) == "");
  // Rows 32 to 63: the last 8 tokens of sequence 3, and 24 of the ghost; spare entries repeat the end.
  BOOST_TEST(q.values() == (std::vector{0, 0, 0, 0, 8, 32, 32, 32}),
             boost::test_tools::per_element());
  BOOST_TEST(kv.values() == (std::vector{0, 0, 0, 0, 11, 35, 35, 35}),
             boost::test_tools::per_element());
  BOOST_TEST(rows.values() == (std::vector{29, 64}), boost::test_tools::per_element());
  BOOST_TEST(positions.values()[0] == 3);
  BOOST_TEST(positions.values()[7] == 10);
  BOOST_TEST(positions.values()[8] == 0);
  BOOST_TEST(params.max_seqlen_q == total / 2);
  BOOST_TEST(params.max_seqlen_kv == total);
}

BOOST_AUTO_TEST_CASE(lengths_in_the_memory_that_a_build_writes_are_refused) {
  const testing::test_stream stream;
  auto layout = make_capacity<absorb_tail>(stream);
  const device_array<int> count(std::vector{2});
  const device_array<int> lengths(std::vector<int>(sequences, 1));
  const auto refuse = [&](const int* from, const int* number, const std::string& entry) {
    BOOST_CHECK_EXCEPTION(layout.build(stream, from, number), invalid_input,
                          testing::refused_as("the layout's arrays is in the memory of " + entry +
                                              ": outputs must not alias"));
  };
  refuse(layout.view().cu, count.data(), "lengths");
  refuse(layout.view().cu_padded + 1, count.data(), "lengths");
  refuse(lengths.data(), layout.view().cu_padded, "count");
  layout.build(stream, lengths.data(), count.data());
  layout.check(stream);
}

BOOST_AUTO_TEST_CASE(layouts_of_all_paddings_are_one_type) {
  const testing::test_stream stream;
  const auto make = [&](const auto& how) {
    return capacity_layout(stream.executor(), {.sequences = 2, .width = width}, how,
                           context_parallel<>{2});
  };
  std::vector<decltype(make(padding{each_multiple_of<4>{}, fixed_total<64>{}}))> layouts;
  layouts.push_back(make(padding{each_multiple_of<4>{}, fixed_total<64>{}}));
  layouts.push_back(make(padding{each_multiple_of<12>{}, fixed_total<48>{}, ghost_tail{}}));
  layouts.push_back(make(any_padding(padding{each_multiple_of<>{8}, fixed_total<>{32}})));
  const device_array<int> lengths(std::vector<int>{8, 4});
  const device_array<int> count(std::vector<int>{2});
  std::vector<oracle::numbers> bounds;
  for (auto& layout : layouts) {
    layout.build(stream, lengths.data(), count.data());
    layout.check(stream);
    bounds.push_back(oracle::to_numbers(read_device(layout.cu_seqlens_padded())));
  }
  BOOST_TEST(bounds[0] == (oracle::numbers{0, 8, 64}), boost::test_tools::per_element());
  BOOST_TEST(bounds[1] == (oracle::numbers{0, 12, 24, 48}), boost::test_tools::per_element());
  BOOST_TEST(bounds[2] == (oracle::numbers{0, 8, 32}), boost::test_tools::per_element());

  // An exact layout and a copy from the host are views of the same type.
  using view = layout_view<context_parallel<>>;
  const auto exact = make_layout(stream.executor(), std::span<const int>(lengths.data(), 2),
                                 padding{each_multiple_of<4>{}}, context_parallel<>{2});
  const auto host_layout = make_layout(std::vector{5, 4}, no_padding{}, context_parallel<>{1});
  const std::vector<view> views{layouts[1].view(), exact.view(),
                                to_device(stream.executor(), host_layout).view()};
  BOOST_TEST(views[0].has_ghost());
  BOOST_TEST(views[1].total == 12);
  BOOST_TEST(views[2].total == 9);
}

BOOST_AUTO_TEST_CASE(a_padding_of_ones_own_has_a_capacity) {
  const testing::test_stream stream;
  capacity_layout layout(stream.executor(), {.sequences = 3, .width = width}, powers_of_two{},
                         no_context_parallel{});
  const device_array<int> lengths(std::vector<int>{5, 4, 9});
  const device_array<int> count(std::vector<int>{3});
  layout.build(stream, lengths.data(), count.data());
  BOOST_TEST(refusal(layout, stream) == "");
  BOOST_TEST(oracle::to_numbers(read_device(layout.cu_seqlens_padded())) ==
                 (oracle::numbers{0, 8, 12, 28, 64}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(parts_of_run_time_need_a_fixed_total) {
  const testing::test_stream stream;
  BOOST_CHECK_EXCEPTION(
      capacity_layout(stream.executor(), {.sequences = 1}, any_padding{}, no_context_parallel{}),
      invalid_input,
      testing::refused("fixed_total of the padding", "missing",
                       "deferred validation needs a capacity"));
}

BOOST_AUTO_TEST_CASE(a_device_layout_forgets_its_static_policy) {
  const testing::test_stream stream;
  using late = device_layout<context_parallel<dynamic, any_sharding>>;
  const auto host_layout = make_layout(std::vector{5, 4}, padding{each_multiple_of<4>{}},
                                       context_parallel<2, striped>{});
  late layout = to_device(stream.executor(), host_layout);
  BOOST_TEST(layout.context_parallel().size() == 2);
  BOOST_TEST((layout.context_parallel().how() == any_sharding{striped{}}));
  const device_array<int> batch(std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 0});
  const device_array<int> row(12);
  pack(stream.executor(), layout, all_shards,
       field(batch_view<const int>(batch.data(), 2, 5), row_view<int>(row.data(), 12)));
  stream.wait();
  BOOST_TEST(row.values() == (std::vector<int>{1, 3, 5, 0, 6, 8, 2, 4, 0, 0, 7, 9}),
             boost::test_tools::per_element());
}
BOOST_AUTO_TEST_SUITE_END()
