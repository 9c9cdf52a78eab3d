// The loss curve of a training.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace train_text {

/// Losses of the weights after some steps, in nats per byte.
struct curve_point {
  std::int64_t step = 0;
  std::int64_t epoch = 0;            ///< epochs that are over
  std::optional<double> training;    ///< of the batch that the next step learns from
  std::optional<double> validation;  ///< of all that is held out
};

using loss_curve = std::vector<curve_point>;

}  // namespace train_text
