/// \file
/// A small causal language model with attention, in plain loops, as a user of the library would
/// write it; an oracle that evaluates the same model sequence by sequence and knows nothing of the
/// library; and what must hold between the two on any grid of ranks.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/findings.hpp"
#include "support/train_batch.hpp"

namespace seqpack::testing {

// What the model and the oracle share: sizes and weights.

namespace attention_sizes {
inline constexpr offset_t vocabulary = 11;
inline constexpr int layers = 2;
inline constexpr offset_t heads = 4;
inline constexpr offset_t head_width = 2;
inline constexpr offset_t width = heads * head_width;
}  // namespace attention_sizes

/// The matrices of the model.
enum class weights { embedding, query, key, value, mix, unembedding };

/// An entry of a matrix: a function of the indices, with no pattern that a mistake could hide in.
inline double weight(weights matrix, int layer, offset_t row, offset_t column) {
  constexpr offset_t rows = attention_sizes::vocabulary;
  constexpr offset_t columns = attention_sizes::width;
  static const auto table = [] {
    std::vector<double> entries;
    for (int m = 0; m < 6 * attention_sizes::layers; ++m) {
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < columns; ++c) {
          entries.push_back(0.8 * std::sin(1 + 12.9898 * r + 78.233 * c + 37.719 * m));
        }
      }
    }
    return entries;
  }();
  const offset_t m = static_cast<offset_t>(matrix) * attention_sizes::layers + layer;
  return table[static_cast<std::size_t>((m * rows + row) * columns + column)];
}
/// What is added to an embedding at a position.
inline double position_feature(offset_t position, offset_t feature) {
  const double angle = static_cast<double>(position) / std::pow(3, feature / 2);
  return feature % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

// The model.

/// Every tensor-parallel rank has some of the heads, perhaps none, and some columns of the output;
/// keys and values are gathered over the context-parallel ranks.
template <attention_input Attention, communicator CP, communicator TP>
class attention_model {
 public:
  static constexpr auto attention = Attention;
  static constexpr auto output = output_kind::logits;

  attention_model(CP& cp, TP& tp, const column_range& columns)
      : cp_(&cp), tp_(&tp), columns_(columns) {
    const auto first = [&](offset_t rank) { return rank * attention_sizes::heads / tp.size(); };
    first_head_ = first(tp.rank().value);
    heads_ = first(tp.rank().value + 1) - first_head_;
  }

  template <class Input>
  model_output<double> operator()(const Input& input) {
    embed(input);
    for (int layer = 0; layer < attention_sizes::layers; ++layer) attend(input, layer);
    return {project(), columns_};
  }

 private:
  static constexpr offset_t width = attention_sizes::width;
  static constexpr offset_t head_width = attention_sizes::head_width;
  static constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

  template <class Input>
  void embed(const Input& input) {
    rows_ = input.ids.rows;
    hidden_.resize(size(rows_ * width));
    for (offset_t i = 0; i < rows_; ++i) {
      const auto id = static_cast<offset_t>(*input.ids.at(i));
      if (id < 0 || id >= attention_sizes::vocabulary) {
        throw std::logic_error("the model was given token " + std::to_string(id));
      }
      for (offset_t d = 0; d < width; ++d) {
        hidden_[size(i * width + d)] =
            weight(weights::embedding, 0, id, d) + position_feature(*input.position_ids.at(i), d);
      }
    }
  }

  template <class Input>
  void attend(const Input& input, int layer) {
    const offset_t mine = heads_ * head_width;
    std::vector<double> queries(size(rows_ * mine));
    std::vector<double> keys_and_values(size(rows_ * 2 * mine));
    for (offset_t i = 0; i < rows_; ++i) {
      for (offset_t d = 0; d < mine; ++d) {
        double* const pair = keys_and_values.data() + i * 2 * mine;
        queries[size(i * mine + d)] = times_hidden(weights::query, layer, d, i);
        pair[d] = times_hidden(weights::key, layer, d, i);
        pair[mine + d] = times_hidden(weights::value, layer, d, i);
      }
    }
    const std::vector<double> all = gather(input, keys_and_values, 2 * mine);

    std::vector<double> change(size(rows_ * width), 0);
    for (offset_t i = 0; i < rows_; ++i) {
      keys_of(input, i);
      for (offset_t head = 0; head < heads_; ++head) {
        look_up(queries.data() + i * mine + head * head_width, all.data() + head * head_width, mine,
                layer, head, change.data() + i * width);
      }
    }
    if (rows_ > 0) {
      tp_->all_reduce(static_cast<const double*>(change.data()), change.data(), rows_ * width,
                      reduction::sum);
    }
    for (std::size_t k = 0; k < change.size(); ++k) hidden_[k] += change[k];
  }

  /// One row of a matrix, of this rank's heads, times the hidden state of a token.
  double times_hidden(weights matrix, int layer, offset_t d, offset_t i) const {
    double sum = 0;
    for (offset_t k = 0; k < width; ++k) {
      sum += weight(matrix, layer, first_head_ * head_width + d, k) * hidden_[size(i * width + k)];
    }
    return sum;
  }

  /// The rows of all context-parallel ranks: the packed row, or the batch with nothing behind the
  /// sequences.
  template <class Input>
  std::vector<double> gather(const Input& input, const std::vector<double>& mine,
                             offset_t payload) {
    const row_view<const double> from(mine.data(), rows_, payload);
    std::vector<double> all(size(rows_ * cp_->size() * payload));
    if constexpr (Attention == attention_input::packed_parameters) {
      all_gather_rows(
          host, *cp_, input.layout,
          field(from, row_view<double>(all.data(), input.params.total_tokens, payload)));
    } else {
      const batch_view<double> to(all.data(), input.batch, input.width, payload);
      all_gather_unpack(host, *cp_, input.layout, field(from, to, nothing));
    }
    return all;
  }

  /// Finds the rows, among the gathered ones, of the keys that a query may look at.
  template <class Input>
  void keys_of(const Input& input, offset_t i) {
    keys_.clear();
    if constexpr (Attention == attention_input::packed_parameters) {
      const auto& p = input.params;
      const auto bound =
          std::upper_bound(p.cu_seqlens_shard.begin(), p.cu_seqlens_shard.end(), i) - 1;
      const auto sequence = static_cast<std::size_t>(bound - p.cu_seqlens_shard.begin());
      const offset_t begin = p.cu_seqlens_kv_padded[sequence];
      const offset_t length = p.cu_seqlens_kv[sequence + 1] - p.cu_seqlens_kv[sequence];
      const offset_t position = *input.position_ids.at(i);
      require_agreement(p, sequence, begin + position, length);
      // With real bounds padding looks at nothing.
      for (offset_t k = 0; position < length && k <= position; ++k) keys_.push_back(begin + k);
    } else {
      const offset_t queries = rows_ / input.batch;
      const offset_t row = i / queries;
      const bool one_mask = input.attention_mask.rows == queries;
      const bool* const hidden = input.attention_mask.at(one_mask ? i % queries : i);
      for (offset_t k = 0; k < input.width; ++k) {
        if (!hidden[k]) keys_.push_back(row * input.width + k);
      }
    }
  }

  template <class Params>
  static void require_agreement(const Params& p, std::size_t sequence, offset_t row,
                                offset_t length) {
    const bool agree = p.qkv_format == "thd" &&
                       p.seq_idx[size(row)] == static_cast<offset_t>(sequence) &&
                       p.cu_seqlens_q_padded[sequence] == p.cu_seqlens_kv_padded[sequence] &&
                       p.cu_seqlens_q[sequence] == p.cu_seqlens_kv[sequence] &&
                       length <= p.max_seqlen_kv && p.max_seqlen_q == p.max_seqlen_kv;
    if (!agree) throw std::logic_error("the attention parameters contradict each other");
  }

  /// Adds what one head of this rank makes of the values that one query finds. What finds none gets
  /// NaN: nothing may look at it.
  void look_up(const double* query, const double* keys, offset_t mine, int layer, offset_t head,
               double* change) {
    double largest = -std::numeric_limits<double>::infinity();
    scores_.clear();
    for (const offset_t row : keys_) {
      double score = 0;
      for (offset_t d = 0; d < head_width; ++d) score += query[d] * keys[row * 2 * mine + d];
      scores_.push_back(score);
      largest = std::max(largest, score);
    }
    double sum = 0;
    std::array<double, size(head_width)> found{};
    for (std::size_t k = 0; k < keys_.size(); ++k) {
      const double share = std::exp(scores_[k] - largest);
      sum += share;
      for (offset_t d = 0; d < head_width; ++d) {
        found[size(d)] += share * keys[keys_[k] * 2 * mine + mine + d];
      }
    }
    for (offset_t to = 0; to < width; ++to) {
      double mixed = 0;
      for (offset_t d = 0; d < head_width; ++d) {
        const offset_t from = (first_head_ + head) * head_width + d;
        mixed += weight(weights::mix, layer, to, from) * found[size(d)];
      }
      change[to] += keys_.empty() ? nothing : mixed / sum;
    }
  }

  matrix_view<double> project() {
    logits_.resize(size(rows_ * columns_.size()));
    const matrix_view<double> logits(logits_.data(), rows_, columns_.size());
    for (offset_t i = 0; i < rows_; ++i) {
      for (offset_t v = 0; v < columns_.size(); ++v) {
        double sum = 0;
        for (offset_t d = 0; d < width; ++d) {
          sum +=
              weight(weights::unembedding, 0, columns_.first + v, d) * hidden_[size(i * width + d)];
        }
        logits.at(i)[v] = sum;
      }
    }
    return logits;
  }

  static constexpr std::size_t size(offset_t n) { return static_cast<std::size_t>(n); }

  CP* cp_;
  TP* tp_;
  column_range columns_;
  offset_t first_head_ = 0;
  offset_t heads_ = 0;
  offset_t rows_ = 0;
  std::vector<double> hidden_;
  std::vector<double> logits_;
  std::vector<offset_t> keys_;
  std::vector<double> scores_;
};

/// Uneven shares of the vocabulary.
inline column_range vocabulary_share(offset_t rank, offset_t ranks) {
  const offset_t v = attention_sizes::vocabulary;
  const auto first = [&](offset_t r) { return r == ranks ? v : r * (v + 2) / (ranks + 1); };
  return {first(rank), first(rank + 1), v};
}

// The oracle: one sequence at a time, in long double.

using tokens = std::vector<int>;
using real = long double;

namespace oracle {

using vector = std::vector<real>;

inline vector multiply(weights matrix, int layer, std::size_t rows, const vector& x) {
  vector y(rows, 0);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < x.size(); ++c) {
      y[r] += static_cast<real>(weight(matrix, layer, static_cast<long>(r), static_cast<long>(c))) *
              x[c];
    }
  }
  return y;
}

