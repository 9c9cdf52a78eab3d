/// \file
/// A loss with everything that it needs, and what a step is told.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/loss/loss_result.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/step/setup.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack {

/// A count that nobody has told.
inline constexpr double not_given = std::numeric_limits<double>::quiet_NaN();

/// What a step may be told.
struct forward_options {
  /// N_tok and N_seq of the global batch; see count_valid. A loss whose level, or one of whose
  /// means, is per token or per sequence must be given that count; 0 says that nothing counts.
  double global_valid_toks = not_given;
  double global_valid_seqs = not_given;
  double temperature = 1;    ///< of logits; finite and above 0
  bool cp_normalize = true;  ///< see loss_options
  loss_pass pass = loss_pass::fused;
  /// Divides the logits by the temperature in the model's memory, for who reads the output. Without
  /// it they stay as they are, and the loss takes the temperature in its own pass. The gradient is
  /// with respect to what the model has given, either way.
  bool scale_in_place = false;
  /// Before anything else is sent, every rank of both groups tells the others whether its batch,
  /// then its model and output, and then the call of its loss can be worked with, so that all ranks
  /// fail or none: some exchanges of a few bytes, which the host waits for. Without it a rank that
  /// refuses its input leaves the others waiting until their deadline. The same on all ranks, as
  /// all options are.
  bool check_all_ranks = true;
  /// Writes 0 to what is between the rows of a gradient; see log_prob_options.
  bool zero_padded_columns = false;
};

namespace detail::forwarding {

/// \throws invalid_input where the loss needs a count that was not given.
template <class L>
global_counts counts_of(const forward_options& options) {
  const auto count = [](bool needed, const char* name, double value) {
    if (!std::isnan(value)) return value;
    if (needed) reject(name, "not given", "the loss, or a metric of it, is divided by it");
    return 0.0;
  };
  return {
      count(detail::losses::needs_tokens<L>, "global_valid_toks", options.global_valid_toks),
      count(detail::losses::needs_sequences<L>, "global_valid_seqs", options.global_valid_seqs)};
}

}  // namespace detail::forwarding

/// A loss with everything that it needs; calling it gives the loss and the metrics, and the
/// gradient where asked. It owns the batch and what was made of it; the logits are the model's.
///
/// Calls are **collective** over both groups (see evaluate_loss), and may come as late as a
/// pipeline wants, in the same order on all ranks. The stream of the executor must outlive it, its
/// results and the inputs of the step.
template <executor E, class Setup, batch B, class Layout, class L, logit T>
class bound_loss {
 public:
  using result_type = loss_result<E, typename L::metrics>;

  /// forward_step makes them.
  bound_loss(E where, Setup setup, B batch, std::shared_ptr<const Layout> layout, L loss,
             model_output<T> output, forward_options options, double temperature, double applied,
             bool replicated, offset_t number)
      : where_(std::move(where)),
        setup_(std::move(setup)),
        batch_(std::move(batch)),
        layout_(std::move(layout)),
        loss_(std::move(loss)),
        output_(output),
        options_(options),
        temperature_(temperature),
        applied_(applied),
        replicated_(replicated),
        number_(number) {}

  /// The loss and its metrics.
  /// \throws invalid_input where a gradient has overwritten the logits.
  result_type operator()() const { return evaluate(matrix_view<std::remove_const_t<T>>{}); }

  /// The loss, its metrics and its gradient with respect to the logits of this rank.
  /// \param gradient [T / CP, columns], of any type of logits, written, all of it. It may be the
  /// output's own rows: no other memory of that size is used then, and the loss cannot be called
  /// again.
  /// \throws invalid_input for a gradient of another shape, or in the memory of a field of the
  /// batch, of the layout's arrays, or of a part of the output; on all ranks together where
  /// forward_options::check_all_ranks was set.
  template <logit G>
    requires(!std::is_const_v<G>)
  result_type operator()(const matrix_view<G>& gradient) {
    return evaluate(gradient);
  }

  /// The batch that it is about.
  const B& batch_data() const noexcept { return batch_; }
  /// Where its tokens are, on the host.
  const Layout& layout() const noexcept { return *layout_; }

 private:
  template <class G>
  result_type evaluate(const matrix_view<G>& gradient) const {
    const loss_options options{.counts = detail::forwarding::counts_of<L>(options_),
                               .temperature = temperature_,
                               .cp_normalize = options_.cp_normalize,
                               .pass = options_.pass,
                               .replicated_columns = replicated_,
                               .applied_temperature = applied_,
                               .zero_padded_columns = options_.zero_padded_columns};
    const auto check = [&] {
      if (*overwritten_) {
        reject("logits", "overwritten by the gradient",
               "a loss whose gradient was written to its logits can be called once");
      }
      detail::losses::require_logits(layout_->view(), batch_.fields(), setup_.cp(), setup_.tp(),
                                     output_.rows, output_.columns, gradient, options);
    };
    const detail::current_device here(setup_.cp(), setup_.tp());
    if (options_.check_all_ranks) {
      const std::uint64_t which = mark_of(layout_hash(layout_->view()), number_);
      together(setup_.tp(), setup_.cp(), "loss of a forward step", check, which);
    } else {
      check();
    }
    // From here on, also where something fails on the way.
    if (gradient.touched().overlaps(output_.rows.touched())) *overwritten_ = true;
    const auto placed = place_on(where_, *layout_);
    return detail::losses::run(where_, setup_.cp(), setup_.tp(), *layout_, placed.view(),
                               batch_.fields(),
                               detail::targets::rule_of(setup_.packing().documents()), loss_,
                               output_.rows, output_.columns, gradient, options);
  }

  E where_;
  Setup setup_;
  B batch_;
  std::shared_ptr<const Layout> layout_;
  L loss_;
  model_output<T> output_;
  forward_options options_;
  double temperature_;
  double applied_;
  bool replicated_;
  offset_t number_;  // of the step, so that ranks that call the losses of two steps find out
  std::shared_ptr<bool> overwritten_ = std::make_shared<bool>(false);  // of all copies
};

}  // namespace seqpack
