// A target in the memory of a source or of another target is refused before anything is written.
#define BOOST_TEST_MODULE alias
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/per_token.hpp"
#include "support/buffers.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using ids = std::vector<std::int64_t>;

std::string target(int k) {
  return "field " + std::to_string(k) + "'s target";
}
std::string array(int k) {
  return "array " + std::to_string(k) + "'s elements";
}
std::string memory_of(int k, const char* what) {
  return "in the memory of field " + std::to_string(k) + "'s " + what;
}
std::string memory_of_array(int k, const char* what) {
  return "in the memory of array " + std::to_string(k) + "'s " + what;
}

/// Two sequences of 2 and 1 tokens in a row of 4; everything lies somewhere in one buffer.
struct fixture {
  packed_layout<context_parallel<1>> layout =
      make_layout(std::vector{2, 1}, padding{each_multiple_of<2>{}});
  poisoned_buffer<std::int64_t> memory{64};

  auto batch(offset_t first) { return batch_view(memory.data() + first, 2, 2); }
  auto row(offset_t first) { return row_view(memory.data() + first, 4); }

  template <class... Fields>
  void pack_refused(const std::string& entry, const std::string& value, const Fields&... f) {
    BOOST_CHECK_EXCEPTION(pack(host, layout, full_row, f...), invalid_input,
                          refused_as(entry + " is " + value + ": outputs must not alias"));
    BOOST_TEST(memory.untouched());
  }
  template <class... Fields>
  void unpack_refused(const std::string& entry, const std::string& value, const Fields&... f) {
    BOOST_CHECK_EXCEPTION(unpack(host, layout, full_row, f...), invalid_input,
                          refused_as(entry + " is " + value + ": outputs must not alias"));
    BOOST_CHECK_EXCEPTION(unpack_own(host, layout, shard{0}, f...), invalid_input,
                          refused_as(entry + " is " + value + ": outputs must not alias"));
    BOOST_TEST(memory.untouched());
  }
  template <class... Arrays>
  void per_token_refused(const std::string& entry, const std::string& value, const Arrays&... a) {
    BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, a...), invalid_input,
                          refused_as(entry + " is " + value + ": outputs must not alias"));
    BOOST_TEST(memory.untouched());
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(pack_into_its_own_source, fixture) {
  // Every overlap of a source [8, 12) by a target of 4: by one element, by some, by all.
  for (offset_t first = 5; first <= 11; ++first) {
    pack_refused(target(0), memory_of(0, "source"), field(batch(8), row(first)));
  }
}

BOOST_FIXTURE_TEST_CASE(pack_beside_its_own_source, fixture) {
  ids values{1, 2, 3, -1};
  std::copy(values.begin(), values.end(), memory.data() + 8);
  for (const offset_t first : {4, 12}) {
    pack(host, layout, full_row, field(batch(8), row(first)));
    BOOST_TEST(ids(memory.data() + first, memory.data() + first + 4) == (ids{1, 2, 3, 0}),
               boost::test_tools::per_element());
    BOOST_TEST(ids(memory.data() + 8, memory.data() + 12) == values,
               boost::test_tools::per_element());
  }
}

BOOST_FIXTURE_TEST_CASE(pack_into_the_source_of_another_field, fixture) {
  pack_refused(target(0), memory_of(1, "source"), field(batch(0), row(19)),
               field(batch(16), row(32)));
  pack_refused(target(1), memory_of(0, "source"), field(batch(16), row(32)),
               field(batch(0), row(19)));
}

BOOST_FIXTURE_TEST_CASE(pack_into_the_target_of_another_field, fixture) {
  pack_refused(target(1), memory_of(0, "target"), field(batch(0), row(16)),
               field(batch(8), row(19)));
  pack_refused(target(2), memory_of(0, "target"), field(batch(0), row(16)),
               field(batch(8), row(24)), field(batch(8), row(16)));
}

BOOST_FIXTURE_TEST_CASE(elements_of_different_size_in_one_place, fixture) {
  auto* const bytes = reinterpret_cast<std::int8_t*>(memory.data());
  const batch_view small(bytes, 2, 2);
  pack_refused(target(1), memory_of(0, "target"), field(batch(16), row(32)),
               field(small, row_view(bytes + 32 * 8 + 31, 4)));
}

BOOST_FIXTURE_TEST_CASE(one_source_for_two_targets, fixture) {
  pack(host, layout, full_row, field(batch(0), row(16)), field(batch(0), row(24)));
  for (offset_t k = 0; k < 4; ++k) BOOST_TEST(memory.data()[16 + k] == memory.data()[24 + k]);
}

