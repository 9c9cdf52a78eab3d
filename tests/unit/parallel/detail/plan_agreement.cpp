// Agreement of threads on plans, and what ranks send each other for it.
#define BOOST_TEST_MODULE parallel_plan_agreement
#include "seqpack/parallel/detail/plan_agreement.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../../../../examples/extending/thread_engine.hpp"
#include "seqpack/comm/self.hpp"
#include "seqpack/parallel/agree_plan.hpp"
#include "support/findings.hpp"
#include "support/forged_group.hpp"
#include "support/plan_agreement_suite.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

const row_plan small({4, 2, 0, 1, 3}, {0, 2, 2, 5});

/// Changes one number of the k-th record only.
template <class T>
forged_group::change put_into(int record, std::size_t place, T value) {
  auto count = std::make_shared<int>(0);
  return [=](std::span<std::byte> bytes) {
    if ((*count)++ == record) std::memcpy(bytes.data() + place, &value, sizeof value);
  };
}
/// Changes numbers of the first record and of the second.
template <class A, class B>
forged_group::change put_into_two(std::size_t place, A value, std::size_t other, B next) {
  return [one = put_into(0, place, value),
          two = put_into(1, other, next)](std::span<std::byte> bytes) {
    one(bytes);
    two(bytes);
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_ranks_are_told_of_the_first_number_that_differs) {
  for (const offset_t ranks : {1, 2, 3, 5}) {
    const auto size = static_cast<std::size_t>(ranks);
    std::vector<findings> found(size, findings("of " + std::to_string(size) + ": "));
    thread_engine::run(
        static_cast<offset_t>(size), std::chrono::seconds(60), [&](callback_communicator& world) {
          check_plan_agreement(world, found[static_cast<std::size_t>(world.rank().value)]);
        });
    for (const findings& of_rank : found) of_rank.report();
  }
}

BOOST_AUTO_TEST_CASE(one_rank_agrees_with_itself) {
  self_communicator group;
  agree(group, small);
  agree(group, step_plan(small, 3), "a step");
  self_communicator none = group.split(std::nullopt, 0);
  BOOST_CHECK_EXCEPTION(agree(none, small), invalid_input,
                        refused("caller", "world rank 0", "it must be a member of the group"));
}

BOOST_AUTO_TEST_CASE(numbers_of_a_plan_have_names) {
  const row_plan plan({1, 0}, {0, 1, 2}, {{0, 0, 9}, {1, 0, 4}});
  const detail::plan_numbers numbers(plan);
  BOOST_TEST_REQUIRE(numbers.size() == 3 + 2 + 6);
  const std::vector<offset_t> expected{0, 1, 2, 1, 0, 0, 0, 9, 1, 0, 4};
  for (std::size_t k = 0; k < expected.size(); ++k) {
    BOOST_TEST(numbers[static_cast<offset_t>(k)] == expected[k]);
  }
  BOOST_TEST(numbers.name(2) == "bounds[2]");
  BOOST_TEST(numbers.name(3) == "sequences[0]");
  BOOST_TEST(numbers.name(5) == "sequence of piece 0");
  BOOST_TEST(numbers.name(9) == "first token of piece 1");
  BOOST_TEST(numbers.name(10) == "length of piece 1");
}

BOOST_AUTO_TEST_CASE(the_largest_records_fit_into_the_envelope) {
  detail::plan_record record;
  record.subject = std::string(detail::plan_record::longest_subject, 's');
  record.sizes = {max_tokens, max_tokens, max_tokens, max_tokens};
  record.hash = std::numeric_limits<std::uint64_t>::max();
  const auto back = detail::records::read<detail::plan_record>(detail::records::write(record));
  BOOST_TEST(back.subject == record.subject);
  BOOST_TEST((back.sizes == record.sizes));
  BOOST_TEST(back.hash == record.hash);
  detail::plan_excerpt excerpt;
  excerpt.values.back() = 7;
  BOOST_TEST(
      detail::records::read<detail::plan_excerpt>(detail::records::write(excerpt)).values.back() ==
      7U);
  self_communicator group;
  agree(group, small, std::string(500, 's'));
}

BOOST_AUTO_TEST_CASE(records_that_no_rank_can_have_sent) {
  // length of the subject 0, ranks 2, rows 10, sequences 18, pieces 26, hash 34
  const std::string limits = "it must be from 0 to " + std::to_string(max_tokens);
  forged_group endless(put_into(0, 0, std::uint16_t{128}));
  refuse([&] { agree(endless, small); },
         "subject of the agreement" + from_1 + "128 characters: it must have at most 127");
  const char* const names[] = {"number of ranks", "number of rows", "number of sequences",
                               "number of pieces"};
  for (std::size_t k = 0; k < 4; ++k) {
    forged_group group(put_into(0, 2 + 8 * k, std::int64_t{-1}));
    refuse([&] { agree(group, small); }, names[k] + from_1 + "-1: " + limits);
  }
}

BOOST_AUTO_TEST_CASE(any_number_may_be_what_another_rank_has) {
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  forged_group group(put_into_two(34, std::uint64_t{1}, 8 * 5, least));
  refuse(
      [&] { agree(group, small, ""); },
      "sequences[1] on rank 1 (world rank 3) is -9223372036854775808: it must be 2, as on rank 0");
}

BOOST_AUTO_TEST_CASE(hashes_that_differ_over_equal_numbers_are_told_as_they_are) {
  std::vector<offset_t> sequences(1000);
  const row_plan large = rows_of(sequences, 10);
  const row_plan* const plans[] = {&small, &large};
  for (const row_plan* const plan : plans) {
    forged_group group(put_into(0, 34, std::uint64_t{1}));
    BOOST_CHECK_EXCEPTION(agree(group, *plan), collective_mismatch, [](const auto& e) {
      BOOST_TEST(e.entry() == "hash on rank 1 (world rank 3)");
      BOOST_TEST(e.value() == "0x0000000000000001");
      return true;
    });
  }
  // A difference that the last exchange names beyond the numbers that are left is none.
  forged_group beyond(put_into_two(34, std::uint64_t{1}, 8 * 23, std::int64_t{5}));
  BOOST_CHECK_EXCEPTION(agree(beyond, small), collective_mismatch, [](const auto& e) {
    BOOST_TEST(e.entry() == "hash on rank 1 (world rank 3)");
    return true;
  });
}