/// What one query of one layer takes from the tokens [first, last).
inline vector mixture(const vector& query, const std::vector<vector>& keys,
                      const std::vector<vector>& values, std::size_t first, std::size_t last) {
  constexpr std::size_t head = attention_sizes::head_width;
  vector result(query.size(), 0);
  for (std::size_t d = 0; d < query.size(); ++d) {
    real sum = 0;
    for (std::size_t k = first; k < last; ++k) {
      real score = 0;
      for (std::size_t e = d / head * head; e < (d / head + 1) * head; ++e) {
        score += query[e] * keys[k][e];
      }
      sum += std::exp(score);
      result[d] += std::exp(score) * values[k][d];
    }
    result[d] /= sum;
  }
  return result;
}

/// The logits behind each token of a sequence.
/// \param positions of each token
/// \param first the first token that each token sees
inline std::vector<vector> logits(const tokens& text, const std::vector<std::size_t>& positions,
                                  const std::vector<std::size_t>& first) {
  constexpr std::size_t width = attention_sizes::width;
  std::vector<vector> x;
  for (std::size_t t = 0; t < text.size(); ++t) {
    x.emplace_back(width);
    for (std::size_t d = 0; d < width; ++d) {
      const auto feature = static_cast<long>(d);
      x[t][d] = static_cast<real>(weight(weights::embedding, 0, text[t], feature)) +
                static_cast<real>(position_feature(static_cast<long>(positions[t]), feature));
    }
  }
  for (int layer = 0; layer < attention_sizes::layers; ++layer) {
    std::vector<vector> keys;
    std::vector<vector> values;
    for (const vector& h : x) {
      keys.push_back(multiply(weights::key, layer, width, h));
      values.push_back(multiply(weights::value, layer, width, h));
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      const vector query = multiply(weights::query, layer, width, x[t]);
      const vector seen = mixture(query, keys, values, first[t], t + 1);
      const vector change = multiply(weights::mix, layer, width, seen);
      for (std::size_t d = 0; d < width; ++d) x[t][d] += change[d];
    }
  }
  std::vector<vector> result;
  for (const vector& h : x) {
    result.push_back(multiply(weights::unembedding, 0, attention_sizes::vocabulary, h));
  }
  return result;
}

