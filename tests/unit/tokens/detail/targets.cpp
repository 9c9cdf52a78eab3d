// The weights of targets and sequences, from the masks of a batch or without them.
#define BOOST_TEST_MODULE targets
#include "seqpack/tokens/detail/targets.hpp"

#include <boost/test/unit_test.hpp>

#include "support/train_batch.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(a_mask_is_a_weight_of_any_type) {
  const masked_text text{{3, 2}, 3, {4, 5, 6, 7, 8, -1}, {1, 0, 2, 1, 1, 9}, {0.25F, 1}};
  const auto fields = text.fields();
  const detail::document_rule off;
  BOOST_TEST(detail::token_weight(fields, off, 0, 0) == 0);  // nothing predicts it
  BOOST_TEST(detail::token_weight(fields, off, 0, 1) == 0);
  BOOST_TEST(detail::token_weight(fields, off, 0, 2) == 2);
  BOOST_TEST(detail::token_weight(fields, off, 1, 0) == 0);
  BOOST_TEST(detail::sample_weight(fields, 0) == 0.25);

  const detail::document_rule after_five{true, 5};
  BOOST_TEST(detail::token_weight(fields, after_five, 0, 2) == 0);
  BOOST_TEST(detail::token_weight(fields, after_five, 1, 1) == 1);
}

BOOST_AUTO_TEST_CASE(without_masks_everything_counts_but_token_0) {
  const plain_text text{{2}, 2, {4, 5}};
  const detail::document_rule off;
  BOOST_TEST(detail::token_weight(text.fields(), off, 0, 0) == 0);
  BOOST_TEST(detail::token_weight(text.fields(), off, 0, 1) == 1);
  BOOST_TEST(detail::sample_weight(text.fields(), 0) == 1);
}
