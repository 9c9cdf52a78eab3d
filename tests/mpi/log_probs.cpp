// Log-probabilities whose vocabulary is shared among ranks: the same as in one piece, however it is
// cut, and the same bits on all ranks.
#define BOOST_TEST_MODULE mpi_log_probs
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/counting_communicator.hpp"
#include "support/mpi.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr offset_t rows = 7;
constexpr offset_t vocabulary = 53;

/// [rows, vocabulary], the same on all ranks.
template <class T>
std::vector<T> all_logits() {
  std::mt19937 random(5);
  std::normal_distribution<double> value(0, 3);
  std::vector<T> logits;
  for (offset_t k = 0; k < rows * vocabulary; ++k) logits.push_back(static_cast<T>(value(random)));
  return logits;
}
const std::vector<std::int64_t> row_labels{0, 52, ignored_label, 17, 25, 26, 31};

/// Cuts of the vocabulary: even, all on one rank, most on the last, one column each.
std::vector<offset_t> bounds_of(const std::string& cut, offset_t ranks) {
  std::vector<offset_t> bounds{0};
  for (offset_t r = 1; r < ranks; ++r) {
    bounds.push_back(cut == "even"  ? vocabulary * r / ranks
                     : cut == "one" ? vocabulary
                     : cut == "end" ? 0
                                    : r);
  }
  bounds.push_back(vocabulary);
  return bounds;
}

struct frame {
  mpi_communicator tp = world();
  findings found = my_findings();
  offset_t me = tp.rank().value;
  offset_t size = tp.size();

  ~frame() { found.report(); }

  column_range columns_of(const std::string& cut) {
    const auto bounds = bounds_of(cut, size);
    const auto r = static_cast<std::size_t>(me);
    return {bounds[r], bounds[r + 1], vocabulary};
  }

  template <class T>
  std::vector<T> mine(const column_range& columns) {
    const auto all = all_logits<T>();
    std::vector<T> part;
    for (offset_t t = 0; t < rows; ++t) {
      for (offset_t v = columns.first; v < columns.last; ++v) {
        part.push_back(all[static_cast<std::size_t>(t * vocabulary + v)]);
      }
    }
    return part;
  }

  template <class T>
  void check(const std::string& cut, double tolerance) {
    using C = compute_type<T>;
    const log_prob_options options{.temperature = 0.75, .check_all_ranks = true};
    self_communicator alone;
    auto whole = all_logits<T>();
    const log_prob_state<C> expected(host, rows, true);
    const matrix_view<T> whole_view(whole.data(), rows, vocabulary);
    label_log_probs(host, alone, whole_view, column_range(vocabulary), row_labels, expected.rows(),
                    {.temperature = 0.75});

    const column_range columns = columns_of(cut);
    auto part = mine<T>(columns);
    const matrix_view<T> view(part.data(), rows, columns.size());
    const log_prob_state<C> state(host, rows, true);
    label_log_probs(host, tp, view, columns, row_labels, state.rows(), options);
    const auto near = [&](C a, C b, const std::string& what) {
      const double scale = 1 + std::abs(static_cast<double>(b));
      found.check(std::abs(static_cast<double>(a - b)) <= tolerance * scale, cut + ": " + what);
    };
    for (offset_t t = 0; t < rows; ++t) {
      near(*state.rows().log_probs.at(t), *expected.rows().log_probs.at(t), "log-probability");
      near(*state.rows().entropy.at(t), *expected.rows().entropy.at(t), "entropy");
    }
    // The same bits on all ranks: no difference between the largest and the smallest.
    std::vector<C> least(rows), most(rows);
    tp.all_reduce(static_cast<const C*>(state.rows().log_probs.data), least.data(), rows,
                  reduction::min);
    tp.all_reduce(static_cast<const C*>(state.rows().log_probs.data), most.data(), rows,
                  reduction::max);
    found.check(least == most, cut + ": the same bits");

    const std::vector<C> derivatives{1, -2, 3, 0, C(0.5), 4, -1};
    label_log_probs_backward(host, whole_view, column_range(vocabulary), row_labels,
                             expected.rows(), derivatives, whole_view, {.temperature = 0.75});
    label_log_probs_backward(host, view, columns, row_labels, state.rows(), derivatives, view,
                             options);
    for (offset_t t = 0; t < rows; ++t) {
      for (offset_t v = columns.first; v < columns.last; ++v) {
        near(static_cast<C>(view.at(t)[v - columns.first]), static_cast<C>(whole_view.at(t)[v]),
             "gradient");
      }
    }
  }

