// Layouts from any lengths, policies and orders: refused with invalid_input, or what the definition
// says.
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "input.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/draw/draw.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace {

using namespace seqpack;
using testing::input;
using testing::require;

/// What was asked for, in numbers.
struct request {
  offset_t each = 1;
  offset_t multiple = 1;
  std::optional<offset_t> fixed;
  bool has_total = false;
  bool ghost = false;
  bool ordered = false;
  std::vector<offset_t> order;  // slots
};

/// Numbers below 2^20 that are refused by nobody: every step is written out, without the library.
template <class View, class Lengths>
void check_bounds(const View& view, const request& asked, const Lengths& lengths) {
  offset_t real = 0;
  offset_t content = 0;
  for (std::size_t slot = 0; slot < asked.order.size(); ++slot) {
    const auto length = static_cast<offset_t>(lengths[static_cast<std::size_t>(asked.order[slot])]);
    require(view.cu[slot] == real);
    require(view.cu_padded[slot] == content);
    real += length;
    content += (length + asked.each - 1) / asked.each * asked.each;
  }
  const offset_t total =
      asked.fixed ? *asked.fixed : (content + asked.multiple - 1) / asked.multiple * asked.multiple;
  // An order of no slots leaves the tail to nobody.
  const bool ghost = asked.ghost || (asked.ordered && asked.order.empty());
  const std::size_t last = asked.order.size() + (ghost && asked.has_total ? 1 : 0);
  if (last > asked.order.size()) require(view.cu_padded[last - 1] == content);
  require(view.cu[last] == real);
  require(view.cu_padded[last] == total);
  require(view.total == total);
  require(static_cast<std::size_t>(view.segments) == last);
}

/// Every row is where the map says, and nowhere else.
template <class View>
void check_bijection(const View& view) {
  std::vector<int> seen(static_cast<std::size_t>(view.total));
  for (offset_t s = 0; s < view.segments; ++s) {
    for (offset_t k = 0; k < view.padded_length(s); ++k) {
      const offset_t row = view.row_of(all_shards, s, k);
      require(row >= 0 && row < view.total);
      ++seen[static_cast<std::size_t>(row)];
      const token_ref token = view.token_at(all_shards, row);
      require(token.slot == s && token.index == k);
      require(view.token_at(full_row, view.row_of(full_row, s, k)).index == k);
    }
  }
  require(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
}

/// Pictures of any size: refused, or drawn.
template <class Layout>
void draw(const Layout& layout, input& in) {
  const draw_options drawn{.colour = in.flag(),
                           .columns = in.number(),
                           .longest = in.number(),
                           .entries = in.number(),
                           .width = in.number(),
                           .title = in.text(4)};
  require(!draw_text(layout, drawn).empty());
  require(draw_svg(layout, drawn).ends_with("</svg>\n"));
}

template <class Layout, class Lengths>
void check(const Layout& layout, const request& asked, const Lengths& lengths, input& in) {
  const auto view = layout.view();
  check_bounds(view, asked, lengths);
  if (view.total > 4096 || view.cp.size() > 64) return;
  check_bijection(view);
  require(layout_hash(layout) == layout_hash(view));
  if constexpr (std::same_as<typename Layout::index_type, std::int32_t>) draw(layout, in);
}
template <class Index, class Length, class Row, class Padding, class Sharding>
void make(input& in, request asked, const Padding& padding, Sharding how) {
  const context_parallel cp(in.number(), how);
  const auto lengths = in.numbers<Length>(12);
  layout_options options;
  if (in.flag()) options.width = in.number();
  std::vector<Row> rows;
  if (in.flag()) {
    rows = in.numbers<Row>(12);
    options.order = rows;
    asked.ordered = true;
    for (const Row row : rows) asked.order.push_back(row);
  } else {
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      asked.order.push_back(static_cast<offset_t>(k));
    }
  }
  check(make_layout<Index>(lengths, padding, cp, options), asked, lengths, in);
}

void run(input& in) {
  request asked;
  asked.each = in.flag() ? in.number() : 1;
  asked.ghost = in.flag();
  const std::size_t total = in.choice(3);
  if (total > 0) asked.multiple = in.number();
  if (total > 1) asked.fixed = in.number();
  asked.has_total = total > 0;
  const each_multiple_of<> each{asked.each};
  const auto with = [&](const auto& policy) {
    switch (in.choice(4)) {
      case 3:
        return make<std::int64_t, std::int32_t, std::int32_t>(in, asked, policy, row_contiguous{});
      case 0: return make<std::int32_t, std::int64_t, std::int32_t>(in, asked, policy, zigzag{});
      case 1: return make<std::int64_t, std::uint64_t, offset_t>(in, asked, policy, contiguous{});
      default: return make<std::int64_t, std::int8_t, offset_t>(in, asked, policy, striped{});
    }
  };
  const auto with_tail = [&](auto tail) {
    if (total == 0) return with(padding{each, tail});
    const total_multiple_of<> multiple{asked.multiple};
    if (total == 1) return with(padding{each, multiple, tail});
    with(padding{each, multiple, fixed_total<>{*asked.fixed}, tail});
  };
  if (asked.ghost) {
    with_tail(ghost_tail{});
  } else {
    with_tail(absorb_tail{});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  try {
    run(in);
  } catch (const invalid_input&) {
  }
  return 0;
}
