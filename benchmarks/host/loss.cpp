// The loss of 64 sequences and its gradient in place: all at once against one sequence after the
// other, by two threads.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gates.hpp"
#include "seqpack/exec/threads.hpp"
#include "seqpack/seqpack.hpp"

namespace {

using namespace seqpack;

constexpr int batch = 64;
constexpr int width = 128;

struct text {
  std::vector<int> lengths = bench::random_lengths(batch, width);
  std::vector<std::int64_t> ids = std::vector<std::int64_t>(batch * width, 1);
  auto fields() const {
    return field_list(token_field(input_ids, batch_view(ids.data(), batch, width)));
  }
};

auto run(offset_t vocabulary, loss_pass pass) {
  auto layout = make_layout(text{}.lengths, padding{each_multiple_of<16>{}});
  std::vector<float> logits(static_cast<std::size_t>(layout.total_tokens() * vocabulary), 0.5F);
  // std::function copies what it calls; the logits are many.
  return [=, data = text{}, layout = std::make_shared<const decltype(layout)>(std::move(layout)),
          logits = std::make_shared<std::vector<float>>(std::move(logits))] {
    const host_threads where(2);
    const matrix_view<float> rows(logits->data(), layout->total_tokens(), vocabulary);
    self_communicator one;
    const auto result =
        evaluate_loss(where, *layout, one, one, data, nll{}, rows, column_range(vocabulary),
                      {.counts = {4096, batch}, .pass = pass}, rows);
    benchmark::DoNotOptimize(result.value());
  };
}

bool add(const char* what, const char* name, offset_t vocabulary) {
  return bench::add_gate(
      std::string("nll of 64 sequences, ") + what + ": fused against one after the other", name,
      [=] { return run(vocabulary, loss_pass::fused); },
      [=] { return run(vocabulary, loss_pass::per_sequence); }, 1.1, bench::turn_time::fastest, 6);
}

const bool registered =
    add("256 columns", "loss/bytes", 256) && add("8192 columns", "loss/words", 8192);

}  // namespace
