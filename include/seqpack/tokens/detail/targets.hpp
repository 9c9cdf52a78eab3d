/// \file
/// Which tokens of a batch are targets, and with what weight: the one place that reads the masks.
// For the folders above too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack::detail {

/// The token that follows an end of a document is no target, where the rule is on.
struct document_rule {
  bool on = false;
  offset_t end_of_document = 0;
};

constexpr document_rule rule_of(const document_options& documents) {
  return {documents.mask_end_of_document, documents.end_of_document};
}

/// A value of a per-token field. Bounds that are in device memory cannot be checked from the host:
/// a column outside of its row gives `outside`.
template <class Value, field_tag Tag, class Fields>
SEQPACK_HD Value token_value(Tag tag, const Fields& fields, offset_t b, offset_t s,
                             Value outside = {}) {
  const auto& table = tokens_of(tag, fields);
  const offset_t column = table.lead(b) + s;
  if constexpr (bounds_in_memory<std::remove_cvref_t<decltype(table)>>) {
    if (column < 0 || column >= table.columns(b)) return outside;
  }
  return static_cast<Value>(*table.at(b, column));
}
/// A value of a per-sequence field.
template <class Value, field_tag Tag, class Fields>
SEQPACK_HD Value sequence_value(Tag tag, const Fields& fields, offset_t b) {
  return static_cast<Value>(*sequences_of(tag, fields).at(b));
}

/// sample_mask[b], 1 without such a field.
template <class Fields>
SEQPACK_HD double sample_weight(const Fields& fields, offset_t b) {
  if constexpr (has_sequence_field<Fields, sample_mask_t>) {
    return sequence_value<double>(sample_mask, fields, b);
  } else {
    return 1;
  }
}

/// token_mask[b][s], 1 without such a field; 0 for token 0, which nothing predicts.
template <class Fields>
SEQPACK_HD double token_weight(const Fields& fields, const document_rule& rule, offset_t b,
                               offset_t s) {
  if (s < 1) return 0;
  if (rule.on && token_value<offset_t>(input_ids, fields, b, s - 1) == rule.end_of_document) {
    return 0;
  }
  if constexpr (has_token_field<Fields, token_mask_t>) {
    return token_value<double>(token_mask, fields, b, s);
  } else {
    return 1;
  }
}

/// The label of a token, for per_token: the next one where it counts for the loss, so that nothing
/// is computed, and no logits are read, for one that does not.
template <class Fields>
struct counted_label {
  Fields fields;
  document_rule rule;
  offset_t tuple;  ///< sequences of one loss term: the mask of the first one decides

  template <class View>
  SEQPACK_HD std::int64_t operator()(const View& view, const token_ref& token) const {
    const offset_t s = token.index + 1;
    if (s >= token.length) return ignored_label;
    const offset_t b = view.sequence_in(token.slot);
    if (!counts(b, s)) return ignored_label;
    // An id that is no token must not pass for a label that is to be ignored.
    const auto id = token_value<std::int64_t>(input_ids, fields, b, s, -1);
    return id < 0 ? -1 : id;
  }
  SEQPACK_HD bool counts(offset_t b, offset_t s) const {
    return sample_weight(fields, b - remainder(b, tuple)) != 0 &&
           token_weight(fields, rule, b, s) != 0;
  }
};

/// What prints a token id of a batch as it is.
template <class Fields>
using id_number =
    std::conditional_t<std::is_unsigned_v<typename std::remove_cvref_t<decltype(tokens_of(
                           input_ids, std::declval<const Fields&>()))>::value_type>,
                       std::uint64_t, std::int64_t>;

/// \throws invalid_input for a target that is not in the vocabulary, of the sequences that are
/// packed. Host only.
template <class View, class Fields>
void require_known_targets(const View& view, const counted_label<Fields>& label,
                           offset_t vocabulary) {
  for (offset_t slot = 0; slot < view.sequences; ++slot) {
    const offset_t b = view.sequence_in(slot);
    for (offset_t s = 1; s < view.length(slot); ++s) {
      if (!label.counts(b, s)) continue;
      const auto id = token_value<std::int64_t>(input_ids, label.fields, b, s);
      if (id >= 0 && id < vocabulary) continue;
      // One above what a label holds is negative by now.
      const auto given = token_value<id_number<Fields>>(input_ids, label.fields, b, s);
      reject({"input_ids[", b, "][", s, "]"}, given,
             {"a target must be from 0 to ", vocabulary - 1});
    }
  }
}

/// \throws invalid_input for a field that the layout does not fit.
template <executor E, field_tag Tag, class View, class Fields>
void require_batch_field(Tag tag, const View& view, const Fields& fields) {
  const std::string name(Tag::name);
  if constexpr (has_token_field<Fields, Tag>) {
    const auto& table = tokens_of(tag, fields);
    require_equal(alone, (name + " payload").c_str(), table.payload(), 1, "one value per token");
    require_table<E>(alone, name.c_str(), view, table, false);
  } else if constexpr (has_sequence_field<Fields, Tag>) {
    const auto& rows = sequences_of(tag, fields);
    require_equal(alone, name.c_str(), rows.rows, view.batch, "the batch size of the layout");
    require_equal(alone, (name + " payload").c_str(), rows.payload, 1, "one value per sequence");
    require_memory(alone, name.c_str(), rows.data, rows.rows);
  }
}

/// \throws invalid_input for something written in the memory of what a loss reads while it is: the
/// arrays of the layout and all fields of the batch.
template <class View, class... Fields>
void require_apart_from_batch(const char* what, const footprint& written, const View& view,
                              const field_list<Fields...>& fields) {
  regions<2 * sizeof...(Fields), 1> memory;
  const auto add = [&]<class Field>(const Field& field) {
    constexpr std::string_view name = Field::tag::name;
    if constexpr (Field::per_token) {
      memory.read(field.tokens.touched(), alone, name);
      memory.read(field.tokens.bounds_touched(), alone, name, " bounds");
    } else {
      memory.read(field.sequences.touched(), alone, name);
    }
  };
  memory.read_layout(view);
  (add(static_cast<const Fields&>(fields)), ...);
  memory.write(written, alone, what);
  memory.require_apart();
}

}  // namespace seqpack::detail
