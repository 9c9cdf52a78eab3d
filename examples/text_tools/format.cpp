#include "format.hpp"

#include <iomanip>
#include <sstream>

namespace text_tools {

std::string with_separators(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string with_decimals(double number, int decimals) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << number;
  return text.str();
}

std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "-";
  return with_decimals(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

std::string counted(std::int64_t number, const char* what, const char* plural) {
  return with_separators(number) + " " + what + (number == 1 ? "" : plural);
}

std::string with_unit(double value, const std::string& unit) {
  const char* prefix = "";
  for (const char* larger : {"k", "M", "G", "T"}) {
    if (value < 1000) break;
    value /= 1000;
    prefix = larger;
  }
  return with_decimals(value, 2) + ' ' + prefix + unit;
}

}  // namespace text_tools
