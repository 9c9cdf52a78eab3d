// The global counts of a batch, from its masks.
#define BOOST_TEST_MODULE count_valid
#include "seqpack/loss/count_valid.hpp"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

global_counts count(const masked_text& text, const document_options& documents = {}) {
  return count_valid(host, text, &masked_text::lengths, documents);
}

}  // namespace

BOOST_AUTO_TEST_CASE(position_0_and_what_lies_behind_a_length_never_count) {
  const masked_text text{{3, 2, 0, 1},
                         4,
                         std::vector<std::int64_t>(16, 1),
                         std::vector<std::uint8_t>(16, 1),
                         {1, 1, 1, 1}};
  BOOST_TEST((count(text) == global_counts{3, 4}));
}

BOOST_AUTO_TEST_CASE(weights_multiply) {
  const masked_text text{{3, 3}, 3, std::vector<std::int64_t>(6, 1), {9, 1, 2, 9, 3, 0}, {0.5F, 2}};
  // 0.5 * (1 + 2) + 2 * (3 + 0)
  BOOST_TEST((count(text) == global_counts{7.5, 2.5}));
}

BOOST_AUTO_TEST_CASE(a_sequence_that_does_not_count_brings_nothing) {
  const masked_text text{{3, 3}, 3, std::vector<std::int64_t>(6, 1), {1, 1, 1, 1, 1, 1}, {0, 1}};
  BOOST_TEST((count(text) == global_counts{2, 1}));
}

BOOST_AUTO_TEST_CASE(without_masks) {
  const plain_text text{{3, 1}, 3, std::vector<std::int64_t>(6, 1)};
  BOOST_TEST((count_valid(host, text, &plain_text::lengths) == global_counts{2, 2}));
}

BOOST_AUTO_TEST_CASE(empty_batches) {
  BOOST_TEST((count({}) == global_counts{0, 0}));
  BOOST_TEST((count({{0}, 2, {0, 0}, {1, 1}, {1}}) == global_counts{0, 1}));
}

BOOST_AUTO_TEST_CASE(the_first_token_of_a_document_may_be_left_out) {
  const masked_text text{{5}, 5, {7, 9, 7, 7, 9}, std::vector<std::uint8_t>(5, 1), {1}};
  BOOST_TEST((count(text) == global_counts{4, 1}));
  const document_options documents{.end_of_document = 9, .mask_end_of_document = true};
  BOOST_TEST((count(text, documents) == global_counts{3, 1}));
  BOOST_TEST(
      (count(text, {.end_of_document = 9, .reset_position_ids = true}) == global_counts{4, 1}));
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  masked_text text{{3}, 2, {1, 1}, {1, 1}, {1}};
  BOOST_CHECK_EXCEPTION(count(text), invalid_input, refused("input_ids width", "2", "at least 3"));
  text = {{2}, 2, {1, 1}, {1, 1}, {1, 1}};
  BOOST_CHECK_EXCEPTION(count(text), invalid_input, refused("sample_mask", "2", "it must be 1"));
  text = {{-1}, 2, {1, 1}, {1, 1}, {1}};
  BOOST_CHECK_EXCEPTION(count(text), invalid_input, refused("lengths[0]", "-1", "at least 0"));
}

namespace {

struct two_weights_each : masked_text {
  auto fields() const {
    return field_list(
        token_field(input_ids, table(ids)),
        sequence_field(sample_mask, row_view<const float>(sample_masks.data(), 2, 2)));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(one_value_per_sequence) {
  const two_weights_each text{{{1, 1}, 1, {1, 1}, {1, 1}, {1, 1, 1, 1}}};
  BOOST_CHECK_EXCEPTION(count_valid(host, text, &masked_text::lengths), invalid_input,
                        refused("sample_mask payload", "2", "it must be 1"));
}

BOOST_AUTO_TEST_CASE(the_sum_over_one_rank_is_its_own) {
  self_communicator group;
  BOOST_TEST((sum_counts(group, {7.5, 2.5}) == global_counts{7.5, 2.5}));
}
