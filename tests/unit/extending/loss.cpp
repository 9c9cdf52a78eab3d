// The loss of docs/extending.md against its formula in long double.
#define BOOST_TEST_MODULE extending_loss
#include "../../../examples/extending/loss.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "support/derivatives.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_AUTO_TEST_CASE(conforms) {
  for_each_sample(900, 5, [](const loss_sample& sample) {
    check_loss(sample, margin_loss{.margin = 1.25}, [](const loss_sample& c) {
      loss_value result;
      real& in_order = result.metrics["pairs_in_order"];
      const real pairs = real{counts.sequences} / 2;
      for (int b = 0; b < c.batch(); b += 2) {
        const auto mean = [&](int k) {
          return c.sum(k, [&](int t) { return c.logp(k, t); }) / c.mean_divisor(k);
        };
        const real ahead = mean(b) - mean(b + 1);
        const real missing = std::max(real{0}, real{1.25} - ahead);
        result.value += c.sample_weight(b) * missing * missing / pairs;
        in_order += c.sample_weight(b) * (ahead > 0 ? 1 : 0) / pairs;
      }
      return result;
    });
  });
}