BOOST_FIXTURE_TEST_CASE(strided_source_is_taken_with_all_that_it_spans, fixture) {
  // Rows backwards: the span reaches below the data pointer.
  const batch_view backwards(memory.data() + 10, 2, 2, 1, -2, 1);
  pack_refused(target(0), memory_of(0, "source"), field(backwards, row(5)));
  pack_refused(target(0), memory_of(0, "source"), field(backwards, row(11)));
  const batch_view apart(memory.data(), 2, 2, 1, 20, 1);
  pack_refused(target(0), memory_of(0, "source"), field(apart, row(18)));
}

BOOST_FIXTURE_TEST_CASE(ragged_and_left_padded_sources, fixture) {
  const std::vector<std::int32_t> offsets{0, 2, 3};
  const std::vector<std::int32_t> starts{0, 1};
  pack_refused(target(0), memory_of(0, "source"),
               field(ragged_view(row_view(memory.data(), 3), offsets.data(), 2), row(2)));
  pack_refused(target(0), memory_of(0, "source"),
               field(left_padded_view(batch(0), starts.data()), row(3)));
}

BOOST_FIXTURE_TEST_CASE(unpack_into_its_own_source, fixture) {
  for (offset_t first = 5; first <= 11; ++first) {
    unpack_refused(target(0), memory_of(0, "source"), field(row(8), batch(first)));
  }
}

BOOST_FIXTURE_TEST_CASE(unpack_into_other_fields, fixture) {
  unpack_refused(target(0), memory_of(1, "source"), field(row(0), batch(19)),
                 field(row(16), batch(32)));
  unpack_refused(target(1), memory_of(0, "source"), field(row(16), batch(32)),
                 field(row(0), batch(13)));
  unpack_refused(target(1), memory_of(0, "target"), field(row(0), batch(16)),
                 field(row(8), batch(19)));
}

BOOST_FIXTURE_TEST_CASE(per_token_into_the_token_ids, fixture) {
  per_token_refused(array(0), memory_of_array(0, "tokens"), labels(batch(0), row(3)));
  per_token_refused(array(0), memory_of_array(1, "tokens"), position_ids(row(18)),
                    labels(batch(16), row(32)));
}

BOOST_FIXTURE_TEST_CASE(per_token_into_another_array, fixture) {
  per_token_refused(array(1), memory_of_array(0, "elements"), position_ids(row(0)),
                    sequence_index(row(3)));
  auto* const flags = reinterpret_cast<std::uint8_t*>(memory.data() + 4) - 1;
  per_token_refused(array(1), memory_of_array(0, "elements"), position_ids(row(0)),
                    padding_mask(row_view(flags, 4)));
}

BOOST_FIXTURE_TEST_CASE(one_source_for_several_labels, fixture) {
  std::fill_n(memory.data(), 4, 5);
  per_token(host, layout, full_row, labels(batch(0), row(8)),
            labels(batch(0), row(16), {.shift = 2}));
  BOOST_TEST(memory[8] == 5);
  BOOST_TEST(memory[16] == -100);
}

BOOST_FIXTURE_TEST_CASE(outputs_in_the_bounds_of_a_view, fixture) {
  // The arrays that a ragged or left-padded view reads are inputs too.
  std::fill_n(memory.data(), 16, 0);
  memory[17] = 2;
  memory[18] = 3;
  memory[16] = 0;
  const auto before = memory;
  const ragged_view ragged(row_view(memory.data(), 3), memory.data() + 16, 2);
  BOOST_CHECK_EXCEPTION(
      pack(host, layout, full_row, field(ragged, row(18))), invalid_input,
      refused_as(
          "field 0's target is in the memory of field 0's source bounds: outputs must not alias"));
  BOOST_CHECK_EXCEPTION(
      per_token(host, layout, full_row, labels(ragged, row(15))), invalid_input,
      refused_as("array 0's elements is in the memory of array 0's tokens bounds: "
                 "outputs must not alias"));
  BOOST_TEST((memory == before));
  const left_padded_view shifted(batch(0), memory.data() + 8);
  BOOST_CHECK_EXCEPTION(
      pack(host, layout, full_row, field(shifted, row(9))), invalid_input,
      refused_as(
          "field 0's target is in the memory of field 0's source bounds: outputs must not alias"));
  BOOST_TEST((memory == before));
}

