// Lengths and indices of types that hold no counts.
#include <cstdint>
#include <list>
#include <vector>

#include "seqpack/layout/layout.hpp"

using namespace seqpack;

#if SEQPACK_FAIL == 0
const auto from_list = make_layout(std::list<unsigned>{5, 3});
const auto with_64_bits = make_layout<std::int64_t>(std::vector<short>{5, 3});
#endif

// expect 1: satisfaction of 'integer_range<Lengths>' .with Lengths = std::vector<float
// expect 1: 'std::vector<float>' does not satisfy 'integer_range'
#if SEQPACK_FAIL == 1
const auto wrong = make_layout(std::vector<float>{5, 3});
#endif

// A mask is no list of lengths.
// expect 2: satisfaction of 'integer_range<Lengths>' .with Lengths = std::vector<bool
// expect 2: 'std::vector<bool>' does not satisfy 'integer_range'
#if SEQPACK_FAIL == 2
const auto wrong = make_layout(std::vector<bool>{true, false});
#endif

// expect 3: satisfaction of 'layout_index<Index>' .with Index = unsigned int
// expect 3: with Index = unsigned int, .*constraints not satisfied
#if SEQPACK_FAIL == 3
const auto wrong = make_layout<std::uint32_t>(std::vector<int>{5, 3});
#endif

// expect 4: satisfaction of 'padding_policy<P>' .with P = seqpack::each_multiple_of<8>
// expect 4: P = seqpack::each_multiple_of<8>, .*constraints not satisfied
#if SEQPACK_FAIL == 4
const auto wrong = make_layout(std::vector<int>{5, 3}, each_multiple_of<8>{});
#endif
