/// \file
/// Everything, for a CUDA compiler: the host-safe umbrella, streams, and layouts on a device.
#pragma once

#include "seqpack/exec/cuda.cuh"
#include "seqpack/exec/thrust.hpp"
#include "seqpack/pack/capacity_layout.cuh"
#include "seqpack/pack/device_layout.cuh"
#include "seqpack/seqpack.hpp"
