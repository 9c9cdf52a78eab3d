// per_token: position ids, sequence index, padding mask and labels of one shard, together.
#include "axes.cuh"

namespace {

using namespace seqpack;

template <class T>
void arrays_of_a_shard(nvbench::state& state, nvbench::type_list<T>) {
  const bench::shape shape(state);
  const cudaStream_t stream = state.get_cuda_stream();
  const auto layout = shape.layout();
  const auto on_device = to_device(cuda_stream<>(stream), layout);
  constexpr shard mine{0};

  const bench::device_array<T> ids(shape.batch_elements());
  bench::randomise(ids, 1, stream);
  const batch_view<const T> tokens(ids.data(), shape.batch, shape.width);
  const offset_t rows = layout.shard_tokens();
  const bench::device_array<T> positions(rows);
  const bench::device_array<T> sequences(rows);
  const bench::device_array<bool> mask(rows);
  const bench::device_array<T> targets(rows);
  const auto rows_of = [rows](const auto& array) { return row_view(array.data(), rows); };

  state.add_element_count(bench::as_size(rows), "Tokens");
  state.add_global_memory_reads<T>(bench::as_size(real_tokens(layout, mine)));
  state.add_global_memory_writes<T>(3 * bench::as_size(rows));
  state.add_global_memory_writes<bool>(bench::as_size(rows));
  state.exec([&](nvbench::launch& launch) {
    per_token(bench::executor(launch), on_device, mine, position_ids(rows_of(positions)),
              sequence_index(rows_of(sequences)), padding_mask(rows_of(mask)),
              labels(tokens, rows_of(targets)));
  });
}
using id_types = nvbench::type_list<std::int32_t, std::int64_t>;
NVBENCH_BENCH_TYPES(arrays_of_a_shard, NVBENCH_TYPE_AXES(id_types))
    .set_name("per_token")
    .set_type_axes_names({"T"})
    .add_int64_axis("B", {16, 256, 4096})
    .add_int64_axis("S", {4096})
    .add_int64_axis("CP", {1, 4})
    .add_int64_axis("Each", {16, 128});

}  // namespace
