// Micro-batches of data-, context- and tensor-parallel ranks: every data-parallel rank has its own
// sequences, and some have fewer of them, and so empty micro-batches.
#define BOOST_TEST_MODULE mpi_micro_batches
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "seqpack/loss/count_valid.hpp"
#include "seqpack/loss/nll.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "seqpack/step/forward_step.hpp"
#include "seqpack/step/micro_batch.hpp"
#include "support/mpi.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using numbers = std::vector<offset_t>;

/// 1 2 3 | 4 5 | 6 | 7 1 2 6 | nothing | 3 3
masked_text example() {
  return {{3, 2, 1, 4, 0, 2},
          4,
          {1, 2, 3, 9, 4, 5, 9, 9, 6, 9, 9, 9, 7, 1, 2, 6, 9, 9, 9, 9, 3, 3, 9, 9},
          {1, 1, 1, 9, 1, 1, 9, 9, 1, 9, 9, 9, 1, 1, 0, 1, 9, 9, 9, 9, 1, 1, 9, 9},
          {1, 0.5F, 1, 2, 1, 0}};
}
constexpr global_counts whole_counts{6.5, 5.5};

double table_log_sum(std::int64_t id) {
  double sum = 0;
  for (offset_t v = 0; v < 8; ++v) sum += std::exp(table_logit(id, v));
  return std::log(sum);
}
/// Of the whole batch, by its definition.
double whole_loss() {
  const auto nll_of = [](std::int64_t id, std::int64_t target) {
    return table_log_sum(id) - table_logit(id, target);
  };
  return (nll_of(1, 2) + nll_of(2, 3) + 0.5 * nll_of(4, 5) + 2 * (nll_of(7, 1) + nll_of(2, 6))) /
         6.5;
}
/// With respect to the logit of column v of token (b, s).
double whole_gradient(const masked_text& text, offset_t b, offset_t s, offset_t v) {
  const auto at = [&](offset_t t) { return static_cast<std::size_t>(b * text.width + t); };
  if (s + 1 >= text.lengths[static_cast<std::size_t>(b)]) return 0;
  const double weight =
      text.token_masks[at(s + 1)] * double{text.sample_masks[static_cast<std::size_t>(b)]};
  const double p = std::exp(table_logit(text.ids[at(s)], v) - table_log_sum(text.ids[at(s)]));
  return weight * (p - (v == text.ids[at(s + 1)] ? 1 : 0)) / 6.5;
}

/// Every rank has three; the second one only one that is not empty, those after it none.
std::vector<numbers> rows_of(offset_t rank, offset_t ranks) {
  if (ranks == 1) return {{3, 0}, {}, {5, 4, 1, 2}};
  if (rank == 0) return {{3, 0}, {2}, {5, 4}};
  if (rank == 1) return {{}, {1}, {}};
  return {{}, {}, {}};
}

/// Columns of its own of the 8.
struct sharded_model : table_model<> {
  column_range range;
  template <class Input>
  model_output<double> operator()(const Input& input) {
    logits.clear();
    for (offset_t t = 0; t < input.ids.rows; ++t) {
      for (offset_t v = range.first; v < range.last; ++v) {
        logits.push_back(table_logit(*input.ids.at(t), v));
      }
    }
    return {{logits.data(), input.ids.rows, range.size()}, range};
  }
};

using any_context = context_parallel<dynamic, any_sharding>;

/// One way to divide the ranks.
struct grid_of_ranks {
  grid_of_ranks(mpi_communicator& all, offset_t cp_size, offset_t tp_size)
      : size(cp_size * tp_size),
        me(all.rank().value),
        tp(all.split(me / tp_size, me)),
        cp(all.split(me / size * tp_size + me % tp_size, me)),
        dp(all.split(me % size, me)) {}

  column_range columns() const {
    if (tp.size() == 1) return column_range(8);
    return tp.rank().value == 0 ? column_range(0, 3, 8) : column_range(3, 8, 8);
  }

  offset_t size;
  offset_t me;
  mpi_communicator tp;
  mpi_communicator cp;
  mpi_communicator dp;
};

template <class F>
void for_each_grid(const F& f) {
  mpi_communicator all = world();
  findings found = my_findings();
  for (const offset_t cp_size : {1, 2, 4}) {
    for (const offset_t tp_size : {1, 2}) {
      if (all.size() % (cp_size * tp_size) != 0) continue;
      grid_of_ranks grid(all, cp_size, tp_size);
      f(grid, found);
    }
  }
  found.report();
}

