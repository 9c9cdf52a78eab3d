// Options of the padding.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <seqpack/policy/padding.hpp>
#include <seqpack/policy/parallel_settings.hpp>
#include <string>

#include "command_line.hpp"

namespace command_line {

using seqpack::offset_t;

/// What keeps the output of an example within reason.
inline constexpr offset_t most_entries = offset_t{1} << 22;

struct padding_options {
  offset_t pad_each = 1;
  std::optional<offset_t> pad_total_multiple;
  std::optional<offset_t> pad_total_to;
  bool ghost_tail = false;
};

inline void add_padding(CLI::App& app, padding_options& o) {
  const auto add = [&](const std::string& name, auto& value, const char* unit,
                       const char* meaning) {
    app.add_option_function<std::string>(
           name,
           [name, &value](const std::string& text) {
             value = parse_number(name, text, {1, most_entries});
           },
           meaning)
        ->type_name(unit);
  };
  add("--pad-each", o.pad_each, "M", "Pad each sequence to a multiple (1)");
  add("--pad-total-multiple", o.pad_total_multiple, "M", "Pad the total to a multiple");
  add("--pad-total-to", o.pad_total_to, "N", "Pad the total to a number of tokens");
  app.add_option_function<std::string>(
         "--tail",
         [&o](const std::string& text) {
           o.ghost_tail = parse_choice<bool>("--tail", text, {{"absorb", false}, {"ghost", true}});
         },
         "Who gets the tail: absorb (the last sequence) or ghost")
      ->type_name("NAME");
}

/// Calls f with the padding policy that the options describe. Without a number for the total the
/// policy has no total part, and so no tail.
template <class F>
void with_padding(const padding_options& options, F&& f) {
  const seqpack::each_multiple_of<> each(options.pad_each);
  if (!options.pad_total_multiple && !options.pad_total_to) {
    f(seqpack::padding{each});
    return;
  }
  seqpack::padding_numbers numbers{.each = options.pad_each, .fixed_total = options.pad_total_to};
  numbers.total_multiple = options.pad_total_multiple.value_or(1);
  if (options.ghost_tail) {
    seqpack::with_padding<seqpack::ghost_tail>(numbers, f);
  } else {
    seqpack::with_padding<seqpack::absorb_tail>(numbers, f);
  }
}

}  // namespace command_line
