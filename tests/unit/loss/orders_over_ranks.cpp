// Losses of layouts with an order over context- and tensor-parallel ranks, which are threads: every
// rank returns what one rank alone does, and has its own rows and columns of the gradient.
#define BOOST_TEST_MODULE orders_over_ranks
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "../../../examples/extending/thread_engine.hpp"
#include "seqpack/comm/self.hpp"
#include "seqpack/loss/dpo.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/nll.hpp"
#include "seqpack/policy/any_sharding.hpp"
#include "support/findings.hpp"
#include "support/loss_oracle.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

constexpr global_counts counts{.tokens = 7.5, .sequences = 3.25};
using any_context = context_parallel<dynamic, any_sharding>;
using layout_type = packed_layout<any_context>;

/// The products of neighbouring outputs, over all columns.
struct neighbours {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  static constexpr std::size_t sequences = 2;
  static constexpr bool last_row = true;
  using metrics = no_metrics;

  template <class Sequence>
  auto operator()(const Sequence& a, const Sequence& b) const {
    return differentiable(total(a) + 2 * total(b), derivative(a, 1), derivative(b, 2));
  }
  static double total(const auto& s) {
    double last = 0;
    for (offset_t v = 0; s.length() > 0 && v < s.columns(); ++v) last += s.logits(s.length())[v];
    return last + s.sum([&](offset_t t) {
      double sum = 0;
      for (offset_t v = 1; v < s.columns(); ++v) sum += s.logits(t)[v] * s.logits(t)[v - 1];
      return sum;
    });
  }
  static auto derivative(const auto& s, double factor) {
    return [s, factor](offset_t t, double* out) {
      for (offset_t v = 0; v < s.columns(); ++v) {
        const double before = v > 0 ? s.logits(t)[v - 1] : 0;
        const double behind = v + 1 < s.columns() ? s.logits(t)[v + 1] : 0;
        out[v] = factor * (t == s.length() ? 1 : s.weight(t) * (before + behind));
      }
    };
  }
};

/// The loss of a rank, and its gradient for each of its tokens and columns: [B * width][columns], NaN
/// where it has none.
struct outcome {
  double value = 0;
  std::vector<double> metrics;
  std::vector<double> gradient;
  bool rest_is_zero = true;
};

template <class CP, class TP, class L>
outcome evaluate(const loss_sample& c, const layout_type& layout, CP& cp, TP& tp, const L& loss,
                 loss_pass pass, const column_range& columns) {
  const auto view = layout.view();
  const shard mine{cp.rank().value};
  const double nan = std::nan("");
  std::vector<double> rows(static_cast<std::size_t>(view.shard_tokens() * columns.size()), nan);
  const matrix_view<double> logits(rows.data(), view.shard_tokens(), columns.size());
  const auto at = [&](const token_ref& token) {
    return c.at(static_cast<int>(view.sequence_in(token.slot)), static_cast<int>(token.index));
  };
  for (offset_t t = 0; t < logits.rows; ++t) {
    const token_ref token = view.token_at(mine, t);
    if (!token.real()) continue;
    for (offset_t v = 0; v < columns.size(); ++v) {
      logits.at(t)[v] =
          static_cast<double>(c.outputs[at(token)][static_cast<std::size_t>(columns.first + v)]);
    }
  }
  // In place, so that nothing is overwritten before it has been read.
  const auto result =
      evaluate_loss(host, layout, cp, tp, c, loss, logits, columns,
                    {.counts = counts, .temperature = c.temperature, .pass = pass}, logits);
  outcome found{result.value() * static_cast<double>(cp.size()), {}, {}, true};
  result.metrics().for_each([&](auto, double x) { found.metrics.push_back(x); });
  found.gradient.assign(c.outputs.size() * static_cast<std::size_t>(c.columns), nan);
  for (offset_t t = 0; t < logits.rows; ++t) {
    const token_ref token = view.token_at(mine, t);
    for (offset_t v = 0; v < columns.size(); ++v) {
      const double d = logits.at(t)[v];
      if (!token.real()) {
        found.rest_is_zero = found.rest_is_zero && d == 0;
      } else {
        found.gradient[at(token) * static_cast<std::size_t>(c.columns) +
                       static_cast<std::size_t>(columns.first + v)] = d;
      }
    }
  }
  return found;
}

