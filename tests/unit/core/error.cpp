#define BOOST_TEST_MODULE error
#include "seqpack/core/error.hpp"

#include <boost/test/unit_test.hpp>
#include <stdexcept>
#include <string>
#include <type_traits>

using seqpack::invalid_input;

static_assert(std::is_base_of_v<std::invalid_argument, invalid_input>);

BOOST_AUTO_TEST_CASE(the_message_names_entry_value_and_requirement) {
  const invalid_input error("lengths[1]", "-1", "a length must be at least 0");
  BOOST_TEST(error.what() == std::string("lengths[1] is -1: a length must be at least 0"));
  BOOST_TEST(error.entry() == "lengths[1]");
  BOOST_TEST(error.value() == "-1");
  BOOST_TEST(error.requirement() == "a length must be at least 0");
}

BOOST_AUTO_TEST_CASE(an_entry_is_named_by_its_index) {
  BOOST_TEST(seqpack::entry_name("lengths", 0) == "lengths[0]");
  BOOST_TEST(seqpack::entry_name("cu", seqpack::offset_t{1} << 40) == "cu[1099511627776]");
}

BOOST_AUTO_TEST_CASE(reject_throws_with_text_and_with_a_number) {
  const auto with_text = [](const invalid_input& e) {
    return e.entry() == "target" && e.value() == "null" && e.requirement() == "it must point";
  };
  BOOST_CHECK_EXCEPTION(seqpack::reject("target", "null", "it must point"), invalid_input,
                        with_text);
  const auto with_number = [](const invalid_input& e) {
    return e.what() == std::string("rows is 4611686018427387904: too many");
  };
  BOOST_CHECK_EXCEPTION(seqpack::reject("rows", seqpack::offset_t{1} << 62, "too many"),
                        invalid_input, with_number);
}

BOOST_AUTO_TEST_CASE(a_caller_that_knows_the_standard_alone_can_catch_it) {
  BOOST_CHECK_THROW(seqpack::reject("rows", 3, "fewer"), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_copy_says_the_same) {
  const invalid_input error("a", "b", "c");
  const invalid_input copy = error;
  BOOST_TEST(copy.what() == std::string("a is b: c"));
  BOOST_TEST(copy.entry() == "a");
}
