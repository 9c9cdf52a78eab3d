// seqpack-inspect: shows how sequences of given lengths are packed, padded and sharded, or those of a
// row that is given by its segment ids or position ids.
//
// What the command line chooses is chosen at run time, so that everything is compiled once.
#include <unistd.h>

#include <exception>
#include <iostream>
#include <ostream>
#include <seqpack/draw/draw.hpp>
#include <seqpack/seqpack.hpp>
#include <string>

#include "../command_line/command_line.hpp"
#include "options.hpp"
#include "report.hpp"

namespace {

using inspect::offset_t;

/// Refuses what the library would pack but nobody would read.
template <class Layout>
void require_printable(const Layout& layout) {
  const auto require = [](const char* entry, offset_t value, offset_t most) {
    if (value > most) {
      seqpack::reject(entry, value, "the inspector shows at most " + std::to_string(most));
    }
  };
  const offset_t ranks = layout.context_parallel().size();
  require("number of tokens", layout.total_tokens(), inspect::most_entries);
  require("number of ranks times sequences", ranks * layout.sequences(), inspect::most_entries);
}

template <class Layout>
void show(std::ostream& out, const Layout& layout, const inspect::options& options) {
  switch (options.format) {
    case inspect::format_choice::json: inspect::write_json(out, layout, options.label_shift); break;
    case inspect::format_choice::svg: out << seqpack::draw_svg(layout); break;
    case inspect::format_choice::text:
      out << seqpack::draw_text(layout, {.colour = isatty(STDOUT_FILENO) != 0});
      break;
  }
}

/// The row that the ids show, with its real lengths where they are given.
template <class ContextParallel>
seqpack::packed_layout<ContextParallel> adopt(const inspect::options& options,
                                              const ContextParallel& cp) {
  const seqpack::adopt_options how{.width = options.width,
                                   .ghost = options.ghost_tail,
                                   .tail = options.tail_tokens,
                                   .position_start = options.position_start,
                                   .padding_id = options.padding_id};
  const auto& ids = options.ids;
  const auto& lengths = options.lengths;
  if (options.source == inspect::row_source::segment_ids) {
    return lengths ? seqpack::from_segment_ids(ids, *lengths, cp, how)
                   : seqpack::from_segment_ids(ids, cp, how);
  }
  return lengths ? seqpack::from_position_ids(ids, *lengths, cp, how)
                 : seqpack::from_position_ids(ids, cp, how);
}

void inspect_layout(std::ostream& out, const inspect::options& options) {
  const auto show_printable = [&](const auto& layout) {
    require_printable(layout);
    show(out, layout, options);
  };
  const seqpack::context_parallel cp(options.cp_size, seqpack::any_sharding{options.sharding});
  if (options.source != inspect::row_source::lengths) return show_printable(adopt(options, cp));
  command_line::with_padding(options, [&](const auto& padding) {
    show_printable(seqpack::make_layout(*options.lengths, padding, cp, {.width = options.width}));
  });
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto options = inspect::parse_options(argc, argv);
    if (options) inspect_layout(std::cout, *options);
    if (!std::cout.flush()) {
      std::cerr << "seqpack-inspect: cannot write to standard output\n";
      return 1;
    }
    return 0;
  } catch (const std::exception& error) {
    return command_line::tell_error("seqpack-inspect", error.what());
  }
}
