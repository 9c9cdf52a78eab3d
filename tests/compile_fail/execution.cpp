// A layout knows where its arrays live, and an executor where it runs.
#include <cstdint>
#include <vector>

#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/counts.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"
#include "seqpack/tokens/per_token.hpp"

using namespace seqpack;

/// An owner whose arrays are in device memory.
struct layout_on_a_device {
  static constexpr bool on_device = true;
  using index_type = std::int32_t;
  using context_parallel_type = no_context_parallel;

  layout_view<no_context_parallel> view() const { return {}; }
};
static_assert(layout<layout_on_a_device>);

/// An executor of a device.
struct device {};
template <>
struct seqpack::executor_traits<device> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(const device&, const Op&) {}
};
static_assert(device_executor<device> && host_executor<host_t>);

void run() {
  const layout_on_a_device there;
  const auto here = make_layout(std::vector<int>{2, 1});
  std::vector<int> ids(6);
  std::vector<int> packed(3);
  const batch_view batch(ids.data(), 2, 3);

#if SEQPACK_FAIL == 0
  pack(host, here, full_row, field(batch, packed));
  pack(host, here.view(), full_row, field(batch, packed));
  pack(device{}, there, full_row, field(batch, packed));
  unpack(device{}, there, full_row, field(packed, batch));
  per_token(device{}, there, full_row, position_ids(packed));
#endif

// expect 1: satisfaction of 'runs_on<E, L>' .with E = seqpack::host_t; L = layout_on_a_device
// expect 1: because 'runs_on<seqpack::host_t, layout_on_a_device>' evaluated to false
#if SEQPACK_FAIL == 1
  pack(host, there, full_row, field(batch, packed));
#endif

// expect 2: satisfaction of 'runs_on<E, L>' .with E = seqpack::host_t; L = layout_on_a_device
// expect 2: because 'runs_on<seqpack::host_t, layout_on_a_device>' evaluated to false
#if SEQPACK_FAIL == 2
  unpack(host, there, full_row, field(packed, batch));
#endif

// expect 3: satisfaction of 'runs_on<E, L>' .with E = seqpack::host_t; L = layout_on_a_device
// expect 3: because 'runs_on<seqpack::host_t, layout_on_a_device>' evaluated to false
#if SEQPACK_FAIL == 3
  unpack_own(host, there, shard{0}, field(packed, batch));
#endif

// expect 4: satisfaction of 'runs_on<E, L>' .with E = seqpack::host_t; L = layout_on_a_device
// expect 4: because 'runs_on<seqpack::host_t, layout_on_a_device>' evaluated to false
#if SEQPACK_FAIL == 4
  per_token(host, there, full_row, position_ids(packed));
#endif

// expect 5: satisfaction of 'runs_on<seqpack::host_t, L>' .with L = layout_on_a_device
// expect 5: because 'runs_on<seqpack::host_t, layout_on_a_device>' evaluated to false
#if SEQPACK_FAIL == 5
  real_tokens(there, shard{0});
#endif

// expect 6: satisfaction of 'runs_on<E, L>' .with E = device; L = seqpack::packed_layout
// expect 6: because 'runs_on<device, seqpack::packed_layout<.*>' evaluated to false
#if SEQPACK_FAIL == 6
  pack(device{}, here, full_row, field(batch, packed));
#endif

// expect 7: satisfaction of 'runs_on<E, L>' .with E = seqpack::host_t; L = layout_on_a_device
// expect 7: because 'runs_on<seqpack::host_t, layout_on_a_device>' evaluated to false
#if SEQPACK_FAIL == 7
  shard_bounds(host, there, packed);
#endif

// expect 8: satisfaction of 'executor<E>' .with E = int
// expect 8: 'int' does not satisfy 'executor'
#if SEQPACK_FAIL == 8
  pack(0, here, full_row, field(batch, packed));
#endif

// expect 9: executor_traits of this executor has no memory: those of a host executor derive from
// expect 9: on a device pass a cuda_stream, which knows a memory resource
#if SEQPACK_FAIL == 9
  const executor_array<int> numbers(device{}, 3);
#endif

// expect 10: a layout goes to a device by a cuda_stream, which knows a memory resource
#if SEQPACK_FAIL == 10
  place_on(device{}, here);
#endif
}
