/// \file
/// An array with one element per token, and the function that gives it.
#pragma once

#include "seqpack/core/view.hpp"

namespace seqpack {

/// An array with one element per token of a place, and the function that gives it:
/// `function(view, token)`, SEQPACK_HD. It may have
/// - `template <class Executor> require(subject, view)`, which throws for a layout that it cannot
///   serve; the subject is what errors call the array
/// - `add_reads(regions, subject)`, which says with `regions.read(bytes, subject, name)` what memory
///   it reads: at most two pieces
template <element T, class Function>
struct token_array {
  row_view<T> out;
  Function function;
};

}  // namespace seqpack
