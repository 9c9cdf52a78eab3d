// What pack, unpack and their like ask of memory: sectors, widths of accesses, instructions. The
// numbers are exact and the same in every run.
#define BOOST_TEST_MODULE profile_moves
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/kernel_profile.hpp"

using namespace seqpack;
using testing::kernel_profile;

namespace {

/// Random lengths, the same in every process.
std::vector<std::int32_t> some_lengths(offset_t batch, int least, int most) {
  std::mt19937 random(5);
  std::vector<std::int32_t> lengths;
  for (offset_t b = 0; b < batch; ++b) {
    lengths.push_back(least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1)));
  }
  return lengths;
}

/// A batch, and its layout on the host.
struct shape {
  offset_t batch;
  offset_t width;
  int least;  ///< the shortest sequence; the longest is as wide as the batch
  offset_t ranks;
  offset_t payload;

  auto layout() const {
    return make_layout(some_lengths(batch, least, static_cast<int>(width)),
                       padding{each_multiple_of<>{2 * ranks}}, context_parallel<>{ranks});
  }
};

template <class T>
T* device_memory(offset_t elements) {
  void* data = nullptr;
  check_cuda(cudaMalloc(&data, static_cast<std::size_t>(elements) * sizeof(T)));
  return static_cast<T*>(data);
}

/// Bytes that a call has to read and to write.
struct traffic {
  double read;
  double written;
};

template <class T, class Place>
traffic pack_traffic(const shape& s, Place at) {
  const auto layout = s.layout();
  double real = 0;
  if constexpr (std::is_same_v<Place, shard>) {
    real = static_cast<double>(real_tokens(layout, at));
  } else {
    real = static_cast<double>(layout.real_tokens());
  }
  const double row = static_cast<double>(s.payload) * sizeof(T);
  return {real * row, static_cast<double>(layout.view().rows(at)) * row};
}
template <class T>
traffic unpack_traffic(const shape& s) {
  const double row = static_cast<double>(s.payload) * sizeof(T);
  return {static_cast<double>(s.layout().real_tokens()) * row,
          static_cast<double>(s.batch * s.width) * row};
}

template <class T, class Place>
void run_pack(const shape& s, Place at) {
  const testing::test_stream stream;
  const auto layout = s.layout();
  const auto placed = to_device(stream.executor(), layout);
  const offset_t rows = layout.view().rows(at);
  pack(stream.executor(), placed, at,
       field(batch_view<const T>(device_memory<T>(s.batch * s.width * s.payload), s.batch, s.width,
                                 s.payload),
             row_view<T>(device_memory<T>(rows * s.payload), rows, s.payload)));
  stream.wait();
}

template <class T>
void run_unpack(const shape& s) {
  const testing::test_stream stream;
  const auto layout = s.layout();
  const auto placed = to_device(stream.executor(), layout);
  const offset_t rows = layout.total_tokens();
  unpack(stream.executor(), placed, all_shards,
         field(row_view<const T>(device_memory<T>(rows * s.payload), rows, s.payload),
               batch_view<T>(device_memory<T>(s.batch * s.width * s.payload), s.batch, s.width,
                             s.payload)));
  stream.wait();
}

template <class T>
void run_rearrange(const shape& s) {
  const testing::test_stream stream;
  const auto layout = s.layout();
  const auto placed = to_device(stream.executor(), layout);
  const offset_t rows = layout.total_tokens();
  rearrange(stream.executor(), placed, all_shards, full_row,
            field(row_view<const T>(device_memory<T>(rows * s.payload), rows, s.payload),
                  row_view<T>(device_memory<T>(rows * s.payload), rows, s.payload)));
  stream.wait();
}

void run_per_token(const shape& s) {
  const testing::test_stream stream;
  const auto layout = s.layout();
  const auto placed = to_device(stream.executor(), layout);
  const offset_t rows = layout.shard_tokens();
  const auto array = [&] {
    return row_view<std::int32_t>(device_memory<std::int32_t>(rows), rows);
  };
  const batch_view<const std::int32_t> ids(device_memory<std::int32_t>(s.batch * s.width), s.batch,
                                           s.width);
  per_token(stream.executor(), placed, shard{1}, position_ids(array()), sequence_index(array()),
            labels(ids, array()));
  stream.wait();
}

// Rows of 128 bytes, of 1 KiB and of 128 KiB; ids whose runs are of 64 tokens or more.
constexpr shape narrow{1024, 128, 32, 2, 32};
constexpr shape wide{512, 256, 100, 4, 256};
constexpr shape logits{8, 48, 1, 2, 32064};
constexpr shape ids{1024, 128, 64, 1, 1};
constexpr shape sharded_ids{128, 1024, 512, 4, 1};

