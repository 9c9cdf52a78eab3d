/// \file
/// Runs a golden loss through forward_step on a grid of context- and tensor-parallel ranks, and
/// compares what this rank gets.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/loss/clipped_policy_gradient.hpp"
#include "seqpack/loss/dpo.hpp"
#include "seqpack/loss/nll.hpp"
#include "seqpack/step/forward_step.hpp"
#include "support/findings.hpp"
#include "support/golden_losses.hpp"

namespace seqpack::testing {

inline const auto& golden_table(prev_logprobs_t, const golden::loss_case& c) {
  return c.prev_logprobs;
}
inline const auto& golden_table(reference_logprobs_t, const golden::loss_case& c) {
  return c.reference_logprobs;
}
inline const auto& golden_table(advantages_t, const golden::loss_case& c) {
  return c.advantages;
}

/// A case as a batch with the two masks and the fields that are named, no others. Columns behind
/// the length of a sequence hold what must never come out: ids outside of every vocabulary, NaN.
template <field_tag... Extra>
class golden_batch {
 public:
  /// \param width at least that of the case
  golden_batch(const golden::loss_case& c, offset_t width)
      : lengths(c.seq_lengths),
        width_(width),
        ids_(spread<std::int32_t>(c.input_ids, nowhere)),
        token_mask_(spread<float>(c.token_mask, not_a_number<float>)),
        sample_mask_(c.sample_mask.begin(), c.sample_mask.end()),
        extra_{spread<double>(golden_table(Extra{}, c), not_a_number<double>)...} {}

  golden::numbers lengths;

  auto fields() const { return fields(std::index_sequence_for<Extra...>{}); }

 private:
  static constexpr std::int32_t nowhere = 1'000'000;
  template <class F>
  static constexpr F not_a_number = std::numeric_limits<F>::quiet_NaN();

  template <std::size_t... K>
  auto fields(std::index_sequence<K...>) const {
    return field_list(
        token_field(input_ids, table(ids_)), token_field(token_mask, table(token_mask_)),
        sequence_field(sample_mask, sample_mask_), token_field(Extra{}, table(extra_[K]))...);
  }

  template <class F>
  batch_view<const F> table(const std::vector<F>& values) const {
    return {values.data(), static_cast<offset_t>(lengths.size()), width_};
  }

  template <class F, class Table>
  std::vector<F> spread(const Table& rows, F behind) const {
    std::vector<F> result(lengths.size() * static_cast<std::size_t>(width_), behind);
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      for (std::size_t s = 0; s < static_cast<std::size_t>(lengths[b]); ++s) {
        result[b * static_cast<std::size_t>(width_) + s] = static_cast<F>(rows.at(b).at(s));
      }
    }
    return result;
  }

  offset_t width_;
  std::vector<std::int32_t> ids_;
  std::vector<float> token_mask_;
  std::vector<float> sample_mask_;
  std::array<std::vector<double>, sizeof...(Extra)> extra_;
};

/// A model whose logits a case knows for each token. It finds the tokens of its rows through the
/// map alone, and leaves NaN in the rows of padding.
template <class T, attention_input Attention>
class golden_model {
 public:
  static constexpr auto attention = Attention;
  static constexpr auto output = output_kind::logits;

  golden_model(const golden::loss_case& c, const column_range& columns)
      : case_(&c), columns_(columns) {}

  template <class Input>
  model_output<T> operator()(const Input& input) {
    const offset_t count = input.ids.rows;
    rows_.assign(static_cast<std::size_t>(count * columns_.size()),
                 std::numeric_limits<T>::quiet_NaN());
    const matrix_view<T> rows(rows_.data(), count, columns_.size());
    for (offset_t i = 0; i < count; ++i) {
      const token_ref token = input.layout.token_at(input.place, i);
      if (!token.real()) continue;
      const offset_t b = input.layout.sequence_in(token.slot);
      require_token(b, token.index, *input.ids.at(i), *input.position_ids.at(i));
      for (offset_t v = 0; v < columns_.size(); ++v) {
        rows.at(i)[v] =
            static_cast<T>(golden::loss_case::logit(b, token.index, columns_.first + v));
      }
    }
    return {rows, columns_};
  }

