/// \file
/// What a refusal must say.
#pragma once

#include <boost/test/unit_test.hpp>
#include <exception>
#include <string>

#include "seqpack/core/error.hpp"

namespace seqpack::testing {

/// A predicate for BOOST_CHECK_EXCEPTION: the exact entry and value, a requirement that contains
/// `limit`, and a what() that contains all three.
inline auto refused(std::string entry, std::string value, std::string limit) {
  return [=](const invalid_input& e) {
    const std::string what = e.what();
    BOOST_TEST(e.entry() == entry);
    BOOST_TEST(e.value() == value);
    BOOST_TEST(e.requirement().find(limit) != std::string::npos,
               "\"" << e.requirement() << "\" does not name " << limit);
    BOOST_TEST(what.find(entry) != std::string::npos, what);
    BOOST_TEST(what.find(value) != std::string::npos, what);
    BOOST_TEST(what.find(limit) != std::string::npos, what);
    return true;
  };
}

/// A predicate for BOOST_CHECK_EXCEPTION: exactly this text.
inline auto refused_as(std::string text) {
  return [=](const std::exception& e) {
    BOOST_TEST(e.what() == text);
    return true;
  };
}

/// The text with which a call refuses its arguments, or "accepted".
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const invalid_input& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace seqpack::testing
