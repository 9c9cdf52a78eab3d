/// \file
/// How a step lays a batch out: packed, or as it is.
#pragma once

#include <concepts>
#include <cstdint>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/order.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/tokens/packed_seq_params.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack {

/// Packs the sequences of a batch into one row, those of its order where it has one: a padding and a
/// context-parallel policy.
/// \tparam Bounds which bounds attention gets
/// \tparam Index the type of cu_seqlens
template <padding_policy Padding = no_padding,
          context_parallel_policy ContextParallel = no_context_parallel,
          attention_bounds Bounds = attention_bounds::padded, layout_index Index = std::int32_t>
class packed {
 public:
  static constexpr auto attention = attention_input::packed_parameters;
  static constexpr attention_bounds bounds = Bounds;

  constexpr packed() = default;
  constexpr explicit packed(const Padding& how, const ContextParallel& cp = {})
      : padding_(how), cp_(cp) {}

  constexpr document_options documents() const noexcept { return {}; }
  /// \param order of a batch that has one
  template <integer_range Lengths>
  auto layout_of(const Lengths& lengths, offset_t width, const slot_order& order = {}) const {
    return make_layout<Index>(lengths, padding_, cp_, {.width = width, .order = order});
  }

 private:
  Padding padding_{};
  ContextParallel cp_{};
};

template <padding_policy P>
packed(const P&) -> packed<P, no_context_parallel>;
template <padding_policy P, context_parallel_policy C>
packed(const P&, const C&) -> packed<P, C>;

/// The same policies; attention gets the real bounds beside the padded ones.
template <padding_policy P = no_padding, context_parallel_policy C = no_context_parallel>
constexpr auto packed_with_real_bounds(const P& padding = {}, const C& cp = {}) {
  return packed<P, C, attention_bounds::real_and_padded>(padding, cp);
}

/// Leaves the batch as it is, [B, S]; one with an order is refused. Over several context-parallel ranks each sequence is cut as
/// one of S tokens would be.
template <context_parallel_policy ContextParallel = no_context_parallel,
          layout_index Index = std::int32_t>
class not_packed {
 public:
  static constexpr auto attention = attention_input::mask;

  constexpr not_packed() = default;
  constexpr explicit not_packed(const ContextParallel& cp, const document_options& documents = {})
      : cp_(cp), documents_(documents) {}
  constexpr explicit not_packed(const document_options& documents) : documents_(documents) {}

  constexpr document_options documents() const noexcept { return documents_; }
  /// \throws invalid_input for a batch with an order
  template <integer_range Lengths>
  auto layout_of(const Lengths& lengths, offset_t width, const slot_order& order = {}) const {
    if (order) {
      reject("order of the batch", "given",
             "a batch that is not packed takes all of its sequences, in their own order");
    }
    return unpacked_layout<Index>(lengths, width, cp_);
  }

 private:
  ContextParallel cp_{};
  document_options documents_{};
};

template <context_parallel_policy C>
not_packed(const C&) -> not_packed<C>;
template <context_parallel_policy C>
not_packed(const C&, const document_options&) -> not_packed<C>;
not_packed(const document_options&) -> not_packed<>;

/// packed, or not_packed.
template <class P>
concept packing_policy = std::copy_constructible<P> && requires(const P& p) {
  { P::attention } -> std::convertible_to<attention_input>;
  { p.documents() } -> std::convertible_to<document_options>;
};

}  // namespace seqpack
