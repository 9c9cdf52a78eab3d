// Records of another rank that no rank can have sent, in what agree, together and gathers exchange.
#define BOOST_TEST_MODULE parallel_corrupt_records
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <exception>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/parallel/agree.hpp"
#include "seqpack/parallel/context_gather.hpp"
#include "seqpack/parallel/together.hpp"
#include "support/forged_group.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

const std::string up_to_max = "it must be from 0 to " + std::to_string(max_tokens);

}  // namespace

BOOST_AUTO_TEST_CASE(records_of_an_agreement) {
  // verdict 0, first rank 1, length of the subject 9, the subject, numbers 15 and 23
  forged_group endless(put_at(9, std::uint16_t{128}));
  refuse([&] { agree(endless, 7, "step"); },
         "subject of the agreement" + from_1 + "128 characters: it must have at most 127");
  forged_group other(put_at(15, std::uint64_t{8}));
  refuse([&] { agree(other, 7, "step"); },
         "step on rank 1 (world rank 3) is 8: it must be 7, as on rank 0");
}

BOOST_AUTO_TEST_CASE(records_of_layouts) {
  // hash 31, batch 39, sequences 47, tokens 55, context-parallel size 63
  const auto refuse_size = [](std::size_t place, const std::string& entry) {
    forged_group group(put_at(place, std::int64_t{-1}));
    refuse([&] { agree(group, make_layout(std::vector{3, 4})); },
           entry + from_1 + "-1: " + up_to_max);
  };
  refuse_size(39, "batch size");
  refuse_size(47, "number of sequences");
  refuse_size(55, "total tokens");
  refuse_size(63, "context-parallel size");
}

BOOST_AUTO_TEST_CASE(records_of_a_step) {
  // verdict 0, first rank 1, subject 9, numbers 11 and 19, kind of the layout 27, layout 31
  self_communicator alone;
  const auto refuse_step = [&](const forged_group::change& change, const std::string& text) {
    forged_group group(change);
    refuse([&] { together(group, alone, "step", [] { return make_layout(std::vector{3, 4}); }); },
           text);
  };
  refuse_step(put_at(0, std::uint8_t{2}), "verdict" + from_1 + "2: it must be from 0 to 1");
  refuse_step(put_at(1, std::int64_t{-1}), "first rank of the group" + from_1 + "-1: " + up_to_max);
  refuse_step(put_at(27, std::int32_t{3}),
              "kind of the layout" + from_1 + "3: it must be from 0 to 2");
  refuse_step(put_at(39, std::int64_t{-1}), "batch size" + from_1 + "-1: " + up_to_max);
  // As a refusal: kind of its entry 9, its rank 10, the entry 18.
  const auto refusing = [](std::size_t place, auto value) {
    return [=](std::span<std::byte> record) {
      put_at(0, std::uint8_t{1})(record);
      put_at(9, std::uint8_t{1})(record);
      put_at(10, std::int64_t{0})(record);
      put_at(18, std::uint64_t{0})(record);
      put_at(place, value)(record);
    };
  };
  refuse_step(refusing(9, std::uint8_t{2}),
              "kind of the entry" + from_1 + "2: it must be from 0 to 1");
  refuse_step(refusing(10, std::int64_t{-1}), "rank" + from_1 + "-1: " + up_to_max);
  refuse_step(refusing(18, std::uint16_t{193}),
              "entry" + from_1 + "193 characters: it must have at most 192");
  refuse_step(refusing(20, std::uint16_t{500}),
              "value" + from_1 + "500 characters: it must have at most 192");
  refuse_step(refusing(22, std::uint16_t{192}),
              "requirement" + from_1 + "text with a null character: it must have none");
}

BOOST_AUTO_TEST_CASE(a_step_of_one_group) {
  forged_group other_mark(put_at(11, std::uint64_t{8}));
  refuse(
      [&] { together(other_mark, "step", [] {}, 7); },
      "hash of the options, sizes or order of the call on rank 1 (world rank 3) is 8: it must be "
      "7, as on rank 0");
  forged_group same;
  BOOST_TEST(together(same, "step", [] { return 5; }, 7) == 5);
  const auto fail = [] { throw std::logic_error("out of order"); };
  BOOST_CHECK_EXCEPTION(together(same, "step", fail), collective_mismatch, [](const auto& e) {
    BOOST_TEST(e.what() == "step on rank 0 is refused: out of order; refused on 2 ranks: 0, 1");
    BOOST_CHECK_THROW(std::rethrow_if_nested(e), std::logic_error);
    return true;
  });
}

BOOST_AUTO_TEST_CASE(a_rank_that_gets_a_corrupt_record_tells_the_other_group) {
  forged_group row(put_at(0, std::uint8_t{9}));
  forged_group column;
  refuse([&] { together(row, column, "step", [] {}); },
         "verdict" + from_1 + "9: it must be from 0 to 1");
}

BOOST_AUTO_TEST_CASE(records_of_a_gather) {
  // verdict 0, first rank 1, subject 9, payload 11, element size 19, kind of the layout 27, layout 31
  const auto layout = make_layout(std::vector{4, 4}, no_padding{}, context_parallel<2>{});
  const std::vector<float> mine(4);
  std::vector<float> batch(8, 5.0f);
  const auto refuse_gather = [&](const forged_group::change& change, const std::string& text) {
    forged_group group(change);
    refuse(
        [&] {
          all_gather_unpack(host, group, layout, field(mine, batch_view(batch.data(), 2, 4)),
                            {.check_all_ranks = true});
        },
        text);
    BOOST_TEST(batch == std::vector<float>(8, 5.0f), boost::test_tools::per_element());
    BOOST_TEST(group.data_moves == 0);
  };
  refuse_gather(put_at(0, std::uint8_t{2}), "verdict" + from_1 + "2: it must be from 0 to 1");
  refuse_gather(put_at(27, std::int32_t{-1}),
                "kind of the layout" + from_1 + "-1: it must be from 0 to 2");
  refuse_gather(
      put_at(11, std::int64_t{-1}),
      "payload on rank 1 (world rank 3) is 18446744073709551615: it must be 1, as on rank 0");
  refuse_gather(put_at(47, std::int64_t{-1}), "number of sequences" + from_1 + "-1: " + up_to_max);
  refuse_gather(put_at(19, std::int64_t{8}),
                "element size on rank 1 (world rank 3) is 8: it must be 4, as on rank 0");
}

BOOST_AUTO_TEST_CASE(any_bytes_are_a_record_or_an_error) {
  std::mt19937 random(11);
  int taken = 0;
  const auto read = [&]<class Record>(const Record& usual) {
    for (int k = 0; k < 10000; ++k) {
      detail::records::bytes bytes = detail::records::write(usual);
      for (int changed = 0; changed < 1 + k % 3; ++changed) {
        bytes[random() % 64] = static_cast<std::byte>(random());
      }
      try {
        detail::records::read<Record>(bytes);
        ++taken;
      } catch (const invalid_input&) {
      }
    }
  };
  detail::call_record refused;
  refused.refuse("entry", "value", "requirement");
  detail::call_record accepted;
  accepted.subject = "subject";
  accepted.compare({});
  read(refused);
  read(accepted);
  BOOST_TEST(taken > 1000);
}
