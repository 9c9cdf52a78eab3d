/// \file
/// Log-probabilities of labels from rows of logits, forward and backward, with the vocabulary in
/// one piece or shared among tensor-parallel ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/exec/memory.hpp"
#include "seqpack/exec/team.hpp"
#include "seqpack/logprob/detail/softmax.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/group_execution.hpp"
#include "seqpack/parallel/together.hpp"
#include "seqpack/tokens/targets.hpp"

namespace seqpack {

/// What log-probabilities may be told.
struct log_prob_options {
  /// Logits are divided by it in the same pass; finite and above 0.
  double temperature = 1;
  /// Exchanges the verdict of every rank first, and which columns it holds, so that all ranks fail
  /// together: two exchanges more, which the host waits for. The same on all ranks.
  bool check_all_ranks = false;
  /// Of a backward pass, whose gradient has rows that are further apart than its columns are many,
  /// as with a padded vocabulary: writes 0 to all elements between them, and behind the last row up
  /// to its stride, which must be there. Else a gradient writes the columns alone, and a product
  /// over whole rows reads what was there before. In the same launch.
  bool zero_padded_columns = false;
};

/// What the forward pass leaves for each row of logits: rows elements each, in float, or double for
/// double logits.
template <class C>
struct label_log_prob_rows {
  row_view<C> log_probs;  ///< of the label; 0 for an ignored one
  row_view<C> max;        ///< the largest logit, for the backward pass
  row_view<C> sum;        ///< sum of exp(logit - max), for the backward pass
  row_view<C> entropy =
      {};  ///< of the row's distribution, in nats, 0 for an ignored label; optional
};

namespace detail::label_log_probing {

template <class C>
inline constexpr C quiet_nan = std::numeric_limits<C>::quiet_NaN();

/// One row of one rank, as it travels: max, sum, the label's logit and, for the entropy, the
/// weighted sum.
template <bool Entropy>
inline constexpr offset_t part_size = Entropy ? 4 : 3;

/// Adds up what all ranks tell about a row, and writes its results.
template <bool Entropy, class C>
class row_merge {
 public:
  SEQPACK_HD void add(const detail::softmax::part<C>& found, C label_logit) {
    all_ = detail::softmax::merge(all_, found);
    label_logit_ += label_logit;
  }
  SEQPACK_HD void write(const label_log_prob_rows<C>& out, offset_t row, bool ignored) const {
    const C log_sum = ignored ? C{0} : std::log(all_.sum);
    // Near the largest logit the difference is exact; their distance to log(sum) would not be.
    *out.log_probs.at(row) = ignored ? C{0} : (label_logit_ - all_.max) - log_sum;
    *out.max.at(row) = ignored ? C{0} : all_.max;
    *out.sum.at(row) = ignored ? C{1} : all_.sum;
    if constexpr (Entropy) {
      *out.entropy.at(row) = ignored ? C{0} : log_sum - all_.weighted / all_.sum;
    }
  }

 private:
  detail::softmax::part<C> all_{-detail::softmax::infinity<C>, 0, 0};
  C label_logit_ = 0;
};

/// The first pass: everything that one rank's columns tell about a row. Where they are all columns
/// it is the last pass too.
template <bool Entropy, class T, class C>
struct scan_operation {
  matrix_view<const T> logits;
  column_range columns;
  const std::int64_t* labels;
  C* parts;  ///< null where there is nothing to merge with
  label_log_prob_rows<C> out;
  C scale;

  /// Enough without spilling, so few that enough threads run at once; exp of double needs more.
  static constexpr int registers = sizeof(C) == 8 ? 128 : Entropy ? 80 : 64;

  offset_t rows() const noexcept { return logits.rows; }
  offset_t row_bytes() const noexcept { return logits.columns * offset_t{sizeof(T)}; }
  offset_t row_work() const noexcept { return row_bytes(); }

  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      const bool ignored = labels[first] == ignored_label;
      store(first,
            ignored ? detail::softmax::part<C>{}
                    : detail::softmax::scan_row<Entropy>(logits.at(first), logits.columns, scale),
            label_logit(first));
    }
  }
  template <team Group>
  SEQPACK_HD void operator()(const Group& group, offset_t row) const {
    // Loaded before the row, not behind it, where nothing would hide how long that takes.
    const C at_label = group.rank() == 0 ? label_logit(row) : C{0};
    detail::softmax::part<C> found{};
    if (labels[row] != ignored_label) {
      found = detail::softmax::scan_row<Entropy>(group, logits.at(row), logits.columns, scale);
    }
    if (group.rank() == 0) store(row, found, at_label);
  }

