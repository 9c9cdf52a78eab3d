/// \file
/// The padding that a training configuration needs, from its parallel sizes and number format.
#pragma once

#include <numeric>
#include <optional>
#include <string>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/policy/padding.hpp"

namespace seqpack {

/// The scaling recipe of FP8 matrix products; its block must divide the tokens of every rank.
enum class fp8_recipe { none, tensorwise, mxfp8, blockwise };

/// Tokens that a recipe's products come in multiples of; 1 without FP8.
constexpr offset_t token_multiple(fp8_recipe recipe) noexcept {
  switch (recipe) {
    case fp8_recipe::tensorwise: return 16;
    case fp8_recipe::mxfp8: return 32;
    case fp8_recipe::blockwise: return 128;
    case fp8_recipe::none: break;
  }
  return 1;
}

/// Tokens per rank that hybrid expert dispatch comes in multiples of.
inline constexpr offset_t hybrid_expert_multiple = 128;

/// What of a training configuration decides the padding. Sizes are numbers of ranks.
struct parallel_settings {
  offset_t tensor_parallel = 1;
  bool sequence_parallel = false;
  offset_t context_parallel = 1;
  offset_t pipeline_parallel = 1;
  fp8_recipe fp8 = fp8_recipe::none;
  bool hybrid_expert_parallel = false;
  offset_t sequence_multiple = 1;  ///< the caller's own multiple for each sequence, in tokens
  offset_t longest_packed = 0;     ///< tokens of the longest packed row; needed with pipelines
};

/// The numbers of a padding policy, in tokens.
struct padding_numbers {
  offset_t each = 1;
  offset_t total_multiple = 1;
  std::optional<offset_t> fixed_total = std::nullopt;

  friend constexpr bool operator==(const padding_numbers&, const padding_numbers&) = default;
};

/// What every padded sequence must be a multiple of so that context and sequence parallelism can
/// cut it: (2 * CP if CP > 1) * (TP if TP > 1 and sequence parallel).
constexpr offset_t least_factor(const parallel_settings& s) noexcept {
  const offset_t context = s.context_parallel > 1 ? 2 * s.context_parallel : 1;
  const offset_t tensor = s.tensor_parallel > 1 && s.sequence_parallel ? s.tensor_parallel : 1;
  return context * tensor;
}

/// Derives the padding.
///
/// - each: the caller's sequence_multiple
/// - total multiple: lcm(FP8 multiple, 128 with hybrid dispatch) * least factor, or 1 where neither
///   asks for anything
/// - fixed total: with more than one pipeline stage, the longest packed length rounded up to
///   lcm(total multiple, least factor), since the stages must agree on the shape
///
/// \throws invalid_input for sizes below 1, a sequence_multiple that is not a multiple of the least
/// factor, and pipelines without a longest packed length.
constexpr padding_numbers derive_padding(const parallel_settings& s) {
  const auto require_size = [](const char* name, offset_t value) {
    constexpr offset_t limit = offset_t{1} << 20;  // keeps every product below within 64 bits
    if (value < 1 || value > limit) {
      reject(name, value, {"it must be from 1 to ", limit});
    }
  };
  require_size("tensor_parallel", s.tensor_parallel);
  require_size("context_parallel", s.context_parallel);
  require_size("pipeline_parallel", s.pipeline_parallel);
  require_size("sequence_multiple", s.sequence_multiple);

  const offset_t factor = least_factor(s);
  if (s.sequence_multiple % factor != 0) {
    reject("sequence_multiple", s.sequence_multiple,
           {"it must be a multiple of ", factor,
            ", what context and sequence parallelism cut a sequence into"});
  }
  const offset_t block = std::lcm(token_multiple(s.fp8),
                                  s.hybrid_expert_parallel ? hybrid_expert_multiple : offset_t{1});
  padding_numbers numbers{.each = s.sequence_multiple,
                          .total_multiple = block > 1 ? block * factor : 1,
                          .fixed_total = std::nullopt};
  if (s.pipeline_parallel > 1) {
    if (s.longest_packed < 1 || s.longest_packed > max_tokens) {
      reject("longest_packed", s.longest_packed,
             {"it must be from 1 to ", max_tokens, " with more than one stage"});
    }
    numbers.fixed_total = round_up(s.longest_packed, std::lcm(numbers.total_multiple, factor));
  }
  return numbers;
}

namespace detail {

/// Kept out of line: where it is inlined into a caller that sets or resets the number, g++ 12 takes
/// the number to be read uninitialised.
[[gnu::noinline]] constexpr fixed_total<> fixed_total_of(const padding_numbers& numbers) {
  return fixed_total<>{*numbers.fixed_total};
}

}  // namespace detail

/// Calls f with the padding policy that the numbers describe: whether there is a total, and
/// whether it is fixed, is part of the policy's type, so a run-time choice becomes a call. A total
/// multiple of 1 asks for nothing and makes no total part, and so no ghost.
///
///     with_padding<ghost_tail>(derive_padding(settings), [&](auto padding) { ... });
template <padding_component Tail = absorb_tail, class F>
constexpr decltype(auto) with_padding(const padding_numbers& numbers, F&& f) {
  const each_multiple_of<> each{numbers.each};
  if (!numbers.fixed_total && numbers.total_multiple == 1) return f(padding{each, Tail{}});
  const total_multiple_of<> multiple{numbers.total_multiple};
  if (numbers.fixed_total) {
    return f(padding{each, multiple, detail::fixed_total_of(numbers), Tail{}});
  }
  return f(padding{each, multiple, Tail{}});
}

}  // namespace seqpack