/// A call and its gates.
struct profiled {
  std::string name;
  std::function<void()> run;
  traffic bytes;
  double most_sectors;
  bool in_wide_accesses;         ///< 99 % of the bytes by accesses of 16
  double most_instructions = 0;  ///< of a thread, for 16 bytes; 0: no gate
};

const std::vector<profiled>& all_profiled() {
  constexpr double aligned = 1.05;
  constexpr double of_ids = 1.3;
  constexpr double lean = 40;
  const auto all = [](offset_t tokens, double bytes) {
    return static_cast<double>(tokens) * bytes;
  };
  static const std::vector<profiled> calls{
      {"pack, rows of 128 bytes, full row", [] { run_pack<float>(narrow, full_row); },
       pack_traffic<float>(narrow, full_row), aligned, true},
      {"pack, rows of 1 KiB, all shards of 4", [] { run_pack<float>(wide, all_shards); },
       pack_traffic<float>(wide, all_shards), aligned, true, lean},
      {"pack, rows of 128,256 bytes, full row", [] { run_pack<float>(logits, full_row); },
       pack_traffic<float>(logits, full_row), aligned, true, lean},
      {"pack, 4-byte ids, full row", [] { run_pack<std::int32_t>(ids, full_row); },
       pack_traffic<std::int32_t>(ids, full_row), of_ids, false},
      {"pack, 8-byte ids, full row", [] { run_pack<std::int64_t>(ids, full_row); },
       pack_traffic<std::int64_t>(ids, full_row), of_ids, false},
      {"pack, 4-byte ids, all shards of 4", [] { run_pack<std::int32_t>(sharded_ids, all_shards); },
       pack_traffic<std::int32_t>(sharded_ids, all_shards), of_ids, false},
      {"unpack, rows of 128 bytes", [] { run_unpack<float>(narrow); },
       unpack_traffic<float>(narrow), aligned, true},
      {"unpack, rows of 1 KiB, all shards of 4", [] { run_unpack<float>(wide); },
       unpack_traffic<float>(wide), aligned, true, lean},
      {"unpack, rows of 128,256 bytes", [] { run_unpack<float>(logits); },
       unpack_traffic<float>(logits), aligned, true, lean},
      {"unpack, 4-byte ids", [] { run_unpack<std::int32_t>(ids); },
       unpack_traffic<std::int32_t>(ids), of_ids, false},
      {"unpack, 8-byte ids, all shards of 4", [] { run_unpack<std::int64_t>(sharded_ids); },
       unpack_traffic<std::int64_t>(sharded_ids), of_ids, false},
      {"rearrange, rows of 128 bytes, to the full row",
       [] { run_rearrange<float>(narrow); },
       {all(narrow.layout().total_tokens(), 128), all(narrow.layout().total_tokens(), 128)},
       aligned,
       true},
      {"positions, sequences and labels of a shard of 4",
       [] { run_per_token(sharded_ids); },
       {all(sharded_ids.layout().shard_tokens(), 4), all(sharded_ids.layout().shard_tokens(), 12)},
       of_ids,
       false},
  };
  return calls;
}

struct profile_fixture : testing::needs_kernel_profile {
  profile_fixture() : needs_kernel_profile(all_profiled()) {}
};
BOOST_TEST_GLOBAL_FIXTURE(profile_fixture);

}  // namespace

BOOST_AUTO_TEST_CASE(gates) {
  std::puts(
      "| call | sectors, x ideal | by 16 bytes | instructions for 16 bytes |\n"
      "|---|--:|--:|--:|");
  for (const profiled& call : all_profiled()) {
    BOOST_TEST_CONTEXT(call.name) {
      const kernel_profile found = testing::profile_of(call.name, "run_tiles");
      BOOST_TEST(found.launches == 1);
      const double sectors = found.sectors() / ((call.bytes.read + call.bytes.written) / 32);
      BOOST_TEST(sectors <= call.most_sectors);
      const double wide_bytes =
          (found.load.wide_bytes + found.store.wide_bytes) / (call.bytes.read + call.bytes.written);
      if (call.in_wide_accesses) BOOST_TEST(wide_bytes >= 0.99);
      const double instructions = found.instructions / (call.bytes.written / 16);
      if (call.most_instructions > 0) BOOST_TEST(instructions <= call.most_instructions);
      BOOST_TEST(found.local == 0);
      BOOST_TEST(found.wide_divisions == 0);
      // Nothing is left out: what is counted below the ideal was counted wrong.
      BOOST_TEST(sectors >= 1);
      std::printf("| %s | %.3f | %.1f %% | %.1f |\n", call.name.c_str(), sectors, 100 * wide_bytes,
                  instructions);
    }
  }
}
