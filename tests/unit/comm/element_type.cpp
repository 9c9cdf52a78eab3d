#define BOOST_TEST_MODULE comm_element_type
#include "seqpack/comm/element_type.hpp"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>

#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refused;

namespace named {
struct sample {
  int a;
  float b;
};
struct float8 {
  std::uint8_t bits;
};
template <class A, class B>
struct pair {
  A a;
  B b;
};
enum class colour : std::int16_t { red };
}  // namespace named

template <>
struct seqpack::element_traits<named::float8> {
  static constexpr std::string_view name() { return "float8_e4m3fn"; }
};

namespace {

std::string name(const element_type& type) {
  return std::string(type.name());
}

}  // namespace

BOOST_AUTO_TEST_CASE(arithmetic_types_are_named_by_what_they_hold) {
  BOOST_TEST(name(element_type::of<bool>()) == "bool");
  BOOST_TEST(name(element_type::of<std::int8_t>()) == "int8");
  BOOST_TEST(name(element_type::of<std::uint16_t>()) == "uint16");
  BOOST_TEST(name(element_type::of<std::int32_t>()) == "int32");
  BOOST_TEST(name(element_type::of<long>()) == "int64");
  BOOST_TEST(name(element_type::of<unsigned long long>()) == "uint64");
  BOOST_TEST(name(element_type::of<float>()) == "float32");
  BOOST_TEST(name(element_type::of<double>()) == "float64");
  BOOST_TEST((element_type::of<long>() == element_type::of<long long>()));
  BOOST_TEST((element_type::of<float>() == element_type::of<const float>()));
  BOOST_TEST((element_type::of<float>() != element_type::of<std::int32_t>()));
}

BOOST_AUTO_TEST_CASE(other_types_have_the_name_of_the_program_or_their_own) {
  BOOST_TEST(name(element_type::of<named::sample>()) == "named::sample");
  BOOST_TEST(element_type::of<named::sample>().size() == 8);
  BOOST_TEST(element_type::of<named::sample>().to_string() == "named::sample (8 bytes)");
  BOOST_TEST(name(element_type::of<named::colour>()) == "named::colour");
  BOOST_TEST((name(element_type::of<named::pair<int, float>>()) == "named::pair<int, float>"));
  BOOST_TEST(name(element_type::of<named::float8>()) == "float8_e4m3fn");
  BOOST_TEST(element_type::of<named::float8>().to_string() == "float8_e4m3fn (1 byte)");
  BOOST_TEST(element_type::of<float>().to_string() == "float32");
  // A number at the end of a name that is not its size in bits does not say the size.
  BOOST_TEST(element_type("vec3", 12).to_string() == "vec3 (12 bytes)");
  BOOST_TEST(element_type("bfloat16", 2).to_string() == "bfloat16");
  BOOST_TEST(element_type("bfloat16", 4).to_string() == "bfloat16 (4 bytes)");
  BOOST_TEST(element_type("pair128", 1).to_string() == "pair128 (1 byte)");
  BOOST_TEST(name(element_type::of<long double>()) == "long double");
}

BOOST_AUTO_TEST_CASE(types_at_run_time) {
  constexpr element_type bfloat16("bfloat16", 2);
  static_assert(bfloat16.size() == 2);
  BOOST_TEST((bfloat16 == element_type("bfloat16", 2)));
  BOOST_TEST((bfloat16 != element_type("bfloat16", 4)));
  BOOST_TEST((bfloat16 != element_type("float16", 2)));
  BOOST_TEST((element_type("float32", 4) == element_type::of<float>()));
  BOOST_TEST((element_type() != element_type::of<float>()));
  BOOST_TEST(element_type().to_string() == "none");
}

BOOST_AUTO_TEST_CASE(long_names_stay_different) {
  const std::string same(60, 'x');
  const element_type a(same + "a", 4);
  const element_type b(same + "b", 4);
  BOOST_TEST((a != b));
  BOOST_TEST((a == element_type(same + "a", 4)));
  BOOST_TEST(a.name().size() == element_type::longest_name);
  BOOST_TEST(name(a).substr(0, 38) == same.substr(0, 38));
  const std::string longest(element_type::longest_name, 'y');
  BOOST_TEST(name(element_type(longest, 4)) == longest);
}

BOOST_AUTO_TEST_CASE(types_without_a_size_or_a_name_are_refused) {
  BOOST_CHECK_EXCEPTION(element_type("half", 0), invalid_input,
                        refused("size of an element", "0", "at least 1 byte"));
  BOOST_CHECK_EXCEPTION(element_type("", 2), invalid_input,
                        refused("name of an element type", "empty", "it must have a name"));
}
