// What the example prints.
#pragma once

#include <optional>
#include <ostream>
#include <seqpack/plan/plan_options.hpp>
#include <seqpack/plan/plan_summary.hpp>
#include <seqpack/plan/row_plan.hpp>
#include <seqpack/plan/step_plan.hpp>
#include <seqpack/plan/step_summary.hpp>
#include <span>
#include <string>
#include <vector>

#include "options.hpp"

namespace plan_text {

/// A plan of rows, and what it took.
struct planned_rows {
  seqpack::plan_method method{};
  seqpack::row_plan plan;
  seqpack::plan_summary summary;
  double seconds = 0;
};

/// A plan of steps, and what it took.
struct planned_steps {
  seqpack::step_plan plan;
  seqpack::step_summary summary;
  double seconds = 0;
};

/// Where the lengths come from, how many there are, and how long they are.
/// \param source as "2 files"
void print_lengths(std::ostream& out, const std::string& source, std::span<const offset_t> lengths);

/// A line for each method.
void print_rows(std::ostream& out, const options& o, std::span<const planned_rows> plans);

/// The first steps, a line for each.
void print_steps(std::ostream& out, const planned_steps& steps);

/// One object, on one line.
void write_json(std::ostream& out, const planned_rows& rows,
                const std::optional<planned_steps>& steps);

}  // namespace plan_text
