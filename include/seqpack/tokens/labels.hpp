/// \file
/// Labels: the next token of the same sequence, from the map.
#pragma once

#include "seqpack/core/view.hpp"
#include "seqpack/tokens/detail/label.hpp"
#include "seqpack/tokens/detail/token_functions.hpp"
#include "seqpack/tokens/label_options.hpp"
#include "seqpack/tokens/token_array.hpp"

namespace seqpack {

/// The shift-th next token of the same sequence, from a batch of token ids, and options.ignore at
/// the last `shift` real tokens of each sequence and in padding: never a neighbour's token, never
/// one that wraps round, and the same for every context-parallel size.
///
/// The label type must hold the ids that become labels exactly, and options.vocabulary must have them.
/// Where the type lacks some value that the ids could have, or the vocabulary is given, a call on the
/// host looks at all of them first, O(tokens), and throws; on a device one that does not fit sets the
/// status of the layout, which `check()` of the layout throws, and its label is options.ignore.
template <class Tokens, class Out>
auto labels(const Tokens& tokens, Out&& out, label_options options = {}) {
  using T = detail::token_functions::element_of<Out>;
  static_assert(token_table<Tokens>,
                "labels come from a batch: a batch_view, left_padded_view or "
                "ragged_view of token ids");
  return token_array<T, detail::token_functions::label<T, Tokens>>{row_view(out),
                                                                   {tokens, options}};
}

}  // namespace seqpack