/// The log-probabilities of the tokens 1, 2, ... of a sequence: one fewer than it has tokens.
inline vector log_probs(const tokens& text, const std::vector<std::size_t>& positions,
                        const std::vector<std::size_t>& first) {
  // Many grids and packings are compared with the same texts.
  static std::map<std::tuple<tokens, std::vector<std::size_t>, std::vector<std::size_t>>, vector>
      known;
  const auto [entry, is_new] = known.try_emplace({text, positions, first});
  vector& result = entry->second;
  if (!is_new) return result;
  const std::vector<vector> rows = logits(text, positions, first);
  for (std::size_t t = 1; t < text.size(); ++t) {
    real sum = 0;
    for (const real y : rows[t - 1]) sum += std::exp(y);
    result.push_back(rows[t - 1][static_cast<std::size_t>(text[t])] - std::log(sum));
  }
  return result;
}

/// The same for a sequence that is one document.
inline vector log_probs(const tokens& text) {
  std::vector<std::size_t> positions(text.size());
  std::iota(positions.begin(), positions.end(), std::size_t{0});
  return log_probs(text, positions, std::vector<std::size_t>(text.size(), 0));
}

}  // namespace oracle

// Texts.

/// Bytes, as tokens from 0 to `kinds` - 1.
inline tokens to_tokens(std::string_view text, int kinds = attention_sizes::vocabulary) {
  tokens result;
  for (const char c : text) result.push_back(static_cast<unsigned char>(c) % kinds);
  return result;
}