 private:
  SEQPACK_HD void store(offset_t row, const detail::softmax::part<C>& found, C at_label) const {
    if (parts == nullptr) {
      row_merge<Entropy, C> merge;
      merge.add(found, at_label);
      merge.write(out, row, labels[row] == ignored_label);
      return;
    }
    C* const to = parts + row * part_size<Entropy>;
    to[0] = found.max;
    to[1] = found.sum;
    to[2] = at_label;
    if constexpr (Entropy) to[3] = found.weighted;
  }
  /// 0 on the ranks that do not hold it; they are added up.
  SEQPACK_HD C label_logit(offset_t row) const {
    const offset_t label = labels[row];
    if (columns.contains(label)) {
      return static_cast<C>(logits.at(row)[label - columns.first]) * scale;
    }
    // On the host such a label has been refused.
    const bool known = label == ignored_label || (label >= 0 && label < columns.total);
    return known ? C{0} : quiet_nan<C>;
  }
};

/// The second pass: the parts of all ranks, [TP, rows, part_size].
template <bool Entropy, class C>
struct merge_operation {
  const C* parts;
  offset_t ranks;
  const std::int64_t* labels;
  label_log_prob_rows<C> out;

  offset_t rows() const noexcept { return out.log_probs.rows; }
  offset_t row_bytes() const noexcept { return 4 * offset_t{sizeof(C)}; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) (*this)(first);
  }
  SEQPACK_HD void operator()(offset_t row) const {
    row_merge<Entropy, C> merge;
    for (offset_t r = 0; r < ranks; ++r) {
      const C* const part = parts + (r * out.log_probs.rows + row) * part_size<Entropy>;
      merge.add({part[0], part[1], Entropy ? part[part_size<Entropy> - 1] : C{0}}, part[2]);
    }
    merge.write(out, row, labels[row] == ignored_label);
  }
};

/// d loss / d logit = derivative * (1 at the label - probability) / temperature.
template <class T, class G, class C>
struct backward_operation {
  matrix_view<const T> logits;
  column_range columns;
  const std::int64_t* labels;
  label_log_prob_rows<const C> forward;
  const C* derivatives;
  matrix_view<G> gradient;
  offset_t width;  ///< what is written of a row: its columns, and then 0
  C scale;

  static constexpr int registers = sizeof(C) == 8 ? 128 : 64;

  offset_t rows() const noexcept { return logits.rows; }
  offset_t row_bytes() const noexcept { return width * offset_t{sizeof(G)}; }
  offset_t row_work() const noexcept { return logits.columns * max_of(sizeof(T), sizeof(G)); }

  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) {
      G* const out = gradient.at(first);
      // Rows without a share in the loss are not read: anything may stand there.
      if (skipped(labels[first], derivatives[first])) {
        std::fill_n(out, width, static_cast<G>(0.0F));
        continue;
      }
      const C factor = derivatives[first] * scale;
      const C common = factor / *forward.sum.at(first);
      const C max = *forward.max.at(first);
      const offset_t label = labels[first] - columns.first;
      const bool here = columns.contains(labels[first]);
      const C at_label =
          here ? factor + detail::softmax::gradient_of(logits.at(first)[label], scale, max, common)
               : C{0};
      detail::softmax::gradient_row(logits.at(first), out, logits.columns, scale, max, common);
      if (here) out[label] = static_cast<G>(at_label);
      std::fill_n(out + logits.columns, width - logits.columns, static_cast<G>(0.0F));
    }
  }
  // Each element is read before it is written, also where the gradient overwrites the logits.
  template <team Group>
  SEQPACK_HD void operator()(const Group& group, offset_t row) const {
    const offset_t label = labels[row];
    const C derivative = derivatives[row];
    G* const out = gradient.at(row);
    if (skipped(label, derivative)) {  // anything may stand there
      // A call of its own: of one with a beginning that varies, nvcc 13 made stores of single elements.
      return group.fill_row(out, width, static_cast<G>(0.0F));
    }
    group.rewrite_row(logits.at(row), out, logits.columns, function_of(row, label, derivative));
    if (logits.columns < width) {
      group.fill_row(out + logits.columns, width - logits.columns, static_cast<G>(0.0F));
    }
  }

 private:
  SEQPACK_HD static bool skipped(offset_t label, C derivative) {
    return label == ignored_label || derivative == C{0};
  }
  /// The gradient of the logit x of column first + k.
  SEQPACK_HD auto function_of(offset_t row, offset_t label, C derivative) const {
    const C factor = derivative * scale;
    const C common = factor / *forward.sum.at(row);
    return [factor, common, max = *forward.max.at(row), at = label - columns.first, scale = scale](
               offset_t first, int k, const T& x) {
      const C others = detail::softmax::gradient_of(x, scale, max, common);
      return static_cast<G>(at - first == k ? factor + others : others);
    };
  }
};

