// What including everything costs a program that uses nothing.
#include "seqpack/seqpack.hpp"

int main() {}
