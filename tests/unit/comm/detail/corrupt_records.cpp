// Records of another rank that no rank can have sent: an error that all can deal with, before
// anything is made of them.
#define BOOST_TEST_MODULE comm_corrupt_records
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/split.hpp"
#include "seqpack/comm/subgroup.hpp"
#include "support/forged_group.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

/// Where what is in the header of a broadcast of floats: kind 0, flags 4 to 7, root 8, size of an
/// element 16, length of its name 24, "float32" 26, number of dimensions 33, extents 37, 45.
template <class T>
void refuse_header(std::size_t place, T value, const std::string& entry, const std::string& must) {
  forged_group group(put_at(place, value));
  std::vector<float> numbers(6, 1.0f);
  refuse(
      [&] { broadcast_tensor(tensor_view<float>(numbers.data(), {2, 3}), group_rank{0}, group); },
      entry + ": " + must);
  BOOST_TEST(group.data_moves == 0);
}

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
const std::string up_to_max = "it must be from 0 to " + std::to_string(max_tokens);

}  // namespace

BOOST_AUTO_TEST_CASE(a_header_that_is_as_it_was_is_taken) {
  forged_group group;
  std::vector<float> numbers(6, 1.0f);
  broadcast_tensor(tensor_view<float>(numbers.data(), {2, 3}), group_rank{0}, group);
  BOOST_TEST(group.data_moves == 1);
}

BOOST_AUTO_TEST_CASE(numbers_of_a_header) {
  refuse_header(0, std::int32_t{3}, "kind of the tensor" + from_1 + "3", "it must be from 0 to 2");
  refuse_header(4, std::uint8_t{2}, "kind of the root" + from_1 + "2", "it must be from 0 to 1");
  refuse_header(5, std::uint8_t{255}, "null pointer" + from_1 + "255", "it must be from 0 to 1");
  refuse_header(6, std::uint8_t{9}, "read-only data" + from_1 + "9", "it must be from 0 to 1");
  refuse_header(7, std::uint8_t{128}, "contiguous data" + from_1 + "128", "it must be from 0 to 1");
  refuse_header(16, std::int64_t{-4}, "size of an element" + from_1 + "-4", up_to_max);
  refuse_header(16, std::int64_t{0}, "size of an element" + from_1 + "0",
                "it must be at least 1 byte");
  refuse_header(24, std::uint16_t{48}, "name of the element type" + from_1 + "48 characters",
                "it must have at most 47");
  refuse_header(28, '\0', "name of the element type" + from_1 + "text with a null character",
                "it must have none");
  refuse_header(33, std::int32_t{1000}, "number of dimensions" + from_1 + "1000",
                "it must be from 0 to 8");
  refuse_header(33, std::int32_t{-1}, "number of dimensions" + from_1 + "-1",
                "it must be from 0 to 8");
  refuse_header(45, std::int64_t{-3}, "shape[1]" + from_1 + "-3", "an extent must be at least 0");
  refuse_header(37, least, "shape[0]" + from_1 + std::to_string(least),
                "an extent must be at least 0");
  // 2^47 * 3 is more than there may be.
  refuse_header(37, std::int64_t{1} << 47, "shape[1]" + from_1 + "3",
                "a tensor holds at most " + std::to_string(max_tokens) + " elements");
  // where memory is: found 53 and 57, wanted 61 and 65
  refuse_header(53, std::int32_t{4}, "kind of memory" + from_1 + "4", "it must be from 0 to 3");
  refuse_header(65, std::int32_t{-1}, "device" + from_1 + "-1", "it must be from 0 to 2147483647");
}

BOOST_AUTO_TEST_CASE(an_operation_without_an_end_is_none) {
  detail::envelope whole;
  detail::envelope endless;
  endless.operation.fill('x');
  BOOST_CHECK_EXCEPTION(detail::require_one_operation(group_members::all(2), {whole, endless}),
                        collective_mismatch, [](const collective_mismatch& e) {
                          return e.value() == "one that ranks do not check, or of another seqpack";
                        });
}

