/// \file
/// A loss with everything that it needs, ready to be called.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/logprob/temperature.hpp"
#include "seqpack/loss/detail/evaluation.hpp"
#include "seqpack/loss/detail/loss_checks.hpp"
#include "seqpack/loss/loss_options.hpp"
#include "seqpack/loss/loss_result.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/step/detail/step_counts.hpp"
#include "seqpack/step/forward_options.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack {

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

  /// What it is made of; forward_step makes it.
  struct parts {
    E where;
    Setup setup;
    B batch;
    std::shared_ptr<const Layout> layout;  ///< on the host
    L loss;
    model_output<T> output;
    forward_options options;
    logit_temperature temperature;  ///< of the output's rows as they are
    bool replicated_columns;        ///< see loss_options
    offset_t step;  ///< its number, so that ranks that call the losses of two steps find out
  };
  explicit bound_loss(parts all) : p_(std::move(all)) {}

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
  const B& batch_data() const noexcept { return p_.batch; }
  /// Where its tokens are, on the host.
  const Layout& layout() const noexcept { return *p_.layout; }

 private:
  template <class G>
  result_type evaluate(const matrix_view<G>& gradient) const {
    const loss_options options{.counts = detail::step_counts<L>(p_.options),
                               .temperature = p_.temperature,
                               .cp_normalize = p_.options.cp_normalize,
                               .pass = p_.options.pass,
                               .replicated_columns = p_.replicated_columns,
                               .zero_padded_columns = p_.options.zero_padded_columns};
    auto& cp = p_.setup.cp();
    auto& tp = p_.setup.tp();
    const auto check = [&] {
      if (*overwritten_) {
        reject("logits", "overwritten by the gradient",
               "a loss whose gradient was written to its logits can be called once");
      }
      detail::require_loss_logits(p_.layout->view(), p_.batch.fields(), cp, tp, p_.output.rows,
                                  p_.output.columns, gradient, options);
    };
    const detail::current_device here(cp, tp);
    if (p_.options.check_all_ranks) {
      const std::uint64_t which = mark_of(layout_hash(p_.layout->view()), p_.step);
      together(tp, cp, "loss of a forward step", check, which);
    } else {
      check();
    }
    // From here on, also where something fails on the way.
    if (gradient.touched().overlaps(p_.output.rows.touched())) *overwritten_ = true;
    const auto placed = place_on(p_.where, *p_.layout);
    using call_type = detail::loss_call<Layout, std::remove_cvref_t<decltype(placed.view())>,
                                        std::remove_cvref_t<decltype(p_.batch.fields())>, L, T, G>;
    return detail::run_loss(p_.where, cp, tp,
                            call_type{.layout = *p_.layout,
                                      .view = placed.view(),
                                      .fields = p_.batch.fields(),
                                      .rule = detail::rule_of(p_.setup.packing().documents()),
                                      .loss = p_.loss,
                                      .logits = p_.output.rows,
                                      .columns = p_.output.columns,
                                      .gradient = gradient,
                                      .options = options});
  }

  parts p_;
  std::shared_ptr<bool> overwritten_ = std::make_shared<bool>(false);  // of all copies
};

}  // namespace seqpack
