/// \file
/// A step timer that names its phases for NVIDIA's profilers. Needs the headers of the CUDA
/// toolkit.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include "seqpack/step/step_timer.hpp"

namespace seqpack {

/// An NVTX range for each phase, on the calling thread: "seqpack batch-data", "seqpack forward".
/// Without a profiler a call costs next to nothing.
struct nvtx_timer {
  void start(step_phase phase) const {
    nvtxRangePushA(phase == step_phase::batch_data ? "seqpack batch-data" : "seqpack forward");
  }
  void stop(step_phase) const noexcept { nvtxRangePop(); }
};

static_assert(step_timer<nvtx_timer>);

}  // namespace seqpack
