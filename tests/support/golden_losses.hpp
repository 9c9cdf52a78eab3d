/// \file
/// Losses, metrics and gradients that a reference system produced, from tests/data.
#pragma once

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/golden.hpp"

namespace golden {

using reals = std::vector<double>;

/// What a loss was configured with.
struct loss_settings {
  static constexpr double none = std::numeric_limits<double>::infinity();

  bool sequence_level = false;
  // clipped_pg
  double clip_low = 0;
  double clip_high = 0;
  double dual_clip = none;
  std::string kl;
  double kl_penalty = 0;
  double kl_input_clamp = none;
  double kl_output_clamp = none;
  bool sequence_ratio = false;
  // dpo
  double beta = 0;
  std::string reward;
  double preference_weight = 0;
  double sft_weight = 0;
  bool sft_average = false;
};

/// One loss over one batch. Per-token fields are [B][width]; one that the case lacks is empty.
/// Their column 0 is NaN: no loss may look at it.
struct loss_case {
  std::string loss;  ///< "nll", "clipped_pg" or "dpo"
  long long width;
  long long vocab;
  numbers seq_lengths;
  std::vector<numbers> input_ids;
  std::vector<reals> token_mask;
  reals sample_mask;
  std::vector<reals> prev_logprobs;
  std::vector<reals> reference_logprobs;
  std::vector<reals> advantages;
  double global_valid_toks;
  double global_valid_seqs;  ///< 0 in loss.json, whose loss does not need it
  loss_settings settings;
  std::vector<reals> next_token_logprobs;  ///< [B][length - 1]; in loss.json
  double value;
  std::map<std::string, double> metrics;
  std::vector<std::vector<reals>> grad_logits;  ///< [B][length][vocab]
  bool exact;  ///< computed in double; loss.json was in float, and has 7 decimals

  /// The logits of a real token, from the formula of loss.json.
  static double logit(long long b, long long s, long long v) {
    const auto n = static_cast<double>(10 * b + s);
    const auto column = static_cast<double>(v);
    return 3 * std::sin(0.37 * n + 0.91 * column + 0.13 * n * column);
  }
};

inline reals real_list(const tree& node) {
  reals result;
  for (const auto& [key, entry] : node) result.push_back(std::stod(entry.data()));
  return result;
}

inline std::vector<reals> real_table(const tree& node) {
  std::vector<reals> result;
  for (const auto& [key, entry] : node) result.push_back(real_list(entry));
  return result;
}

/// A per-token field, or nothing; column 0 is spoilt.
inline std::vector<reals> token_table(const tree& node, const char* name) {
  if (node.count(name) == 0) return {};
  std::vector<reals> result = real_table(node.get_child(name));
  for (reals& row : result) row.at(0) = std::numeric_limits<double>::quiet_NaN();
  return result;
}

inline loss_settings to_loss_settings(const tree& node) {
  constexpr double none = loss_settings::none;
  return {.sequence_level = node.get<std::string>("level") == "sequence",
          .clip_low = node.get("clip_low", 0.0),
          .clip_high = node.get("clip_high", 0.0),
          .dual_clip = node.get("dual_clip", none),
          .kl = node.get("kl", ""),
          .kl_penalty = node.get("kl_penalty", 0.0),
          .kl_input_clamp = node.get("kl_input_clamp", none),
          .kl_output_clamp = node.get("kl_output_clamp", none),
          .sequence_ratio = node.get("sequence_ratio", false),
          .beta = node.get("beta", 0.0),
          .reward = node.get("reward", ""),
          .preference_weight = node.get("preference_weight", 0.0),
          .sft_weight = node.get("sft_weight", 0.0),
          .sft_average = node.get("sft_average", false)};
}

inline loss_case to_loss_case(const tree& node) {
  const bool exact = node.count("loss") > 0;
  loss_case c{.loss = node.get("loss", "nll"),
              .width = number(node.get_child("width")),
              .vocab = number(node.get_child("vocab")),
              .seq_lengths = number_list(node.get_child("seq_lengths")),
              .input_ids = {},
              .token_mask = token_table(node, "token_mask"),
              .sample_mask = real_list(node.get_child("sample_mask")),
              .prev_logprobs = token_table(node, "prev_logprobs"),
              .reference_logprobs = token_table(node, "reference_logprobs"),
              .advantages = token_table(node, "advantages"),
              .global_valid_toks = node.get<double>("global_valid_toks"),
              .global_valid_seqs = node.get("global_valid_seqs", 0.0),
              .settings = {},
              .next_token_logprobs = {},
              .value = node.get<double>(exact ? "value" : "nll_loss"),
              .metrics = {},
              .grad_logits = {},
              .exact = exact};
  for (const auto& [key, row] : node.get_child("input_ids")) {
    c.input_ids.push_back(number_list(row));
  }
  for (const auto& [key, sequence] : node.get_child("grad_logits")) {
    c.grad_logits.push_back(real_table(sequence));
  }
  if (!exact) {
    c.next_token_logprobs = real_table(node.get_child("next_token_logprobs"));
    return c;
  }
  c.settings = to_loss_settings(node.get_child("options"));
  for (const auto& [key, entry] : node.get_child("metrics")) {
    c.metrics[key] = std::stod(entry.data());
  }
  return c;
}

/// loss.json, 5 cases, or rl_losses.json, 8.
inline std::vector<loss_case> read_loss_cases(const char* file) {
  std::vector<loss_case> result;
  const tree document = read(file);
  for (const auto& [key, node] : document.get_child("cases")) result.push_back(to_loss_case(node));
  return result;
}

/// All 13 of both files.
inline std::vector<loss_case> loss_cases() {
  std::vector<loss_case> all = read_loss_cases("loss.json");
  for (loss_case& c : read_loss_cases("rl_losses.json")) all.push_back(std::move(c));
  return all;
}

}  // namespace golden
