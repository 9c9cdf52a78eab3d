// A language model with attention on one rank: it must give what an oracle gives that takes the
// sequences one by one, and no sequence may see another, nor padding.
#define BOOST_TEST_MODULE attention_model
#include "support/attention_model.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace {

using namespace seqpack;
using namespace seqpack::testing;

struct frame {
  findings found;
  self_communicator cp;
  self_communicator tp;
  attention_groups<self_communicator, self_communicator> groups{cp, tp};
  std::vector<tokens> sequences = attention_texts();
  offset_t width = width_for(sequences, 8);

  ~frame() { found.report(); }

  template <class Packing>
  void matches(const std::string& what, const Packing& packing) {
    const auto step = groups.step(make_batch(sequences, width), packing);
    check_log_probs(found, what, sequences, step);
    found.equal(step.counts.tokens, count_targets(sequences), what + ", targets");
    found.check(is_close(step.loss, total_nll(sequences) / count_targets(sequences)),
                what + ", loss");
  }

  /// Two packings of one type each, and none.
  template <class F>
  void for_each_packing(const F& f) {
    f("padded bounds", packed(padding{each_multiple_of<8>{}, total_multiple_of<64>{}}));
    f("real bounds, ghost", packed_with_real_bounds(padding{
                                each_multiple_of<4>{}, total_multiple_of<64>{}, ghost_tail{}}));
    f("not packed", not_packed());
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(every_packing_gives_what_the_oracle_gives, frame) {
  for_each_packing([&](const char* what, const auto& packing) { matches(what, packing); });
  matches("no padding", packed());
}

BOOST_FIXTURE_TEST_CASE(no_sequence_sees_another, frame) {
  for_each_packing([&](const char* what, const auto& packing) {
    check_isolation(found, what, groups, packing, width);
    check_neighbours(found, what, groups, packing, width);
  });
}

BOOST_FIXTURE_TEST_CASE(what_is_behind_a_sequence_is_never_seen, frame) {
  for_each_packing([&](const char* what, const auto& packing) {
    check_padding_content(found, what, groups, packing, sequences, width);
  });
  const not_packed documents(document_options{end_of_document, true, true, true});
  const auto rows = joined(document_rows());
  check_padding_content(found, "documents", groups, documents, rows, width_for(rows, 1) + 7);
}

BOOST_FIXTURE_TEST_CASE(document_options_do_what_they_say, frame) {
  check_document_options(
      found, "one rank", groups, [](const document_options& o) { return not_packed(o); }, 1);
}

BOOST_FIXTURE_TEST_CASE(documents_in_a_row_are_sequences_of_their_own, frame) {
  const not_packed documents(document_options{end_of_document, true, true, true});
  check_documents(found, "padded bounds", groups, documents,
                  packed(padding{each_multiple_of<8>{}, total_multiple_of<64>{}}), 1);
  check_documents(found, "no packing", groups, documents, not_packed(), 1);
}

// Without it the tests above would say little.
BOOST_FIXTURE_TEST_CASE(every_token_depends_on_every_one_before_it, frame) {
  const tokens text = to_tokens("rain and sun");
  const auto expected = oracle::log_probs(text);
  for (std::size_t changed = 0; changed + 1 < text.size(); ++changed) {
    tokens other = text;
    other[changed] = (other[changed] + 1) % 11;
    const auto probs = oracle::log_probs(other);
    for (std::size_t s = 0; s < expected.size(); ++s) {
      const bool differs = std::abs(probs[s] - expected[s]) > 1e-6L;
      // The one before it predicts another token.
      found.equal(differs, s + 1 >= changed, "log-probability " + std::to_string(s));
    }
  }
}
