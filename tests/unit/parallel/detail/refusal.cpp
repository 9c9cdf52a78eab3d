// Texts of errors that are cut to the room that a record has.
#define BOOST_TEST_MODULE parallel_refusal
#include "seqpack/parallel/detail/refusal.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

using namespace seqpack;

BOOST_AUTO_TEST_CASE(text_is_cut_between_words) {
  using detail::shortened;
  BOOST_TEST(shortened("one two three", 13) == "one two three");
  BOOST_TEST(shortened("one two three", 12) == "one two ...");
  BOOST_TEST(shortened("one two three", 11) == "one two ...");
  BOOST_TEST(shortened("one two three", 10) == "one ...");
  BOOST_TEST(shortened(std::string(20, 'x'), 10) == "xxxxxx ...");
  BOOST_TEST(shortened("", 10) == "");
}

BOOST_AUTO_TEST_CASE(the_name_of_a_rank_is_not_cut) {
  const std::string text = "it must be agree, the operation on rank 12 (world rank 345); more";
  for (std::size_t room = 12; room <= text.size(); ++room) {
    const std::string cut = detail::shortened(text, room);
    BOOST_TEST(cut.size() <= room);
    BOOST_TEST((cut.find("rank") == cut.npos || cut.find("rank 12 (world rank 345)") != cut.npos),
               cut);
  }
  BOOST_TEST(detail::shortened(text, 64) ==
             "it must be agree, the operation on rank 12 (world rank 345); ...");
}

BOOST_AUTO_TEST_CASE(a_refusal_fits_into_a_record_and_keeps_the_name) {
  const std::string name = " on rank 1 (world rank 7)";
  const detail::refusal r(std::string(300, 'e'), std::string(300, 'v'), std::string(300, 'r'),
                          name);
  BOOST_TEST(r.entry == std::string(67, 'e') + " ..." + name);
  BOOST_TEST(r.value == std::string(36, 'v') + " ...");
  BOOST_TEST(r.requirement == std::string(52, 'r') + " ...");
  const auto back = detail::records::read<detail::refusal>(detail::records::write(r));
  BOOST_TEST(back.entry == r.entry);
  BOOST_TEST(back.value == r.value);
  BOOST_TEST(back.requirement == r.requirement);
}
