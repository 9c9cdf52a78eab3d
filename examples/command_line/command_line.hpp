// What the examples with options share: every refusal has one form, "entry is value: requirement".
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <limits>
#include <optional>
#include <seqpack/core/error.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace command_line {

/// A value as an error shows it.
inline std::string shown(std::string_view text) {
  constexpr std::size_t most = 60;
  if (text.empty()) return "empty";
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
}

/// The numbers that an option takes.
struct whole_range {
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();

  /// As the help and the errors show it.
  std::string text() const {
    return "from " + std::to_string(least) + " to " + std::to_string(most);
  }
};

/// \throws seqpack::invalid_input for what is no whole number of the range
inline std::int64_t parse_number(const std::string& entry, std::string_view text,
                                 whole_range range = {}) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end || number < range.least || number > range.most) {
    seqpack::reject(entry, shown(text), "it must be a whole number " + range.text());
  }
  return number;
}

/// \param range what the help shows of the range
/// \throws seqpack::invalid_input for what is no number from least to most; NaN is none
inline double parse_real(const std::string& entry, std::string_view text, double least, double most,
                         const std::string& range) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end || !(number >= least && number <= most)) {
    seqpack::reject(entry, shown(text), "it must be a number " + range);
  }
  return number;
}

template <class Choice>
using choices = std::initializer_list<std::pair<const char*, Choice>>;

/// \throws seqpack::invalid_input for what is none of the names
template <class Choice>
Choice parse_choice(const char* entry, const std::string& text, choices<Choice> all) {
  std::string names;
  for (const auto& [name, choice] : all) {
    if (text == name) return choice;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  seqpack::reject(entry, shown(text), "it must be one of " + names);
}

/// An option that takes a whole number; its range is part of the help, and so is the number without it
/// where there is one.
template <class Number>
void add_number(CLI::App& app, const std::string& name, Number& value, const std::string& meaning,
                whole_range range) {
  auto* const option = app.add_option_function<std::string>(
      name,
      [name, &value, range](const std::string& text) {
        value = static_cast<Number>(parse_number(name, text, range));
      },
      meaning + "; " + range.text());
  option->type_name("N");
  if constexpr (std::integral<Number>) option->default_str(std::to_string(value));
}

/// The arguments, last one first as CLI11 wants them. "--name=" becomes "--name" and an empty
/// value, which CLI11 would otherwise look for in the next argument.
inline std::vector<std::string> reversed_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      arguments.emplace_back();
      arguments.push_back(argument.substr(0, argument.size() - 1));
    } else {
      arguments.push_back(argument);
    }
  }
  return arguments;
}

/// Parses the command line.
/// \returns the help where it was asked for
/// \throws std::invalid_argument naming what was wrong
inline std::optional<std::string> parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(reversed_arguments(argc, argv));
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // the name, a colon, and counts
    const std::string name = text.substr(0, text.find(':'));
    const bool missing = text.find("At Most") == std::string::npos;
    throw std::invalid_argument(name + (missing ? ": the value is missing" : ": given twice"));
  } catch (const CLI::ParseError& error) {
    throw std::invalid_argument(error.what());
  }
  return std::nullopt;
}

/// Tells an error in one line, whatever characters the input had.
/// \returns the exit status
inline int tell_error(const char* program, std::string message) {
  std::replace_if(
      message.begin(), message.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; },
      ' ');
  std::cerr << program << ": " << message << '\n';
  return 2;
}

}  // namespace command_line
