/// \file
/// forward_step: from the next batch to the model's output and a loss that is ready to be called.
#pragma once

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/label_log_probs.hpp"
#include "seqpack/loss/detail/checked_loss.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/detail/verdict.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/step/bound_loss.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/step/model_inputs.hpp"
#include "seqpack/step/setup.hpp"
#include "seqpack/step/step_timer.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack {

namespace detail::forwarding {

/// Columns of a [B, S] batch; without such a width, only the sequences of the batch bound a length.
template <class Table>
offset_t width_of(const Table& table) {
  if constexpr (requires { table.width(); }) {
    return table.width();
  } else {
    return max_tokens;
  }
}

template <executor E, class View, class Fields, field_tag... Tags>
void require_model_fields(const View& view, const Fields& fields, field_tags<Tags...>) {
  (detail::require_table<E>(detail::alone, std::string(Tags::name).c_str(), view,
                            tokens_of(Tags{}, fields), false),
   ...);
}

/// Everything about a batch that can be refused, and its layout on the host.
template <class L, class Model, executor E, class Setup, batch B>
auto checked_layout(const E& where, const Setup& setup, const B& batch,
                    const forward_options& options) {
  detail::losses::require_streams(where, setup.cp(), setup.tp());
  require_counts(counts_of<L>(options));
  detail::logits_checks::reciprocal(options.temperature);
  const auto fields = batch.fields();
  auto layout = setup.packing().layout_of(std::invoke(setup.lengths(), batch),
                                          width_of(tokens_of(input_ids, fields)));
  detail::require_equal(detail::alone, "context-parallel size of the packing",
                        layout.view().cp.size(), setup.cp().size(), "the ranks of the group");
  detail::losses::require_batch<E, L>(layout.view(), fields);
  require_model_fields<E>(layout.view(), fields, asked_fields<Model>{});
  return layout;
}

/// \param also a number beside the options that must be the same on all ranks
template <class Setup, class Call>
auto checked(const Setup& setup, const forward_options& o, std::string_view operation,
             const Call& call, offset_t also = 0) {
  if (!o.check_all_ranks) return call();
  const std::uint64_t mark =
      mark_of(o.global_valid_toks, o.global_valid_seqs, o.temperature, o.cp_normalize,
              static_cast<int>(o.pass), o.scale_in_place, also);
  return together(setup.tp(), setup.cp(), operation, call, mark);
}

/// The next batch. All ranks stay at the same one, also where one of them cannot read it.
template <std::input_iterator It>
std::iter_value_t<It> take(It& next) {
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

/// What a model has given, on this rank.
template <executor E, class L, class Model, class Setup, class View, class Fields, class T>
void require_output(const Setup& setup, const View& view, const Fields& fields,
                    const model_output<T>& output, const forward_options& options) {
  constexpr bool scalable = Model::output == output_kind::logits;
  detail::losses::require_logits(
      view, fields, setup.cp(), setup.tp(), output.rows, output.columns,
      matrix_view<std::remove_const_t<T>>{},
      {.temperature = scalable ? options.temperature : 1, .replicated_columns = !scalable});
  detail::losses::require_targets<E, L>(
      view, fields, detail::targets::rule_of(setup.packing().documents()), output.columns.total);
  if (std::is_const_v<T> && scalable && options.scale_in_place) {
    reject("scale_in_place", "set", "the model gives logits that cannot be written");
  }
  if (scalable && options.scale_in_place) {
    detail::targets::require_apart("logits", output.rows.touched(), view, fields);
  }
}

/// Columns of the tensor-parallel ranks that are not the vocabulary, found by all of them; the
/// others are told by `checked`. Nothing is found where a rank has no output at all.
template <class Setup>
std::exception_ptr columns_refused(const Setup& setup, const std::optional<column_range>& columns,
                                   const forward_options& options) {
  if (!options.check_all_ranks && setup.tp().size() > 1) return nullptr;
  try {
    detail::label_log_probing::require_tiling(setup.tp(), columns);
  } catch (const invalid_input&) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace detail::forwarding

/// What a step gives back.
template <class Inputs, logit T, class Loss>
struct step_result {
  model_output<T> output;  ///< the model's, of this rank's shard
  Loss loss;               ///< a bound_loss
  Inputs inputs;           ///< owns what the model was given: `inputs.input()`
};

/// Takes the next batch, packs and shards it, calls the model, and returns the model's output and a
/// loss that is ready to be called.
///
///     auto step = forward_step(host, no_timer{}, next, model, nll{}, setup,
///                              {.global_valid_toks = counts.tokens});
///     const auto result = step.loss(step.output.rows);   // the gradient replaces the logits
///     result.value();
///
/// **Collective** over the context- and tensor-parallel groups of the setup, whose ranks have the
/// same batches; the model may communicate over them too. With options.check_all_ranks, which is
/// the default, a mistake on one rank is an error on all.
///
/// \param where the executor; the fields of the batches live there
/// \param timer told of the phases batch_data and forward
/// \param batches an iterator, at a batch; it is advanced by one, also where the batch is then
/// refused. The batch is copied from it, or moved where it gives an rvalue, and the copy lives as
/// long as the loss: a batch of views needs the memory behind them as long.
/// \param model called with a packed_model_input or an unpacked_model_input, as its `attention`
/// says; a mismatch with the packing does not compile
/// \param given the loss, a loss_function
/// \param setup packing, lengths and groups
/// \param options the global counts and the like
/// \returns output, loss and the model's input, which owns its arrays
/// \throws invalid_input, or collective_mismatch on all ranks: counts, a temperature, lengths,
/// fields or a batch size that do not fit, before the model is called; then an output that does not
/// have the shape of the shard, or is scaled in the memory of a field or of the layout, columns that
/// are not the vocabulary, and targets outside of it.
/// What the iterator and the model throw; over several ranks with check_all_ranks all of them throw
/// a collective_mismatch then, in which it is nested on the rank where it was thrown.
///
/// Allocates what the model is given, O(T), and for a mask O(S^2 / CP). Does not synchronise a
/// stream, but for the exchanges of check_all_ranks, and that the layout is copied to a device as
/// to_device does. The device of the groups is the current one, also while the model runs. O(T)
/// beside the model.
template <executor E, class Timer, std::input_iterator Batches, class Model, class GivenLoss,
          class Packing, class Lengths, communicator CP, communicator TP>
  requires step_timer<std::remove_reference_t<Timer>> && batch<std::iter_value_t<Batches>> &&
           std::constructible_from<std::iter_value_t<Batches>, std::iter_reference_t<Batches>> &&
           lengths_projection<Lengths, std::iter_value_t<Batches>> && gathers_on<E, CP> &&
           gathers_on<E, TP>
auto forward_step(const E& where, Timer&& timer, Batches& batches, Model& model,
                  const GivenLoss& given, const forward_setup<Packing, Lengths, CP, TP>& setup,
                  const forward_options& options = {}) {
  const auto loss = detail::losses::checked(given);
  using Loss = std::remove_const_t<decltype(loss)>;
  static_assert(Model::attention == Packing::attention,
                "a model that takes packed parameters needs `packed`, one that takes a mask "
                "`not_packed`");
  static_assert(Model::output == output_kind::logits || Loss::input == loss_input::logits,
                "a loss on log-probabilities needs logits: the model has a value head");
  using batch_type = std::iter_value_t<Batches>;
  using fields_type = std::remove_cvref_t<decltype(std::declval<const batch_type&>().fields())>;
  using tags = asked_fields<Model>;
  const shard mine{setup.cp().rank().value};
  setup.tp().rank();  // throws alone, and at once, where the caller is no member
  const detail::current_device here(setup.cp(), setup.tp());

  std::optional<batch_type> data;
  auto inputs = detail::forwarding::checked(setup, options, "forward_step", [&] {
    const timed_phase phase(timer, step_phase::batch_data);
    data.emplace(detail::forwarding::take(batches));
    auto layout = detail::forwarding::checked_layout<Loss, Model>(where, setup, *data, options);
    using layout_type = decltype(layout);
    using placed_type = decltype(place_on(where, layout));
    return detail::forwarding::inputs<Packing, layout_type, placed_type, fields_type, tags>(
        where, setup.packing(), std::make_shared<const layout_type>(std::move(layout)), mine,
        data->fields());
  });

  using input_type = typename decltype(inputs)::input_type;
  static_assert(seqpack::model<Model, input_type>,
                "a model is called with its input and returns a model_output");
  using output_type = decltype(model(inputs.input()));
  using T = typename decltype(std::declval<output_type>().rows)::element_type;
  constexpr bool scalable = Model::output == output_kind::logits;
  output_type output;
  std::exception_ptr failed;
  try {
    const timed_phase phase(timer, step_phase::forward);
    output = model(inputs.input());
  } catch (...) {
    if (!options.check_all_ranks) throw;
    failed = std::current_exception();  // the others wait for this rank's verdict
  }

  std::optional<column_range> columns;
  if (!failed) columns = output.columns;
  std::exception_ptr refused;
  detail::nesting(failed, [&] {
    if (scalable) refused = detail::forwarding::columns_refused(setup, columns, options);
  });
  detail::forwarding::checked(
      setup, options, "output of forward_step",
      [&] {
        if (failed) std::rethrow_exception(failed);
        if (refused) std::rethrow_exception(refused);
        detail::forwarding::require_output<E, Loss, Model>(setup, inputs.host_layout().view(),
                                                           data->fields(), output, options);
      },
      columns ? columns->total : 0);
  if constexpr (scalable && !std::is_const_v<T>) {
    if (options.scale_in_place) scale_logits(where, output.rows, options.temperature);
  }

  using layout_type = std::remove_cvref_t<decltype(*inputs.layout())>;
  using setup_type = forward_setup<Packing, Lengths, CP, TP>;
  using loss_type = bound_loss<E, setup_type, batch_type, layout_type, Loss, T>;
  const double temperature = scalable ? options.temperature : 1;
  const offset_t number = setup.count_step();
  loss_type bound(where, setup, std::move(*data), inputs.layout(), loss, output, options,
                  options.scale_in_place ? 1 : temperature,
                  options.scale_in_place ? temperature : 1, !scalable, number);
  return step_result<decltype(inputs), T, loss_type>{output, std::move(bound), std::move(inputs)};
}

}  // namespace seqpack