  void refuse_columns(const column_range& columns, const std::string& text) {
    std::vector<float> part(static_cast<std::size_t>(rows * columns.size()));
    const log_prob_state<float> state(host, rows);
    found.throws<collective_mismatch>(
        [&] {
          label_log_probs(host, tp, matrix_view<float>(part.data(), rows, columns.size()), columns,
                          row_labels, state.rows(), {.check_all_ranks = true});
        },
        text, "columns are refused");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(however_the_vocabulary_is_cut, frame) {
  for (const std::string cut : {"even", "one", "end", "single"}) {
    check<float>(cut, 3e-6);
    check<double>(cut, 1e-13);
  }
}

BOOST_FIXTURE_TEST_CASE(columns_that_are_not_the_vocabulary, frame, *at_least(2)) {
  // The last rank leaves one out, takes one twice, or knows of another vocabulary.
  const column_range mine = columns_of("even");
  const bool last = me == size - 1;
  const std::string on_last = "vocabulary columns on rank " + std::to_string(size - 1) + " is ";
  const offset_t first = bounds_of("even", size)[static_cast<std::size_t>(size - 1)];
  const auto text = [&](offset_t begin, offset_t end, offset_t total, const std::string& must) {
    return on_last + "[" + std::to_string(begin) + ", " + std::to_string(end) + ") of " +
           std::to_string(total) + ": " + must;
  };
  const std::string begins =
      "they must begin at " + std::to_string(first) + ", where the ranks before it end, of 53";
  refuse_columns(last ? column_range(first, 52, 53) : mine,
                 text(first, 52, 53, "the last rank must hold those up to 53"));
  refuse_columns(last ? column_range(first - 1, 53, 53) : mine, text(first - 1, 53, 53, begins));
  refuse_columns(last ? column_range(first, 54, 54) : mine, text(first, 54, 54, begins));
  check<double>("even", 1e-13);  // the group is usable
}

BOOST_FIXTURE_TEST_CASE(a_mistake_on_one_rank_is_an_error_on_all, frame) {
  const column_range columns = columns_of("even");
  auto part = mine<float>(columns);
  const log_prob_state<float> state(host, rows);
  auto wrong = row_labels;
  if (me == size - 1) wrong[3] = 53;
  const auto call = [&] {
    label_log_probs(host, tp, matrix_view<float>(part.data(), rows, columns.size()), columns, wrong,
                    state.rows(), {.check_all_ranks = true});
  };
  const std::string where = size == 1 ? "" : " on rank " + std::to_string(size - 1);
  found.throws<invalid_input>(
      call, "labels[3]" + where + " is 53: it must be from 0 to 52, or -100 for none",
      "a label outside of the vocabulary");
  check<double>("even", 1e-13);
}

// What is gathered would have another size there.
BOOST_FIXTURE_TEST_CASE(an_entropy_that_one_rank_alone_asks_for, frame) {
  const column_range columns = columns_of("even");
  auto part = mine<float>(columns);
  const log_prob_state<float> state(host, rows, me == 0);
  for (offset_t t = 0; t < rows; ++t) *state.rows().log_probs.at(t) = 77;
  const auto call = [&] {
    label_log_probs(host, tp, matrix_view<float>(part.data(), rows, columns.size()), columns,
                    row_labels, state.rows(), {.check_all_ranks = true});
  };
  if (size == 1) {
    call();
    found.check(*state.rows().entropy.at(0) > 0, "an entropy on the only rank");
  } else {
    found.throws<collective_mismatch>(call, "hash of the options, sizes or order of the call",
                                      "an entropy on one rank", true);
    found.check(*state.rows().log_probs.at(0) == 77, "nothing was written");
  }
  check<double>("even", 1e-13);  // the group is usable
}

BOOST_FIXTURE_TEST_CASE(a_vocabulary_that_is_larger_on_one_rank, frame) {
  const std::vector<int> ids(6, 1);
  const auto layout =
      make_layout(std::vector{3, 2}, padding{each_multiple_of<>{2 * size}}, context_parallel{size});
  self_communicator alone;
  std::vector<double> out(4, 7);
  const auto call = [&](offset_t columns) {
    std::vector<double> logits(static_cast<std::size_t>(layout.shard_tokens() * columns), 1);
    next_token_logprobs(host, layout, tp, alone, batch_view<const int>(ids.data(), 2, 3),
                        matrix_view<double>(logits.data(), layout.shard_tokens(), columns),
                        column_range(columns), batch_view<double>(out.data(), 2, 2),
                        {.check_all_ranks = true});
  };
  if (size > 1) {
    found.throws<collective_mismatch>([&] { call(me == size - 1 ? 5 : 4); },
                                      "hash of the options, sizes or order of the call",
                                      "a vocabulary of 4 and of 5", true);
    found.equal(out, std::vector<double>(4, 7), "nothing was written");
  }
  call(4);
  found.check(std::abs(out[0] + std::log(4.0)) < 1e-14, "the group is usable");
}

// In the batch, over a grid: what is wrong on one rank of one group is told to all of the other.
BOOST_FIXTURE_TEST_CASE(mistakes_in_the_batch_reach_the_whole_grid, frame, *an_even_number()) {
  mpi_communicator column = tp.split(me / 2, me);
  mpi_communicator row = tp.split(me % 2, me);
  const std::vector<int> ids(12, 1);
  const offset_t each = 8 * row.size();
  const auto layout = make_layout(std::vector{3, 2}, padding{each_multiple_of<>{each}},
                                  context_parallel{row.size()});
  const column_range columns = me % 2 == 0 ? column_range(0, 1, 4) : column_range(1, 4, 4);
  std::vector<double> logits(static_cast<std::size_t>(layout.shard_tokens() * columns.size()), 1);
  std::vector<double> out(6, 7);
  const auto call = [&](offset_t width, double temperature) {
    return next_token_logprobs(
        host, layout, row, column, batch_view<const int>(ids.data(), 2, width),
        matrix_view<double>(logits.data(), layout.shard_tokens(), columns.size()), columns,
        batch_view<double>(out.data(), 2, 3),
        {.temperature = temperature, .check_all_ranks = true});
  };
  const bool last = me == size - 1;
  found.throws<collective_mismatch>([&] { call(last ? 2 : 6, 1); }, "ids width on rank", "ids",
                                    true);
  found.throws<collective_mismatch>([&] { call(6, last ? -1 : 1); }, "temperature on rank",
                                    "temperature", true);
  found.equal(out, std::vector<double>(6, 7), "nothing was written");
  call(6, 1);
  const double log_prob = -std::log(4.0);
  found.check(
      std::abs(out[0] - log_prob) < 1e-14 && std::abs(out[3] - log_prob) < 1e-14 && out[2] == 0,
      "the group is usable");
}

BOOST_FIXTURE_TEST_CASE(one_collective_for_log_probabilities, frame) {
  const int expected = size > 1 ? 1 : 0;
  counting_communicator counted(world());
  const column_range columns = columns_of("even");
  auto part = mine<float>(columns);
  const matrix_view<float> view(part.data(), rows, columns.size());
  const log_prob_state<float> state(host, rows, true);
  label_log_probs(host, counted, view, columns, row_labels, state.rows());
  found.equal(counted.collectives, expected, "collectives of the forward pass");
  const std::vector<float> derivatives(rows, 1);
  label_log_probs_backward(host, view, columns, row_labels, state.rows(), derivatives, view);
  found.equal(counted.collectives, expected, "collectives with the backward pass");
}

BOOST_FIXTURE_TEST_CASE(one_collective_for_a_loss_over_each_group, frame) {
  const int expected = size > 1 ? 1 : 0;
  const plain_text text{{5, 3, 7}, 7, std::vector<std::int64_t>(21, 1)};
  // The ranks share the tokens, then the vocabulary.
  for (const bool share_tokens : {true, false}) {
    counting_communicator group(world());
    self_communicator alone;
    const offset_t cp = share_tokens ? size : 1;
    const auto layout =
        make_layout(text.lengths, padding{each_multiple_of<>{2 * size}}, context_parallel{cp});
    const column_range columns = share_tokens ? column_range(vocabulary) : columns_of("even");
    std::vector<double> logits(static_cast<std::size_t>(layout.shard_tokens() * columns.size()), 1);
    const matrix_view<double> view(logits.data(), layout.shard_tokens(), columns.size());
    const loss_options options{.counts = {12, 3}, .cp_normalize = false};
    const auto result =
        share_tokens
            ? evaluate_loss(host, layout, group, alone, text, nll{}, view, columns, options, view)
            : evaluate_loss(host, layout, alone, group, text, nll{}, view, columns, options, view);
    found.check(std::abs(result.value() - std::log(53.0)) < 1e-13, "the loss");
    found.equal(group.collectives, expected, "collectives of a loss and its gradient");
  }
}
