// Log-likelihoods and their gradients against those of a reference system, on grids of
// context-parallel and tensor-parallel ranks.
#define BOOST_TEST_MODULE mpi_golden_nll
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <type_traits>

#include "support/golden_grid.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// The same loss as a user might write it on logits: the other way through the library, on which
/// rows with all columns are put together.
struct nll_of_logits {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;

  template <class Sequence>
  auto operator()(const Sequence& s) const {
    const double value = s.sum([&](offset_t t) { return -log_prob(s, t, label(s, t)); });
    return differentiable(value, [s](offset_t t, double* out) {
      for (offset_t v = 0; v < s.columns(); ++v) out[v] = s.weight(t) * std::exp(log_prob(s, t, v));
      out[label(s, t)] -= s.weight(t);
    });
  }

 private:
  static offset_t label(const auto& s, offset_t t) {
    return static_cast<offset_t>(s.value(input_ids, t));
  }
  static double log_prob(const auto& s, offset_t t, offset_t v) {
    double sum = 0;
    for (offset_t k = 0; k < s.columns(); ++k) sum += std::exp(s.logits(t)[k]);
    return s.logits(t)[v] - std::log(sum);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(log_likelihood) {
  on_every_grid("nll", 5, [](grid_checks& checks, const auto& c, const std::string& which) {
    using enum chosen_sharding::kind;
    checks.check<double>(c, which, nll{}, zigzag{}, chosen_sharding{contiguous_kind},
                         chosen_sharding{striped_kind}, chosen_sharding{row_kind});
  });
}

BOOST_AUTO_TEST_CASE(log_likelihood_of_logits) {
  on_every_grid("nll", 5, [](grid_checks& checks, const auto& c, const std::string& which) {
    for_each_sharding(
        [&](const auto& sharding) { checks.check<double>(c, which, nll_of_logits{}, sharding); });
  });
}
