// Sizes at the ends of their ranges, addresses that no element has, and ids that a label cannot
// hold: refused with the caller's own numbers.
#define BOOST_TEST_MODULE limits
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/counting_communicator.hpp"
#include "support/refused.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr offset_t largest = std::numeric_limits<offset_t>::max();
constexpr offset_t smallest = std::numeric_limits<offset_t>::min();
constexpr offset_t two_to(int exponent) {
  return offset_t{1} << exponent;
}

/// An address within a buffer that no element of type T has.
template <class T>
T* beside(std::vector<T>& buffer, int bytes = 1) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(buffer.data()) + bytes);
}

/// Says that it is one of two ranks. Nothing that it is given to may communicate.
class one_of_two : public counting_communicator<> {
 public:
  offset_t size() const { return 2; }
  one_of_two split(std::optional<offset_t>, offset_t) { return one_of_two(); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(sizes_of_logits) {
  const auto refuse = [](offset_t rows, offset_t columns, offset_t stride, const char* entry,
                         offset_t value, const std::string& limit) {
    BOOST_CHECK_EXCEPTION(matrix_view<float>(nullptr, rows, columns, stride), invalid_input,
                          refused(entry, std::to_string(value), limit));
  };
  const std::string cap = "a size must be at most 281474976710656";
  refuse(2, 3, two_to(62), "row stride", two_to(62), cap);
  refuse(2, 3, two_to(48) + 1, "row stride", two_to(48) + 1, cap);
  refuse(2, 3, largest, "row stride", largest, cap);
  refuse(2, 3, smallest, "row stride", smallest, "it must be at least 3");
  refuse(two_to(48) + 1, 3, 3, "rows", two_to(48) + 1, cap);
  refuse(largest, 0, 0, "rows", largest, cap);
  refuse(smallest, 3, 3, "rows", smallest, "a size must be at least 0");
  refuse(2, two_to(48) + 1, two_to(62), "columns", two_to(48) + 1, cap);
  refuse(2, smallest, 3, "columns", smallest, "a size must be at least 0");
  BOOST_CHECK_EXCEPTION(matrix_view<float>(nullptr, two_to(13), 1, two_to(48)), invalid_input,
                        refused("rows * row stride", "8192 * 281474976710656",
                                "at most 18014398509481984 elements, 2^56 bytes"));
  BOOST_CHECK_EXCEPTION(matrix_view<float>(nullptr, two_to(48), two_to(48)), invalid_input,
                        refused("rows * row stride", "281474976710656 * 281474976710656",
                                "at most 18014398509481984 elements, 2^56 bytes"));
  // The largest that there are.
  const matrix_view<float> longest(nullptr, two_to(6), 1, two_to(48));
  BOOST_TEST(longest.touched().last - longest.touched().first ==
             static_cast<std::uintptr_t>((two_to(6) - 1) * two_to(48) + 1) * 4);
  BOOST_TEST(matrix_view<float>(nullptr, two_to(48), 0).rows == two_to(48));
  BOOST_TEST(matrix_view<char>(nullptr, 1, two_to(48)).columns == two_to(48));
}

BOOST_AUTO_TEST_CASE(sizes_of_a_vocabulary) {
  self_communicator one;
  std::vector<float> logits(2);
  const std::vector<std::int64_t> labels{ignored_label};
  const log_prob_state<float> state(host, 1);
  const auto call = [&](const column_range& columns) {
    label_log_probs(host, one, matrix_view<float>(logits.data(), 1, 2), columns, labels,
                    state.rows());
  };
  BOOST_CHECK_EXCEPTION(call({largest - 2, largest, largest}), invalid_input,
                        refused("vocabulary", std::to_string(largest), "at most 281474976710656"));
  BOOST_CHECK_EXCEPTION(call({smallest, largest, two_to(48)}), invalid_input,
                        refused("vocabulary columns", "[-9223372036854775808, 9223372036854775807)",
                                "they must be within [0, 281474976710656)"));
}

// A loss puts the rows of all ranks together.
BOOST_AUTO_TEST_CASE(rows_of_a_vocabulary_that_no_memory_holds) {
  const plain_text text{{2, 2}, 2, {1, 1, 1, 1}};
  self_communicator cp;
  one_of_two tp;
  std::vector<float> logits(two_to(4));
  const auto layout = make_layout(text.lengths, padding{total_multiple_of<>{two_to(20)}});
  const matrix_view<float> rows(logits.data(), two_to(20), 0, 0);
  BOOST_CHECK_EXCEPTION(
      evaluate_loss(host, layout, cp, tp, text, nll{}, rows, column_range(0, 0, two_to(48)),
                    {.counts = {2, 2}}),
      invalid_input,
      refused("tokens of the layout * vocabulary", "1048576 * 281474976710656", "2^56 bytes"));
  BOOST_TEST(tp.collectives == 0);
}

BOOST_AUTO_TEST_CASE(misaligned_addresses) {
  self_communicator one;
  std::vector<float> logits(9, 1), gradient(9), numbers(9), derivatives(4, 1);
  std::vector<std::int64_t> labels(3, 1);
  const log_prob_state<float> state(host, 2, true);
  const auto rows = [](float* data) { return matrix_view<float>(data, 2, 4); };
  const auto forward = [&](float* from, const std::int64_t* label,
                           const label_log_prob_rows<float>& out) {
    label_log_probs(host, one, rows(from), column_range(4), row_view(label, 2), out);
  };
  const auto backward = [&](float* derivative, float* to) {
    label_log_probs_backward(host, rows(logits.data()), column_range(4), row_view(labels.data(), 2),
                             state.rows(), row_view<const float>(derivative, 2), rows(to));
  };
  const std::string must = "its address must be a multiple of 4, the alignment of its elements";
  BOOST_CHECK_EXCEPTION(forward(beside(logits), labels.data(), state.rows()), invalid_input,
                        refused("logits", "misaligned by 1", must));
  BOOST_CHECK_EXCEPTION(
      forward(logits.data(), beside(labels, 4), state.rows()), invalid_input,
      refused("labels", "misaligned by 4", "its address must be a multiple of 8"));
  auto out = state.rows();
  out.entropy = row_view<float>(beside(numbers, 2), 2);
  BOOST_CHECK_EXCEPTION(forward(logits.data(), labels.data(), out), invalid_input,
                        refused("entropy", "misaligned by 2", must));
  out = state.rows();
  out.log_probs = row_view<float>(beside(numbers, 3), 2);
  BOOST_CHECK_EXCEPTION(forward(logits.data(), labels.data(), out), invalid_input,
                        refused("log_probs", "misaligned by 3", must));
  forward(logits.data(), labels.data(), state.rows());
  BOOST_CHECK_EXCEPTION(backward(beside(derivatives), gradient.data()), invalid_input,
                        refused("derivatives", "misaligned by 1", must));
  BOOST_CHECK_EXCEPTION(backward(derivatives.data(), beside(gradient)), invalid_input,
                        refused("gradient", "misaligned by 1", must));
  BOOST_CHECK_EXCEPTION(scale_logits(host, rows(beside(logits)), 2), invalid_input,
                        refused("logits", "misaligned by 1", must));
  BOOST_TEST((gradient == std::vector<float>(9, 0)));
  BOOST_TEST((logits == std::vector<float>(9, 1)));
}

namespace {

struct shifted_text {
  std::vector<int> lengths{2, 2};
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(5, 1);
  std::vector<float> masks = std::vector<float>(5, 1);
  std::vector<float> samples = std::vector<float>(3, 1);
  int ids_off = 0;
  int masks_off = 0;
  int samples_off = 0;

  template <class T>
  static const T* moved(const std::vector<T>& values, int bytes) {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(values.data()) + bytes);
  }
  auto fields() const {
    return field_list(
        token_field(input_ids, batch_view(moved(ids, ids_off), 2, 2)),
        token_field(token_mask, batch_view(moved(masks, masks_off), 2, 2)),
        sequence_field(sample_mask, row_view<const float>(moved(samples, samples_off), 2)));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(misaligned_fields_and_rows_of_a_loss) {
  self_communicator one;
  std::vector<double> logits(17, 1), gradient(17);
  const auto call = [&](const shifted_text& text, double* from, double* to) {
    evaluate_loss(host, make_layout(text.lengths), one, one, text, nll{},
                  matrix_view<double>(from, 4, 4), column_range(4), {.counts = {2, 2}},
                  matrix_view<double>(to, 4, 4));
  };
  const auto refuse = [&](const shifted_text& text, const char* entry, const char* value,
                          const char* must) {
    BOOST_CHECK_EXCEPTION(call(text, logits.data(), gradient.data()), invalid_input,
                          refused(entry, value, must));
  };
  refuse({.ids_off = 4}, "input_ids", "misaligned by 4", "a multiple of 8");
  refuse({.masks_off = 1}, "token_mask", "misaligned by 1", "a multiple of 4");
  refuse({.samples_off = 2}, "sample_mask", "misaligned by 2", "a multiple of 4");
  BOOST_CHECK_EXCEPTION(call({}, beside(logits, 4), gradient.data()), invalid_input,
                        refused("logits", "misaligned by 4", "a multiple of 8"));
  BOOST_CHECK_EXCEPTION(call({}, logits.data(), beside(gradient, 4)), invalid_input,
                        refused("gradient", "misaligned by 4", "a multiple of 8"));
  BOOST_TEST((gradient == std::vector<double>(17, 0)));
  call({}, logits.data(), gradient.data());
}

BOOST_AUTO_TEST_CASE(misaligned_tokens_of_a_batch) {
  self_communicator one;
  const auto layout = make_layout(std::vector{2});
  std::vector<int> ids(4, 1);
  std::vector<float> logits(8, 1), out(4, 7);
  const auto call = [&](const int* from, float* to) {
    next_token_logprobs(host, layout, one, one, batch_view(from, 1, 2),
                        matrix_view<float>(logits.data(), 2, 4), column_range(4),
                        batch_view<float>(to, 1, 1));
  };
  BOOST_CHECK_EXCEPTION(call(beside(ids), out.data()), invalid_input,
                        refused("ids", "misaligned by 1", "a multiple of 4"));
  BOOST_CHECK_EXCEPTION(call(ids.data(), beside(out)), invalid_input,
                        refused("log-probabilities", "misaligned by 1", "a multiple of 4"));
  BOOST_TEST((out == std::vector<float>(4, 7)));
}

// As a label they would be negative.
BOOST_AUTO_TEST_CASE(ids_that_a_label_cannot_hold) {
  struct wide_ids {
    std::vector<int> lengths{2};
    std::vector<std::uint64_t> ids{1, 18446744073709551516U};  // -100 as a label
    auto fields() const { return field_list(token_field(input_ids, batch_view(ids.data(), 1, 2))); }
  };
  const wide_ids text;
  self_communicator one;
  std::vector<float> logits(4, 1), out(1);
  const auto layout = make_layout(text.lengths);
  const matrix_view<float> rows(logits.data(), 2, 2);
  const auto refusal =
      refused("input_ids[0][1]", "18446744073709551516", "a target must be from 0 to 1");
  BOOST_CHECK_EXCEPTION(
      evaluate_loss(host, layout, one, one, text, nll{}, rows, column_range(2), {.counts = {1, 1}}),
      invalid_input, refusal);
  BOOST_CHECK_EXCEPTION(
      next_token_logprobs(host, layout, one, one, batch_view(text.ids.data(), 1, 2), rows,
                          column_range(2), batch_view<float>(out.data(), 1, 1)),
      invalid_input, refusal);
  // Where nothing can be refused beforehand it is no ignored label either: its row is not a number.
  const auto label = detail::counted_label<decltype(text.fields())>{text.fields(), {}, 1};
  BOOST_TEST(label(layout.view(), token_ref{0, 0, 2}) == -1);
}

BOOST_AUTO_TEST_CASE(document_positions_that_do_not_fit) {
  const auto layout = unpacked_layout(std::vector{200}, 200);
  std::vector<std::int64_t> starts(200);
  std::vector<std::int8_t> narrow(200, 7);
  const auto refuse = [&](const row_view<std::int64_t>& from, const char* value,
                          const std::string& must) {
    BOOST_CHECK_EXCEPTION(per_token(host, layout, shard{0}, document_position_ids(from, narrow)),
                          invalid_input, [&](const invalid_input& e) {
                            return e.value() == value &&
                                   e.requirement().find(must) != std::string::npos;
                          });
  };
  refuse({starts.data(), 1, 200}, "199", "the element type of the array holds at most 127");
  refuse({starts.data(), 2, 100}, "2", "it must be 1, the batch size of the layout");
  refuse({starts.data(), 1, 199}, "199", "it must be at least 200, the width of the batch");
  refuse({nullptr, 1, 200}, "null", "it must point to 200 elements");
  BOOST_TEST((narrow == std::vector<std::int8_t>(200, 7)));
}

BOOST_AUTO_TEST_CASE(starts_of_documents_of_rows_that_are_not_packed) {
  const std::vector<offset_t> order{1};
  const auto layout = make_layout(std::vector{3, 3}, padding{}, no_context_parallel{},
                                  {.order = slot_order(order)});
  const std::vector<int> ids{9, 9, 9, 9, 9, 1};
  std::vector<std::int64_t> starts(6, 7);
  document_starts(host, layout, batch_view(ids.data(), 2, 3), 9,
                  row_view<std::int64_t>(starts.data(), 2, 3));
  BOOST_TEST((starts == std::vector<std::int64_t>{0, 0, 0, 0, 1, 2}));
  BOOST_CHECK_EXCEPTION(document_starts(host, layout, batch_view<const int>(nullptr, 2, 3), 9,
                                        row_view<std::int64_t>(starts.data(), 2, 3)),
                        invalid_input, refused("ids", "null", "it must point to 6 elements"));
  BOOST_CHECK_EXCEPTION(document_starts(host, layout, batch_view(ids.data(), 2, 3, 2), 9,
                                        row_view<std::int64_t>(starts.data(), 2, 3)),
                        invalid_input, refused("ids payload", "2", "it must be 1"));
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_no_multiple_of_what_a_loss_takes_together) {
  struct preferences : plain_text {
    std::vector<double> reference = std::vector<double>(6);
    auto fields() const {
      return field_list(token_field(input_ids, batch_view(ids.data(), 3, 2)),
                        token_field(reference_logprobs, batch_view(reference.data(), 3, 2)));
    }
  } text;
  text.lengths = {2, 2, 2};
  text.ids.assign(6, 1);
  self_communicator one;
  std::vector<float> logits(12, 1);
  const matrix_view<float> rows(logits.data(), 6, 2);
  BOOST_CHECK_EXCEPTION(
      evaluate_loss(host, make_layout(text.lengths), one, one, text, dpo<>{}, rows, column_range(2),
                    {.counts = {3, 3}}, rows),
      invalid_input,
      refused("batch size", "3",
              "it must be a multiple of 2, the sequences that the loss takes together"));
  BOOST_TEST((logits == std::vector<float>(12, 1)));
}

BOOST_AUTO_TEST_CASE(replicated_columns_are_all_columns) {
  const plain_text text{{2}, 2, {1, 1}};
  self_communicator cp;
  one_of_two tp;
  std::vector<float> logits(6, 1);
  const matrix_view<float> rows(logits.data(), 2, 3);
  const auto call = [&](bool replicated) {
    evaluate_loss(host, make_layout(text.lengths), cp, tp, text, nll{}, rows, {0, 3, 8},
                  {.counts = {1, 1}, .replicated_columns = replicated}, rows);
  };
  BOOST_CHECK_EXCEPTION(call(true), invalid_input,
                        refused("vocabulary columns", "[0, 3)",
                                "a rank that shares them with nobody must hold all 8"));
  BOOST_TEST(tp.collectives == 0);
  BOOST_TEST((logits == std::vector<float>(6, 1)));
}
