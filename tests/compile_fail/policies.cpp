// Static numbers of a padding and of a sharding that do not fit: the message names both.
#include <vector>

#include "seqpack/layout/layout.hpp"

using namespace seqpack;

const std::vector<int> lens{5, 3};

#if SEQPACK_FAIL == 0
const auto fits = make_layout(lens, padding{each_multiple_of<16>{}}, context_parallel<4>{});
const auto one = make_layout(lens, padding{each_multiple_of<1>{}}, context_parallel<4>{});
const auto late = make_layout(lens, padding{each_multiple_of<>{16}}, context_parallel<4>{});
const auto other =
    make_layout(lens, padding{each_multiple_of<12>{}}, context_parallel<4, contiguous>{});
const auto total =
    make_layout(lens, padding{fixed_total<64>{}, total_multiple_of<32>{}}, context_parallel<4>{});
#endif

// expect 1: each_is_a_multiple_of_the_sharding_divisor<12, 8>
#if SEQPACK_FAIL == 1
const auto wrong = make_layout(lens, padding{each_multiple_of<12>{}}, context_parallel<4>{});
#endif

// expect 2: each_multiple_of must be a multiple of what the sharding divides by
#if SEQPACK_FAIL == 2
const auto wrong = make_layout(lens, padding{each_multiple_of<12>{}}, context_parallel<4>{});
#endif

// expect 3: each_is_a_multiple_of_the_sharding_divisor<6, 4>
#if SEQPACK_FAIL == 3
const auto wrong =
    make_layout(lens, padding{each_multiple_of<6>{}}, context_parallel<4, striped>{});
#endif

// expect 4: fixed_total_is_a_multiple_of_the_total_multiple<48, 32>
#if SEQPACK_FAIL == 4
const auto wrong = make_layout(lens, padding{fixed_total<48>{}, total_multiple_of<32>{}});
#endif

// expect 5: fixed_total_is_a_multiple_of_the_sharding_divisor<12, 8>
#if SEQPACK_FAIL == 5
const auto wrong = make_layout(lens, padding{fixed_total<12>{}}, context_parallel<4>{});
#endif

// expect 6: fixed_total_is_a_multiple_of_the_sharding_divisor<9, 4>
#if SEQPACK_FAIL == 6
const auto wrong =
    make_layout(lens, padding{fixed_total<9>{}, ghost_tail{}}, context_parallel<4, contiguous>{});
#endif

// The same without a layout.
// expect 7: each_is_a_multiple_of_the_sharding_divisor<32, 6>
#if SEQPACK_FAIL == 7
static_assert(policies_fit<padding<each_multiple_of<32>>, context_parallel<3>>());
#endif

// A row that is cut as a whole needs a total, and a batch that is not packed has no such row.
// expect 8: fixed_total_is_a_multiple_of_the_sharding_divisor<9, 2>
#if SEQPACK_FAIL == 8
const auto wrong =
    make_layout(lens, padding{fixed_total<9>{}}, context_parallel<2, row_contiguous>{});
#endif

// expect 9: row_contiguous cuts the whole packed row
#if SEQPACK_FAIL == 9
const auto wrong = unpacked_layout(lens, 6, context_parallel<2, row_contiguous>{});
#endif
