/// \file
/// Times of work in a stream, in seconds: on the GPU, on the host, and side by side.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "seqpack/exec/cuda_error.hpp"

namespace bench {

using seqpack::check_cuda;

inline void wait(cudaStream_t stream) {
  check_cuda(cudaStreamSynchronize(stream));
}

/// How often to measure. A time is that of the fastest turn.
struct effort {
  int turns;
  int calls;  ///< in one turn
};

/// Two events around work in a stream.
class gpu_timer {
 public:
  explicit gpu_timer(cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaEventCreate(&start_));
    check_cuda(cudaEventCreate(&stop_));
  }
  gpu_timer(const gpu_timer&) = delete;
  gpu_timer& operator=(const gpu_timer&) = delete;
  ~gpu_timer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  /// Seconds from the start of the first call's work to the end of the last one's.
  template <class F>
  double seconds(int calls, const F& f) {
    check_cuda(cudaEventRecord(start_, stream_));
    for (int k = 0; k < calls; ++k) f();
    check_cuda(cudaEventRecord(stop_, stream_));
    check_cuda(cudaEventSynchronize(stop_));
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds * 1e-3;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_ = nullptr;
  cudaEvent_t stop_ = nullptr;
};

/// Work that was put into a stream once, to be put there again and again.
class graph {
 public:
  template <class F>
  graph(cudaStream_t stream, const F& f) {
    wait(stream);
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    try {
      f();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph_);
      cudaGraphDestroy(graph_);
      throw;
    }
    check_cuda(cudaStreamEndCapture(stream, &graph_));
    check_cuda(cudaGraphInstantiate(&executable_, graph_, 0));
  }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
  ~graph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  void launch(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

struct pair_of_times {
  double first;
  double second;
};

/// Two pieces of work in turn, so that what the machine does meanwhile meets both: seconds of one
/// call of each on the GPU. For work that is long beside a launch.
template <class F, class G>
pair_of_times gpu_seconds_in_turn(cudaStream_t stream, const effort& how, const F& f, const G& g) {
  gpu_timer timer(stream);
  f();
  g();
  pair_of_times fastest{std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  for (int turn = 0; turn < how.turns; ++turn) {
    fastest.first = std::min(fastest.first, timer.seconds(how.calls, f) / how.calls);
    fastest.second = std::min(fastest.second, timer.seconds(how.calls, g) / how.calls);
  }
  return fastest;
}

/// Seconds of one call on the GPU without what launching it costs the host: calls are replayed from
/// one graph. For short work that may be captured.
template <class F>
double gpu_seconds(cudaStream_t stream, const effort& how, const F& f) {
  const graph calls(stream, [&] {
    for (int k = 0; k < how.calls; ++k) f();
  });
  gpu_timer timer(stream);
  double fastest = std::numeric_limits<double>::max();
  for (int turn = 0; turn <= how.turns; ++turn) {  // the first one uploads the graph
    const double seconds = timer.seconds(1, [&] { calls.launch(stream); });
    if (turn > 0) fastest = std::min(fastest, seconds / how.calls);
  }
  return fastest;
}

/// Seconds that a call keeps the host; with `to_the_end`, until its work is over, for calls back to
/// back.
template <class F>
double host_seconds(cudaStream_t stream, const effort& how, const F& f, bool to_the_end = false) {
  using clock = std::chrono::steady_clock;
  f();
  double fastest = std::numeric_limits<double>::max();
  for (int turn = 0; turn < how.turns; ++turn) {
    wait(stream);
    const auto start = clock::now();
    for (int k = 0; k < how.calls; ++k) f();
    if (to_the_end) wait(stream);
    const std::chrono::duration<double> passed = clock::now() - start;
    fastest = std::min(fastest, passed.count() / how.calls);
  }
  wait(stream);
  return fastest;
}

}  // namespace bench
