// pack: a batch [B, S, D] to the shard of one rank of CP; with CP 1 that is the full row.
#include "axes.cuh"

namespace {

using namespace seqpack;

template <class T>
void pack_shard(nvbench::state& state, nvbench::type_list<T>) {
  const bench::shape shape(state);
  if (bench::too_large<T>(state, shape.batch_elements())) return;
  const cudaStream_t stream = state.get_cuda_stream();
  const auto layout = shape.layout();
  const auto on_device = to_device(cuda_stream<>(stream), layout);
  constexpr shard mine{0};

  const bench::device_array<T> batch(shape.batch_elements());
  const bench::device_array<T> packed(layout.shard_tokens() * shape.payload);
  bench::randomise(batch, 1, stream);
  const batch_view<const T> from(batch.data(), shape.batch, shape.width, shape.payload);
  const row_view<T> to(packed.data(), layout.shard_tokens(), shape.payload);

  state.add_element_count(bench::as_size(layout.shard_tokens()), "Tokens");
  state.add_global_memory_reads<T>(bench::as_size(real_tokens(layout, mine) * shape.payload));
  state.add_global_memory_writes<T>(bench::as_size(packed.size()));
  state.exec([&](nvbench::launch& launch) {
    pack(bench::executor(launch), on_device, mine, field(from, to));
  });
}
NVBENCH_BENCH_TYPES(pack_shard, NVBENCH_TYPE_AXES(bench::element_types))
    .set_name("pack")
    .set_type_axes_names({"T"})
    .add_int64_axis("B", {16, 256})
    .add_int64_axis("S", {4096})
    .add_int64_axis("D", {1, 128, 4096})
    .add_int64_axis("CP", {1, 4})
    .add_int64_axis("Each", {16, 128});

}  // namespace
