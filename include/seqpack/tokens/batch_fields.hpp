/// \file
/// The fields of a batch: which of them have a value for each token, which for each sequence, and
/// by what name a loss or a model asks for them. All of it is known at compile time.
#pragma once

#include <concepts>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/layout.hpp"

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

/// A field with a value for each token: a batch of any kind, [B, S] or [B, S, D].
template <field_tag Tag, token_table Table>
struct token_field_t {
  Table tokens;
};
/// A field with a value for each sequence: B elements.
template <field_tag Tag, element T>
struct sequence_field_t {
  row_view<T> sequences;
};

/// Declares a per-token field.
template <field_tag Tag, token_table Table>
constexpr token_field_t<Tag, Table> token_field(Tag, const Table& table) {
  return {table};
}
/// Declares a per-sequence field: a contiguous range or a row_view of B elements, which must
/// outlive the field.
template <field_tag Tag, class Values>
constexpr auto sequence_field(Tag, Values&& values) {
  const row_view rows(std::forward<Values>(values));
  return sequence_field_t<Tag, typename std::remove_const_t<decltype(rows)>::element_type>{rows};
}

namespace detail {

template <class Field>
struct tag_of;
template <class Tag, class Table>
struct tag_of<token_field_t<Tag, Table>> {
  using type = Tag;
  static constexpr bool per_token = true;
};
template <class Tag, class T>
struct tag_of<sequence_field_t<Tag, T>> {
  using type = Tag;
  static constexpr bool per_token = false;
};

/// How many fields of a list have a name.
template <class Tag, class... Fields>
inline constexpr int count = (0 + ... + int{std::is_same_v<Tag, typename tag_of<Fields>::type>});

/// The masks are found by their names wherever they are missing, so they must be what they are.
template <class Field>
inline constexpr bool of_its_kind =
    tag_of<Field>::per_token ? !std::is_same_v<typename tag_of<Field>::type, sample_mask_t>
                             : !std::is_same_v<typename tag_of<Field>::type, token_mask_t>;

}  // namespace detail

/// The fields of a batch. Views, nothing else: trivially copyable, host or device memory.
///
///     field_list(token_field(input_ids, ids), sequence_field(sample_mask, mask))
template <class... Fields>
struct field_list : Fields... {
  static_assert(((detail::count<typename detail::tag_of<Fields>::type, Fields...> == 1) && ...),
                "two fields of a batch have the same name");
  static_assert((detail::of_its_kind<Fields> && ...),
                "token_mask has a value for each token, sample_mask for each sequence");

  constexpr explicit field_list(const Fields&... fields) : Fields(fields)... {}
};

/// The names that a loss or a model asks for.
template <field_tag... Tags>
struct field_tags {};

namespace detail {

// Overload resolution finds the field of a name among the bases of a list.
template <class Tag, class Table>
SEQPACK_HD constexpr const Table& find_tokens(const token_field_t<Tag, Table>& f) {
  return f.tokens;
}
template <class Tag, class T>
SEQPACK_HD constexpr const row_view<T>& find_sequences(const sequence_field_t<Tag, T>& f) {
  return f.sequences;
}

template <class List>
struct is_list : std::false_type {};
template <class... Fields>
struct is_list<field_list<Fields...>> : std::true_type {};

}  // namespace detail

/// Whether a list has a per-token field of the name.
template <class List, class Tag>
concept has_token_field = requires(const List& list) { detail::find_tokens<Tag>(list); };
/// Whether a list has a per-sequence field of the name.
template <class List, class Tag>
concept has_sequence_field = requires(const List& list) { detail::find_sequences<Tag>(list); };
/// Whether a list has a field of the name.
template <class List, class Tag>
concept has_field = has_token_field<List, Tag> || has_sequence_field<List, Tag>;

/// The view of a per-token field.
template <field_tag Tag, class List>
  requires has_token_field<List, Tag>
SEQPACK_HD constexpr const auto& tokens_of(Tag, const List& list) {
  return detail::find_tokens<Tag>(list);
}
/// The view of a per-sequence field.
template <field_tag Tag, class List>
  requires has_sequence_field<List, Tag>
SEQPACK_HD constexpr const auto& sequences_of(Tag, const List& list) {
  return detail::find_sequences<Tag>(list);
}

namespace detail {

template <class X>
struct asked {
  using type = field_tags<>;
};
template <class X>
  requires requires { typename X::fields; }
struct asked<X> {
  using type = typename X::fields;
};

}  // namespace detail

/// The fields that a loss or a model asks for: its `fields`, or none.
template <class X>
using asked_fields = typename detail::asked<X>::type;

/// What a training step takes: a batch declares its fields, among them input_ids, of integers.
/// `fields()` is called where it is needed; the memory behind its views belongs to the batch or to
/// whom the batch says.
///
///     struct text {
///       std::vector<int> lengths;
///       std::vector<std::int64_t> ids;  // [B, S]
///       offset_t width;                 // S
///       auto fields() const {
///         const auto rows = static_cast<offset_t>(lengths.size());
///         return field_list(token_field(input_ids, batch_view(ids.data(), rows, width)));
///       }
///     };
template <class B>
concept batch = requires(const B& b) {
  requires detail::is_list<std::remove_cvref_t<decltype(b.fields())>>::value;
  requires has_token_field<std::remove_cvref_t<decltype(b.fields())>, input_ids_t>;
  requires std::integral<
      typename std::remove_cvref_t<decltype(tokens_of(input_ids, b.fields()))>::value_type>;
};

/// How the lengths are found in a batch: a member pointer, or a function of the batch, that gives a
/// range of integers, on the host.
template <class P, class B>
concept lengths_projection =
    std::invocable<const P&, const B&> &&
    std::ranges::random_access_range<
        std::remove_cvref_t<std::invoke_result_t<const P&, const B&>>> &&
    integer_range<std::remove_cvref_t<std::invoke_result_t<const P&, const B&>>>;

}  // namespace seqpack
