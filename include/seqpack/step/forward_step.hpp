/// \file
/// forward_step: from the next batch to the model's output and a loss that is ready to be called.
#pragma once

#include <concepts>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/place_on.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/logprob/temperature.hpp"
#include "seqpack/loss/detail/checked_loss.hpp"
#include "seqpack/loss/loss.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/detail/verdict.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/step/bound_loss.hpp"
#include "seqpack/step/detail/forward_checks.hpp"
#include "seqpack/step/detail/model_inputs.hpp"
#include "seqpack/step/forward_options.hpp"
#include "seqpack/step/model.hpp"
#include "seqpack/step/model_input.hpp"
#include "seqpack/step/setup.hpp"
#include "seqpack/step/step_timer.hpp"
#include "seqpack/tokens/batch_fields.hpp"

namespace seqpack {

/// What a step returns.
template <class Inputs, logit T, class Loss>
struct step_result {
  model_output<T> output;  ///< the model's, of this rank's shard
  Loss loss;               ///< a bound_loss
  Inputs inputs;           ///< owns the arrays of the model's input, which is `inputs.input()`
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
/// \param timer notified of the phases batch_data and forward
/// \param batches an iterator, at a batch or a micro_batch, of which the sequences of its order are
/// packed; it is advanced by one, also where the batch is then refused. The batch is copied from it, or moved where it gives an rvalue, and the copy lives as
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
  const auto loss = detail::checked_loss(given);
  using Loss = std::remove_const_t<decltype(loss)>;
  static_assert(detail::says_attention<Model>,
                "a model says what it takes: `static constexpr auto attention`, an "
                "attention_input");
  static_assert(detail::says_output<Model>,
                "a model says what it gives: `static constexpr auto output`, an output_kind");
  static_assert(detail::takes_attention<Model>(Packing::attention),
                "a model that takes packed parameters needs `packed`, one that takes a mask "
                "`not_packed`");
  static_assert(detail::gives_logits<Model> || Loss::input == loss_input::logits,
                "a loss on log-probabilities needs logits: the model has a value head");
  using batch_type = std::iter_value_t<Batches>;
  using fields_type = std::remove_cvref_t<decltype(std::declval<const batch_type&>().fields())>;
  using tags = asked_fields<Model>;
  const shard mine{setup.cp().rank().value};
  setup.tp().rank();  // throws alone, and at once, where the caller is no member
  const detail::current_device here(setup.cp(), setup.tp());

  std::optional<batch_type> data;
  auto inputs = detail::checked_by_ranks(setup, options, "forward_step", [&] {
    const timed_phase phase(timer, step_phase::batch_data);
    data.emplace(detail::take_batch(batches));
    auto layout = detail::checked_step_layout<Loss, Model>(where, setup, *data, options);
    using layout_type = decltype(layout);
    using placed_type = decltype(place_on(where, layout));
    return detail::model_inputs<Packing, layout_type, placed_type, fields_type, tags>(
        where, setup.packing(), std::make_shared<const layout_type>(std::move(layout)), mine,
        data->fields());
  });

  using input_type = typename decltype(inputs)::input_type;
  static_assert(detail::returns_output<Model, input_type>,
                "a model is called with its input and returns a model_output");
  using output_type = decltype(model(inputs.input()));
  using T = typename decltype(std::declval<output_type>().rows)::element_type;
  constexpr bool scalable = detail::gives_logits<Model>;
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
    if (scalable) refused = detail::columns_refused(setup, columns, options);
  });
  detail::checked_by_ranks(
      setup, options, "output of forward_step",
      [&] {
        if (failed) std::rethrow_exception(failed);
        if (refused) std::rethrow_exception(refused);
        detail::require_model_output<E, Loss, Model>(setup, inputs.host_layout().view(),
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
  loss_type bound({.where = where,
                   .setup = setup,
                   .batch = std::move(*data),
                   .layout = inputs.layout(),
                   .loss = loss,
                   .output = output,
                   .options = options,
                   .temperature = options.scale_in_place
                                      ? logit_temperature::already_applied(temperature)
                                      : logit_temperature::in_loss(temperature),
                   .replicated_columns = !scalable,
                   .step = setup.count_step()});
  return step_result<decltype(inputs), T, loss_type>{output, std::move(bound), std::move(inputs)};
}

}  // namespace seqpack
