// The model of docs/extending.md over threads as ranks: the loss is that of each sequence alone, for
// every number of context-parallel ranks.
#define BOOST_TEST_MODULE extending_model
#include "../../../examples/extending/model.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <exception>
#include <string>
#include <vector>

#include "../../../examples/extending/thread_engine.hpp"
#include "support/findings.hpp"
#include "support/train_batch.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

constexpr offset_t kinds = 7;

std::vector<float> some_table() {
  std::vector<float> table;
  for (int k = 0; k < kinds * kinds; ++k) table.push_back(std::sin(static_cast<float>(k * k)));
  return table;
}

/// 99 behind the sequences is no token.
plain_text some_text() {
  return {.lengths = {4, 1, 6, 0}, .width = 6, .ids = {1, 2, 3, 4, 99, 99, 5,  99, 99, 99, 99, 99,
                                                       6, 5, 4, 3, 2,  1,  99, 99, 99, 99, 99, 99}};
}

/// The sum over all targets, from the definition of the model.
double expected_loss() {
  const auto table = some_table();
  const plain_text text = some_text();
  double sum = 0;
  for (std::size_t b = 0; b < text.lengths.size(); ++b) {
    std::vector<double> logits(kinds, 0);
    for (std::size_t t = 0; t + 1 < static_cast<std::size_t>(text.lengths[b]); ++t) {
      const auto id = [&](std::size_t s) { return static_cast<std::size_t>(text.ids[b * 6 + s]); };
      double all = 0;
      for (std::size_t v = 0; v < kinds; ++v) {
        logits[v] += static_cast<double>(table[id(t) * kinds + v]);
        all += std::exp(logits[v] / static_cast<double>(t + 1));
      }
      sum += std::log(all) - logits[id(t + 1)] / static_cast<double>(t + 1);
    }
  }
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_sequence_does_not_notice_others_nor_the_ranks) {
  for (const std::size_t size : {1, 2, 4}) {
    std::vector<findings> found(size);
    const auto ranks = static_cast<offset_t>(size);
    thread_engine::run(ranks, std::chrono::seconds(60), [&](callback_communicator& world) {
      findings& mine = found[static_cast<std::size_t>(world.rank().value)];
      try {
        average_model model(world, some_table(), kinds);
        const std::array<plain_text, 1> batches{some_text()};
        auto next = batches.begin();
        self_communicator alone;
        const forward_setup setup(packed(padding{each_multiple_of<8>{}, total_multiple_of<32>{}},
                                         context_parallel{ranks}),
                                  &plain_text::lengths, world, alone);
        no_timer timer;
        auto step = forward_step(host, timer, next, model, nll{}, setup,
                                 {.global_valid_toks = 1, .cp_normalize = false});
        const double loss = step.loss().value();
        mine.check(std::abs(loss - expected_loss()) < 1e-5,
                   std::to_string(loss) + " on a rank of " + std::to_string(size));
      } catch (const std::exception& e) {
        mine.check(false, e.what());
      }
    });
    for (const findings& of_rank : found) of_rank.report();
  }
}