 private:
  void require_token(offset_t b, offset_t s, offset_t id, offset_t position) const {
    const auto& row = case_->input_ids.at(static_cast<std::size_t>(b));
    if (id != row.at(static_cast<std::size_t>(s)) || position != s) {
      throw std::logic_error("the model was given another token than its place says");
    }
  }

  const golden::loss_case* case_;
  column_range columns_;
  std::vector<T> rows_;
};

/// What one rank gets.
template <class T, class Metrics>
struct grid_result {
  double value;
  metric_values<Metrics> metrics;
  /// [B][length] rows of this rank's columns; a row of another context-parallel rank is empty.
  std::vector<std::vector<std::vector<T>>> gradient;
  long long rows = 0;                ///< real tokens of this rank
  bool padding_is_zero = true;       ///< whether the gradient of padding is 0
  bool value_alone_is_same = false;  ///< whether the loss without a gradient is the same
};

template <class Tags>
struct batch_with;
template <field_tag... Tags>
struct batch_with<field_tags<Tags...>> {
  using type = golden_batch<Tags...>;
};

/// Brings a gradient from packed rows to the tokens.
template <class T, class Metrics, class View>
void collect_gradient(const golden::loss_case& c, const View& view, shard mine,
                      const matrix_view<const T>& rows, grid_result<T, Metrics>& result) {
  for (const auto length : c.seq_lengths) {
    result.gradient.emplace_back(static_cast<std::size_t>(length));
  }
  for (offset_t i = 0; i < rows.rows; ++i) {
    const token_ref token = view.token_at(mine, i);
    const std::vector<T> row(rows.at(i), rows.at(i) + rows.columns);
    if (token.real()) {
      const auto b = static_cast<std::size_t>(view.sequence_in(token.slot));
      result.gradient[b][static_cast<std::size_t>(token.index)] = row;
      ++result.rows;
    } else {
      for (const T x : row) result.padding_is_zero = result.padding_is_zero && x == 0;
    }
  }
}

/// One step and its loss, on every rank of the grid.
/// \param width of the batch; what not_packed shards by must divide it
/// \param columns those of this rank
template <class T, class Loss, class Packing, communicator CP, communicator TP>
auto run_golden(const golden::loss_case& c, const Loss& loss, const Packing& packing,
                offset_t width, CP& cp, TP& tp, const column_range& columns,
                bool cp_normalize = true, loss_pass pass = loss_pass::fused) {
  using batch_type = typename batch_with<asked_fields<Loss>>::type;
  const std::array<batch_type, 1> batches{batch_type(c, width)};
  auto next = batches.begin();
  golden_model<T, Packing::attention> model(c, columns);
  no_timer timer;
  const forward_setup setup(packing, &batch_type::lengths, cp, tp);
  auto step = forward_step(host, timer, next, model, loss, setup,
                           {.global_valid_toks = c.global_valid_toks,
                            .global_valid_seqs = c.global_valid_seqs,
                            .cp_normalize = cp_normalize,
                            .pass = pass});
  const offset_t rows = step.output.rows.rows;
  // Anything but what a gradient is.
  std::vector<T> memory(static_cast<std::size_t>(rows * columns.size()), T{12345});
  const matrix_view<T> gradient(memory.data(), rows, columns.size());
  const double alone = step.loss().value();
  const auto evaluated = step.loss(gradient);
  grid_result<T, typename Loss::metrics> result{evaluated.value(), evaluated.metrics(), {}};
  result.value_alone_is_same = alone == result.value;
  collect_gradient<T>(c, step.loss.layout().view(), shard{cp.rank().value}, gradient, result);
  return result;
}

inline bool is_near(double found, double expected, double absolute, double relative) {
  return std::abs(found - expected) <= absolute + relative * std::abs(expected);
}

