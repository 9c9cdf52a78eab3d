/// \file
/// Warps and blocks as teams: how they read and write the memory of a row, and the launch. CMake
/// component: seqpack::cuda.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/exec/cuda_error.hpp"
#include "seqpack/exec/detail/team.hpp"
#include "seqpack/exec/team.hpp"

namespace seqpack::detail {

inline constexpr int warp_size = 32;

// These and what calls them say __host__ too, because the operations that are given teams do.
SEQPACK_HD inline std::uint32_t from_lane_behind(std::uint32_t value, int distance) {
#if defined(__CUDA_ARCH__)
  return __shfl_down_sync(0xFFFFFFFFU, value, static_cast<unsigned>(distance));
#else
  return value + static_cast<std::uint32_t>(0 * distance);
#endif
}
SEQPACK_HD inline std::uint32_t from_first_lane(std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  return __shfl_sync(0xFFFFFFFFU, value, 0);
#else
  return value;
#endif
}
SEQPACK_HD inline void wait_for_block() {
#if defined(__CUDA_ARCH__)
  __syncthreads();
#endif
}
/// The low word of high:low >> bits, bits < 32.
SEQPACK_HD inline std::uint32_t shifted_right(std::uint32_t low, std::uint32_t high,
                                              std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __funnelshift_r(low, high, bits);
#else
  return static_cast<std::uint32_t>(((std::uint64_t{high} << 32) | low) >> bits);
#endif
}

/// A value by way of words of 4 bytes.
template <class V>
struct words {
  static_assert(std::is_trivially_copyable_v<V> && sizeof(V) % 4 == 0);
  static constexpr int count = static_cast<int>(sizeof(V) / 4);
  std::uint32_t at[count];
};

template <class V>
SEQPACK_HD V from_lane_behind_of(const V& value, int distance) {
  auto all = __builtin_bit_cast(words<V>, value);
  for (int k = 0; k < words<V>::count; ++k) all.at[k] = from_lane_behind(all.at[k], distance);
  return __builtin_bit_cast(V, all);
}

/// What the values of a warp combine to, on its first lane: of each two lanes the lower one's value
/// is the left operand.
template <class V, class Combine>
SEQPACK_HD V reduce_warp(V value, const Combine& combine) {
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    value = combine(value, from_lane_behind_of(value, distance));
  }
  return value;
}

/// What one access moves.
template <int Bytes>
struct access;
template <>
struct access<1> {
  using type = unsigned char;
};
template <>
struct access<2> {
  using type = unsigned short;
};
template <>
struct access<4> {
  using type = unsigned;
};
template <>
struct access<8> {
  using type = uint2;
};
template <>
struct access<16> {
  using type = uint4;
};

/// Elements that one access moves.
template <class T, int Length>
struct chunk {
  T at[Length];

  using access_type = typename access<static_cast<int>(sizeof(T)) * Length>::type;

  SEQPACK_HD static chunk load(const T* from) {
    return __builtin_bit_cast(chunk, *reinterpret_cast<const access_type*>(from));
  }
  SEQPACK_HD void store(T* to) const {
    *reinterpret_cast<access_type*>(to) = __builtin_bit_cast(access_type, *this);
  }
};

template <int Bytes, class T>
SEQPACK_HD std::uint32_t bytes_above_boundary(const T* p) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p)) & (Bytes - 1U);
}

/// One of 2^log_size threads, which fill warps, in the order of their lanes.
struct member {
  int rank;
  int log_size;

  SEQPACK_HD constexpr int size() const { return 1 << log_size; }
  SEQPACK_HD constexpr bool last_in_warp() const { return rank % warp_size == warp_size - 1; }
  /// Whose chunk this is.
  SEQPACK_HD constexpr bool owns(offset_t chunk) const { return (chunk & (size() - 1)) == rank; }
  /// How many of so many chunks are this thread's: fewer than 2^31, or they would not fit a memory.
  SEQPACK_HD constexpr int count_of(offset_t chunks) const {
    return static_cast<int>((chunks - rank + size() - 1) >> log_size);
  }
};

