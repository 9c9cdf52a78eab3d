// The loss of 64 sequences and its gradient in place: all at once against one sequence after the
// other, by two threads.
#include <cstdint>
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

void run(benchmark::State& state, offset_t vocabulary, loss_pass pass) {
  const host_threads where(2);
  const text data;
  const auto layout = make_layout(data.lengths, padding{each_multiple_of<16>{}});
  std::vector<float> logits(static_cast<std::size_t>(layout.total_tokens() * vocabulary), 0.5F);
  const matrix_view<float> rows(logits.data(), layout.total_tokens(), vocabulary);
  self_communicator one;
  for (auto _ : state) {
    const auto result =
        evaluate_loss(where, layout, one, one, data, nll{}, rows, column_range(vocabulary),
                      {.counts = {4096, batch}, .pass = pass}, rows);
    benchmark::DoNotOptimize(result.value());
  }
  state.SetBytesProcessed(state.iterations() * layout.total_tokens() * vocabulary * 4 * 3);
}

bool add(const char* what, const char* name, offset_t vocabulary) {
  return bench::add_gate(
      std::string("nll of 64 sequences, ") + what + ": fused against one after the other", name,
      [=](auto& s) { run(s, vocabulary, loss_pass::fused); },
      [=](auto& s) { run(s, vocabulary, loss_pass::per_sequence); }, 1.1);
}

const bool registered =
    add("256 columns", "loss/bytes", 256) && add("8192 columns", "loss/words", 8192);

}  // namespace