/// Compares what a rank has with the case.
/// \param loss_factor, gradient_factor what they are multiplied by on this grid
template <class T, class Metrics>
void check_golden(findings& found, const std::string& what, const golden::loss_case& c,
                  const grid_result<T, Metrics>& result, const column_range& columns,
                  double loss_factor = 1, double gradient_factor = 1) {
  const double relative = c.exact && std::same_as<T, double> ? 1e-10 : 1e-5;
  // Half of the last printed digit of a gradient, and what float logits can be off by.
  const double printed = c.exact ? 5.01e-10 : 5.01e-8;
  const double absolute = printed + (c.exact && std::same_as<T, double> ? 0 : 1e-7);
  const auto near = [&](const std::string& name, double x, double expected) {
    if (is_near(x, expected, 0, relative)) return found.check(true, name);
    found.equal(x, expected, what + ", " + name);
  };
  near("loss", result.value, c.value * loss_factor);
  std::size_t metrics = 0;
  result.metrics.for_each([&](std::string_view name, double x) {
    near(std::string(name), x, c.metrics.at(std::string(name)));
    ++metrics;
  });
  found.check(metrics == c.metrics.size(), what + ", number of metrics");
  found.check(result.padding_is_zero, what + ", the gradient of padding is 0");
  found.check(result.value_alone_is_same, what + ", the loss alone is the same");

  bool gradient_is_near = true;
  for (std::size_t b = 0; b < result.gradient.size(); ++b) {
    for (std::size_t s = 0; s < result.gradient[b].size(); ++s) {
      const std::vector<T>& row = result.gradient[b][s];
      for (std::size_t k = 0; k < row.size(); ++k) {
        const std::size_t v = static_cast<std::size_t>(columns.first) + k;
        const double expected = c.grad_logits.at(b).at(s).at(v) * gradient_factor;
        const bool near_it =
            is_near(static_cast<double>(row[k]), expected, absolute * gradient_factor, relative);
        if (!near_it && gradient_is_near) {
          found.equal(row[k], expected,
                      what + ", gradient[" + std::to_string(b) + "][" + std::to_string(s) + "][" +
                          std::to_string(v) + "]");
        }
        gradient_is_near = gradient_is_near && near_it;
      }
    }
  }
  found.check(gradient_is_near, what + ", gradient");
}

/// Calls f with the loss of a case: nll, dpo or a clipped policy gradient. One function each,
/// because every loss is compiled with every packing that f tries.
template <class F>
void with_nll(const golden::loss_case&, F&& f) {
  f(nll{});
}
template <class F>
void with_dpo(const golden::loss_case& c, F&& f) {
  const golden::loss_settings& o = c.settings;
  const dpo_options options{.beta = o.beta,
                            .preference_weight = o.preference_weight,
                            .sft_weight = o.sft_weight,
                            .sft_average = o.sft_average};
  if (o.reward == "sum") return f(dpo<reward_over::sum>(options));
  if (o.reward == "mean") return f(dpo<reward_over::mean>(options));
  throw std::logic_error("no such dpo");
}
template <class F>
void with_policy_gradient(const golden::loss_case& c, F&& f) {
  using enum kl_estimate;
  const golden::loss_settings& o = c.settings;
  const clip_options options{.low = o.clip_low,
                             .high = o.clip_high,
                             .dual = o.dual_clip,
                             .kl_penalty = o.kl_penalty,
                             .kl_input_clamp = o.kl_input_clamp,
                             .kl_output_clamp = o.kl_output_clamp};
  constexpr auto token = loss_level::token;
  constexpr auto sequence = loss_level::sequence;
  if (!o.sequence_level && o.kl == "k1") return f(clipped_policy_gradient<token, k1>(options));
  if (!o.sequence_level && o.kl == "k3") return f(clipped_policy_gradient<token, k3>(options));
  if (o.sequence_level && !o.sequence_ratio && o.kl == "k3") {
    return f(clipped_policy_gradient<sequence, k3>(options));
  }
  if (o.sequence_level && o.sequence_ratio && o.kl == "k2") {
    return f(clipped_policy_gradient<sequence, k2, ratio_level::sequence>(options));
  }
  throw std::logic_error("no such clipped policy gradient");
}

}  // namespace seqpack::testing
