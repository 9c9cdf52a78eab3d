/// \file
/// The deadline of communicators that are given none.
#pragma once

#include <chrono>

namespace seqpack {

/// How long a collective waits for another rank unless told otherwise: longer than any checkpoint
/// or evaluation that ranks do alone, shorter than a night.
inline constexpr std::chrono::milliseconds default_deadline = std::chrono::minutes(10);

}  // namespace seqpack
