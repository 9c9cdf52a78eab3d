// Layouts from lengths in device memory: with exact sizes, which are read back, and in a capacity,
// where nothing is.
#include "axes.cuh"

namespace {

using namespace seqpack;

/// The lengths that are read, and both arrays that are written.
template <class Index>
void declare_bytes(nvbench::state& state, const bench::shape& shape) {
  const std::size_t sequences = bench::as_size(shape.batch);
  state.add_element_count(sequences, "Sequences");
  state.add_global_memory_reads<int>(sequences);
  state.add_global_memory_writes<Index>(2 * (sequences + 1));
}

template <class Index>
void exact(nvbench::state& state, nvbench::type_list<Index>) {
  const bench::shape shape(state);
  const cudaStream_t stream = state.get_cuda_stream();
  const bench::device_array<int> lengths(bench::random_lengths(shape.batch, shape.width), stream);
  const std::span<const int> span(lengths.data(), bench::as_size(shape.batch));
  bench::keep_pool_memory();
  declare_bytes<Index>(state, shape);
  state.exec(nvbench::exec_tag::sync, [&](nvbench::launch& launch) {
    make_layout<Index>(bench::executor(launch), span, padding{each_multiple_of<>{shape.each}},
                       context_parallel{shape.cp});
  });
}

template <class Index>
void in_a_capacity(nvbench::state& state, nvbench::type_list<Index>) {
  const bench::shape shape(state);
  const cudaStream_t stream = state.get_cuda_stream();
  const bench::device_array<int> lengths(bench::random_lengths(shape.batch, shape.width), stream);
  const bench::device_array<int> count(std::vector<int>{static_cast<int>(shape.batch)}, stream);
  const offset_t longest = round_up(shape.width, shape.each);
  padding how{each_multiple_of<>{shape.each}, fixed_total<>{shape.batch * longest}};
  context_parallel cp{shape.cp};
  capacity_layout<decltype(cp), Index> layout(
      cuda_stream<>(stream), {.sequences = shape.batch, .width = shape.width}, how, cp);
  declare_bytes<Index>(state, shape);
  state.exec([&](nvbench::launch& launch) {
    layout.build(launch.get_stream(), lengths.data(), count.data());
  });
}

using index_types = nvbench::type_list<std::int32_t, std::int64_t>;
NVBENCH_BENCH_TYPES(exact, NVBENCH_TYPE_AXES(index_types))
    .set_name("layout_exact")
    .set_type_axes_names({"Index"})
    .add_int64_axis("B", {1, 64, 1024, 65536, 1000000})
    .add_int64_axis("S", {512})
    .add_int64_axis("CP", {1, 8})
    .add_int64_axis("Each", {16, 128});
NVBENCH_BENCH_TYPES(in_a_capacity, NVBENCH_TYPE_AXES(index_types))
    .set_name("layout_capacity")
    .set_type_axes_names({"Index"})
    .add_int64_axis("B", {1, 64, 1024, 65536, 1000000})
    .add_int64_axis("S", {512})
    .add_int64_axis("CP", {1, 8})
    .add_int64_axis("Each", {16, 128});

}  // namespace