/// Loads of one thread in flight. With four, the threads that fit on a multiprocessor ask for about
/// twice the bytes that memory delivers in the time that one load takes.
inline constexpr int in_flight = 4;

/// f(0), ..., f(Count - 1): a loop whose arrays stay in registers.
template <class F, int... K>
SEQPACK_HD void unrolled(const F& f, std::integer_sequence<int, K...>) {
  (f(K), ...);
}
template <int Count, class F>
SEQPACK_HD void unrolled(const F& f) {
  unrolled(f, std::make_integer_sequence<int, Count>{});
}

/// The chunks of a row that begins at a 16-byte boundary.
template <class T, class F>
SEQPACK_HD void read_aligned(const member& me, const T* x, offset_t chunks, const F& f) {
  using chunk_type = chunk<T, elements_per_chunk<T>>;
  const int count = me.count_of(chunks);
  const uint4* next = reinterpret_cast<const uint4*>(x) + me.rank;
  for (int done = 0; done < count; done += in_flight) {
    uint4 loaded[in_flight];
    unrolled<in_flight>([&](int k) {
      if (done + k < count) loaded[k] = next[k * me.size()];
    });
    unrolled<in_flight>([&](int k) {
      if (done + k < count) f(__builtin_bit_cast(chunk_type, loaded[k]).at);
    });
    next += in_flight * me.size();
  }
}

/// 16 bytes at any address, from the two aligned words that they lie in.
/// \param above how many bytes above the boundary of the first one, from 1 to 15
/// \param Unit a power of two that divides `above`
template <int Unit>
SEQPACK_HD uint4 joined(const uint4& first, const uint4& second, std::uint32_t above) {
  std::uint32_t w[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
  if ((above & 8U) != 0) {
    for (int k = 0; k < 6; ++k) w[k] = w[k + 2];
  }
  if constexpr (Unit < 8) {
    if ((above & 4U) != 0) {
      for (int k = 0; k < 5; ++k) w[k] = w[k + 1];
    }
  }
  if constexpr (Unit < 4) {
    for (int k = 0; k < 4; ++k) w[k] = shifted_right(w[k], w[k + 1], above % 4 * 8);
  }
  return {w[0], w[1], w[2], w[3]};
}

/// The chunks of a row that begins between two 16-byte boundaries. Chunk c lies in the aligned
/// words c and c + 1, of which lanes hand each other the second one: each is loaded once, but for
/// one in a warp. The first word, which begins before the row, is not loaded, and chunk 0 is left
/// out.
/// \param chunks those before this one, all of whose words end in the row; at least 1
template <class T, class F>
SEQPACK_HD void read_misaligned(const member& me, const T* x, offset_t chunks, const F& f) {
  using chunk_type = chunk<T, elements_per_chunk<T>>;
  constexpr int pieces = in_flight / 2;
  const std::uint32_t above = bytes_above_boundary<16>(x);
  const auto* const words =
      reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(x) - above);
  const auto word = [&](offset_t k) { return words[max_of(1, min_of(k, chunks))]; };
  for (offset_t c = me.rank; c - me.rank < chunks; c += pieces * me.size()) {
    uint4 own[pieces];
    uint4 behind[pieces];  // of the last lane, which has no lane behind it
    unrolled<pieces>([&](int k) {
      own[k] = word(c + k * me.size());
      if (me.last_in_warp()) behind[k] = word(c + k * me.size() + 1);
    });
    unrolled<pieces>([&](int k) {
      uint4 second = from_lane_behind_of(own[k], 1);
      if (me.last_in_warp()) second = behind[k];
      const offset_t mine = c + k * me.size();
      if (mine < 1 || mine >= chunks) return;
      f(__builtin_bit_cast(chunk_type, joined<int{sizeof(T)}>(own[k], second, above)).at);
    });
  }
}