/// Sequences of very different lengths, among them none at all and a single token.
inline std::vector<tokens> attention_texts() {
  std::vector<tokens> result;
  for (const std::string_view text :
       {"Packed rows hold sequences of many lengths.", "", "A", "to",
        "Rain falls on the hills and runs to the sea, and the sun lifts it up again.", "Why not?",
        "q", "", "A token sees those before it, and no other sequence."}) {
    result.push_back(to_tokens(text));
  }
  return result;
}

/// What is in the columns of a batch behind a sequence.
inline constexpr std::array<std::int64_t, 5> junk{1'000'000, 3, -7, 10, 0};

/// Sequences as a batch of rows.
/// \param width at least the longest length
/// \param with_junk behind the sequences; else 0
inline plain_text make_batch(const std::vector<tokens>& sequences, offset_t width,
                             bool with_junk = true) {
  plain_text batch{.lengths = {}, .width = width, .ids = {}};
  for (const tokens& sequence : sequences) {
    batch.lengths.push_back(static_cast<int>(sequence.size()));
    batch.ids.insert(batch.ids.end(), sequence.begin(), sequence.end());
    for (auto s = sequence.size(); s < static_cast<std::size_t>(width); ++s) {
      batch.ids.push_back(with_junk ? junk[s % junk.size()] : 0);
    }
  }
  return batch;
}

/// A width that every sequence fits in, and that a sharding divides.
inline offset_t width_for(const std::vector<tokens>& sequences, offset_t divisor) {
  std::size_t longest = 2;
  for (const tokens& sequence : sequences) longest = std::max(longest, sequence.size());
  return round_up(static_cast<offset_t>(longest), divisor);
}

// A step.

/// What one rank has of a step.
struct attention_step {
  double loss = 0;                    ///< as this rank returns it
  global_counts counts;               ///< of its batch alone
  offset_t width = 0;                 ///< S
  offset_t columns = 0;               ///< of its logits
  std::vector<double> logits;         ///< [B, S, columns], of all context-parallel ranks
  std::vector<double> log_probs;      ///< [B, S - 1]
  bool padding_is_kept_apart = true;  ///< see kept_apart

  /// The logits behind token s of row b.
  std::vector<double> logits_of(std::size_t b, std::size_t s) const {
    const auto first =
        logits.begin() + (static_cast<offset_t>(b) * width + static_cast<offset_t>(s)) * columns;
    return {first, first + columns};
  }
  /// The log-probability of token s + 1 of row b.
  double log_prob(std::size_t b, std::size_t s) const {
    return log_probs[b * static_cast<std::size_t>(width - 1) + s];
  }
};

