// Training: forward steps, gradients, and what the ranks add up.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <seqpack/seqpack.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "curve.hpp"
#include "grid.hpp"
#include "model.hpp"
#include "options.hpp"
#include "report.hpp"

namespace train_text {

/// Takes a model through batches, packed or not, as the setup says.
template <seqpack::executor E, class Model, class Setup, seqpack::communicator C>
class trainer {
 public:
  /// \param replicas the ranks whose losses and gradients add up; must outlive the object, as the
  /// model and the groups of the setup
  trainer(const E& where, Model& model, Setup setup, C& replicas)
      : where_(where), model_(model), setup_(std::move(setup)), replicas_(replicas) {}

  /// The loss of a batch, in nats per byte. **Collective** over all ranks.
  template <class MicroBatches>
  double loss(const global_batch<MicroBatches>& batch) {
    return over_micro_batches(batch, [](auto& step) { return step.loss().value(); });
  }

  /// The loss, and its gradient added to the table's: this rank's share of it. **Collective** over
  /// all ranks.
  template <class MicroBatches>
  double loss_and_gradient(const global_batch<MicroBatches>& batch) {
    return over_micro_batches(batch, [&](auto& step) {
      // In place: the gradient replaces the logits.
      const auto result = step.loss(step.output.rows);
      model_.backward(step.inputs.input(), step.output.rows);
      return result.value();
    });
  }

  /// Packed tokens, padding included, and real ones, of this rank's data-parallel part of a batch.
  template <class MicroBatches>
  std::pair<offset_t, offset_t> count_tokens(const global_batch<MicroBatches>& batch) const {
    std::pair<offset_t, offset_t> counts{0, 0};
    for (const auto& b : batch.micro_batches) {
      const auto layout = layout_of(b);
      counts.first += layout.total_tokens();
      counts.second += layout.real_tokens();
    }
    return counts;
  }

 private:
  auto layout_of(const text_batch& b) const {
    return setup_.packing().layout_of(b.lengths, b.width);
  }
  auto layout_of(const seqpack::micro_batch<text_batch>& b) const {
    return setup_.packing().layout_of(b->lengths, b->width, b.order());
  }

  /// The losses are divided by the counts of the global batch, and with cp_normalize, the default,
  /// each context-parallel rank returns its share of the whole, with the exact gradient. So the sum
  /// over micro-batches and replicas is the loss, whatever the grid is. Tensor-parallel ranks have
  /// the same loss, and the gradient of their own columns: nothing is added up over them.
  template <class MicroBatches, class Evaluate>
  double over_micro_batches(const global_batch<MicroBatches>& batch, const Evaluate& evaluate) {
    double loss = 0;
    auto next = batch.micro_batches.begin();
    while (next != batch.micro_batches.end()) {
      auto step = seqpack::forward_step(
          where_, timer_, next, model_, seqpack::nll{}, setup_,
          {.global_valid_toks = batch.counts.tokens, .global_valid_seqs = batch.counts.sequences});
      loss += evaluate(step);
    }
    return sum_over(replicas_, loss);
  }

  E where_;
  Model& model_;
  Setup setup_;
  C& replicas_;
  seqpack::no_timer timer_;
};

/// The loss of several batches together, weighted by their tokens. **Collective** over all ranks.
template <class Trainer, class Batch>
double mean_loss(Trainer& trainer, const std::vector<Batch>& batches) {
  double sum = 0;
  double tokens = 0;
  for (const Batch& batch : batches) {
    sum += trainer.loss(batch) * batch.counts.tokens;
    tokens += batch.counts.tokens;
  }
  return tokens > 0 ? sum / tokens : 0;
}

/// Whether a step is one to validate before: the first ones, ever fewer, then one in each epoch.
constexpr bool is_milestone(std::int64_t step, std::int64_t per_epoch) {
  const bool power_of_two = (step & (step - 1)) == 0;
  return step % per_epoch == 0 || (step < per_epoch && power_of_two);
}

/// Trains, and validates at milestones and at the end. **Collective** over all ranks.
/// \param progress called with the steps that are over and those that there will be
template <seqpack::executor E, class Trainer, seqpack::communicator C, class Batch, class Progress>
loss_curve train(const E& where, Trainer& trainer, C& replicas, const table& weights,
                 const std::vector<Batch>& training, const std::vector<Batch>& validation,
                 const options& o, const Progress& progress) {
  const auto per_epoch = static_cast<std::int64_t>(training.size());
  const std::int64_t all = o.epochs * per_epoch;
  const std::int64_t steps = o.steps > 0 ? std::min(o.steps, all) : all;
  adam optimizer(where, weights);
  loss_curve curve;
  for (std::int64_t step = 0; step <= steps; ++step) {
    curve_point point{.step = step, .epoch = step / per_epoch, .training = {}, .validation = {}};
    if (step == steps || is_milestone(step, per_epoch)) {
      point.validation = mean_loss(trainer, validation);
    }
    if (step < steps) {
      point.training = trainer.loss_and_gradient(training[to_size(step % per_epoch)]);
      replicas.all_reduce(weights.gradient.data(), weights.gradient.data(), weights.gradient.size(),
                          seqpack::reduction::sum);
      const double left = static_cast<double>(steps - step) / static_cast<double>(steps);
      optimizer.step(weights, o.learning_rate * left);
    }
    curve.push_back(point);
    progress(to_size(step), to_size(steps));
  }
  return curve;
}

/// Measures forward steps, losses and gradients, the fastest of several runs. **Collective** over
/// all ranks.
template <seqpack::executor E, class Trainer, seqpack::communicator C, class Batch>
speed measure(const E& where, const std::string& name, Trainer& trainer, grid<C>& ranks,
              const table& weights, const std::vector<Batch>& batches, offset_t repeats) {
  using clock = std::chrono::steady_clock;
  speed result{.name = name};
  for (offset_t k = 0; k < repeats; ++k) {
    const auto start = clock::now();
    for (const Batch& batch : batches) trainer.loss_and_gradient(batch);
    float last = 0;
    seqpack::read_back(where, &last, weights.gradient.data(), 1);  // waits for a stream
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    result.seconds = k == 0 ? seconds : std::min(result.seconds, seconds);
  }
  for (const Batch& batch : batches) {
    result.micro_batches += std::ssize(batch.micro_batches);
    const auto [tokens, real] = trainer.count_tokens(batch);
    result.tokens += tokens;
    result.real_tokens += real;
  }
  ranks.dp.all_reduce(&result.micro_batches, &result.micro_batches, 1, seqpack::reduction::max);
  ranks.dp.all_reduce(&result.tokens, &result.tokens, 1, seqpack::reduction::sum);
  ranks.dp.all_reduce(&result.real_tokens, &result.real_tokens, 1, seqpack::reduction::sum);
  ranks.replicas.all_reduce(&result.seconds, &result.seconds, 1, seqpack::reduction::max);
  return result;
}

}  // namespace train_text
