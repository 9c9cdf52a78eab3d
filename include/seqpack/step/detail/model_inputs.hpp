/// \file
/// The arrays that a step gives to a model, and their memory.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/step/model_input.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/causal.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"
#include "seqpack/tokens/per_token.hpp"

namespace seqpack::detail {

/// Memory of one packed field.
template <field_tag Tag, class Fields>
struct field_memory {
  using T =
      typename std::remove_cvref_t<decltype(tokens_of(Tag{}, std::declval<Fields>()))>::value_type;
  executor_array<T> memory;
  row_view<T> rows;

  template <class E>
  field_memory(const E& where, const Fields& fields, offset_t count)
      : field_memory(where, tokens_of(Tag{}, fields).payload(), count) {}

 private:
  template <class E>
  field_memory(const E& where, offset_t payload, offset_t count)
      : memory(where, elements(count, payload)), rows(memory.data(), count, payload) {}

  static offset_t elements(offset_t count, offset_t payload) {
    require_elements<T>("packed rows * payload", count, payload);
    return count * payload;
  }
};

/// The arrays that a model is given, with their memory; made where the executor works.
template <class Packing, class Layout, class Placed, class Fields, class Tags>
class model_inputs;

template <class Packing, class Layout, class Placed, class Fields, field_tag... Tags>
class model_inputs<Packing, Layout, Placed, Fields, field_tags<Tags...>> {
  using View = std::remove_cvref_t<decltype(std::declval<const Placed&>().view())>;

 public:
  static_assert((has_token_field<Fields, Tags> && ...),
                "the batch lacks a per-token field that the model asks for");
  using id_type = typename field_memory<input_ids_t, Fields>::T;
  using index_type = typename View::index_type;
  static constexpr bool is_packed = Packing::attention == attention_input::packed_parameters;
  using input_type = std::conditional_t<
      is_packed,
      packed_model_input<View, id_type,
                         packed_field<Tags, typename field_memory<Tags, Fields>::T>...>,
      unpacked_model_input<View, id_type,
                           packed_field<Tags, typename field_memory<Tags, Fields>::T>...>>;

  template <class E>
  model_inputs(const E& where, const Packing& packing, std::shared_ptr<const Layout> layout,
               shard mine, const Fields& fields)
      : layout_(std::move(layout)),
        placed_(place_on(where, *layout_)),
        ids_(where, fields, layout_->shard_tokens()),
        positions_(where, layout_->shard_tokens()),
        fields_(field_memory<Tags, Fields>(where, fields, layout_->shard_tokens())...) {
    const View view = placed_.view();
    pack(where, view, mine, field(tokens_of(input_ids, fields), ids_.rows),
         field(tokens_of(Tags{}, fields), std::get<field_memory<Tags, Fields>>(fields_).rows)...);
    input_.ids = ids_.rows;
    input_.position_ids = row_view<const index_type>(positions_.rows());
    input_.layout = view;
    input_.place = mine;
    ((static_cast<packed_field<Tags, typename field_memory<Tags, Fields>::T>&>(input_).rows =
          std::get<field_memory<Tags, Fields>>(fields_).rows),
     ...);
    if constexpr (is_packed) {
      add_parameters(where, view, mine);
    } else {
      add_mask(where, packing.documents(), view, mine, fields);
    }
  }

  const input_type& input() const noexcept { return input_; }
  const std::shared_ptr<const Layout>& layout() const noexcept { return layout_; }
  /// What all ranks must agree on.
  const Layout& host_layout() const noexcept { return *layout_; }

 private:
  template <class E>
  void add_parameters(const E& where, const View& view, shard mine) {
    per_token(where, view, mine, position_ids(positions_.rows()));
    seq_idx_ = executor_array<index_type>(where, view.total);
    bounds_ = executor_array<index_type>(where, view.segments + 1);
    input_.params =
        make_packed_seq_params<Packing::bounds>(where, view, mine, seq_idx_.span(), bounds_.span());
  }

  template <class E>
  void add_mask(const E& where, const document_options& documents, const View& view, shard mine,
                const Fields& fields) {
    const auto& ids = tokens_of(input_ids, fields);
    static_assert(requires { ids.width(); }, "a batch that is not packed is a batch_view");
    const offset_t width = ids.width();
    const bool apart = documents.reset_attention_mask;
    if (apart || documents.reset_position_ids) {
      starts_ = executor_array<std::int64_t>(where, view.batch * width);
      document_starts(where, view, ids, documents.end_of_document,
                      row_view<std::int64_t>(starts_.data(), view.batch, width));
    }
    const row_view<std::int64_t> starts(starts_.data(), view.batch, width);
    if (documents.reset_position_ids) {
      per_token(where, view, mine, document_position_ids(starts, positions_.rows()));
    } else {
      per_token(where, view, mine, position_ids(positions_.rows()));
    }
    const offset_t queries = view.batch == 0 ? 0 : divide(view.shard_tokens(), view.batch);
    const offset_t masks = apart ? view.batch : offset_t{1};
    require_elements<bool>("attention mask rows * width", masks * queries, width);
    mask_ = executor_array<bool>(where, masks * queries * width);
    const row_view<bool> mask(mask_.data(), masks * queries, width);
    causal_mask(where, view, mine, apart ? starts : row_view<std::int64_t>{}, mask);
    input_.batch = view.batch;
    input_.width = width;
    input_.attention_mask = mask;
  }

  std::shared_ptr<const Layout> layout_;
  Placed placed_;
  field_memory<input_ids_t, Fields> ids_;
  executor_array<index_type> positions_;
  std::tuple<field_memory<Tags, Fields>...> fields_;
  executor_array<index_type> seq_idx_;
  executor_array<index_type> bounds_;
  executor_array<std::int64_t> starts_;
  executor_array<bool> mask_;
  input_type input_{};
};

}  // namespace seqpack::detail