/// This rank's groups.
template <communicator CP, communicator TP>
struct attention_groups {
  CP& cp;
  TP& tp;

  column_range columns() const { return vocabulary_share(tp.rank().value, tp.size()); }

  /// One step with the model, and everything that can be known of it.
  /// \param valid_tokens of the global batch; 0: those of this batch
  template <class Packing>
  attention_step step(const plain_text& batch, const Packing& packing,
                      double valid_tokens = 0) const {
    const std::array<plain_text, 1> batches{batch};
    auto next = batches.begin();
    no_timer timer;
    attention_model<Packing::attention, CP, TP> model(cp, tp, columns());
    attention_step result;
    result.width = batch.width;
    result.columns = columns().size();
    result.counts = count_valid(host, batch, &plain_text::lengths, packing.documents());
    if (valid_tokens == 0) valid_tokens = result.counts.tokens;
    const forward_setup setup(packing, &plain_text::lengths, cp, tp);
    auto step =
        forward_step(host, timer, next, model, nll{}, setup, {.global_valid_toks = valid_tokens});
    result.loss = step.loss().value();
    result.padding_is_kept_apart = kept_apart<Packing>(step);
    collect(step, batch, result);
    return result;
  }

 private:
  /// Whether the model knew what is padding: it leaves NaN where a query finds no key that is
  /// there. With padded bounds alone, padding is attended to like any token.
  template <class Packing, class Step>
  static bool kept_apart(const Step& step) {
    const auto& input = step.inputs.input();
    bool right = true;
    for (offset_t i = 0; i < step.output.rows.rows; ++i) {
      bool finite = input.layout.token_at(input.place, i).real();
      if constexpr (Packing::attention == attention_input::packed_parameters) {
        finite = finite || Packing::bounds == attention_bounds::padded;
      }
      right = right && std::isfinite(step.output.rows.at(i)[0]) == finite;
    }
    return right;
  }

  template <class Step>
  void collect(const Step& step, const plain_text& batch, attention_step& result) const {
    const auto rows = static_cast<offset_t>(batch.lengths.size());
    result.logits.resize(static_cast<std::size_t>(rows * result.width * result.columns));
    result.log_probs.resize(static_cast<std::size_t>(rows * (result.width - 1)));
    const auto& layout = step.loss.layout();
    all_gather_unpack(
        host, cp, layout,
        field(row_view<const double>(step.output.rows.data, step.output.rows.rows, result.columns),
              batch_view<double>(result.logits.data(), rows, result.width, result.columns)));
    next_token_logprobs(host, layout, cp, tp, tokens_of(input_ids, batch.fields()),
                        step.output.rows, step.output.columns,
                        batch_view<double>(result.log_probs.data(), rows, result.width - 1));
  }
};
template <class CP, class TP>
attention_groups(CP&, TP&) -> attention_groups<CP, TP>;

// What must hold.

inline bool is_close(double found, real expected, real relative = 1e-12L) {
  return std::abs(static_cast<real>(found) - expected) <= relative * std::abs(expected);
}

/// The log-probability of every token is that of the oracle, and 0 where there is no token.
inline void check_log_probs(findings& found, const std::string& what,
                            const std::vector<tokens>& sequences, const attention_step& step) {
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const auto expected = oracle::log_probs(sequences[b]);
    for (std::size_t s = 0; s + 1 < static_cast<std::size_t>(step.width); ++s) {
      const real right = s < expected.size() ? expected[s] : 0;
      const double x = step.log_prob(b, s);
      if (is_close(x, right)) continue;
      found.equal(
          x, right,
          what + ", log-probability [" + std::to_string(b) + "][" + std::to_string(s) + "]");
    }
  }
  found.check(step.padding_is_kept_apart, what + ", padding is kept apart");
}

/// The sum of the oracle's losses, not divided by a count.
inline real total_nll(const std::vector<tokens>& sequences) {
  real sum = 0;
  for (const tokens& sequence : sequences) {
    for (const real logp : oracle::log_probs(sequence)) sum -= logp;
  }
  return sum;
}
inline double count_targets(const std::vector<tokens>& sequences) {
  double count = 0;
  for (const tokens& sequence : sequences) {
    if (!sequence.empty()) count += static_cast<double>(sequence.size() - 1);
  }
  return count;
}