BOOST_AUTO_TEST_CASE(another_version_is_another_call) {
  const detail::envelope a;
  detail::envelope b;
  BOOST_TEST(a.same_call(b));
  ++b.version;
  BOOST_TEST(!a.same_call(b));
  BOOST_TEST(!b.is_known());
  b = a;
  b.operation[0] = 'x';
  BOOST_TEST(!a.same_call(b));
}

BOOST_AUTO_TEST_CASE(records_of_a_split) {
  // joins 0, colour 1, key 9: any numbers
  forged_group group(put_at(0, std::uint8_t{7}));
  refuse([&] { group.split(1, 0); }, "part in the split" + from_1 + "7: it must be from 0 to 1");
  forged_group odd([](std::span<std::byte> record) {
    put_at(1, least)(record);
    put_at(9, least)(record);
  });
  BOOST_CHECK_NO_THROW(odd.split(1, 0));
}

BOOST_AUTO_TEST_CASE(records_of_a_subgroup) {
  // hash 0, length 8, the first twenty 16, mistake 96, its place 100
  const auto refuse_list = [](const forged_group::change& change, const std::string& text) {
    forged_group group(change);
    refuse([&] { subgroup(group, {{1}}); }, text);
  };
  refuse_list(put_at(8, std::int64_t{-1}), "length of the list" + from_1 + "-1: " + up_to_max);
  refuse_list(put_at(96, std::int32_t{3}),
              "kind of mistake" + from_1 + "3: it must be from 0 to 2");
  refuse_list(put_at(100, std::int32_t{-1}),
              "place of the mistake" + from_1 + "-1: it must be from 0 to 2147483647");
  refuse_list(put_at(8, max_tokens),
              "list of ranks on rank 1 (world rank 3) is {1, 0, 0, 0, 0, 0, "
              "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...}: it must be "
              "{1}, the list on rank 0");
}

BOOST_AUTO_TEST_CASE(all_corrupt_ranks_are_named) {
  std::vector<detail::envelope> received(3);
  for (auto& e : received) e.record = detail::records::write(detail::split_record{true, 1, 2});
  received[1].record[0] = received[2].record[0] = std::byte{5};
  BOOST_CHECK_EXCEPTION(
      detail::read_records<detail::split_record>(group_members::all(3), received),
      collective_mismatch, [](const collective_mismatch& e) {
        BOOST_TEST(e.what() ==
                   "part in the split in the record of rank 1 is 5: it must be from 0 to 1; "
                   "refused on 2 ranks: 1, 2");
        return true;
      });
}

BOOST_AUTO_TEST_CASE(any_bytes_are_a_header_or_an_error) {
  std::mt19937 random(7);
  int taken = 0;
  detail::broadcast_header usual;
  usual.what = detail::broadcast_header::brings::a_tensor;
  usual.type = element_type::of<float>();
  usual.shape = {2, 3};
  for (int k = 0; k < 20000; ++k) {
    detail::records::bytes bytes = detail::records::write(usual);
    for (int changed = 0; changed < 1 + k % 3; ++changed) {
      bytes[random() % 72] = static_cast<std::byte>(random());
    }
    try {
      const auto h = detail::records::read<detail::broadcast_header>(bytes);
      ++taken;
      BOOST_REQUIRE(h.shape.dims() >= 0 && h.shape.dims() <= max_dims);
      BOOST_REQUIRE(h.shape.elements() >= 0 && h.shape.elements() <= max_tokens);
      BOOST_REQUIRE(h.type.size() >= 0 && h.type.name().size() <= element_type::longest_name);
      BOOST_REQUIRE(!h.shape.to_string().empty());
    } catch (const invalid_input&) {
    }
  }
  BOOST_TEST(taken > 1000);
  BOOST_TEST(taken < 19000);
}
