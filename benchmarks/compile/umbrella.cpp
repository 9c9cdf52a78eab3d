#include "seqpack/seqpack.hpp"
int main() {}