/// Chunks whose words are not all in the row are left to `rest`, which reads element by element.
template <class T, class F, class Rest>
SEQPACK_HD void read_row(const member& me, const T* x, offset_t n, const F& f, const Rest& rest) {
  constexpr int length = elements_per_chunk<T>;
  const offset_t chunks = n / length;
  if constexpr (length == 1) {
    for (offset_t c = me.rank; c < chunks; c += me.size()) f(x + c);
  } else {
    offset_t read = chunks;
    if (const std::uint32_t above = bytes_above_boundary<16>(x); above == 0) {
      read_aligned(me, x, chunks, f);
    } else {
      const offset_t whole_words = (above + n * int{sizeof(T)}) / 16;
      read = min_of(chunks, whole_words - 1);
      if (read > 0) {
        if (me.rank == 0) rest(x, length);
        read_misaligned(me, x, read, f);
      }
    }
    for (offset_t c = max_of(read, 0); c * length < n; ++c) {
      if (me.owns(c)) rest(x + c * length, static_cast<int>(min_of(length, n - c * length)));
    }
  }
}

template <int Length, class T, class G, class F, int... K>
SEQPACK_HD chunk<G, Length> rewritten(offset_t first, const chunk<T, Length>& x, const F& f,
                                      std::integer_sequence<int, K...>) {
  return {{f(first, K, x.at[K])...}};
}

template <class T, class G, class F>
SEQPACK_HD void rewrite_each(int rank, int size, const T* x, G* out, offset_t begin, offset_t end,
                             const F& f) {
  for (offset_t k = begin + rank; k < end; k += size) out[k] = f(k, 0, x[k]);
}

/// How many elements of a row are before the first boundary of so many bytes.
template <int Bytes, class G>
SEQPACK_HD offset_t before_boundary(const G* out, offset_t n) {
  const auto above = static_cast<int>(bytes_above_boundary<Bytes>(out));
  return min_of(n, above == 0 ? 0 : (Bytes - above) / static_cast<int>(sizeof(G)));
}

template <int Length, class G, int... K>
SEQPACK_HD chunk<G, Length> repeated(const G& value, std::integer_sequence<int, K...>) {
  return {{(static_cast<void>(K), value)...}};
}

template <class G>
SEQPACK_HD void fill_row(const member& me, G* out, offset_t n, const G& value) {
  constexpr int length = elements_per_chunk<G>;
  offset_t head = n;
  offset_t tail = n;
  if constexpr (length > 1) {
    head = before_boundary<16>(out, n);
    const auto chunk = repeated<length>(value, std::make_integer_sequence<int, length>{});
    const offset_t chunks = (n - head) / length;
    tail = head + chunks * length;
    for (offset_t c = me.rank; c < chunks; c += me.size()) chunk.store(out + head + c * length);
  }
  for (offset_t k = me.rank; k < head; k += me.size()) out[k] = value;
  for (offset_t k = tail + me.rank; k < n; k += me.size()) out[k] = value;
}

/// The elements up to the first boundary of the output one by one, then chunks, then the rest.
template <class T, class G, class F>
SEQPACK_HD void rewrite_row(const member& me, const T* x, G* out, offset_t n, const F& f) {
  constexpr int length =
      elements_per_chunk<T> < elements_per_chunk<G> ? elements_per_chunk<T> : elements_per_chunk<G>;
  constexpr int in_bytes = length * static_cast<int>(sizeof(T));
  constexpr int out_bytes = length * static_cast<int>(sizeof(G));
  if constexpr (length > 1) {
    const offset_t head = before_boundary<out_bytes>(out, n);
    if (bytes_above_boundary<in_bytes>(x + head) == 0) {
      rewrite_each(me.rank, me.size(), x, out, 0, head, f);
      const offset_t chunks = (n - head) / length;
      const int count = me.count_of(chunks);
      const int step = me.size() * length;
      offset_t first = head + me.rank * length;
      for (int done = 0; done < count; done += in_flight) {
        chunk<T, length> loaded[in_flight];
        unrolled<in_flight>([&](int k) {
          if (done + k < count) loaded[k] = chunk<T, length>::load(x + first + k * step);
        });
        unrolled<in_flight>([&](int k) {
          if (done + k >= count) return;
          const offset_t at = first + k * step;
          rewritten<length, T, G>(at, loaded[k], f, std::make_integer_sequence<int, length>{})
              .store(out + at);
        });
        first += in_flight * offset_t{step};
      }
      rewrite_each(me.rank, me.size(), x, out, head + chunks * length, n, f);
      return;
    }
  }
  rewrite_each(me.rank, me.size(), x, out, 0, n, f);
}

