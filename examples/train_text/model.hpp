// The model: a byte's logits are the sum of one row of a table for each length of context. There is
// no autograd: the library gives the gradient of the logits, and a sum hands it on to its rows as
// it is.
#pragma once

#include <cmath>
#include <cstdint>
#include <seqpack/seqpack.hpp>

#include "batch.hpp"

namespace train_text {

/// The table, and its gradient. A tensor-parallel rank has some of the columns.
struct table {
  seqpack::executor_array<float> weights;   ///< [rows, columns]
  seqpack::executor_array<float> gradient;  ///< the same
  seqpack::column_range columns;
};

/// Zeros: the problem is convex, there is no symmetry to break, and all bytes are equally likely.
template <seqpack::executor E>
table make_table(const E& where, offset_t rows, const seqpack::column_range& columns) {
  const offset_t size = rows * columns.size();
  table t{seqpack::executor_array<float>(where, size), seqpack::executor_array<float>(where, size),
          columns};
  seqpack::fill(where, t.weights, 0.0F);
  seqpack::fill(where, t.gradient, 0.0F);
  return t;
}

// The operations of the model, in the forms that executors take: ranges of rows for the threads of a
// host, and a team of threads to a row for a device.

/// logits[t] = the sum over k of weights[rows[t][k]]
struct lookup_operation {
  seqpack::row_view<const std::int32_t> table_rows;  ///< [tokens, orders]
  const float* weights;
  seqpack::matrix_view<float> logits;

  offset_t rows() const noexcept { return logits.rows; }
  offset_t row_bytes() const noexcept { return logits.columns * offset_t{sizeof(float)}; }
  offset_t row_work() const noexcept { return row_bytes(); }
  void process(offset_t first, offset_t last) const {
    for (offset_t t = first; t < last; ++t) (*this)(seqpack::single_thread{}, t);
  }
  template <seqpack::team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t t) const {
    for (offset_t v = threads.rank(); v < logits.columns; v += threads.size()) {
      logits.at(t)[v] = sum(t, v);
    }
  }

 private:
  SEQPACK_HD float sum(offset_t t, offset_t v) const {
    float total = 0;
    for (offset_t k = 0; k < orders; ++k) {
      total += weights[table_rows.at(t)[k] * logits.columns + v];
    }
    return total;
  }
};

/// gradient[rows[t][k]] += logit_gradient[t], the transpose of the lookup. Many tokens add to one
/// row, so that the rows of work are blocks of columns: a host thread goes through all tokens in their
/// order; on a device a team shares the tokens out, and adds in any order.
struct scatter_operation {
  seqpack::row_view<const std::int32_t> table_rows;
  seqpack::matrix_view<const float> logit_gradient;
  float* gradient;

  static constexpr offset_t block = 16;  // columns of a cache line

  offset_t rows() const noexcept { return (logit_gradient.columns + block - 1) / block; }
  offset_t row_bytes() const noexcept {
    return logit_gradient.rows * block * offset_t{sizeof(float)};
  }
  offset_t row_work() const noexcept { return row_bytes(); }
  void process(offset_t first, offset_t last) const {
    const offset_t end = std::min(last * block, logit_gradient.columns);
    for (offset_t t = 0; t < logit_gradient.rows; ++t) {
      for (offset_t k = 0; k < orders; ++k) {
        for (offset_t v = first * block; v < end; ++v) *target(t, k, v) += logit_gradient.at(t)[v];
      }
    }
  }
  template <seqpack::team Team>
  SEQPACK_HD void operator()(const Team& threads, offset_t part) const {
    const offset_t first = part * block;
    const offset_t rest = logit_gradient.columns - first;
    const offset_t last = first + (rest < block ? rest : block);
    for (offset_t t = threads.rank(); t < logit_gradient.rows; t += threads.size()) {
      for (offset_t k = 0; k < orders; ++k) {
        for (offset_t v = first; v < last; ++v) add(target(t, k, v), logit_gradient.at(t)[v]);
      }
    }
  }