/// A sequence whose tokens are others from one on.
inline tokens changed_from(tokens sequence, std::size_t first) {
  for (std::size_t s = first; s < sequence.size(); ++s) {
    const int step = 1 + static_cast<int>(s % 3);
    sequence[s] = (sequence[s] + step) % int{attention_sizes::vocabulary};
  }
  return sequence;
}

/// Nothing that happens to one sequence is seen in another, nor earlier in the same one, to the
/// last bit; and it is seen everywhere else.
template <class Groups, class Packing>
void check_isolation(findings& found, const std::string& what, const Groups& groups,
                     const Packing& packing, offset_t width) {
  const auto sequences = attention_texts();
  const auto before = groups.step(make_batch(sequences, width), packing);
  for (std::size_t changed = 0; changed < sequences.size(); ++changed) {
    if (sequences[changed].empty()) continue;
    const std::size_t first = sequences[changed].size() / 2;
    auto others = sequences;
    others[changed] = changed_from(others[changed], first);
    const auto after = groups.step(make_batch(others, width), packing);
    const std::string which = what + ", sequence " + std::to_string(changed) + " changed";
    for (std::size_t b = 0; b < sequences.size(); ++b) {
      for (std::size_t s = 0; s < sequences[b].size(); ++s) {
        const bool same = before.logits_of(b, s) == after.logits_of(b, s);
        if (same == (b != changed || s < first)) continue;
        found.check(false, which + ": logits [" + std::to_string(b) + "][" + std::to_string(s) +
                               (same ? "] have not changed" : "] have changed"));
      }
    }
    found.check(true, which);
  }
}

/// Neither the length of a sequence nor whether it is there changes what the others get.
template <class Groups, class Packing>
void check_neighbours(findings& found, const std::string& what, const Groups& groups,
                      const Packing& packing, offset_t width) {
  const auto sequences = attention_texts();
  const auto before = groups.step(make_batch(sequences, width), packing);
  auto others = sequences;
  for (std::size_t b = 0; b < others.size(); b += 2) others[b].resize(others[b].size() / 3);
  const auto after = groups.step(make_batch(others, width), packing);
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    bool same = true;
    for (std::size_t s = 0; s < others[b].size(); ++s) {
      same = same && before.logits_of(b, s) == after.logits_of(b, s);
    }
    found.check(same, what + ", others cut: logits [" + std::to_string(b) + "] have changed");
  }
}

/// What a batch holds behind its sequences is never seen, whatever it is.
template <class Groups, class Packing>
void check_padding_content(findings& found, const std::string& what, const Groups& groups,
                           const Packing& packing, const std::vector<tokens>& sequences,
                           offset_t width) {
  const auto zeros = groups.step(make_batch(sequences, width, false), packing);
  const auto other = groups.step(make_batch(sequences, width, true), packing);
  found.check(zeros.loss > 0, what + ", there is a loss");
  found.equal(other.loss, zeros.loss, what + ", loss with other padding");
  found.check(other.log_probs == zeros.log_probs, what + ", log-probabilities with other padding");
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    for (std::size_t s = 0; s < sequences[b].size(); ++s) {
      found.check(other.logits_of(b, s) == zeros.logits_of(b, s),
                  what + ", logits with other padding");
    }
  }
}

// Documents.

/// The token that ends a document; no other token of these texts is it.
inline constexpr int end_of_document = 10;

/// Rows of documents, with their ends: also one that is nothing but its end, and last ones without.
inline std::vector<std::vector<tokens>> document_rows() {
  const auto document = [](std::string_view text, bool ended = true) {
    tokens result = to_tokens(text, end_of_document);
    if (ended) result.push_back(end_of_document);
    return result;
  };
  return {{document("The first of two documents."), document("The second, which is longer still.")},
          {document("Alone in its row.")},
          {document(""), document("x"), document(""), document("The last has no end", false)},
          {},
          {document("Two ends"), document(""), document("and text", false)}};
}
inline std::vector<tokens> joined(const std::vector<std::vector<tokens>>& rows) {
  std::vector<tokens> result;
  for (const auto& row : rows) {
    result.emplace_back();
    for (const tokens& document : row) {
      result.back().insert(result.back().end(), document.begin(), document.end());
    }
  }
  return result;
}
inline std::vector<tokens> one_by_one(const std::vector<std::vector<tokens>>& rows) {
  std::vector<tokens> result;
  for (const auto& row : rows) result.insert(result.end(), row.begin(), row.end());
  return result;
}

