/// \file
/// Which tokens are targets: the label of those that are none, and the rules for documents.
#pragma once

#include "seqpack/core/config.hpp"

namespace seqpack {

/// Rules for sequences that hold several documents, with an end-of-document token after each.
struct document_options {
  offset_t end_of_document = 0;       ///< the token, which is a part of the document it ends
  bool reset_position_ids = false;    ///< positions begin at 0 in every document
  bool reset_attention_mask = false;  ///< no document attends to one before it
  bool mask_end_of_document = false;  ///< the first token of a document is no target
};

/// What labels say where there is nothing to predict.
inline constexpr offset_t ignored_label = -100;
static_assert(ignored_label < 0, "no id of a vocabulary is ignored");

}  // namespace seqpack
