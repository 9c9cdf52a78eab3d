/// \file
/// Everything, for a CUDA compiler: the host-safe umbrella, streams, and layouts on a device.
#pragma once

#include "seqpack/exec/cuda.cuh"
#include "seqpack/exec/thrust.hpp"
#include "seqpack/layout/capacity_layout.cuh"
#include "seqpack/layout/device_layout.cuh"
#include "seqpack/seqpack.hpp"