/// \throws invalid_input for a label that is neither ignored nor in the vocabulary; host only.
inline void require_labels(row_view<const std::int64_t> labels, const column_range& columns) {
  for (offset_t row = 0; row < labels.rows; ++row) {
    const std::int64_t label = *labels.at(row);
    if (label == ignored_label || (label >= 0 && label < columns.total)) continue;
    reject(entry_name("labels", row), label,
           "it must be from 0 to " + std::to_string(columns.total - 1) + ", or " +
               std::to_string(ignored_label) + " for none");
  }
}

template <class T>
void require_shape(const matrix_view<T>& logits, const column_range& columns,
                   const row_view<const std::int64_t>& labels) {
  detail::logits_checks::require_range(columns);
  detail::require_equal(detail::alone, "logits columns", logits.columns, columns.size(),
                        "the columns of the vocabulary that they are");
  detail::require_equal(detail::alone, "labels", labels.rows, logits.rows,
                        "one for each row of logits");
  detail::require_equal(detail::alone, "labels payload", labels.payload, 1, "one for each row");
  detail::logits_checks::require_logits(logits);
  detail::require_memory(detail::alone, "labels", labels.data, labels.rows);
}

template <class C>
void require_rows(const char* name, const row_view<C>& rows, offset_t expected) {
  detail::require_equal(detail::alone, name, rows.rows, expected, "one for each row of logits");
  detail::require_equal(detail::alone, (std::string(name) + " payload").c_str(), rows.payload, 1,
                        "one for each row");
  detail::require_memory(detail::alone, name, rows.data, expected);
}

/// One rank's columns, as they travel; unknown on a rank that failed before it had any.
struct column_record {
  bool known = false;
  column_range columns;

  void write(detail::records::writer& to) const {
    to.flag(known);
    for (const offset_t n : {columns.first, columns.last, columns.total}) to.put(n);
  }
  static column_record read(detail::records::reader& from) {
    column_record r;
    r.known = from.flag("kind of the columns");
    r.columns.first = from.get<offset_t>();
    r.columns.last = from.get<offset_t>();
    r.columns.total = from.get<offset_t>();
    return r;
  }
};

/// \throws collective_mismatch where the ranks' columns are not, in the order of the ranks, the
/// whole vocabulary. Nothing can be said where they are not known on all ranks.
template <communicator TP>
void require_tiling(TP& tp, const std::optional<column_range>& mine) {
  if (tp.size() == 1) {
    if (mine) detail::logits_checks::require_all(*mine);
    return;
  }
  const auto records = detail::exchange_records(
      tp, "vocabulary columns", column_record{mine.has_value(), mine.value_or(column_range{})});
  for (const column_record& r : records) {
    if (!r.known) return;
  }
  const auto refuse = [&](std::size_t r, const std::string& must) {
    const column_range& found = records[r].columns;
    const group_rank rank{static_cast<offset_t>(r)};
    throw collective_mismatch(
        rank, "vocabulary columns on " + detail::rank_name(tp.members(), rank),
        "[" + std::to_string(found.first) + ", " + std::to_string(found.last) + ") of " +
            std::to_string(found.total),
        must);
  };
  const offset_t total = records.front().columns.total;
  offset_t end = 0;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const column_range& columns = records[r].columns;
    if (columns.total != total || columns.first != end) {
      refuse(r, "they must begin at " + std::to_string(end) +
                    ", where the ranks before it end, of " + std::to_string(total));
    }
    end = columns.last;
  }
  if (end != total) {
    refuse(records.size() - 1, "the last rank must hold those up to " + std::to_string(total));
  }
}

