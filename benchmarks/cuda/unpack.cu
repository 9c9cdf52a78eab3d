// unpack: the shards of all ranks of CP, as an all-gather leaves them, to a batch [B, S, D].
#include "axes.cuh"

namespace {

using namespace seqpack;

template <class T>
void unpack_all_shards(nvbench::state& state, nvbench::type_list<T>) {
  const bench::shape shape(state);
  if (bench::too_large<T>(state, shape.batch_elements())) return;
  const cudaStream_t stream = state.get_cuda_stream();
  const auto layout = shape.layout();
  const auto on_device = to_device(cuda_stream<>(stream), layout);

  const bench::device_array<T> packed(layout.total_tokens() * shape.payload);
  const bench::device_array<T> batch(shape.batch_elements());
  bench::randomise(packed, 1, stream);
  const row_view<const T> from(packed.data(), layout.total_tokens(), shape.payload);
  const batch_view<T> to(batch.data(), shape.batch, shape.width, shape.payload);

  state.add_element_count(bench::as_size(shape.batch * shape.width), "Tokens");
  state.add_global_memory_reads<T>(bench::as_size(layout.real_tokens() * shape.payload));
  state.add_global_memory_writes<T>(bench::as_size(batch.size()));
  state.exec([&](nvbench::launch& launch) {
    unpack(bench::executor(launch), on_device, all_shards, field(from, to));
  });
}
NVBENCH_BENCH_TYPES(unpack_all_shards, NVBENCH_TYPE_AXES(bench::element_types))
    .set_name("unpack")
    .set_type_axes_names({"T"})
    .add_int64_axis("B", {16, 256})
    .add_int64_axis("S", {4096})
    .add_int64_axis("D", {1, 128, 4096})
    .add_int64_axis("CP", {1, 4})
    .add_int64_axis("Each", {16, 128});

}  // namespace
