/// \file
/// forward_step: from the next batch to the model's output and a loss that is ready to be called.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/self.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/interop/packed_seq_params.hpp"
#include "seqpack/pack/layout.hpp"
#include "seqpack/pack/layout_hash.hpp"
#include "seqpack/pack/pack.hpp"
#include "seqpack/pack/per_token.hpp"
#include "seqpack/pack/resident.hpp"
#include "seqpack/pack/unpacked_layout.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/train/causal.hpp"
#include "seqpack/train/evaluate.hpp"
#include "seqpack/train/fields.hpp"
#include "seqpack/train/loss.hpp"
#include "seqpack/train/model.hpp"
#include "seqpack/train/step_timer.hpp"

namespace seqpack {

/// Packs the sequences of a batch into one row: a padding and a context-parallel policy.
/// \tparam Bounds which bounds attention is told
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
  template <integer_range Lengths>
  auto layout_of(const Lengths& lengths, offset_t width) const {
    return make_layout<Index>(lengths, padding_, cp_, {.width = width});
  }

 private:
  Padding padding_{};
  ContextParallel cp_{};
};

template <padding_policy P>
packed(const P&) -> packed<P, no_context_parallel>;
template <padding_policy P, context_parallel_policy C>
packed(const P&, const C&) -> packed<P, C>;

/// The same policies, with attention told the real bounds beside the padded ones.
template <padding_policy P = no_padding, context_parallel_policy C = no_context_parallel>
constexpr auto packed_with_real_bounds(const P& padding = {}, const C& cp = {}) {
  return packed<P, C, attention_bounds::real_and_padded>(padding, cp);
}

