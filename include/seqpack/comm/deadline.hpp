/// \file
/// The default deadline of communicators.
#pragma once

#include <chrono>

namespace seqpack {

/// How long a collective waits for another rank by default: longer than a checkpoint or an
/// evaluation that one rank does alone.
inline constexpr std::chrono::milliseconds default_deadline = std::chrono::minutes(10);

}  // namespace seqpack
