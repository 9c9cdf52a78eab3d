// The command line of the example.
#pragma once

#include <cstdint>
#include <optional>
#include <seqpack/plan/plan_options.hpp>
#include <seqpack/plan/sequence_cost.hpp>
#include <string>
#include <vector>

#include "../command_line/padding.hpp"

namespace plan_text {

using command_line::most_entries;
using seqpack::offset_t;

inline constexpr offset_t most_tokens = offset_t{1} << 30;  // of a row
inline constexpr offset_t most_ranks = offset_t{1} << 16;

enum class format_choice { text, json, svg };

struct options : command_line::padding_options {
  // The lengths: the first of these that is given, else those of the default files.
  std::vector<std::string> files;
  std::optional<std::vector<offset_t>> lengths;
  std::optional<offset_t> log_normal;  ///< how many
  std::uint64_t seed = 1;
  offset_t longest = 4096;  ///< bytes of a sequence of a file

  std::optional<offset_t> capacity;
  std::optional<offset_t> ranks;               ///< data-parallel
  std::optional<seqpack::plan_method> method;  ///< all of them
  bool attention = false;                      ///< what a sequence costs
  offset_t hidden = 4096;
  seqpack::too_long too_long = seqpack::too_long::refuse;
  format_choice format = format_choice::text;

  /// A row of a fixed total has that capacity.
  offset_t row_capacity() const {
    if (capacity) return *capacity;
    return pad_total_to ? seqpack::dynamic : 8192;
  }
  /// A layer of a transformer: the products with its weights, and attention.
  seqpack::sequence_cost cost() const {
    return attention ? seqpack::sequence_cost(6 * hidden, 1) : seqpack::sequence_cost();
  }
};

/// Reads the command line. Nothing where only the help was asked for, which it then printed.
/// \throws std::invalid_argument naming the option, its value and what it must be. Lengths, which the
/// library checks, are passed on as they are.
std::optional<options> parse_options(int argc, const char* const* argv);

}  // namespace plan_text
