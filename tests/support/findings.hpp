/// \file
/// Checks of one rank. Ranks may be threads, and Boost.Test's macros are for one thread: findings
/// are kept, and reported together.
#pragma once

#include <boost/test/unit_test.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "seqpack/core/error.hpp"

namespace seqpack::testing {

template <class T>
void print(std::ostream& out, const T& value) {
  if constexpr (requires { out << value; }) {
    out << value;
  } else if constexpr (requires { value.begin(); }) {
    out << '{';
    std::size_t shown = 0;
    for (const auto& v : value) {
      if (shown++ == 12) {
        out << " ...";
        break;
      }
      out << ' ';
      print(out, v);
    }
    out << " }";
  } else if constexpr (requires { value.value; }) {
    print(out, value.value);
  } else {
    out << "?";
  }
}

/// What one rank has found to be wrong.
class findings {
 public:
  explicit findings(std::string who = "") : who_(std::move(who)) {}

  void check(bool fact, const std::string& what) {
    ++checked_;
    if (!fact) failures_.push_back(who_ + what);
  }
  template <class A, class B>
  void equal(const A& found, const B& expected, const std::string& what) {
    ++checked_;
    if (found == expected) return;
    std::ostringstream text;
    text << who_ << what << ": found ";
    print(text, found);
    text << ", expected ";
    print(text, expected);
    failures_.push_back(text.str());
  }
  /// The call must throw an E whose text is `text`, or contains it where `part` is set.
  template <class E, class Call>
  void throws(Call&& call, const std::string& text, const std::string& what, bool part = false) {
    try {
      call();
    } catch (const E& e) {
      const std::string found = e.what();
      check(part ? found.find(text) != std::string::npos : found == text,
            what + ": threw \"" + found + "\", expected \"" + text + "\"");
      return;
    } catch (const std::exception& e) {
      check(false, what + ": threw something else: " + e.what());
      return;
    }
    check(false, what + ": threw nothing, expected \"" + text + "\"");
  }

  const std::vector<std::string>& failures() const { return failures_; }
  int checked() const { return checked_; }

  /// To be called by the thread of the test.
  void report() const {
    BOOST_TEST(checked_ > 0);
    for (const std::string& failure : failures_) BOOST_TEST(false, failure);
  }

 private:
  std::string who_;
  std::vector<std::string> failures_;
  int checked_ = 0;
};

}  // namespace seqpack::testing