BOOST_AUTO_TEST_CASE(outputs_in_the_arrays_of_the_layout) {
  const std::vector<offset_t> order{1, 0};
  std::vector<std::int32_t> cu(3);
  std::vector<std::int32_t> cu_padded(3);
  std::vector<std::int32_t> forward(2);
  std::vector<std::int32_t> inverse(2);
  const auto layout =
      build_layout<std::int32_t>(std::vector{2, 1}, no_padding{}, no_context_parallel{},
                                 {cu, cu_padded, forward, inverse}, {.order = order});
  const std::vector<std::int32_t> tokens{1, 2, 3, 4};
  const auto refused_into = [&](std::vector<std::int32_t>& array, const std::string& name) {
    const auto before = array;
    // The last entry is the first element of the target.
    const row_view<std::int32_t> target(&array.back(), 3);
    const std::string memory =
        " is in the memory of the layout's " + name + ": outputs must not alias";
    BOOST_CHECK_EXCEPTION(
        pack(host, layout, full_row, field(batch_view(tokens.data(), 2, 2), target)), invalid_input,
        refused_as("field 0's target" + memory));
    BOOST_CHECK_EXCEPTION(per_token(host, layout, full_row, position_ids(target)), invalid_input,
                          refused_as("array 0's elements" + memory));
    BOOST_TEST(array == before, boost::test_tools::per_element());
  };
  refused_into(cu, "cu_seqlens");
  refused_into(cu_padded, "cu_seqlens_padded");
  refused_into(forward, "order");
  refused_into(inverse, "inverse order");
}

// A layout that is built reads its lengths and its order while it writes the storage.

namespace {

using indices = std::vector<std::int32_t>;

struct storage_fixture {
  indices memory = indices(64, 777);

  std::span<std::int32_t> part(std::size_t first, std::size_t size) {
    return std::span(memory).subspan(first, size);
  }
  template <class Lengths>
  void refuse(const Lengths& lengths, const layout_storage<std::int32_t>& storage,
              const layout_options& options, const std::string& text) {
    const indices before = memory;
    BOOST_CHECK_EXCEPTION(build_layout<std::int32_t>(lengths, padding{each_multiple_of<4>{}},
                                                     no_context_parallel{}, storage, options),
                          invalid_input, refused_as(text));
    BOOST_TEST(memory == before, boost::test_tools::per_element());
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(lengths_in_the_storage_of_their_layout, storage_fixture) {
  const indices lengths{3, 5, 2};
  std::copy(lengths.begin(), lengths.end(), memory.begin());
  const auto in_first = [](const char* array) {
    return std::string("the storage's ") + array +
           " is in the memory of lengths: outputs must not alias";
  };
  refuse(part(0, 3), {part(0, 4), part(8, 4)}, {}, in_first("cu_seqlens"));
  refuse(part(0, 3), {part(8, 4), part(2, 4)}, {}, in_first("cu_seqlens_padded"));
  const std::vector<offset_t> order{2, 0};
  refuse(part(0, 3), {part(8, 4), part(16, 4), part(1, 2), part(24, 3)}, {.order = order},
         in_first("order"));
  refuse(part(0, 3), {part(8, 4), part(16, 4), part(24, 2), part(2, 3)}, {.order = order},
         in_first("slot_of"));
  // Room that is not written may be anywhere.
  const auto view = build_layout<std::int32_t>(part(0, 3), padding{each_multiple_of<4>{}},
                                               no_context_parallel{}, {part(3, 61), part(8, 4)});
  BOOST_TEST(view.cu_seqlens()[3] == 10);
  BOOST_TEST(indices(view.cu_padded, view.cu_padded + 4) == (indices{0, 4, 12, 16}),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(one_array_for_both_bounds, storage_fixture) {
  const indices lengths{3, 5};
  const char* const text =
      "the storage's cu_seqlens_padded is in the memory of the storage's cu_seqlens: "
      "outputs must not alias";
  refuse(lengths, {part(0, 3), part(0, 3)}, {}, text);
  refuse(lengths, {part(0, 3), part(2, 3)}, {}, text);
}

BOOST_FIXTURE_TEST_CASE(an_order_in_the_storage, storage_fixture) {
  const indices lengths{3, 5};
  memory[0] = 1;
  memory[1] = 0;
  refuse(lengths, {part(1, 3), part(8, 3), part(16, 2), part(24, 2)}, {.order = part(0, 2)},
         "the storage's cu_seqlens is in the memory of order: outputs must not alias");
  refuse(lengths, {part(8, 3), part(16, 3), part(0, 2), part(24, 2)}, {.order = part(0, 2)},
         "the storage's order is in the memory of order: outputs must not alias");
  refuse(lengths, {part(8, 3), part(16, 3), part(24, 2), part(25, 2)}, {.order = part(0, 2)},
         "the storage's slot_of is in the memory of the storage's order: outputs must not alias");
}