 private:
  SEQPACK_HD float* target(offset_t t, offset_t k, offset_t v) const {
    return gradient + table_rows.at(t)[k] * logit_gradient.columns + v;
  }
  SEQPACK_HD static void add(float* to, float value) {
#if defined(__CUDA_ARCH__)
    if (value != 0) atomicAdd(to, value);  // rows of padding have nothing to add
#else
    *to += value;
#endif
  }
};

/// Looks contexts up in the table. `Attention` is how a model that attends would be told about the
/// sequences; this one has its contexts, and works with either.
template <seqpack::attention_input Attention, seqpack::executor E>
class context_model {
 public:
  static constexpr auto attention = Attention;
  static constexpr auto output = seqpack::output_kind::logits;
  using fields = seqpack::field_tags<contexts_t>;  // what it asks for beside the ids

  /// \param t must outlive the model
  context_model(const E& where, const table& t) : where_(where), table_(t) {}

  template <class Input>
  seqpack::model_output<float> operator()(const Input& input) {
    const offset_t rows = input.ids.rows;
    const offset_t columns = table_.columns.size();
    if (logits_.size() < rows * columns) {
      logits_ = seqpack::executor_array<float>(where_, rows * columns);
    }
    const seqpack::matrix_view<float> logits(logits_.data(), rows, columns);
    seqpack::execute(where_, lookup_operation{seqpack::packed_rows(contexts, input),
                                              table_.weights.data(), logits});
    return {logits, table_.columns};
  }

  /// Adds to the gradient of the table.
  /// \param logit_gradient that of the logits that were made from the input
  template <class Input>
  void backward(const Input& input, const seqpack::matrix_view<const float>& logit_gradient) {
    seqpack::execute(where_, scatter_operation{seqpack::packed_rows(contexts, input),
                                               logit_gradient, table_.gradient.data()});
  }

 private:
  E where_;
  const table& table_;
  seqpack::executor_array<float> logits_;
};

/// One step of Adam for every weight; the gradient is 0 again afterwards.
struct adam_operation {
  float* weights;
  float* gradient;
  float* mean;
  float* square;
  offset_t count;
  float rate;          ///< with the correction of the means' start
  float square_scale;  ///< the correction of the squares' start
  float decay_mean = 0.9F;
  float decay_square = 0.99F;

  offset_t rows() const noexcept { return count; }
  offset_t row_bytes() const noexcept { return 4 * offset_t{sizeof(float)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t k) const {
    const float g = gradient[k];
    mean[k] = decay_mean * mean[k] + (1 - decay_mean) * g;
    square[k] = decay_square * square[k] + (1 - decay_square) * g * g;
    weights[k] -= rate * mean[k] / (std::sqrt(square_scale * square[k]) + 1e-8F);
    gradient[k] = 0;
  }
};

template <seqpack::executor E>
class adam {
 public:
  adam(const E& where, const table& t)
      : where_(where), mean_(where, t.weights.size()), square_(where, t.weights.size()) {
    seqpack::fill(where, mean_, 0.0F);
    seqpack::fill(where, square_, 0.0F);
  }

  void step(const table& t, double rate) {
    adam_operation operation{.weights = t.weights.data(),
                             .gradient = t.gradient.data(),
                             .mean = mean_.data(),
                             .square = square_.data(),
                             .count = t.weights.size(),
                             .rate = 0,
                             .square_scale = 0};
    ++steps_;
    const auto correction = [&](float decay) {
      return 1 / (1 - std::pow(static_cast<double>(decay), steps_));
    };
    operation.rate = static_cast<float>(rate * correction(operation.decay_mean));
    operation.square_scale = static_cast<float>(correction(operation.decay_square));
    seqpack::execute(where_, operation);
  }

 private:
  E where_;
  seqpack::executor_array<float> mean_;
  seqpack::executor_array<float> square_;
  int steps_ = 0;
};

}  // namespace train_text