/// Leaves the batch as it is, [B, S]. Over several context-parallel ranks each row is cut as a
/// sequence of S tokens would be.
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
  template <integer_range Lengths>
  auto layout_of(const Lengths& lengths, offset_t width) const {
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

/// What stays the same from step to step: how batches are packed, how their lengths are found, and
/// the groups.
///
///     forward_setup setup(packed(padding{each_multiple_of<8>{}}, context_parallel<2>{}),
///                         &text::lengths, cp_group, tp_group);
template <packing_policy Packing, class Lengths, communicator CP = self_communicator,
          communicator TP = self_communicator>
class forward_setup {
 public:
  /// Without other ranks.
  forward_setup(Packing packing, Lengths lengths)
      : packing_(std::move(packing)),
        lengths_(std::move(lengths)),
        cp_(std::make_shared<CP>()),
        tp_(std::make_shared<TP>()) {}
  /// \param cp, tp the context- and tensor-parallel groups of this rank: the rows and columns of a
  /// grid. They must outlive the setup, and the losses of its steps.
  forward_setup(Packing packing, Lengths lengths, CP& cp, TP& tp)
      : packing_(std::move(packing)),
        lengths_(std::move(lengths)),
        cp_(std::shared_ptr<void>(), &cp),
        tp_(std::shared_ptr<void>(), &tp) {}

  /// Without tensor-parallel ranks.
  forward_setup(Packing packing, Lengths lengths, CP& cp)
      : packing_(std::move(packing)),
        lengths_(std::move(lengths)),
        cp_(std::shared_ptr<void>(), &cp),
        tp_(std::make_shared<TP>()) {}

  const Packing& packing() const noexcept { return packing_; }
  const Lengths& lengths() const noexcept { return lengths_; }
  /// The number of the next step; copies of a setup count together.
  offset_t count_step() const noexcept { return ++*steps_; }
  CP& cp() const noexcept { return *cp_; }
  TP& tp() const noexcept { return *tp_; }

 private:
  Packing packing_;
  Lengths lengths_;
  std::shared_ptr<CP> cp_;
  std::shared_ptr<TP> tp_;
  std::shared_ptr<offset_t> steps_ = std::make_shared<offset_t>(0);
};

template <class P, class L>
forward_setup(P, L) -> forward_setup<P, L>;
template <class P, class L, class CP>
forward_setup(P, L, CP&) -> forward_setup<P, L, CP>;
template <class P, class L, class CP, class TP>
forward_setup(P, L, CP&, TP&) -> forward_setup<P, L, CP, TP>;

/// A count that nobody has told.
inline constexpr double not_given = std::numeric_limits<double>::quiet_NaN();

/// What a step may be told.
struct forward_options {
  /// N_tok and N_seq of the global batch; see count_valid. A loss whose level, or one of whose
  /// means, is per token or per sequence must be given that count; 0 says that nothing counts.
  double global_valid_toks = not_given;
  double global_valid_seqs = not_given;
  double temperature = 1;    ///< of logits; finite and above 0
  bool cp_normalize = true;  ///< see loss_options
  loss_pass pass = loss_pass::fused;
  /// Divides the logits by the temperature in the model's memory, for who reads the output. Without
  /// it they stay as they are, and the loss takes the temperature in its own pass. The gradient is
  /// with respect to what the model has given, either way.
  bool scale_in_place = false;
  /// Before anything else is sent, every rank of both groups tells the others whether its batch,
  /// then its model and output, and then the call of its loss can be worked with, so that all ranks
  /// fail or none: some exchanges of a few bytes, which the host waits for. Without it a rank that
  /// refuses its input leaves the others waiting until their deadline. The same on all ranks, as
  /// all options are.
  bool check_all_ranks = true;
};

namespace forwarding {

/// \throws invalid_input where the loss needs a count that was not given.
template <loss_function L>
global_counts counts_of(const forward_options& options) {
  const auto count = [](bool needed, const char* name, double value) {
    if (!std::isnan(value)) return value;
    if (needed) reject(name, "not given", "the loss, or a metric of it, is divided by it");
    return 0.0;
  };
  return {count(losses::needs_tokens<L>, "global_valid_toks", options.global_valid_toks),
          count(losses::needs_sequences<L>, "global_valid_seqs", options.global_valid_seqs)};
}

}  // namespace forwarding

/// A loss with everything that it needs; calling it gives the loss and the metrics, and the
/// gradient where asked. It owns the batch and what was made of it; the logits are the model's.
///
/// Calls are **collective** over both groups (see evaluate_loss), and may come as late as a
/// pipeline wants, in the same order on all ranks. The stream of the executor must outlive it, its
/// results and the inputs of the step.
template <executor E, class Setup, batch B, class Layout, loss_function L, logit T>
class bound_loss {
 public:
  using result_type = loss_result<E, typename L::metrics>;

  /// forward_step makes them.
  bound_loss(E where, Setup setup, B batch, std::shared_ptr<const Layout> layout, L loss,
             model_output<T> output, forward_options options, double temperature, double applied,
             bool replicated, offset_t number)
      : where_(std::move(where)),
        setup_(std::move(setup)),
        batch_(std::move(batch)),
        layout_(std::move(layout)),
        loss_(std::move(loss)),
        output_(output),
        options_(options),
        temperature_(temperature),
        applied_(applied),
        replicated_(replicated),
        number_(number) {}

  /// The loss and its metrics.
  /// \throws invalid_input where a gradient has overwritten the logits.
  result_type operator()() const { return evaluate(matrix_view<std::remove_const_t<T>>{}); }

  /// The loss, its metrics and its gradient with respect to the logits of this rank.
  /// \param gradient [T / CP, columns], of any type of logits, written, all of it. It may be the
  /// output's own rows: no other memory of that size is used then, and the loss cannot be called
  /// again.
  /// \throws invalid_input for a gradient of another shape, on all ranks together where
  /// forward_options::check_all_ranks was set.
  template <logit G>
    requires(!std::is_const_v<G>)
  result_type operator()(const matrix_view<G>& gradient) {
    return evaluate(gradient);
  }

  /// The batch that it is about.
  const B& batch_data() const noexcept { return batch_; }
  /// Where its tokens are, on the host.
  const Layout& layout() const noexcept { return *layout_; }

 private:
  template <class G>
  result_type evaluate(const matrix_view<G>& gradient) const {
    const loss_options options{.counts = forwarding::counts_of<L>(options_),
                               .temperature = temperature_,
                               .cp_normalize = options_.cp_normalize,
                               .pass = options_.pass,
                               .replicated_columns = replicated_,
                               .applied_temperature = applied_};
    const auto check = [&] {
      if (*overwritten_) {
        reject("logits", "overwritten by the gradient",
               "a loss whose gradient was written to its logits can be called once");
      }
      losses::require_logits(layout_->view(), setup_.cp(), setup_.tp(), output_.rows,
                             output_.columns, gradient, options);
    };
    const group_execution::current_device here(setup_.cp(), setup_.tp());
    if (options_.check_all_ranks) {
      const std::uint64_t which = mark_of(layout_hash(layout_->view()), number_);
      together(setup_.tp(), setup_.cp(), "loss of a forward step", check, which);
    } else {
      check();
    }
    // From here on, also where something fails on the way.
    if (gradient.touched().overlaps(output_.rows.touched())) *overwritten_ = true;
    const auto placed = resident(where_, *layout_);
    return losses::run(where_, setup_.cp(), setup_.tp(), *layout_, placed.view(), batch_.fields(),
                       targets::rule_of(setup_.packing().documents()), loss_, output_.rows,
                       output_.columns, gradient, options);
  }

  E where_;
  Setup setup_;
  B batch_;
  std::shared_ptr<const Layout> layout_;
  L loss_;
  model_output<T> output_;
  forward_options options_;
  double temperature_;
  double applied_;
  bool replicated_;
  offset_t number_;  // of the step, so that ranks that call the losses of two steps find out
  std::shared_ptr<bool> overwritten_ = std::make_shared<bool>(false);  // of all copies
};

namespace forwarding {

/// Memory of one packed field.
template <field_tag Tag, class Fields>
struct field_memory {
  using T =
      typename std::remove_cvref_t<decltype(tokens_of(Tag{}, std::declval<Fields>()))>::value_type;
  workspace<T> memory;
  row_view<T> rows;

  template <class E>
  field_memory(const E& where, const Fields& fields, offset_t count)
      : memory(where, count * tokens_of(Tag{}, fields).payload()),
        rows(memory.data(), count, tokens_of(Tag{}, fields).payload()) {}
};

/// The arrays that a model is given, with their memory; made where the executor works.
template <class Packing, class Layout, class Placed, class Fields, class Tags>
class inputs;

template <class Packing, class Layout, class Placed, class Fields, field_tag... Tags>
class inputs<Packing, Layout, Placed, Fields, field_tags<Tags...>> {
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
  inputs(const E& where, const Packing& packing, std::shared_ptr<const Layout> layout, shard mine,
         const Fields& fields)
      : layout_(std::move(layout)),
        placed_(resident(where, *layout_)),
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
    seq_idx_ = workspace<index_type>(where, view.total);
    bounds_ = workspace<index_type>(where, view.segments + 1);
    input_.params =
        make_packed_seq_params<Packing::bounds>(where, view, seq_idx_.span(), bounds_.span());
  }

  template <class E>
  void add_mask(const E& where, const document_options& documents, const View& view, shard mine,
                const Fields& fields) {
    const auto& ids = tokens_of(input_ids, fields);
    static_assert(requires { ids.width(); }, "a batch that is not packed is a batch_view");
    const offset_t width = ids.width();
    const bool apart = documents.reset_attention_mask;
    if (apart || documents.reset_position_ids) {
      starts_ = workspace<std::int64_t>(where, view.batch * width);
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
    mask_ = workspace<bool>(where, masks * queries * width);
    const row_view<bool> mask(mask_.data(), masks * queries, width);
    causal_mask(where, view, mine, apart ? starts : row_view<std::int64_t>{}, mask);
    input_.batch = view.batch;
    input_.width = width;
    input_.attention_mask = mask;
  }

  std::shared_ptr<const Layout> layout_;
  Placed placed_;
  field_memory<input_ids_t, Fields> ids_;
  workspace<index_type> positions_;
  std::tuple<field_memory<Tags, Fields>...> fields_;
  workspace<index_type> seq_idx_;
  workspace<index_type> bounds_;
  workspace<std::int64_t> starts_;
  workspace<bool> mask_;
  input_type input_{};
};

/// Columns of a [B, S] batch; without such a width, only the rows of the batch bound a length.
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
  (checks::require_table<E>(checks::alone, std::string(Tags::name).c_str(), view,
                            tokens_of(Tags{}, fields), false),
   ...);
}

/// Everything about a batch that can be refused, and its layout on the host.
template <loss_function L, class Model, executor E, class Setup, batch B>
auto checked_layout(const E& where, const Setup& setup, const B& batch,
                    const forward_options& options) {
  losses::require_streams(where, setup.cp(), setup.tp());
  require_counts(counts_of<L>(options));
  logits_checks::reciprocal(options.temperature);
  const auto fields = batch.fields();
  auto layout = setup.packing().layout_of(std::invoke(setup.lengths(), batch),
                                          width_of(tokens_of(input_ids, fields)));
  checks::require_equal(checks::alone, "context-parallel size of the packing",
                        layout.view().cp.size(), setup.cp().size(), "the ranks of the group");
  losses::require_batch<E, L>(layout.view(), fields);
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
template <executor E, loss_function L, class Model, class Setup, class View, class Fields, class T>
void require_output(const Setup& setup, const View& view, const Fields& fields,
                    const model_output<T>& output, const forward_options& options) {
  constexpr bool scalable = Model::output == output_kind::logits;
  losses::require_logits(
      view, setup.cp(), setup.tp(), output.rows, output.columns,
      matrix_view<std::remove_const_t<T>>{},
      {.temperature = scalable ? options.temperature : 1, .replicated_columns = !scalable});
  losses::require_targets<E, L>(view, fields, targets::rule_of(setup.packing().documents()),
                                output.columns.total);
  if (std::is_const_v<T> && scalable && options.scale_in_place) {
    reject("scale_in_place", "set", "the model gives logits that cannot be written");
  }
}

/// Columns of the tensor-parallel ranks that are not the vocabulary, found by all of them; the
/// others are told by `checked`. Nothing is found where a rank has no output at all.
template <class Setup>
std::exception_ptr columns_refused(const Setup& setup, const std::optional<column_range>& columns,
                                   const forward_options& options) {
  if (!options.check_all_ranks && setup.tp().size() > 1) return nullptr;
  try {
    label_log_probing::require_tiling(setup.tp(), columns);
  } catch (const invalid_input&) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace forwarding

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
/// \param loss a loss_function
/// \param setup packing, lengths and groups
/// \param options the global counts and the like
/// \returns output, loss and the model's input, which owns its arrays
/// \throws invalid_input, or collective_mismatch on all ranks: counts, a temperature, lengths,
/// fields or a batch size that do not fit, before the model is called; then an output that does not
/// have the shape of the shard, columns that are not the vocabulary, and targets outside of it.
/// What the iterator and the model throw; over several ranks with check_all_ranks all of them throw
/// a collective_mismatch then, in which it is nested on the rank where it was thrown.
///
/// Allocates what the model is given, O(T), and for a mask O(S^2 / CP). Does not synchronise a
/// stream, but for the exchanges of check_all_ranks, and that the layout is copied to a device as
/// to_device does. The device of the groups is the current one, also while the model runs. O(T)
/// beside the model.
template <executor E, class Timer, std::input_iterator Batches, class Model, class Loss,
          class Packing, class Lengths, communicator CP, communicator TP>
  requires step_timer<std::remove_reference_t<Timer>> && batch<std::iter_value_t<Batches>> &&
           std::constructible_from<std::iter_value_t<Batches>, std::iter_reference_t<Batches>> &&
           lengths_projection<Lengths, std::iter_value_t<Batches>> && gathers_on<E, CP> &&
           gathers_on<E, TP>
auto forward_step(const E& where, Timer&& timer, Batches& batches, Model& model, const Loss& loss,
                  const forward_setup<Packing, Lengths, CP, TP>& setup,
                  const forward_options& options = {}) {
  static_assert(loss_function<Loss>,
                "a loss has input, level and metrics, is trivially copyable, names its fields, and "
                "returns differentiable(value, derivative...) with a derivative for each sequence");
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
  const group_execution::current_device here(setup.cp(), setup.tp());

  std::optional<batch_type> data;
  auto inputs = forwarding::checked(setup, options, "forward_step", [&] {
    const timed_phase phase(timer, step_phase::batch_data);
    data.emplace(forwarding::take(batches));
    auto layout = forwarding::checked_layout<Loss, Model>(where, setup, *data, options);
    using layout_type = decltype(layout);
    using placed_type = decltype(resident(where, layout));
    return forwarding::inputs<Packing, layout_type, placed_type, fields_type, tags>(
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
  agreeing::nesting(failed, [&] {
    if (scalable) refused = forwarding::columns_refused(setup, columns, options);
  });
  forwarding::checked(
      setup, options, "output of forward_step",
      [&] {
        if (failed) std::rethrow_exception(failed);
        if (refused) std::rethrow_exception(refused);
        forwarding::require_output<E, Loss, Model>(setup, inputs.host_layout().view(),
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
