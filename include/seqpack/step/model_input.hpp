/// \file
/// The input of a model.
#pragma once

#include <concepts>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/place.hpp"
#include "seqpack/step/detail/model_traits.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"

namespace seqpack {

/// A per-token field in packed rows.
template <field_tag Tag, element T>
struct packed_field {
  row_view<const T> rows;
};

/// The part that is the same for every model. All arrays are of this rank's shard, where the
/// executor works.
template <class View, std::integral Id, class... Packed>
struct model_input : Packed... {
  using index_type = typename View::index_type;

  row_view<const Id> ids;                   ///< [T / CP], 0 in padding
  row_view<const index_type> position_ids;  ///< [T / CP]
  View layout;                              ///< the map, where the executor works
  shard place;                              ///< this rank's
};

/// The packed rows of a field that the model has asked for: [T / CP, D], 0 in padding.
template <field_tag Tag, class Input>
constexpr const auto& packed_rows(Tag, const Input& input) {
  return detail::find_packed<Tag>(input);
}

/// For a model that takes packed parameters.
template <class View, std::integral Id, class... Packed>
struct packed_model_input : model_input<View, Id, Packed...> {
  packed_seq_params<typename View::index_type> params;
};

/// For a model that takes a mask. The shard is [B, S / CP].
template <class View, std::integral Id, class... Packed>
struct unpacked_model_input : model_input<View, Id, Packed...> {
  offset_t batch = 0;                   ///< B
  offset_t width = 0;                   ///< S
  row_view<const bool> attention_mask;  ///< [1 or B, S / CP] rows of S: true where a key is hidden
};

}  // namespace seqpack
