#include "seqpack/toy/limit.hpp"

static_assert(positive(1));

int main() {
  volatile int at_the_limit = 5;
  return small(at_the_limit) ? 0 : 1;
}
