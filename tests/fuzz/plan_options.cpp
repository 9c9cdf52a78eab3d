// The planner's command line, of any words: options whose numbers are within their limits, or an error in
// words.
#include <cstdint>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "input.hpp"
#include "plan/options.hpp"

namespace {

using seqpack::testing::input;
using seqpack::testing::require;

std::string word(input& in) {
  static const char* const names[] = {"--capacity", "--ranks",      "--method",
                                      "--cost",     "--hidden",     "--too-long",
                                      "--pad-each", "--longest",    "--pad-total-multiple",
                                      "--seed",     "--log-normal", "--pad-total-to",
                                      "--tail",     "--format",     "balanced",
                                      "attention",  "split",        "json",
                                      "all",        "--",           "--lengths"};
  switch (in.choice(4)) {
    case 0: return names[in.choice(std::size(names))];
    case 1: return std::to_string(in.number());
    case 2: return names[in.choice(std::size(names))] + ("=" + std::to_string(in.number()));
    default: return in.text(12);
  }
}

/// What --help prints is not looked at, and no file of this machine is read.
bool harmless(const std::string& text) {
  if (text.starts_with("--hidden") || text.starts_with("--format")) return true;
  return text.find("-h") == text.npos && text.find("-f") == text.npos;
}

void require_limits(const plan_text::options& o) {
  const auto within = [](seqpack::offset_t number, seqpack::offset_t most) {
    require(number >= 1 && number <= most);
  };
  within(o.pad_each, plan_text::most_entries);
  within(o.pad_total_multiple.value_or(1), plan_text::most_entries);
  within(o.pad_total_to.value_or(1), plan_text::most_entries);
  within(o.capacity.value_or(1), plan_text::most_tokens);
  within(o.ranks.value_or(1), plan_text::most_ranks);
  within(o.longest, plan_text::most_entries);
  within(o.hidden, 1 << 20);
  require(o.log_normal.value_or(0) >= 0 && o.log_normal.value_or(0) <= plan_text::most_entries);
  require(o.method || o.format == plan_text::format_choice::text);
  require(o.row_capacity() >= 1 || (o.row_capacity() == seqpack::dynamic && o.pad_total_to));
  require(o.cost()(1) >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  std::vector<std::string> words{"seqpack-plan"};
  if (in.flag()) words.emplace_back("--lengths=" + std::to_string(in.number()) + ",3");
  for (auto count = in.choice(8); count > 0; --count) {
    std::string next = word(in);
    next.resize(next.find('\0') == next.npos ? next.size() : next.find('\0'));
    if (harmless(next)) words.push_back(next);
  }
  std::vector<const char*> arguments;
  for (const std::string& text : words) arguments.push_back(text.c_str());
  try {
    const auto parsed =
        plan_text::parse_options(static_cast<int>(arguments.size()), arguments.data());
    if (parsed) require_limits(*parsed);
  } catch (const std::invalid_argument& e) {
    require(*e.what() != '\0');
  }
  return 0;
}