/// A warp of a device, for short rows.
class warp_team {
 public:
  static constexpr int threads = 256;  ///< of a block, of which each warp has rows of its own
  struct memory {};

  SEQPACK_HD explicit warp_team(int thread) : me_{thread % warp_size, 5} {}

  SEQPACK_HD int rank() const { return me_.rank; }
  SEQPACK_HD constexpr int size() const { return warp_size; }
  template <class V, class Combine>
  SEQPACK_HD V reduce(const V& value, const Combine& combine) const {
    auto bits = __builtin_bit_cast(words<V>, reduce_warp(value, combine));
    for (auto& word : bits.at) word = from_first_lane(word);
    return __builtin_bit_cast(V, bits);
  }
  template <class T, class F, class Rest>
  SEQPACK_HD void read_row(const T* x, offset_t n, const F& chunk, const Rest& rest) const {
    detail::read_row(me_, x, n, chunk, rest);
  }
  template <class T, class G, class F>
  SEQPACK_HD void rewrite_row(const T* x, G* out, offset_t n, const F& f) const {
    detail::rewrite_row(me_, x, out, n, f);
  }
  template <class G>
  SEQPACK_HD void fill_row(G* out, offset_t n, const G& value) const {
    detail::fill_row(me_, out, n, value);
  }

 private:
  member me_;
};

/// A block of a device, for long rows.
class block_team {
 public:
  static constexpr int most_warps = 16;
  static constexpr int most_threads = most_warps * warp_size;
  /// Two turns, so that nobody waits for those who still read what a turn before has left.
  struct memory {
    alignas(16) unsigned char turns[2][most_warps][16];
  };

  SEQPACK_HD block_team(int thread, int log_threads, memory& shared)
      : me_{thread, log_threads}, shared_(&shared) {}

  SEQPACK_HD int rank() const { return me_.rank; }
  SEQPACK_HD int size() const { return me_.size(); }
  template <class V, class Combine>
  SEQPACK_HD V reduce(const V& value, const Combine& combine) const {
    static_assert(sizeof(V) <= 16);
    const V of_warp = reduce_warp(value, combine);
    auto& slots = shared_->turns[turn_];
    turn_ = 1 - turn_;
    if (me_.rank % warp_size == 0) slot<V>(slots[me_.rank / warp_size]) = of_warp;
    wait_for_block();
    V result = slot<V>(slots[0]);
    for (int warp = 1; warp < size() / warp_size; ++warp) {
      result = combine(result, slot<V>(slots[warp]));
    }
    return result;
  }
  template <class T, class F, class Rest>
  SEQPACK_HD void read_row(const T* x, offset_t n, const F& chunk, const Rest& rest) const {
    detail::read_row(me_, x, n, chunk, rest);
  }
  template <class T, class G, class F>
  SEQPACK_HD void rewrite_row(const T* x, G* out, offset_t n, const F& f) const {
    detail::rewrite_row(me_, x, out, n, f);
  }
  template <class G>
  SEQPACK_HD void fill_row(G* out, offset_t n, const G& value) const {
    detail::fill_row(me_, out, n, value);
  }

 private:
  template <class V>
  SEQPACK_HD static V& slot(unsigned char* bytes) {
    return *reinterpret_cast<V*>(bytes);
  }

