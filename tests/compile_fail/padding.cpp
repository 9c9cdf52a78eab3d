// Parts of a padding that occur twice, or that are no parts.
#include "seqpack/policy/padding.hpp"

using namespace seqpack;

#if SEQPACK_FAIL == 0
constexpr padding all{each_multiple_of<4>{}, total_multiple_of<8>{}, fixed_total<16>{},
                      ghost_tail{}};
constexpr padding none{};
constexpr padding dynamic_numbers{each_multiple_of<>{4}, total_multiple_of<>{8}};
#endif

// expect 1: padding has each_multiple_of more than once
#if SEQPACK_FAIL == 1
constexpr padding wrong{each_multiple_of<4>{}, each_multiple_of<8>{}};
#endif

// expect 2: padding has total_multiple_of more than once
#if SEQPACK_FAIL == 2
constexpr padding wrong{total_multiple_of<4>{}, total_multiple_of<>{8}};
#endif

// expect 3: padding has fixed_total more than once
#if SEQPACK_FAIL == 3
constexpr padding wrong{fixed_total<4>{}, fixed_total<8>{}};
#endif

// expect 4: padding names where the tail goes more than once
#if SEQPACK_FAIL == 4
constexpr padding wrong{absorb_tail{}, ghost_tail{}};
#endif

// The same part with the same number.
// expect 5: padding has each_multiple_of more than once
#if SEQPACK_FAIL == 5
constexpr padding wrong{each_multiple_of<4>{}, each_multiple_of<4>{}};
#endif

// expect 6: padding_component<Parts>. .with Parts = .int... evaluated to 'false'
// expect 6: 'int' does not satisfy 'padding_component'
#if SEQPACK_FAIL == 6
using wrong = padding<int>;
#endif
