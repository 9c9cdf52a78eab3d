// The inspector's command line.
#pragma once

#include <optional>
#include <seqpack/core/config.hpp>
#include <seqpack/policy/any_sharding.hpp>
#include <vector>

#include "../command_line/padding.hpp"

namespace inspect {

using seqpack::offset_t;

// They keep the output within reason.
using command_line::most_entries;
inline constexpr offset_t most_ranks = offset_t{1} << 16;

enum class format_choice { text, json, svg };
enum class row_source { lengths, segment_ids, position_ids };

struct options : command_line::padding_options {
  row_source source = row_source::lengths;
  std::optional<std::vector<offset_t>> lengths;  ///< where there are ids, the real ones or none
  std::vector<offset_t> ids;                     ///< of the tokens of a row that exists already
  std::optional<offset_t> padding_id = 0;
  offset_t position_start = 0;
  offset_t tail_tokens = seqpack::dynamic;
  offset_t width = seqpack::max_tokens;
  offset_t cp_size = 1;
  seqpack::sharding_kind sharding = seqpack::sharding_kind::zigzag;
  offset_t label_shift = 1;
  format_choice format = format_choice::text;
};

/// Reads the command line. Nothing where only the help was asked for, which it then printed.
/// \throws std::invalid_argument naming the option, its value and what it must be. Lengths and
/// ids, which the library checks, are passed on as they are.
std::optional<options> parse_options(int argc, const char* const* argv);

}  // namespace inspect
