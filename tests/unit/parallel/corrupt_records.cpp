// Records of another rank that no rank can have sent, in what agree, together and gathers exchange.
#define BOOST_TEST_MODULE parallel_corrupt_records
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
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
  // number 0, length of the subject 8
  forged_group endless(put_at(8, std::uint16_t{128}));
  refuse([&] { agree(endless, 7, "step"); },
         "subject of the agreement" + from_1 + "128 characters: it must have at most 127");
  forged_group other(put_at(0, std::uint64_t{8}));
  refuse([&] { agree(other, 7, "step"); },
         "step on rank 1 (world rank 3) is 8: it must be 7, as on rank 0");
}

BOOST_AUTO_TEST_CASE(records_of_layouts) {
  // hash 0, batch 8, sequences 16, tokens 24, context-parallel size 32
  const auto refuse_size = [](std::size_t place, const std::string& entry) {
    forged_group group(put_at(place, std::int64_t{-1}));
    refuse([&] { agree(group, make_layout(std::vector{3, 4})); },
           entry + from_1 + "-1: " + up_to_max);
  };
  refuse_size(8, "batch size");
  refuse_size(16, "number of sequences");
  refuse_size(24, "total tokens");
  refuse_size(32, "context-parallel size");
}

BOOST_AUTO_TEST_CASE(records_of_a_step) {
  // verdict 0, first rank 1, mark 9, kind of the result 17, layout 18
  self_communicator alone;
  const auto refuse_step = [&](const forged_group::change& change, const std::string& text) {
    forged_group group(change);
    refuse([&] { together(group, alone, "step", [] { return make_layout(std::vector{3, 4}); }); },
           text);
  };
  refuse_step(put_at(0, std::uint8_t{2}), "verdict" + from_1 + "2: it must be from 0 to 1");
  refuse_step(put_at(1, std::int64_t{-1}), "first rank of the group" + from_1 + "-1: " + up_to_max);
  refuse_step(put_at(17, std::uint8_t{3}),
              "kind of the result" + from_1 + "3: it must be from 0 to 1");
  refuse_step(put_at(26, std::int64_t{-1}), "batch size" + from_1 + "-1: " + up_to_max);
  // As a refusal: the kind of its entry is the mark's first byte, its rank 10, the entry 18.
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

BOOST_AUTO_TEST_CASE(a_rank_that_gets_a_corrupt_record_tells_the_other_group) {
  forged_group row(put_at(0, std::uint8_t{9}));
  forged_group column;
  refuse([&] { together(row, column, "step", [] {}); },
         "verdict" + from_1 + "9: it must be from 0 to 1");
}

BOOST_AUTO_TEST_CASE(records_of_a_gather) {
  // verdict 0, kind of the layout 1, payload 2, element size 10, layout 18
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
  refuse_gather(put_at(1, std::uint8_t{2}),
                "kind of the layout" + from_1 + "2: it must be from 0 to 1");
  refuse_gather(put_at(2, std::int64_t{-1}), "payload" + from_1 + "-1: " + up_to_max);
  refuse_gather(put_at(10, std::int64_t{-4}), "element size" + from_1 + "-4: " + up_to_max);
  refuse_gather(put_at(34, std::int64_t{-1}), "number of sequences" + from_1 + "-1: " + up_to_max);
  refuse_gather(put_at(10, std::int64_t{8}),
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
  detail::agreeing::step_record refused;
  refused.refuse("entry", "value", "requirement");
  detail::agreeing::step_record accepted;
  accepted.has_layout = true;
  detail::context_gathering::record gather;
  gather.refuse("entry", "value", "requirement");
  read(refused);
  read(accepted);
  read(gather);
  read(detail::context_gathering::record{});
  read(detail::agreeing::record<layout_fingerprint>{});
  BOOST_TEST(taken > 1000);
}
