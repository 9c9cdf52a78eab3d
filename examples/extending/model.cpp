// Takes steps with a user-defined model: a sequence must not notice what it is packed with.
#include "model.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <vector>

using namespace seqpack;

constexpr offset_t kinds = 7;

/// Right-padded ids [B, S]; what stands behind a sequence is junk.
struct text {
  std::vector<int> lengths;
  std::vector<std::int32_t> ids;
  offset_t width = 6;

  auto fields() const {
    const auto rows = static_cast<offset_t>(lengths.size());
    return field_list(token_field(input_ids, batch_view(ids.data(), rows, width)));
  }
};

/// The loss of a batch, as its part of eight targets.
double loss_of(const text& batch, average_model<self_communicator>& model, const auto& packing) {
  const std::array<text, 1> batches{batch};
  auto next = batches.begin();
  const forward_setup setup(packing, &text::lengths);
  no_timer timer;
  auto step = forward_step(host, timer, next, model, nll{}, setup, {.global_valid_toks = 8});
  return step.loss().value();
}

int main() {
  std::vector<float> table(kinds * kinds);
  for (std::size_t k = 0; k < table.size(); ++k) table[k] = std::sin(static_cast<float>(k * k));
  self_communicator alone;
  average_model model(alone, table, kinds);

  const text batch{{4, 1, 6}, {1, 2, 3, 4, 99, 99, 5, 99, 99, 99, 99, 99, 6, 5, 4, 3, 2, 1}};
  const double together = loss_of(batch, model, packed(padding{each_multiple_of<4>{}}));
  double apart = 0;
  for (std::size_t b = 0; b < batch.lengths.size(); ++b) {
    const auto first = batch.ids.begin() + static_cast<offset_t>(b) * batch.width;
    apart += loss_of({{batch.lengths[b]}, {first, first + batch.width}}, model, packed{});
  }
  const bool right = std::abs(together - apart) < 1e-6;
  std::cout << "model: loss " << together << " packed, " << apart << " one by one, "
            << (right ? "as expected" : "WRONG") << '\n';
  return right && std::cout.flush() ? 0 : 1;
}