  member me_;
  memory* shared_;
  mutable int turn_ = 0;
};

namespace launching {

/// Rows of at most so many bytes are a warp's; a block would wait for its own threads more than for
/// memory. Longer ones are a block's, of more threads from the second number on: of very long rows
/// there may be few.
inline constexpr offset_t most_of_warp = 8 * 1024;
inline constexpr offset_t most_of_small_block = 128 * 1024;

/// Registers that a thread may have: with 128 half a multiprocessor's threads run at once.
template <class Op>
inline constexpr int registers_of = 128;
template <class Op>
  requires requires { Op::registers; }
inline constexpr int registers_of<Op> = Op::registers;
template <class Op>
constexpr int blocks_at_once(int threads) {
  constexpr int registers_of_multiprocessor = 65536;
  return registers_of_multiprocessor / (threads * registers_of<Op>);
}

// A kernel of our own, for bandwidth. Thrust gives a thread an element or a row. With a row to a
// thread the log-probabilities of [512, 32000] bfloat16 logits asked for 16 times the sectors that
// the logits are, 2 bytes at a time, and took 35 instructions an element; here it is 1.006 times,
// 16 bytes at a time, and 12 instructions. With an element to a thread the gradient took 82
// instructions and a division for each; here it is 14 and none. CUB's segmented reductions go
// element by element through an iterator that makes numbers of logits, cannot leave out masked
// rows, and leave what is made of a row's sums to another launch.
template <class Op>
static __global__ void __launch_bounds__(warp_team::threads, blocks_at_once<Op>(warp_team::threads))
    rows_of_warps(const Op op, offset_t rows) {
  constexpr int warps = warp_team::threads / warp_size;
  const auto thread = static_cast<int>(threadIdx.x);
  const warp_team threads(thread);
  const offset_t step = offset_t{gridDim.x} * warps;
  for (offset_t row = offset_t{blockIdx.x} * warps + thread / warp_size; row < rows; row += step) {
    op(threads, row);
  }
}
template <class Op>
static __global__ void __launch_bounds__(block_team::most_threads,
                                         blocks_at_once<Op>(block_team::most_threads))
    rows_of_blocks(const Op op, offset_t rows) {
  __shared__ block_team::memory shared;
  const block_team threads(static_cast<int>(threadIdx.x), 31 - __clz(static_cast<int>(blockDim.x)),
                           shared);
  for (offset_t row = blockIdx.x; row < rows; row += gridDim.x) op(threads, row);
}

template <class Op>
void launch_rows(cudaStream_t stream, void (*kernel)(Op, offset_t), const Op& op, int threads,
                 offset_t rows_at_once) {
  // A team does a few rows where there are many, which hides what starting a block costs; not
  // more, so that the next free multiprocessor gets the next rows, and rows that are skipped leave
  // none idle.
  constexpr offset_t enough_blocks = 4096;
  constexpr offset_t most_rows = 4;
  constexpr offset_t most_blocks = 0x7FFFFFFF;
  const offset_t rows = op.rows();
  const offset_t each = max_of(1, min_of(rows / (rows_at_once * enough_blocks), most_rows));
  const offset_t blocks = (rows + each * rows_at_once - 1) / (each * rows_at_once);
  Op copy = op;
  offset_t count = rows;
  void* arguments[] = {&copy, &count};
  check_cuda(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(min_of(blocks, most_blocks))),
                              dim3(static_cast<unsigned>(threads)), arguments, 0, stream));
}

/// One launch over the rows of an operation.
template <cooperative_operation Op>
void for_each_row(cudaStream_t stream, const Op& op) {
  const offset_t work = op.row_work();
  if (work <= most_of_warp) {
    launch_rows(stream, &rows_of_warps<Op>, op, warp_team::threads, warp_team::threads / warp_size);
  } else {
    launch_rows(stream, &rows_of_blocks<Op>, op, work <= most_of_small_block ? 256 : 512, 1);
  }
}

}  // namespace launching

}  // namespace seqpack::detail
