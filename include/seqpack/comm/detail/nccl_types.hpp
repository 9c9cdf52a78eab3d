/// \file
/// Element types and reductions in the terms of NCCL. CMake component: seqpack::nccl.
#pragma once

#include <nccl.h>

#include <concepts>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/nccl_type.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack::detail::nccl {

/// What a reduction can combine.
template <class T>
concept reducible = element<T> && requires {
  { nccl_type<std::remove_cv_t<T>>::value } -> std::convertible_to<ncclDataType_t>;
};

constexpr ncclRedOp_t operation_of(reduction how) noexcept {
  return how == reduction::sum ? ncclSum : how == reduction::max ? ncclMax : ncclMin;
}

}  // namespace seqpack::detail::nccl
