/// \file
/// The temperature that logits are divided by: in the pass that reads them anyway, where
/// detail/softmax.hpp multiplies by its reciprocal, or in their memory by scale_logits.
#pragma once

#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/logprob/detail/logits_checks.hpp"
#include "seqpack/logprob/detail/temperature.hpp"
#include "seqpack/logprob/logits.hpp"

namespace seqpack {

/// The temperature of a loss, in one of two states: the logits are divided by it in the pass of the
/// loss, or they have been already. In both the gradient is with respect to the logits before.
///
///     {.temperature = 0.7}                                      // the loss divides
///     {.temperature = logit_temperature::already_applied(0.7)}  // after scale_logits(..., 0.7)
class logit_temperature {
 public:
  /// No temperature: 1.
  constexpr logit_temperature() = default;
  /// In the state in_loss.
  constexpr logit_temperature(double value) : value_(value) {}

  /// Logits that are still to be divided.
  static constexpr logit_temperature in_loss(double value) { return value; }
  /// Logits that have been divided in their memory.
  static constexpr logit_temperature already_applied(double value) {
    logit_temperature result(value);
    result.applied_ = true;
    return result;
  }

  constexpr double value() const noexcept { return value_; }
  constexpr bool is_applied() const noexcept { return applied_; }
  /// What a pass over the logits divides them by: 1 where they have been divided.
  constexpr double to_apply() const noexcept { return applied_ ? 1 : value_; }
  /// What they have been divided by before it: 1 where they have not.
  constexpr double applied() const noexcept { return applied_ ? value_ : 1; }

  friend constexpr bool operator==(const logit_temperature&, const logit_temperature&) = default;

 private:
  double value_ = 1;
  bool applied_ = false;
};

/// Divides logits by a temperature, in place: only the elements of the view change, and with 1 none
/// does. Losses and log-probabilities need no such pass; they take a temperature themselves.
/// \throws invalid_input unless the temperature is finite and positive, for logits that are null or
/// misaligned; before anything is written.
///
/// No allocation, no synchronisation, one launch. One read and one write of the view.
template <executor E, logit T>
  requires(!std::is_const_v<T>)
void scale_logits(const E& where, const matrix_view<T>& logits, double temperature) {
  const auto factor = detail::reciprocal<compute_type<T>>(temperature);
  detail::require_logits(logits);
  if (temperature != 1) execute(where, detail::scale_operation<T>{logits, factor});
}

}  // namespace seqpack
