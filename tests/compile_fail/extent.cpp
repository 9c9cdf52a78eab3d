// Numbers of policies that are out of range.
#include "seqpack/core/extent.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

using namespace seqpack;

#if SEQPACK_FAIL == 0
constexpr extent<1> least;
constexpr extent<max_tokens> most;
constexpr extent<> at_run_time{16};
constexpr each_multiple_of<16> each;
constexpr context_parallel<1> one;
#endif

// expect 1: a policy's number must be from 1 to 2\^48
#if SEQPACK_FAIL == 1
constexpr extent<0> wrong;
#endif

// expect 2: a policy's number must be from 1 to 2\^48
#if SEQPACK_FAIL == 2
constexpr extent<max_tokens + 1> wrong;
#endif

// expect 3: a policy's number must be from 1 to 2\^48
#if SEQPACK_FAIL == 3
constexpr each_multiple_of<0> wrong;
#endif

// expect 4: a policy's number must be from 1 to 2\^48
#if SEQPACK_FAIL == 4
constexpr fixed_total<-5> wrong;
#endif

// expect 5: a policy's number must be from 1 to 2\^48
#if SEQPACK_FAIL == 5
constexpr context_parallel<0> wrong;
#endif

// A number where the type already has one.
// expect 6: no matching function for call to 'seqpack::each_multiple_of<16>::each_multiple_of
// expect 6: no matching constructor for initialization of 'const each_multiple_of<16>'
#if SEQPACK_FAIL == 6
constexpr each_multiple_of<16> wrong{16};
#endif

// A number that is refused at run time is refused in a constant expression too.
// expect 7: call to non-'constexpr' function 'void seqpack::reject
// expect 7: 'wrong' must be initialized by a constant expression
#if SEQPACK_FAIL == 7
constexpr each_multiple_of<> wrong{0};
#endif
