// The report as JSON.
#pragma once

#include <string>

#include "report.hpp"

namespace inspect {

/// One object on one line. Tokens are [b, s], padding and ignored labels are null.
std::string to_json(const layout_report& report);

}  // namespace inspect
