// Which fields a batch has, and what a batch is.
#define BOOST_TEST_MODULE fields
#include "seqpack/tokens/batch_fields.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

struct scores_t {
  static constexpr std::string_view name = "scores";
};
inline constexpr scores_t scores{};

struct unnamed {};
struct not_empty {
  static constexpr std::string_view name = "x";
  int value;
};
static_assert(field_tag<input_ids_t> && field_tag<scores_t>);
static_assert(!field_tag<unnamed> && !field_tag<not_empty> && !field_tag<int>);

static_assert(batch<masked_text> && batch<plain_text>);

struct no_fields {
  std::vector<int> lengths;
};
struct no_ids {
  auto fields() const {
    return field_list(token_field(token_mask, batch_view<const float>(nullptr, 0, 0)));
  }
};
struct real_ids {
  auto fields() const {
    return field_list(token_field(input_ids, batch_view<const float>(nullptr, 0, 0)));
  }
};
struct ids_per_sequence {
  auto fields() const {
    return field_list(sequence_field(input_ids, row_view<const int>(nullptr, 0)));
  }
};
struct not_a_list {
  int fields() const { return 0; }
};
static_assert(!batch<no_fields> && !batch<no_ids> && !batch<real_ids> && !batch<ids_per_sequence> &&
              !batch<not_a_list> && !batch<int>);

struct of_the_shape {
  std::vector<long> operator()(const masked_text& text) const {
    return std::vector<long>(text.lengths.begin(), text.lengths.end());
  }
};
struct of_real_numbers {
  std::vector<double> operator()(const masked_text&) const { return {}; }
};
static_assert(lengths_projection<decltype(&masked_text::lengths), masked_text>);
static_assert(lengths_projection<of_the_shape, masked_text>);
static_assert(!lengths_projection<decltype(&masked_text::width), masked_text>);
static_assert(!lengths_projection<decltype(&masked_text::lengths), plain_text>);
static_assert(!lengths_projection<of_real_numbers, masked_text>);

constexpr std::array<int, 4> ids{1, 2, 3, 4};
constexpr std::array<float, 2> weights{0.5F, 2};

}  // namespace

BOOST_AUTO_TEST_CASE(fields_are_found_by_name_and_kind) {
  const field_list list(token_field(input_ids, batch_view(ids.data(), 2, 2)),
                        sequence_field(scores, weights));
  using list_type = std::remove_const_t<decltype(list)>;
  static_assert(std::is_trivially_copyable_v<list_type>);
  static_assert(has_token_field<list_type, input_ids_t>);
  static_assert(!has_sequence_field<list_type, input_ids_t>);
  static_assert(has_sequence_field<list_type, scores_t>);
  static_assert(has_field<list_type, scores_t> && !has_field<list_type, token_mask_t>);
  BOOST_TEST(*tokens_of(input_ids, list).at(1, 0) == 3);
  BOOST_TEST(*sequences_of(scores, list).at(1) == 2.0F);
}

BOOST_AUTO_TEST_CASE(two_fields_of_one_view_stay_apart) {
  const batch_view table(ids.data(), 2, 2);
  const batch_view other(ids.data() + 1, 1, 2);
  const field_list list(token_field(input_ids, table), token_field(scores, other),
                        token_field(token_mask, table));
  BOOST_TEST(*tokens_of(input_ids, list).at(0, 0) == 1);
  BOOST_TEST(*tokens_of(scores, list).at(0, 0) == 2);
}