/// What the oracle makes of rows of documents.
struct document_nll {
  real sum = 0;
  double targets = 0;
};
inline document_nll expected_nll(const std::vector<std::vector<tokens>>& rows,
                                 const document_options& options) {
  document_nll result;
  for (const auto& row : rows) {
    std::vector<std::size_t> positions;
    std::vector<std::size_t> first;
    std::vector<bool> begins;
    tokens text;
    for (const tokens& document : row) {
      const std::size_t start = text.size();
      for (std::size_t s = 0; s < document.size(); ++s) {
        positions.push_back(options.reset_position_ids ? s : start + s);
        first.push_back(options.reset_attention_mask ? start : 0);
        begins.push_back(s == 0);
        text.push_back(document[s]);
      }
    }
    const auto log_probs = oracle::log_probs(text, positions, first);
    for (std::size_t t = 1; t < text.size(); ++t) {
      if (begins[t] && options.mask_end_of_document) continue;
      result.sum -= log_probs[t - 1];
      result.targets += 1;
    }
  }
  return result;
}

/// Every choice of document options gives what the oracle says of it, and all of them differ.
/// \param make a packing from document_options
template <class Groups, class Make>
void check_document_options(findings& found, const std::string& what, const Groups& groups,
                            const Make& make, offset_t divisor) {
  const auto rows = document_rows();
  const plain_text batch = make_batch(joined(rows), width_for(joined(rows), divisor));
  const auto ranks = static_cast<double>(groups.cp.size());
  std::vector<double> losses;
  for (int choice = 0; choice < 8; ++choice) {
    const document_options options{.end_of_document = end_of_document,
                                   .reset_position_ids = (choice & 1) != 0,
                                   .reset_attention_mask = (choice & 2) != 0,
                                   .mask_end_of_document = (choice & 4) != 0};
    const std::string which = what + ", document options " + std::to_string(choice);
    const auto expected = expected_nll(rows, options);
    const auto step = groups.step(batch, make(options));
    found.equal(step.counts.tokens, expected.targets, which + ", targets");
    losses.push_back(step.loss * ranks);
    found.check(is_close(losses.back(), expected.sum / expected.targets), which + ", loss");
    for (int k = 0; k < choice; ++k) {
      found.check(!is_close(losses[static_cast<std::size_t>(k)], losses.back(), 1e-6L),
                  which + " differs from " + std::to_string(k));
    }
  }
}

/// Documents in one row, kept apart, are what they are as sequences of their own.
template <class Groups, class RowPacking, class Packing>
void check_documents(findings& found, const std::string& what, const Groups& groups,
                     const RowPacking& rows_packing, const Packing& packing, offset_t divisor) {
  const auto rows = document_rows();
  const auto sequences = one_by_one(rows);
  const auto in_rows =
      groups.step(make_batch(joined(rows), width_for(joined(rows), divisor)), rows_packing);
  const auto alone = groups.step(make_batch(sequences, width_for(sequences, divisor)), packing);

  found.equal(in_rows.counts.tokens, count_targets(sequences), what + ", targets in rows");
  found.equal(alone.counts.tokens, count_targets(sequences), what + ", targets of sequences");
  // The same numbers, added up in another order.
  found.check(is_close(in_rows.loss, alone.loss, 1e-14L), what + ", loss");
  const auto ranks = static_cast<real>(groups.cp.size());
  found.check(is_close(alone.loss, total_nll(sequences) / alone.counts.tokens / ranks),
              what + ", loss of the oracle");

  std::size_t sequence = 0;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    std::size_t start = 0;
    for (const tokens& document : rows[b]) {
      for (std::size_t s = 0; s + 1 < document.size(); ++s) {
        found.equal(in_rows.log_prob(b, start + s), alone.log_prob(sequence, s),
                    what + ", bits of a log-probability");
      }
      start += document.size();
      ++sequence;
    }
  }
}

}  // namespace seqpack::testing
