// What the example prints: a table of the results.
#pragma once

#include <ostream>
#include <vector>

#include "round_trip.hpp"

namespace pack_text {

/// What was read, and what it is as [B, S] tensors.
void print_input(std::ostream& out, const totals& sum, offset_t files);

/// One line for each scenario.
void print_table(std::ostream& out, const std::vector<scenario>& scenarios, const totals& sum);

/// What the columns mean.
void print_legend(std::ostream& out, int threads, int repeats);

}  // namespace pack_text
