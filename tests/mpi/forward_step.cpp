// The forward step on a grid of ranks: what one rank gets wrong is an error on all of them, before
// anything else is sent, and the next step works.
#define BOOST_TEST_MODULE mpi_forward_step
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/mpi.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

/// Context-parallel ranks in rows, tensor-parallel ones in columns: 2 by size / 2, or size by 1.
struct frame {
  mpi_communicator all = world();
  findings found = my_findings();
  offset_t me = all.rank().value;
  offset_t tp_size = all.size() % 2 == 0 ? 2 : 1;
  mpi_communicator tp = all.split(me / tp_size, me);
  mpi_communicator cp = all.split(me % tp_size, me);
  bool last = me == all.size() - 1;

  ~frame() { found.report(); }

  static masked_text example() {
    return {{3, 2}, 4, {1, 2, 3, 9, 4, 5, 9, 9}, {1, 1, 1, 1, 1, 1, 1, 1}, {1, 1}};
  }

  /// Columns of its own of the 8.
  struct sharded_model : table_model<> {
    column_range range;
    offset_t missing_rows = 0;
    template <class Input>
    model_output<double> operator()(const Input& input) {
      logits.clear();
      for (offset_t t = 0; t < input.ids.rows; ++t) {
        for (offset_t v = range.first; v < range.last; ++v) {
          logits.push_back(table_logit(*input.ids.at(t), v));
        }
      }
      return {{logits.data(), input.ids.rows - missing_rows, range.size()}, range};
    }
  };
  struct failing_model : sharded_model {
    bool fails = false;
    template <class Input>
    model_output<double> operator()(const Input& input) {
      if (fails) throw std::length_error("no memory left");
      return sharded_model::operator()(input);
    }
  };
  column_range my_columns() const {
    if (tp_size == 1) return column_range(8);
    return me % 2 == 0 ? column_range(0, 3, 8) : column_range(3, 8, 8);
  }

  auto setup(offset_t each = 16) {
    return forward_setup(
        packed(padding{each_multiple_of<>{each * cp.size()}}, context_parallel{cp.size()}),
        &masked_text::lengths, cp, tp);
  }

  auto step(sharded_model& model, const masked_text& text,
            forward_options options = {.global_valid_toks = 3, .global_valid_seqs = 2},
            offset_t each = 16) {
    const std::vector<masked_text> batches{text};
    auto next = batches.begin();
    no_timer timer;
    return forward_step(host, timer, next, model, nll{}, setup(each), options);
  }

  void works() {
    sharded_model model;
    model.range = my_columns();
    auto s = step(model, example());
    double expected = 0;
    for (const auto& [id, target] : {std::pair{1, 2}, {2, 3}, {4, 5}}) {
      double sum = 0;
      for (offset_t v = 0; v < 8; ++v) sum += std::exp(table_logit(id, v));
      expected += (std::log(sum) - table_logit(id, target)) / 3;
    }
    const double value = s.loss(s.output.rows).value() * static_cast<double>(cp.size());
    found.check(std::abs(value - expected) < 1e-13, "the loss of a step that works");
  }