template <class Padding>
auto setup_of(grid_of_ranks& grid, const Padding& how, const any_sharding& sharding) {
  return forward_setup(packed(how, any_context{grid.cp.size(), sharding}), &masked_text::lengths,
                       grid.cp, grid.tp);
}

template <class Padding>
void check_plan(grid_of_ranks& grid, const Padding& how, findings& found) {
  const auto text = std::make_shared<const masked_text>(example());
  const micro_batches parts(text, plain_plan{rows_of(grid.dp.rank().value, grid.dp.size())});
  const auto counts = sum_counts(grid.dp, count_valid(host, parts.all(), &masked_text::lengths));
  found.equal(counts.tokens, whole_counts.tokens, "tokens");
  found.equal(counts.sequences, whole_counts.sequences, "sequences");

  for (const any_sharding sharding :
       {any_sharding{zigzag{}}, any_sharding{striped{}}, any_sharding{row_contiguous{}}}) {
    const auto setup = setup_of(grid, how, sharding);
    for (const auto pass : {loss_pass::fused, loss_pass::per_sequence}) {
      double mine = 0;
      for (auto next = parts.begin(); next != parts.end();) {
        sharded_model model;
        model.range = grid.columns();
        const forward_options options{.global_valid_toks = counts.tokens, .pass = pass};
        auto step = forward_step(host, no_timer{}, next, model, nll{}, setup, options);
        mine += step.loss(step.output.rows).value();
        const auto view = step.loss.layout().view();
        for (offset_t t = 0; t < step.output.rows.rows; ++t) {
          const token_ref token = view.token_at(shard{grid.cp.rank().value}, t);
          for (offset_t v = 0; v < model.range.size(); ++v) {
            const double wanted = token.real() ? whole_gradient(*text, view.sequence_in(token.slot),
                                                                token.index, model.range.first + v)
                                               : 0;
            found.check(std::abs(step.output.rows.at(t)[v] - wanted) < 1e-14, "gradient");
          }
        }
      }
      // Of all data-parallel ranks, each of whose context-parallel ranks has a part.
      double all = 0;
      grid.dp.all_reduce(&mine, &all, 1, reduction::sum);
      all *= static_cast<double>(grid.cp.size());
      found.check(std::abs(all - whole_loss()) < 1e-13, "loss " + std::to_string(all));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(plans_of_unequal_ranks_add_up_to_the_whole) {
  for_each_grid([](grid_of_ranks& grid, findings& found) {
    check_plan(grid, padding{each_multiple_of<>{2 * grid.cp.size()}}, found);
  });
}

BOOST_AUTO_TEST_CASE(a_fixed_total_that_is_absorbed) {
  for_each_grid([](grid_of_ranks& grid, findings& found) {
    check_plan(grid, padding{each_multiple_of<>{2 * grid.cp.size()}, fixed_total<>{32}}, found);
  });
}

BOOST_AUTO_TEST_CASE(orders_that_differ_are_refused_on_all_ranks, *at_least(2)) {
  for_each_grid([](grid_of_ranks& grid, findings& found) {
    if (grid.size == 1) return;
    const auto setup = setup_of(grid, padding{each_multiple_of<>{2 * grid.cp.size()}}, zigzag{});
    // Lengths 2 and 2: the layouts differ by the order alone.
    const bool last = grid.me % grid.size == grid.size - 1;
    const micro_batches parts(example(), plain_plan{{last ? numbers{5, 1} : numbers{1, 5}}});
    sharded_model model;
    model.range = grid.columns();
    auto next = parts.begin();
    found.throws<collective_mismatch>(
        [&] {
          forward_step(host, no_timer{}, next, model, nll{}, setup, {.global_valid_toks = 1});
        },
        "layout hash on rank ", "orders", true);
    const micro_batches empty(example(), plain_plan{{last ? numbers{} : numbers{1}}});
    auto at = empty.begin();
    found.throws<collective_mismatch>(
        [&] { forward_step(host, no_timer{}, at, model, nll{}, setup, {.global_valid_toks = 1}); },
        " on rank ", "an empty one", true);
    check_plan(grid, padding{each_multiple_of<>{2 * grid.cp.size()}}, found);
  });
}
