// Types that are no sharding.
#include <vector>

#include "seqpack/layout/layout.hpp"

using namespace seqpack;

struct reversed {
  static constexpr offset_t divisor(offset_t cp) { return cp; }
  static constexpr shard_position to_shard(offset_t token, offset_t length, offset_t cp) {
    const offset_t size = length / cp;
    return {cp - 1 - token / size, token % size};
  }
  static constexpr offset_t to_token(shard_position p, offset_t length, offset_t cp) {
    return (cp - 1 - p.rank) * (length / cp) + p.index;
  }
#if SEQPACK_FAIL != 2
  static constexpr offset_t run(shard_position, offset_t, offset_t) { return 1; }
#endif
};

const std::vector<int> lens{8};

#if SEQPACK_FAIL == 0
const auto layout_of_ones_own = make_layout(lens, no_padding{}, context_parallel<2, reversed>{});
const auto at_run_time = make_layout(lens, no_padding{}, context_parallel{2, reversed{}});
#endif

// expect 1: satisfaction of 'sharding<Sharding>' .with Sharding = int
// expect 1: 'int' does not satisfy 'sharding'
#if SEQPACK_FAIL == 1
using wrong = context_parallel<4, int>;
#endif

// expect 2: the required expression 's.run.p, n, n.' is invalid
// expect 2: 's.run.p, n, n.' would be invalid: no member named 'run' in 'reversed'
#if SEQPACK_FAIL == 2
using wrong = context_parallel<4, reversed>;
#endif

// A number of ranks alone is no policy.
// expect 3: satisfaction of 'context_parallel_policy<C>' .with C = int
// expect 3: C = int.: constraints not satisfied
#if SEQPACK_FAIL == 3
const auto wrong = make_layout(lens, no_padding{}, 2);
#endif

// expect 4: satisfaction of 'context_parallel_policy<C>' .with C = seqpack::zigzag
// expect 4: C = seqpack::zigzag.: constraints not satisfied
#if SEQPACK_FAIL == 4
const auto wrong = make_layout(lens, no_padding{}, zigzag{});
#endif
