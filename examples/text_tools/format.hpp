// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace text_tools {

/// 1234567 as 1,234,567.
std::string with_separators(std::int64_t number);

/// So many digits behind the point.
std::string with_decimals(double number, int decimals);

/// A share as "12.3 %", and "-" of nothing.
std::string percent(std::int64_t part, std::int64_t whole);

/// "1 file", "2 files".
std::string counted(std::int64_t number, const char* what, const char* plural = "s");

/// 1234567 as "1.23 M" and the unit.
std::string with_unit(double value, const std::string& unit);

}  // namespace text_tools