bool near(double found, double wanted) {
  return std::abs(found - wanted) <= 1e-12 * (1 + std::abs(wanted));
}

void compare(const outcome& found, const outcome& wanted, findings& mine, const std::string& what) {
  mine.check(near(found.value, wanted.value), what + ": value");
  mine.check(found.rest_is_zero, what + ": the gradient of padding");
  for (std::size_t k = 0; k < wanted.metrics.size(); ++k) {
    mine.check(near(found.metrics[k], wanted.metrics[k]), what + ": a metric");
  }
  for (std::size_t k = 0; k < found.gradient.size(); ++k) {
    if (std::isnan(found.gradient[k])) continue;  // another rank's
    if (!near(found.gradient[k], wanted.gradient[k])) {
      mine.equal(found.gradient[k], wanted.gradient[k], what + ": gradient " + std::to_string(k));
    }
  }
}

template <class L>
void check(const L& loss, int columns, unsigned seed) {
  std::mt19937 random(seed);
  const loss_sample c = random_sample(random, 6, columns, 1.3);
  const std::vector<std::vector<offset_t>> orders{{5, 0, 4, 1}, {3, 1, 5, 0, 2, 4}, {2, 3}, {}};
  const any_sharding shardings[] = {zigzag{}, contiguous{}, striped{}, row_contiguous{}};
  const std::array<std::array<offset_t, 2>, 4> grids{{{2, 1}, {3, 1}, {1, 2}, {2, 2}}};
  for (const auto& [cp_size, tp_size] : grids) {
    std::vector<findings> found;
    for (offset_t r = 0; r < cp_size * tp_size; ++r) {
      found.emplace_back("rank " + std::to_string(r) + " of " + std::to_string(cp_size) + " x " +
                         std::to_string(tp_size) + ": ");
    }
    thread_engine::run(
        cp_size * tp_size, std::chrono::seconds(60), [&](callback_communicator& all) {
          const offset_t me = all.rank().value;
          findings& mine = found[static_cast<std::size_t>(me)];
          try {
            callback_communicator tp = all.split(me / tp_size, me);
            callback_communicator cp = all.split(me % tp_size, me);
            const column_range own = tp_size == 1  ? column_range(columns)
                                     : me % 2 == 0 ? column_range(0, 1, columns)
                                                   : column_range(1, columns, columns);
            for (const any_sharding& how : shardings) {
              // Uneven shares of a sequence, also none, where the row is cut.
              const offset_t each = how.kind == sharding_kind::row_contiguous ? 1 : 2 * cp_size;
              for (const auto& order : orders) {
                const padding tailed{each_multiple_of<>{each}, total_multiple_of<>{8 * cp_size},
                                     ghost_tail{}};
                const layout_type layout =
                    make_layout(c.lengths, tailed, any_context{cp_size, how}, {.order = order});
                const layout_type whole =
                    make_layout(c.lengths, no_padding{}, any_context{1, how}, {.order = order});
                self_communicator one;
                const outcome wanted =
                    evaluate(c, whole, one, one, loss, loss_pass::fused, column_range(columns));
                for (const auto pass : {loss_pass::fused, loss_pass::per_sequence}) {
                  compare(evaluate(c, layout, cp, tp, loss, pass, own), wanted, mine,
                          pass == loss_pass::fused ? "fused" : "per sequence");
                }
              }
            }
          } catch (const std::exception& e) {
            mine.check(false, e.what());
          }
        });
    for (const findings& of_rank : found) of_rank.report();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(log_likelihood) {
  check(nll{}, 4, 1);
}
BOOST_AUTO_TEST_CASE(pairs) {
  check(dpo<>({.beta = 0.8, .sft_weight = 0.5}), 4, 2);
}
BOOST_AUTO_TEST_CASE(pairs_of_a_loss_on_logits) {
  check(neighbours{}, 3, 3);
}
