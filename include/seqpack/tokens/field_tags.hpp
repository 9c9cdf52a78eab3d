/// \file
/// The names by which a loss or a model asks for the fields of a batch.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

namespace seqpack {

/// The name of a field: an empty type with a `name`, which is what errors call it. Two fields are
/// the same where their types are.
///
///     struct values_t { static constexpr std::string_view name = "values"; };
///     inline constexpr values_t values{};
template <class Tag>
concept field_tag = std::is_empty_v<Tag> && std::is_trivially_copyable_v<Tag> && requires {
  { Tag::name } -> std::convertible_to<std::string_view>;
};

/// Token ids; every batch has them.
struct input_ids_t {
  static constexpr std::string_view name = "input_ids";
};
/// Names the token ids.
inline constexpr input_ids_t input_ids{};

/// Per token: not 0 where the token is a target, as a weight. Without it every token is one.
struct token_mask_t {
  static constexpr std::string_view name = "token_mask";
};
/// Names the weights of tokens.
inline constexpr token_mask_t token_mask{};

/// Per sequence: not 0 where the sequence counts, as a weight. Without it every sequence does.
struct sample_mask_t {
  static constexpr std::string_view name = "sample_mask";
};
/// Names the weights of sequences.
inline constexpr sample_mask_t sample_mask{};

/// Per token: the log-probability under the policy that generated the token.
struct prev_logprobs_t {
  static constexpr std::string_view name = "prev_logprobs";
};
/// Names the log-probabilities under the generating policy.
inline constexpr prev_logprobs_t prev_logprobs{};

/// Per token: the log-probability under the reference policy.
struct reference_logprobs_t {
  static constexpr std::string_view name = "reference_logprobs";
};
/// Names the log-probabilities under the reference policy.
inline constexpr reference_logprobs_t reference_logprobs{};

/// Per token: how much better than expected the token was.
struct advantages_t {
  static constexpr std::string_view name = "advantages";
};
/// Names the advantages.
inline constexpr advantages_t advantages{};

/// The names that a loss or a model asks for.
template <field_tag... Tags>
struct field_tags {};

}  // namespace seqpack