template <bool Entropy, class E, class TP, class T, class C>
void forward(const E& where, TP& tp, const matrix_view<const T>& logits,
             const column_range& columns, const std::int64_t* labels,
             const label_log_prob_rows<C>& out, C scale) {
  const offset_t size = tp.size() == 1 ? 0 : logits.rows * part_size<Entropy>;
  const workspace<C> mine(where, size);
  const workspace<C> all(where, size * tp.size());
  execute(where, scan_operation<Entropy, T, C>{logits, columns, labels, mine.data(), out, scale});
  if (tp.size() == 1) return;
  detail::keeping(tp, {mine.owner(), all.owner()},
                  [&] { tp.all_gather(mine.data(), all.data(), size); });
  execute(where, merge_operation<Entropy, C>{all.data(), tp.size(), labels, out});
}

}  // namespace detail::label_log_probing

/// The log-probability of one label per row of logits, and what the backward pass needs:
///
///     log_probs[t] = y[label] - log sum over v of exp(y[v]),    y = logits[t] / temperature
///
/// **Collective** over the tensor-parallel group, whose ranks hold the columns of the vocabulary in
/// their order, with the same labels on all of them: one all-gather of three numbers per row (four
/// with the entropy), merged on every rank in the same order, so that all ranks have the same bits.
/// With one rank nothing is sent.
///
/// \param logits [rows, columns.size()] of this rank; read once. Rows whose label is ignored are
/// not read.
/// \param columns which columns of the vocabulary they are
/// \param labels [rows], of the whole vocabulary, or ignored_label
/// \param out rows elements each, written; the entropy where it has memory
/// \throws invalid_input before anything is sent or written: a temperature that is not finite and
/// positive, sizes that do not fit, a pointer that is null or misaligned, an output in the memory of
/// something else and,
/// on the host, a label that is not in the vocabulary (on a device its log-probability is NaN).
/// With options.check_all_ranks on all ranks, as collective_mismatch; then also where the columns
/// of the ranks are not the vocabulary.
///
/// Allocates nothing where tp has one rank, else 3 or 4 numbers per row, and as many for each rank:
/// O(T), never O(T * V). Does not synchronise; one launch, or two where tp has several ranks. One
/// read of the logits.
///
/// On a device a warp does a row, or a block where a row is of more than 8 KiB. The results of a
/// row depend on its elements and their number alone: not on its address, nor on what is beside it.
template <executor E, communicator TP, logit T, class C>
  requires gathers_on<E, TP>
