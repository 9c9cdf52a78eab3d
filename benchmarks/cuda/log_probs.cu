// Log-probabilities of labels from logits [Rows, V], forward, with the entropy, and backward.
#include <cuda_fp16.h>

#include "axes.cuh"

NVBENCH_DECLARE_TYPE_STRINGS(__half, "F16", "half");

namespace {

using namespace seqpack;

/// Logits, a label for every row, and room for what the passes write.
template <class T>
struct problem {
  using C = compute_type<T>;

  offset_t rows;
  offset_t vocabulary;
  bench::device_array<T> logits;
  bench::device_array<std::int64_t> labels;
  log_prob_state<C> results;

  problem(const nvbench::state& state, cudaStream_t stream, bool entropy)
      : rows(state.get_int64("Rows")),
        vocabulary(state.get_int64("V")),
        logits(rows * vocabulary),
        labels(some_labels(), stream),
        results(cuda_stream<>(stream), rows, entropy) {
    bench::keep_pool_memory();
    bench::randomise_logits(logits, 1, stream);
  }

  std::vector<std::int64_t> some_labels() const {
    const bench::random_word random{2};
    std::vector<std::int64_t> result;
    for (offset_t t = 0; t < rows; ++t) {
      const auto word = random(static_cast<std::uint64_t>(t));
      result.push_back(static_cast<std::int64_t>(word % static_cast<std::uint64_t>(vocabulary)));
    }
    return result;
  }
  matrix_view<const T> view() const { return {logits.data(), rows, vocabulary}; }
  row_view<const std::int64_t> label_rows() const { return {labels.data(), rows}; }
  void forward(const cuda_stream<>& where) const {
    self_communicator tp;
    label_log_probs(where, tp, view(), column_range(vocabulary), label_rows(), results.rows());
  }
};

template <class T>
void forward(nvbench::state& state, nvbench::type_list<T>) {
  const problem<T> p(state, state.get_cuda_stream(), state.get_int64("Entropy") != 0);
  state.add_element_count(bench::as_size(p.rows), "Tokens");
  state.add_global_memory_reads<T>(bench::as_size(p.logits.size()));
  state.exec([&](nvbench::launch& launch) { p.forward(bench::executor(launch)); });
}

/// The gradient goes to memory of its own, so that every run has the same logits; the bytes are
/// those of a gradient in place.
template <class T>
void backward(nvbench::state& state, nvbench::type_list<T>) {
  using C = compute_type<T>;
  const cudaStream_t stream = state.get_cuda_stream();
  const problem<T> p(state, stream, false);
  p.forward(cuda_stream<>(stream));
  const bench::device_array<C> derivatives(p.rows);
  bench::randomise_logits(derivatives, 3, stream);
  const bench::device_array<T> gradient(p.logits.size());
  const matrix_view<T> to(gradient.data(), p.rows, p.vocabulary);
  state.add_element_count(bench::as_size(p.rows), "Tokens");
  state.add_global_memory_reads<T>(bench::as_size(p.logits.size()));
  state.add_global_memory_writes<T>(bench::as_size(gradient.size()));
  state.exec([&](nvbench::launch& launch) {
    label_log_probs_backward(bench::executor(launch), p.view(), column_range(p.vocabulary),
                             p.label_rows(), p.results.rows(),
                             row_view<const C>(derivatives.data(), p.rows), to);
  });
}

using logit_types = nvbench::type_list<__nv_bfloat16, __half, float>;
NVBENCH_BENCH_TYPES(forward, NVBENCH_TYPE_AXES(logit_types))
    .set_name("log_probs_forward")
    .set_type_axes_names({"T"})
    .add_int64_axis("Rows", {4096})
    .add_int64_axis("V", {1024, 32000, 131072})
    .add_int64_axis("Entropy", {0, 1});
NVBENCH_BENCH_TYPES(backward, NVBENCH_TYPE_AXES(logit_types))
    .set_name("log_probs_backward")
    .set_type_axes_names({"T"})
    .add_int64_axis("Rows", {4096})
    .add_int64_axis("V", {1024, 32000, 131072});

}  // namespace
