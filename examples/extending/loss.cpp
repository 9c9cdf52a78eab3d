// Evaluates a user-defined loss, and compares its derivative with central differences.
#include "loss.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <vector>

using namespace seqpack;

constexpr offset_t vocabulary = 5;

/// Two pairs: the chosen sequences are 0 and 2.
struct preferences {
  std::vector<int> lengths = {4, 3, 2, 4};
  std::vector<std::int64_t> ids = {1, 2, 3, 0, 1, 4, 2, 0, 0, 3, 0, 0, 2, 2, 1, 4};   // [B, S]
  std::vector<std::uint8_t> mask = {1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};  // [B, S]

  auto fields() const {
    return field_list(token_field(input_ids, batch_view(ids.data(), 4, 4)),
                      token_field(token_mask, batch_view(mask.data(), 4, 4)));
  }
};

int main() {
  const preferences batch;
  const auto layout = make_layout(batch.lengths, padding{each_multiple_of<4>{}});
  const global_counts counts = count_valid(host, batch, &preferences::lengths);
  std::vector<double> logits(static_cast<std::size_t>(layout.total_tokens() * vocabulary), 0);
  std::vector<double> gradient(logits.size(), -1);
  const matrix_view rows(logits.data(), layout.total_tokens(), vocabulary);
  self_communicator one;
  const auto evaluate = [&](matrix_view<double> out = {}) {
    return evaluate_loss(host, layout, one, one, batch, margin_loss{.margin = 1.5}, rows,
                         column_range(vocabulary), {.counts = counts}, out);
  };

  // Where all tokens are equally likely, every pair misses the whole margin.
  bool right = std::abs(evaluate().value() - 1.5 * 1.5) < 1e-12;

  for (std::size_t k = 0; k < logits.size(); ++k) logits[k] = std::sin(static_cast<double>(k * k));
  const auto result = evaluate(matrix_view(gradient.data(), rows.rows, rows.columns));
  for (std::size_t k = 0; k < logits.size(); ++k) {
    const double here = logits[k];
    constexpr double step = 1e-5;
    logits[k] = here + step;
    const double above = evaluate().value();
    logits[k] = here - step;
    const double below = evaluate().value();
    logits[k] = here;
    right = right && std::abs((above - below) / (2 * step) - gradient[k]) < 1e-9;
  }
  std::cout << "loss: " << result.value() << " with " << result.metrics()[pairs_in_order{}]
            << " of the pairs in order, derivative " << (right ? "as expected" : "WRONG") << '\n';
  return right && std::cout.flush() ? 0 : 1;
}
