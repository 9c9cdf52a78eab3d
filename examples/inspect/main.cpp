// seqpack-inspect: shows how sequences of given lengths are packed, padded and sharded.
//
// The policies of a layout are types, so the command line chooses among a few of them; everything
// behind that choice is written once, for any layout.
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <seqpack/pack/draw.hpp>
#include <seqpack/seqpack.hpp>
#include <string>

#include "json.hpp"
#include "options.hpp"
#include "report.hpp"

namespace {

using inspect::offset_t;

// They keep the output, and the memory for it, within reason.
constexpr offset_t most_entries = offset_t{1} << 22;
constexpr offset_t most_ranks = offset_t{1} << 16;

/// Calls f with the padding policy that the options describe. Without a number for the total the
/// policy has no total part, and so no tail.
template <class F>
std::string with_padding(const inspect::options& options, F&& f) {
  const seqpack::each_multiple_of<> each(options.pad_each);
  if (!options.pad_total_multiple && !options.pad_total_to) return f(seqpack::padding{each});

  seqpack::padding_numbers numbers{.each = options.pad_each, .fixed_total = options.pad_total_to};
  numbers.total_multiple = options.pad_total_multiple.value_or(1);
  return options.ghost_tail ? seqpack::with_padding<seqpack::ghost_tail>(numbers, f)
                            : seqpack::with_padding<seqpack::absorb_tail>(numbers, f);
}

template <class F>
std::string with_context_parallel(const inspect::options& options, F&& f) {
  using inspect::sharding_choice;
  const offset_t size = options.cp_size;
  switch (options.sharding) {
    case sharding_choice::contiguous:
      return f(seqpack::context_parallel(size, seqpack::contiguous{}));
    case sharding_choice::striped: return f(seqpack::context_parallel(size, seqpack::striped{}));
    case sharding_choice::zigzag: break;
  }
  return f(seqpack::context_parallel(size, seqpack::zigzag{}));
}

/// Refuses what the library would pack but nobody would read.
template <class Layout>
void require_printable(const Layout& layout) {
  const auto require = [](const char* entry, offset_t value, offset_t most) {
    if (value > most) {
      seqpack::reject(entry, value, "the inspector shows at most " + std::to_string(most));
    }
  };
  const offset_t ranks = layout.context_parallel().size();
  require("number of tokens", layout.total_tokens(), most_entries);
  require("number of ranks", ranks, most_ranks);
  require("number of ranks times sequences", ranks * layout.sequences(), most_entries);
}

template <class Layout>
std::string show(const Layout& layout, const inspect::options& options) {
  switch (options.format) {
    case inspect::format_choice::json:
      return inspect::to_json(inspect::report_layout(layout, options.label_shift));
    case inspect::format_choice::svg: return seqpack::draw_svg(layout);
    case inspect::format_choice::text: break;
  }
  return seqpack::draw_text(layout, {.colour = isatty(STDOUT_FILENO) != 0});
}

std::string inspect_layout(const inspect::options& options) {
  if (options.width < 0) seqpack::reject("width", options.width, "a size must be at least 0");
  if (options.label_shift < 1) {
    seqpack::reject("label shift", options.label_shift, "it must be at least 1");
  }
  return with_padding(options, [&](const auto& padding) {
    return with_context_parallel(options, [&](const auto& cp) {
      const auto layout =
          seqpack::make_layout(options.lengths, padding, cp, {.width = options.width});
      require_printable(layout);
      return show(layout, options);
    });
  });
}

/// Bad input is told in one line, whatever characters the input had.
int refuse(std::string message) {
  std::replace_if(
      message.begin(), message.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; },
      ' ');
  std::cerr << "seqpack-inspect: " << message << '\n';
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = inspect::parse_options(argc, argv);
    if (options) std::cout << inspect_layout(*options);
    if (!std::cout.flush()) {
      std::cerr << "seqpack-inspect: cannot write to standard output\n";
      return 1;
    }
    return 0;
  } catch (const std::exception& error) {
    return refuse(error.what());
  }
}
