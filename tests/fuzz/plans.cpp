// Plans of any lengths and options, and plans from any arrays: refused with invalid_input, or what they
// must be: every sequence once, within the capacity.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "input.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/plan/plan_rows.hpp"
#include "seqpack/plan/plan_steps.hpp"
#include "seqpack/plan/require_plan.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/plan/step_plan.hpp"
#include "seqpack/plan/step_summary.hpp"
#include "seqpack/policy/any_padding.hpp"

namespace {

using namespace seqpack;
using testing::input;
using testing::require;

const no_context_parallel alone{};

/// Every entry once, and rows of at most so many tokens; by plain loops.
void check_rows(const row_plan& plan, const std::vector<offset_t>& lengths, offset_t capacity) {
  std::vector<int> times(lengths.size());
  for (offset_t k = 0; k < plan.rows(); ++k) {
    offset_t room = capacity;
    for (const offset_t s : plan.row(k)) {
      require(s >= 0 && s < static_cast<offset_t>(lengths.size()));
      require(++times[static_cast<std::size_t>(s)] == 1);
      require(lengths[static_cast<std::size_t>(s)] <= room);
      room -= lengths[static_cast<std::size_t>(s)];
    }
  }
  for (const int t : times) require(t == 1);
}

/// Mostly such as are taken.
std::vector<offset_t> lengths_from(input& in) {
  if (in.choice(4) == 0) return in.numbers(40);
  std::vector<offset_t> lengths(in.choice(41));
  for (offset_t& n : lengths) n = in.within(0, 40);
  return lengths;
}

sequence_cost cost_from(input& in) {
  if (in.flag()) return {};
  const offset_t per_token = in.number();
  const offset_t per_pair = in.number();
  return {per_token, per_pair};
}

/// Any number, but of those that are taken only few: more would be memory alone.
offset_t few_or_refused(input& in, offset_t limit) {
  const offset_t n = in.number();
  return n > 0 && n <= limit ? n % 40 : n;
}

void plan_of_rows(input& in) {
  plan_options options;
  options.method = static_cast<plan_method>(in.choice(3));
  options.rows = few_or_refused(in, detail::most_planned);
  options.most_sequences = in.flag() ? max_tokens : in.number();
  options.tuple = in.flag() ? 1 : in.number();
  options.cost = cost_from(in);
  const offset_t capacity = in.flag() ? in.within(40, 200) : in.number();
  const auto lengths = lengths_from(in);
  const row_plan plan = plan_rows(lengths, capacity, no_padding{}, alone, options);
  check_rows(plan, lengths, capacity);
  require_plan(plan, lengths, capacity, no_padding{}, alone,
               {.most_sequences = options.most_sequences, .tuple = options.tuple});
}

void plan_of_steps(input& in) {
  step_plan_options options;
  options.most_sequences = in.flag() ? max_tokens : in.number();
  options.tuple = in.flag() ? 1 : in.number();
  options.steps_multiple = few_or_refused(in, max_steps_multiple);
  options.cost = cost_from(in);
  const offset_t ranks = few_or_refused(in, max_planned_ranks);
  const offset_t budget = in.flag() ? in.within(40, 200) : in.number();
  const auto lengths = lengths_from(in);
  const step_plan plan = plan_steps(lengths, budget, ranks, no_padding{}, alone, options);
  require(plan.ranks() == ranks && plan.steps() % options.steps_multiple == 0);
  check_rows(plan.micro_batches(), lengths, budget);
  require_plan(plan, lengths, budget, no_padding{}, alone,
               {.most_sequences = options.most_sequences, .tuple = options.tuple});
  const step_summary summary = summary_of(plan, lengths, budget, no_padding{}, alone, options.cost);
  require(static_cast<double>(summary.cost) >= summary.mean_cost - 1);
}

void adopted_plan(input& in) {
  const auto lengths = in.numbers(12);
  const offset_t capacity = in.number();
  const offset_t ranks = in.number();
  const auto sequences = in.numbers(12);
  const auto bounds = in.numbers(8);
  const step_plan plan(row_plan(sequences, bounds), ranks);
  require_plan(plan, lengths, capacity);
  check_rows(plan.micro_batches(), lengths, capacity);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  try {
    switch (in.choice(3)) {
      case 0: plan_of_rows(in); break;
      case 1: plan_of_steps(in); break;
      default: adopted_plan(in); break;
    }
  } catch (const invalid_input&) {
  }
  return 0;
}
