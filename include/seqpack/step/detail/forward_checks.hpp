/// \file
/// What a step checks of its batch and of its model's output, alone and with all ranks.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/logprob/detail/log_prob_checks.hpp"
#include "seqpack/logprob/detail/temperature.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/loss/detail/loss_checks.hpp"
#include "seqpack/loss/global_counts.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/step/detail/model_traits.hpp"
#include "seqpack/step/detail/step_counts.hpp"
#include "seqpack/step/forward_options.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/tokens/batch_fields.hpp"
#include "seqpack/tokens/detail/targets.hpp"

namespace seqpack::detail {

/// Whether a model takes what a packing gives. One that does not say so gets no second error.
template <class M>
constexpr bool takes_attention(attention_input given) {
  if constexpr (says_attention<M>) {
    return M::attention == given;
  } else {
    return true;
  }
}
/// Whether a model gives logits. One that does not say so passes for such a model.
template <class M>
inline constexpr bool gives_logits = true;
template <says_output M>
inline constexpr bool gives_logits<M> = M::output == output_kind::logits;

/// Columns of a [B, S] batch; without such a width, only the sequences of the batch bound a length.
template <class Table>
offset_t batch_width(const Table& table) {
  if constexpr (requires { table.width(); }) {
    return table.width();
  } else {
    return max_tokens;
  }
}

/// \throws invalid_input for a field that the model asks for and the layout does not fit.
template <executor E, class View, class Fields, field_tag... Tags>
void require_model_fields(const View& view, const Fields& fields, field_tags<Tags...>) {
  (require_table<E>(alone, std::string(Tags::name).c_str(), view, tokens_of(Tags{}, fields), false),
   ...);
}

/// The layout of a batch, on the host.
template <class Setup, batch B>
auto step_layout(const Setup& setup, const B& batch, offset_t width) {
  if constexpr (ordered_batch<B>) {
    return setup.packing().layout_of(std::invoke(setup.lengths(), batch), width, order_of(batch));
  } else {
    return setup.packing().layout_of(std::invoke(setup.lengths(), batch), width);
  }
}

/// Checks everything about a batch and returns its layout on the host.
template <class L, class Model, executor E, class Setup, batch B>
auto checked_step_layout(const E& where, const Setup& setup, const B& batch,
                         const forward_options& options) {
  require_loss_streams(where, setup.cp(), setup.tp());
  require_counts(step_counts<L>(options));
  reciprocal(options.temperature);
  const auto fields = batch.fields();
  auto layout = step_layout(setup, batch, batch_width(tokens_of(input_ids, fields)));
  require_equal(alone, "context-parallel size of the packing", layout.view().cp.size(),
                setup.cp().size(), "the ranks of the group");
  require_loss_batch<E, L>(layout.view(), fields);
  require_model_fields<E>(layout.view(), fields, asked_fields<Model>{});
  return layout;
}

/// Calls a check on this rank or, where asked, on all ranks together.
/// \param also a number beside the options that must be the same on all ranks
template <class Setup, class Call>
auto checked_by_ranks(const Setup& setup, const forward_options& o, std::string_view operation,
                      const Call& call, offset_t also = 0) {
  if (!o.check_all_ranks) return call();
  const std::uint64_t mark =
      mark_of(o.global_valid_toks, o.global_valid_seqs, o.temperature, o.cp_normalize,
              static_cast<int>(o.pass), o.scale_in_place, also);
  return together(setup.tp(), setup.cp(), operation, call, mark);
}

/// The next batch. All ranks stay at the same one, also where one of them cannot read it.
template <std::input_iterator It>
std::iter_value_t<It> take_batch(It& next) {
  std::optional<std::iter_value_t<It>> batch;
  std::exception_ptr failed;
  try {
    batch.emplace(*next);
  } catch (...) {
    failed = std::current_exception();
  }
  ++next;
  if (failed) std::rethrow_exception(failed);
  return std::move(*batch);
}

/// \throws invalid_input for what a model has given and a loss cannot use, on this rank.
template <executor E, class L, class Model, class Setup, class View, class Fields, class T>
void require_model_output(const Setup& setup, const View& view, const Fields& fields,
                          const model_output<T>& output, const forward_options& options) {
  constexpr bool scalable = gives_logits<Model>;
  require_loss_logits(
      view, fields, setup.cp(), setup.tp(), output.rows, output.columns,
      matrix_view<std::remove_const_t<T>>{},
      {.temperature = scalable ? options.temperature : 1.0, .replicated_columns = !scalable});
  require_loss_targets<E, L>(view, fields, rule_of(setup.packing().documents()),
                             output.columns.total);
  if (std::is_const_v<T> && scalable && options.scale_in_place) {
    reject("scale_in_place", "set", "the model gives logits that cannot be written");
  }
  if (scalable && options.scale_in_place) {
    require_apart_from_batch("logits", output.rows.touched(), view, fields);
  }
}

/// Columns of the tensor-parallel ranks that are not the vocabulary, found by all of them; the
/// others are told by checked_by_ranks. Nothing is found where a rank has no output at all.
template <class Setup>
std::exception_ptr columns_refused(const Setup& setup, const std::optional<column_range>& columns,
                                   const forward_options& options) {
  if (!options.check_all_ranks && setup.tp().size() > 1) return nullptr;
  try {
    require_tiling(setup.tp(), columns);
  } catch (const invalid_input&) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace seqpack::detail