void label_log_probs(const E& where, TP& tp, const matrix_view<T>& logits,
                     const column_range& columns,
                     const std::type_identity_t<row_view<const std::int64_t>>& labels,
                     const label_log_prob_rows<C>& out, const log_prob_options& options = {}) {
  static_assert(std::same_as<C, compute_type<T>>,
                "log-probabilities are float, and double where the logits are");
  namespace impl = detail::label_log_probing;
  [[maybe_unused]] const auto named = detail::name_operation(tp, "label_log_probs");
  const auto check = [&] {
    detail::require_same_stream(where, tp);
    impl::require_shape(logits, columns, labels);
    impl::require_rows("log_probs", out.log_probs, logits.rows);
    impl::require_rows("max", out.max, logits.rows);
    impl::require_rows("sum", out.sum, logits.rows);
    const bool entropy = out.entropy.data != nullptr;
    if (entropy) impl::require_rows("entropy", out.entropy, logits.rows);
    detail::regions<2, 4> memory;
    memory.read(logits.touched(), detail::alone, "logits");
    memory.read(labels.touched(), detail::alone, "labels");
    memory.write(out.log_probs.touched(), detail::alone, "log_probs");
    memory.write(out.max.touched(), detail::alone, "max");
    memory.write(out.sum.touched(), detail::alone, "sum");
    memory.write(out.entropy.touched(), detail::alone, "entropy");
    memory.require_apart();
    if constexpr (host_executor<E>) impl::require_labels(labels, columns);
    return detail::logits_checks::reciprocal<C>(options.temperature);
  };
  const std::uint64_t mark = mark_of(logits.rows, out.entropy.data != nullptr, options.temperature);
  const C scale = options.check_all_ranks ? together(tp, "label_log_probs", check, mark) : check();
  if (options.check_all_ranks || tp.size() == 1) impl::require_tiling(tp, columns);

  [[maybe_unused]] const auto here = detail::make_current(tp);
  using plain = std::remove_const_t<T>;
  const matrix_view<const plain> rows(logits.data, logits.rows, logits.columns, logits.stride);
  if (out.entropy.data != nullptr) {
    impl::forward<true, E, TP, plain>(where, tp, rows, columns, labels.data, out, scale);
  } else {
    impl::forward<false, E, TP, plain>(where, tp, rows, columns, labels.data, out, scale);
  }
}

/// The gradient with respect to the logits, from that with respect to the log-probabilities:
///
///     gradient[t][v] = derivatives[t] * (1 if v == label else 0 - probability of v) / temperature
///
/// Not collective: every rank has its own columns, and what the forward pass left.
///
/// \param logits, columns, labels as in the forward pass
/// \param forward what label_log_probs has written
/// \param derivatives [rows], of the loss with respect to log_probs. A row with derivative 0 or an
/// ignored label gets gradient 0, and its logits are not read.
/// \param gradient [rows, columns], written; it may be the logits themselves, which it then
/// overwrites. A logit of -inf that is not the label's gets 0.
/// \throws invalid_input as label_log_probs does; a gradient that shares memory with anything else
/// that is given, or with the logits and is not the same view.
///
/// Allocates nothing. Does not synchronise; one launch. One read of the logits and one write.
template <executor E, logit T, logit G, class C>
  requires(!std::is_const_v<G>)
void label_log_probs_backward(const E& where, const matrix_view<T>& logits,
                              const column_range& columns,
                              const std::type_identity_t<row_view<const std::int64_t>>& labels,
                              const label_log_prob_rows<C>& forward,
                              const std::type_identity_t<row_view<const C>>& derivatives,
                              const matrix_view<G>& gradient,
                              const log_prob_options& options = {}) {
  static_assert(std::same_as<C, compute_type<T>>,
                "log-probabilities are float, and double where the logits are");
  namespace impl = detail::label_log_probing;
  impl::require_shape(logits, columns, labels);
  impl::require_rows("max", forward.max, logits.rows);
  impl::require_rows("sum", forward.sum, logits.rows);
  impl::require_rows("derivatives", derivatives, logits.rows);
  detail::logits_checks::require_gradient(logits, gradient, options.zero_padded_columns);
  using plain = std::remove_const_t<T>;
  detail::regions<6, 1> memory;
  memory.read(labels.touched(), detail::alone, "labels");
  memory.read(forward.log_probs.touched(), detail::alone, "log_probs");
  memory.read(forward.max.touched(), detail::alone, "max");
  memory.read(forward.sum.touched(), detail::alone, "sum");
  memory.read(forward.entropy.touched(), detail::alone, "entropy");
  memory.read(derivatives.touched(), detail::alone, "derivatives");
  memory.write(detail::logits_checks::written_bytes(gradient, options.zero_padded_columns),
               detail::alone, "gradient");
  memory.require_apart();
  const C scale = detail::logits_checks::reciprocal<C>(options.temperature);
  execute(where, impl::backward_operation<plain, G, C>{
                     {logits.data, logits.rows, logits.columns, logits.stride},
                     columns,
                     labels.data,
                     {forward.log_probs, forward.max, forward.sum, forward.entropy},
                     derivatives.data,
                     gradient,
                     options.zero_padded_columns ? gradient.stride : gradient.columns,
                     scale});
}

}  // namespace seqpack