  template <class Call>
  void all_refuse(const Call& call, const std::string& text, const std::string& what) {
    if (all.size() == 1) {
      found.throws<invalid_input>(call, text.substr(0, 4), what, true);
    } else {
      found.throws<collective_mismatch>(call, text, what);
    }
    works();
  }
  /// " on rank R", and the rank in the world where that is another number: how the last rank is
  /// called in its tensor-parallel group, or in the other one where that has one rank.
  std::string last_rank() const {
    const mpi_communicator& group = tp_size > 1 ? tp : cp;
    const std::string rank = " on rank " + std::to_string(group.size() - 1);
    return tp_size > 1 && all.size() > 2
               ? rank + " (world rank " + std::to_string(all.size() - 1) + ")"
               : rank;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_step_works, frame) {
  works();
}

BOOST_FIXTURE_TEST_CASE(a_length_that_does_not_fit, frame) {
  masked_text text = example();
  if (last) text.lengths[1] = 5;
  sharded_model model;
  model.range = my_columns();
  all_refuse(
      [&] { step(model, text); },
      "lengths[1]" + last_rank() + " is 5: a length must be at most 4, the width of the batch",
      "length");
}

BOOST_FIXTURE_TEST_CASE(layouts_that_differ, frame, *at_least(2)) {
  masked_text text = example();
  if (last) text.lengths = {3, 1};
  sharded_model model;
  model.range = my_columns();
  const auto call = [&] { step(model, text); };
  // Of two ranks the lower one is right.
  found.throws<collective_mismatch>(call, "layout hash" + last_rank() + " is 0x", "layouts", true);
  works();
}

BOOST_FIXTURE_TEST_CASE(a_temperature_of_zero, frame) {
  sharded_model model;
  model.range = my_columns();
  forward_options options{.global_valid_toks = 3};
  if (last) options.temperature = 0;
  all_refuse([&] { step(model, example(), options); },
             "temperature" + last_rank() + " is 0.000000: it must be finite and above 0",
             "temperature");
}

BOOST_FIXTURE_TEST_CASE(an_output_that_lacks_rows, frame) {
  sharded_model model;
  model.range = my_columns();
  model.missing_rows = last ? 1 : 0;
  all_refuse(
      [&] { step(model, example()); },
      "logits rows" + last_rank() + " is 31: it must be 32, the tokens of the layout in one shard",
      "output");
}

BOOST_FIXTURE_TEST_CASE(columns_that_leave_a_gap, frame, *an_even_number()) {
  sharded_model model;
  model.range = my_columns();
  if (last) model.range = {4, 8, 8};
  all_refuse([&] { step(model, example()); },
             "vocabulary columns" + last_rank() +
                 " is [4, 8) of 8: they must begin at 3, where the ranks before it end, of 8",
             "columns");
}

BOOST_FIXTURE_TEST_CASE(a_target_outside_of_the_vocabulary, frame) {
  masked_text text = example();
  if (last) text.ids[5] = 8;
  sharded_model model;
  model.range = my_columns();
  all_refuse([&] { step(model, text); },
             "input_ids[1][1]" + last_rank() + " is 8: a target must be from 0 to 7", "target");
}

BOOST_FIXTURE_TEST_CASE(an_iterator_that_fails, frame, *at_least(2)) {
  struct failing {
    using value_type = masked_text;
    using difference_type = std::ptrdiff_t;
    bool fails;
    masked_text operator*() const {
      if (fails) throw std::runtime_error("the file has ended");
      return example();
    }
    failing& operator++() { return *this; }
    void operator++(int) {}
  };
  failing next{last};
  sharded_model model;
  model.range = my_columns();
  no_timer timer;
  all_refuse(
      [&] { forward_step(host, timer, next, model, nll{}, setup(), {.global_valid_toks = 3}); },
      "forward_step" + last_rank() + " is refused: the file has ended", "iterator");
}

BOOST_FIXTURE_TEST_CASE(a_model_that_fails, frame, *at_least(2)) {
  failing_model model;
  model.range = my_columns();
  model.fails = last;
  try {
    const std::vector<masked_text> batches{example()};
    auto next = batches.begin();
    no_timer timer;
    forward_step(host, timer, next, model, nll{}, setup(), {.global_valid_toks = 3});
    found.check(false, "nothing was thrown");
  } catch (const collective_mismatch& e) {
    const std::string text = e.what();
    found.check(text == "output of forward_step" + last_rank() + " is refused: no memory left",
                text);
    bool nested = false;
    try {
      std::rethrow_if_nested(e);
    } catch (const std::length_error&) {
      nested = true;
    }
    found.equal(nested, last, "the rank that has thrown knows what");
  }
  works();
}

BOOST_FIXTURE_TEST_CASE(options_that_differ, frame, *at_least(2)) {
  sharded_model model;
  model.range = my_columns();
  forward_options options{.global_valid_toks = 3};
  if (last) options.pass = loss_pass::per_sequence;
  found.throws<collective_mismatch>(
      [&] { step(model, example(), options); },
      "hash of the options, sizes or order of the call" + last_rank() + " is ", "options", true);
  works();
}

BOOST_FIXTURE_TEST_CASE(a_gradient_that_does_not_fit, frame) {
  sharded_model model;
  model.range = my_columns();
  auto s = step(model, example());
  const matrix_view<double> wrong =
      last ? s.output.rows.part(0, s.output.rows.rows - 1) : s.output.rows;
  all_refuse([&] { s.loss(wrong); },
             "gradient rows" + last_rank() + " is 31: it must be 32, as the logits have",
             "gradient");
}

BOOST_FIXTURE_TEST_CASE(vocabularies_that_differ, frame,
                        *ranks_that("it must be 3 or more, and odd",
                                    [](int n) { return n > 2 && n % 2 == 1; })) {
  // Along the context-parallel ranks, where columns are not compared otherwise.
  sharded_model model;
  model.range = last ? column_range(9) : column_range(8);
  found.throws<collective_mismatch>(
      [&] { step(model, example()); },
      "hash of the options, sizes or order of the call" + last_rank() + " is ", "vocabulary", true);
  works();
}

BOOST_FIXTURE_TEST_CASE(losses_of_two_steps, frame, *at_least(2)) {
  const auto both = setup();
  const std::vector<masked_text> batches(2, example());
  auto next = batches.begin();
  sharded_model first_model;
  sharded_model second_model;
  first_model.range = second_model.range = my_columns();
  const forward_options options{.global_valid_toks = 3};
  auto first = forward_step(host, no_timer{}, next, first_model, nll{}, both, options);
  auto second = forward_step(host, no_timer{}, next, second_model, nll{}, both, options);
  found.throws<collective_mismatch>(
      [&] { last ? second.loss() : first.loss(); },
      "hash of the options, sizes or order of the call" + last_rank() + " is ",
      "losses in another order", true);
  found.equal(first.loss().value(), second.loss().value(), "in the same order");
  works();
}
