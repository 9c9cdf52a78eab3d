#define BOOST_TEST_MODULE comm_record
#include "seqpack/comm/detail/record.hpp"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>

#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refused;

namespace {

enum class colour : std::int32_t { red, green };

struct sample {
  std::int8_t small = 0;
  offset_t size = 0;
  bool set = false;
  colour what = colour::red;
  double real = 0;
  std::string text;

  void write(detail::records::writer& to) const {
    to.put(small);
    to.put(size);
    to.flag(set);
    to.choice(what);
    to.put(real);
    to.text(text);
  }
  static sample read(detail::records::reader& from) {
    sample s;
    s.small = from.get<std::int8_t>("small", -3, 3);
    s.size = from.size("size");
    s.set = from.flag("flag");
    s.what = from.choice("colour", colour::green);
    s.real = from.get<double>();
    s.text = from.text("text", 5);
    return s;
  }
  friend bool operator==(const sample&, const sample&) = default;
};

const sample whole{-3, max_tokens, true, colour::green, 0.5, "12345"};

/// The record with one byte changed.
detail::records::bytes with(std::size_t place, std::uint8_t value) {
  detail::records::bytes bytes = detail::records::write(whole);
  bytes[place] = static_cast<std::byte>(value);
  return bytes;
}

}  // namespace

static_assert(detail::records::travels<sample>);
static_assert(detail::records::travels<std::uint64_t>);
static_assert(!detail::records::travels<bool>);
static_assert(!detail::records::travels<colour>);
static_assert(!detail::records::travels<std::array<int, 3>>);

BOOST_AUTO_TEST_CASE(what_is_written_is_read) {
  BOOST_TEST((detail::records::read<sample>(detail::records::write(whole)) == whole));
  BOOST_TEST((detail::records::read<sample>(detail::records::write(sample())) == sample()));
  BOOST_TEST(detail::records::read<std::int64_t>(detail::records::write(std::int64_t{-5})) == -5);
}

BOOST_AUTO_TEST_CASE(nothing_is_left_as_it_was_behind_a_record) {
  const detail::records::bytes bytes = detail::records::write(std::uint64_t{1});
  for (std::size_t k = 8; k < bytes.size(); ++k) BOOST_TEST(std::to_integer<int>(bytes[k]) == 0);
}

BOOST_AUTO_TEST_CASE(numbers_outside_of_their_range_are_refused) {
  // small 0, size 1, flag 9, colour 10, real 14, length of the text 22, text 24
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(0, 4)), invalid_input,
                        refused("small", "4", "it must be from -3 to 3"));
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(0, 0x80)), invalid_input,
                        refused("small", "-128", "it must be from -3 to 3"));
  BOOST_CHECK_EXCEPTION(
      detail::records::read<sample>(with(1, 1)), invalid_input,
      refused("size", std::to_string(max_tokens + 1), "from 0 to " + std::to_string(max_tokens)));
  BOOST_CHECK_EXCEPTION(
      detail::records::read<sample>(with(8, 0x80)), invalid_input,
      refused("size", std::to_string(std::numeric_limits<offset_t>::min() + max_tokens), "from 0"));
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(9, 2)), invalid_input,
                        refused("flag", "2", "it must be from 0 to 1"));
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(10, 2)), invalid_input,
                        refused("colour", "2", "it must be from 0 to 1"));
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(13, 0xff)), invalid_input,
                        refused("colour", "-16777215", "it must be from 0 to 1"));
}

BOOST_AUTO_TEST_CASE(texts_end_within_their_room) {
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(22, 6)), invalid_input,
                        refused("text", "6 characters", "it must have at most 5"));
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(23, 0xff)), invalid_input,
                        refused("text", "65285 characters", "it must have at most 5"));
  BOOST_CHECK_EXCEPTION(detail::records::read<sample>(with(25, 0)), invalid_input,
                        refused("text", "text with a null character", "it must have none"));
}

BOOST_AUTO_TEST_CASE(too_few_bytes_are_refused_at_any_length) {
  const detail::records::bytes bytes = detail::records::write(whole);
  for (std::size_t size = 0; size < 29; ++size) {
    BOOST_CHECK_EXCEPTION(
        detail::records::read<sample>(std::span(bytes).first(size)), invalid_input,
        refused("size", std::to_string(size), "it must be that of all that is in it"));
  }
  BOOST_TEST((detail::records::read<sample>(std::span(bytes).first(29)) == whole));
}

BOOST_AUTO_TEST_CASE(what_is_larger_than_the_room_is_not_written) {
  sample large;
  large.text = std::string(193, 'x');
  BOOST_CHECK_EXCEPTION(
      detail::records::write(large), std::length_error, [](const std::length_error& e) {
        return std::string(e.what()) == "a record between ranks has room for 216 bytes";
      });
}
