/// \file
/// Everything that any C++20 compiler can use: policies, layouts, pack and unpack on the host. CUDA
/// is in seqpack/seqpack.cuh, host threads in seqpack/exec/threads.hpp, drawing in
/// seqpack/pack/draw.hpp.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/extent.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/interop/packed_seq_params.hpp"
#include "seqpack/pack/adopt.hpp"
#include "seqpack/pack/checks.hpp"
#include "seqpack/pack/counts.hpp"
#include "seqpack/pack/layout.hpp"
#include "seqpack/pack/layout_view.hpp"
#include "seqpack/pack/mask.hpp"
#include "seqpack/pack/pack.hpp"
#include "seqpack/pack/per_token.hpp"
#include "seqpack/pack/place.hpp"
#include "seqpack/pack/unpack.hpp"
#include "seqpack/policy/compatibility.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/parallel_settings.hpp"
#include "seqpack/policy/sharding.hpp"
