/// \file
/// How a group over NCCL is made over another group. CMake component: seqpack::nccl.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/nccl_site.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/nccl_error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/source_location.hpp"
#include "seqpack/exec/cuda_error.hpp"

namespace seqpack::detail::nccl {

inline void require_size(const char* name, offset_t size) {
  if (size < 1 || size > INT_MAX) {
    reject(name, size, "it must be from 1 to " + std::to_string(INT_MAX));
  }
}

/// One rank's part in making a group over another one: the id, from rank 0, and what went wrong.
struct invitation {
  ncclUniqueId id{};
  cudaError_t cuda = cudaSuccess;
  ncclResult_t nccl = ncclSuccess;
  int device = 0;

  void write(records::writer& to) const {
    to.raw(&id, sizeof id);
    to.put(static_cast<std::int32_t>(cuda));
    to.put(static_cast<std::int32_t>(nccl));
  }
  /// The device is of no use to others.
  static invitation read(records::reader& from) {
    invitation r;
    from.raw(&r.id, sizeof r.id);
    r.cuda = static_cast<cudaError_t>(
        from.get<std::int32_t>("code of CUDA", 0, static_cast<std::int32_t>(cudaErrorUnknown)));
    r.nccl = static_cast<ncclResult_t>(
        from.get<std::int32_t>("code of NCCL", 0, static_cast<std::int32_t>(ncclNumResults) - 1));
    return r;
  }
};

inline invitation invite(bool makes_id) {
  invitation mine{};
  try {
    mine.device = find_current_device();
  } catch (const cuda_error& e) {
    mine.cuda = e.code();
    return mine;
  }
  if (makes_id) mine.nccl = ncclGetUniqueId(&mine.id);
  return mine;
}

/// The same verdict on all ranks, but for a rank without a device, which throws its own error.
inline void require_all(const std::vector<invitation>& all, const group_members& members,
                        const invitation& mine,
                        source_location where = source_location::current()) {
  check_cuda(mine.cuda, where);
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].cuda == cudaSuccess) continue;
    const group_rank rank{static_cast<offset_t>(r)};
    throw communication_error(
        rank_name(members, rank) + " has no device: CUDA error " + cudaGetErrorName(all[r].cuda),
        where);
  }
  check_nccl(all.front().nccl, "ncclGetUniqueId on rank 0", nullptr, where);
}

}  // namespace seqpack::detail::nccl
