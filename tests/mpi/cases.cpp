// Failures that broadcasting code in production has had, each with the numbers of the case.
#define BOOST_TEST_MODULE mpi_cases
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/subgroup.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/parallel/agree.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"
#include "support/mpi.hpp"
#include "support/strided_span.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// The bits of a float16.
struct float16 {
  std::uint16_t bits;
};

/// The call fails on all ranks with this text, and the group is usable afterwards.
template <class Call>
void check_refused(mpi_communicator& group, const std::string& text, Call&& call) {
  BOOST_CHECK_EXCEPTION(call(), collective_mismatch, [&](const collective_mismatch& e) {
    BOOST_TEST(e.what() == text);
    return true;
  });
  std::int32_t number = group.rank().value == 0 ? 17 : 0;
  broadcast_tensor(tensor_view<std::int32_t>(&number, {1}), group_rank{0}, group);
  BOOST_TEST(number == 17);
}

}  // namespace

template <>
struct seqpack::element_traits<float16> {
  static constexpr std::string_view name() { return "float16"; }
};

BOOST_AUTO_TEST_CASE(case_64_a_column_of_a_matrix_is_refused_on_all_ranks) {
  auto group = world();
  std::vector<float> matrix{1, 2, 3, 4};
  tensor_view<float> mine(matrix.data(), {2});
  if (group.rank().value == 0) mine.strides = {2};
  check_refused(group,
                "tensor on rank 0 is [2] with strides that leave gaps: it must be contiguous, its "
                "last dimension fastest",
                [&] { broadcast_tensor(mine, group_rank{0}, group); });
  BOOST_TEST(matrix == (std::vector<float>{1, 2, 3, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(case_65_a_transposed_source_is_refused_on_all_ranks) {
  auto group = world();
  std::vector<float> matrix(16, 1.0f);
  tensor_view<float> mine(matrix.data(), {4, 4});
  if (group.rank().value == 0) mine.strides = {1, 4};
  check_refused(group,
                "tensor on rank 0 is [4, 4] with strides that leave gaps: it must be contiguous, "
                "its last dimension fastest",
                [&] { broadcast_tensor(mine, group_rank{0}, group); });
}

BOOST_AUTO_TEST_CASE(case_66_float16_against_float32, *at_least(2)) {
  auto group = world();
  std::vector<float16> source(4);
  std::vector<float> target(4, 5.0f);
  std::string others;
  for (int r = 1; r < world_size(); ++r) others += (r > 1 ? ", " : "") + std::to_string(r);
  if (world_size() > 2) {
    others = "; refused on " + std::to_string(world_size() - 1) + " ranks: " + others;
  } else {
    others.clear();
  }
  check_refused(group,
                "element type on rank 1 is float32: it must be float16, the element type on the "
                "root, rank 0" +
                    others,
                [&] {
                  if (group.rank().value == 0) {
                    broadcast_tensor(tensor_view(source), group_rank{0}, group);
                  } else {
                    broadcast_tensor(tensor_view(target), group_rank{0}, group);
                  }
                });
  BOOST_TEST(target == std::vector<float>(4, 5.0f), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(flags_and_narrow_floats_travel) {
  auto group = world();
  const bool is_root = my_world_rank() == 0;
  std::array<bool, 3> flags{is_root, false, is_root};
  broadcast_tensor(flags, group_rank{0}, group);
  BOOST_TEST((flags == std::array{true, false, true}));
  std::array<float16, 2> halves{};
  if (is_root) halves = {float16{0x3C00}, float16{0xC000}};
  broadcast_tensor(halves, group_rank{0}, group);
  BOOST_TEST(halves[0].bits == 0x3C00);
  BOOST_TEST(halves[1].bits == 0xC000);
  const any_tensor_view mine(halves.data(), element_type("float16", 2), {2});
  const auto any =
      broadcast_tensor(is_root ? std::optional(mine) : std::nullopt, group_rank{0}, group);
  BOOST_TEST(any.as<float16>().elements()[1].bits == 0xC000);
}

BOOST_AUTO_TEST_CASE(case_68_float32_against_int64, *exactly(2)) {
  auto group = world();
  std::vector<float> floats(10, 1.0f);
  std::vector<std::int64_t> integers(10, 9);
  check_refused(
      group,
      "element type on rank 1 is int64: it must be float32, the element type on the root, "
      "rank 0",
      [&] {
        if (group.rank().value == 0) {
          broadcast_tensor(tensor_view(floats), group_rank{0}, group);
        } else {
          broadcast_tensor(tensor_view(integers), group_rank{0}, group);
        }
      });
  BOOST_TEST(integers == std::vector<std::int64_t>(10, 9), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(case_69_many_numbers_against_few, *at_least(2)) {
  auto group = world();
  const bool few = group.rank().value == group.size() - 1;
  std::vector<float> numbers(few ? 64 : 24084544, few ? 3.0f : 1.0f);
  check_refused(group,
                "shape on rank " + std::to_string(world_size() - 1) +
                    " is [64]: it must be [24084544], the shape on the root, rank 0",
                [&] { broadcast_tensor(tensor_view(numbers), group_rank{0}, group); });
  if (few) {
    BOOST_TEST(numbers == std::vector<float>(64, 3.0f), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(case_71_a_null_tensor_on_the_source) {
  auto group = world();
  std::vector<float> numbers(4, 2.0f);
  check_refused(group, "data on rank 0 is null: it must point to 4 elements", [&] {
    broadcast_tensor(tensor_view<float>(group.rank().value == 0 ? nullptr : numbers.data(), {4}),
                     group_rank{0}, group);
  });
}

BOOST_AUTO_TEST_CASE(case_72_callers_that_are_no_members_raise_at_once, *exactly(4)) {
  auto all = world();
  auto group = subgroup(all, {{2}, {3}});
  const float me = static_cast<float>(my_world_rank());
  std::vector<float> numbers(2, me);
  if (my_world_rank() < 2) {
    // Only these two call: were it not at once, nobody would answer.
    BOOST_CHECK_EXCEPTION(broadcast_tensor(tensor_view(numbers), world_rank{2}, group),
                          invalid_input, [](const invalid_input& e) {
                            return std::string(e.what()) ==
                                   "caller is world rank " + std::to_string(my_world_rank()) +
                                       ": it must be a member of the group {2, 3}";
                          });
  }
  BOOST_TEST(numbers == std::vector<float>(2, me), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(case_73_a_group_of_one_that_is_not_rank_0, *at_least(2)) {
  auto all = world();
  auto group = subgroup(all, {{1}});
  if (!group.is_member()) return;
  std::vector<float> ones(3, 1.0f);
  broadcast_tensor(tensor_view(ones), world_rank{1}, group);
  BOOST_TEST(ones == std::vector<float>(3, 1.0f), boost::test_tools::per_element());
  const auto received = broadcast_tensor(tensor_view(ones), group_rank{0}, group);
  BOOST_TEST(received.data() == ones.data());
}

BOOST_AUTO_TEST_CASE(case_74_the_root_is_a_rank_of_the_group, *at_least(4)) {
  auto all = world();
  auto group = subgroup(all, {{1}, {3}});
  if (!group.is_member()) return;
  for (const bool of_the_world : {false, true}) {
    int number = my_world_rank() * 10;
    const tensor_view<int> mine(&number, {1});
    if (of_the_world) {
      broadcast_tensor(mine, world_rank{3}, group);
    } else {
      broadcast_tensor(mine, group_rank{1}, group);
    }
    BOOST_TEST(number == 30);
  }
}

BOOST_AUTO_TEST_CASE(case_75_every_pipeline_stage_has_the_same_packed_parameters, *exactly(8)) {
  // 4 stages of 2 tensor-parallel ranks; only the first rank has the batch.
  auto all = world();
  std::vector<std::int32_t> lengths;
  std::optional<tensor_view<std::int32_t>> mine;
  if (my_world_rank() == 0) {
    lengths = {5, 3, 8};
    mine = tensor_view(lengths);
  }
  const auto received = broadcast_tensor<std::int32_t>(mine, group_rank{0}, all);
  const auto layout = make_layout(received.elements(), padding{each_multiple_of<4>{}});
  agree(all, layout);
  std::vector<std::int32_t> seq_idx(static_cast<std::size_t>(layout.total_tokens()));
  std::vector<std::int32_t> of_a_shard(layout.cu_seqlens().size());
  const auto params =
      make_packed_seq_params(host, layout, std::span(seq_idx), std::span(of_a_shard));
  const auto& cu = params.cu_seqlens_q;
  BOOST_TEST(
      std::vector<std::int32_t>(cu.begin(), cu.end()) == (std::vector<std::int32_t>{0, 8, 12, 20}),
      boost::test_tools::per_element());

  // Stage 1, tensor-parallel rank 1 has lost them.
  const auto lost = make_layout(std::vector<std::int32_t>{});
  const auto call = [&] {
    my_world_rank() == 3 ? agree(all, lost, "the packed row")
                         : agree(all, layout, "the packed row");
  };
  BOOST_CHECK_EXCEPTION(call(), collective_mismatch, [](const collective_mismatch& e) {
    BOOST_TEST(e.what() ==
               "batch size of the packed row on rank 3 is 0: it must be 3, as on rank 0");
    return true;
  });
  agree(all, layout);
}
