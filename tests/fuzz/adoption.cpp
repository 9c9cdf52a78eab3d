// Bounds, position ids, segment ids, masks and batches of others, of any numbers: refused with
// invalid_input, or a layout whose bounds are those that were given.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "input.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/layout/adopt.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/tokens/mask.hpp"

namespace {

using namespace seqpack;
using testing::input;
using testing::require;

/// Sensible numbers now and then, so that some are accepted.
template <class T>
std::vector<T> bounds(input& in) {
  if (in.flag()) return in.numbers<T>(10);
  std::vector<T> list{T{0}};
  for (auto count = in.choice(8); count > 0; --count) {
    list.push_back(static_cast<T>(list.back() + static_cast<T>(in.within(0, 12))));
  }
  return list;
}

template <class Layout>
void check_sizes(const Layout& layout) {
  const auto view = layout.view();
  require(view.cu[0] == 0 && view.cu_padded[0] == 0);
  require(view.cu_padded[view.segments] == view.total);
  for (offset_t s = 0; s < view.segments; ++s) {
    require(view.length(s) >= 0 && view.length(s) <= view.padded_length(s));
    require(view.padded_length(s) % view.cp.divisor() == 0);
  }
}

/// The same tokens, whatever the arguments are.
template <class Layout>
void check_parts(const Layout& layout, input& in) {
  const auto view = layout.view();
  const offset_t first = in.number();
  const offset_t count = in.number();
  const auto shorter = view.without_last(in.number()).without_last(in.number());
  for (offset_t s = 0; s < view.segments; ++s) require(shorter.length(s) <= view.length(s));
  const auto part = layout_part(layout, first, count);
  check_sizes(part);
  for (offset_t slot = 0; slot < count; ++slot) {
    require(part.view().length(slot) == view.length(first + slot));
  }
}

template <class Index, class Bound>
void from_bounds(input& in) {
  const auto real = bounds<Bound>(in);
  const auto padded = in.flag() ? real : bounds<Bound>(in);
  const offset_t total =
      in.flag() && !padded.empty() ? static_cast<offset_t>(padded.back()) : in.number();
  adopt_options options;
  if (in.flag()) options.width = in.number();
  if (in.flag()) options.sequences = in.number();
  if (in.flag()) options.max_seqlen = in.number();
  options.ghost = in.choice(4) == 0;
  if (in.choice(8) == 0) options.tail = in.number();
  std::vector<offset_t> wide;
  std::vector<std::int32_t> narrow;
  if (in.choice(4) == 0) {
    if (in.flag()) {
      wide = in.numbers<offset_t>(8);
      options.order = wide;
    } else {
      narrow = in.numbers<std::int32_t>(8);
      options.order = narrow;
    }
    // A batch takes its memory: what there is, or what nobody has.
    const offset_t batch = in.number();
    options.batch = batch > 1'000'000 && batch <= detail::max_total<Index> ? 8 : batch;
  }
  const context_parallel<> cp(in.flag() ? 1 : in.number());
  const auto layout = from_cu_seqlens<Index>(real, padded, total, cp, options);
  check_sizes(layout);
  for (std::size_t k = 0; k < real.size(); ++k) {
    require(static_cast<std::uint64_t>(layout.view().cu[k]) == static_cast<std::uint64_t>(real[k]));
  }
  check_parts(layout, in);
}

/// The real length of each slot is the one that was given, of any row.
template <class Layout>
void check_lengths(const Layout& layout, const std::vector<offset_t>& lengths) {
  require(layout.sequences() == static_cast<offset_t>(lengths.size()));
  for (offset_t slot = 0; slot < layout.sequences(); ++slot) {
    require(layout.view().length(slot) == lengths[static_cast<std::size_t>(slot)]);
  }
}

template <class Index, class Id>
void from_ids(input& in) {
  std::vector<Id> ids;
  adopt_options options;
  if (in.flag()) options.position_start = in.flag() ? in.within(-3, 3) : in.number();
  const auto start = static_cast<Id>(options.position_start);
  if (in.flag()) {
    ids = in.numbers<Id>(24);
  } else {
    Id next = start;
    for (auto count = in.choice(24); count > 0; --count) {
      if (in.choice(4) == 0) next = start;
      ids.push_back(next);
      next = static_cast<Id>(static_cast<std::uint64_t>(next) + 1);
    }
  }
  options.ghost = in.choice(4) == 0;
  if (in.flag()) options.tail = in.flag() ? in.within(0, 24) : in.number();
  if (in.choice(3) == 0) {
    const auto lengths = in.numbers<offset_t>(8);
    const auto layout = from_position_ids<Index>(ids, lengths, no_context_parallel{}, options);
    check_sizes(layout);
    check_lengths(layout, lengths);
    return;
  }
  const auto layout = from_position_ids<Index>(ids, no_context_parallel{}, options);
  check_sizes(layout);
  require(layout.total_tokens() == static_cast<offset_t>(ids.size()));
  const offset_t tail = options.tail == dynamic ? 0 : options.tail;
  require(layout.real_tokens() == layout.total_tokens() - tail);
  for (offset_t row = 0; row < layout.real_tokens(); ++row) {
    const token_ref token = layout.view().token_at(full_row, row);
    require(static_cast<std::uint64_t>(token.index) +
                static_cast<std::uint64_t>(options.position_start) ==
            static_cast<std::uint64_t>(ids[static_cast<std::size_t>(row)]));
  }
}

/// Tokens are of one sequence exactly where their ids are equal, and padding where they say so or a
/// tail was given.
template <class Layout, class Id>
void check_segments(const Layout& layout, const std::vector<Id>& ids,
                    const adopt_options& options) {
  const auto view = layout.view();
  const auto entry = [&](offset_t row) { return ids[static_cast<std::size_t>(row)]; };
  require(layout.total_tokens() == static_cast<offset_t>(ids.size()));
  const offset_t end = layout.total_tokens() - (options.tail == dynamic ? 0 : options.tail);
  for (offset_t row = 0; row < layout.total_tokens(); ++row) {
    const token_ref token = view.token_at(full_row, row);
    const bool padding = options.padding_id && detail::holds<Id>(*options.padding_id) &&
                         entry(row) == static_cast<Id>(*options.padding_id);
    require(token.real() == (row < end && !padding));
    for (offset_t before = 0; before < row && token.real(); ++before) {
      const token_ref other = view.token_at(full_row, before);
      if (other.real()) require((other.slot == token.slot) == (entry(before) == entry(row)));
    }
  }
}

template <class Index, class Id>
void from_segments(input& in) {
  std::vector<Id> ids;
  if (in.choice(4) == 0) {
    ids = in.numbers<Id>(24);
  } else {
    auto id = static_cast<Id>(in.choice(5));
    for (auto count = in.choice(24); count > 0; --count) {
      const auto what = in.choice(8);
      if (what == 0) id = static_cast<Id>(static_cast<std::uint64_t>(id) + 1);
      if (what == 1) id = in.number<Id>();
      ids.push_back(what == 2 ? Id{0} : id);
    }
  }
  adopt_options options;
  options.ghost = in.choice(4) == 0;
  if (in.flag()) options.tail = in.flag() ? in.within(0, 24) : in.number();
  if (in.flag()) {
    options.padding_id.reset();
    if (in.flag()) options.padding_id = in.number();
  }
  if (in.choice(3) == 0) {
    const auto lengths = in.numbers<offset_t>(8);
    const auto layout = from_segment_ids<Index>(ids, lengths, no_context_parallel{}, options);
    check_sizes(layout);
    check_lengths(layout, lengths);
    return;
  }
  const auto layout = from_segment_ids<Index>(ids, no_context_parallel{}, options);
  check_sizes(layout);
  check_segments(layout, ids, options);
}

template <class Entry>
void from_mask(input& in) {
  const auto batch = static_cast<offset_t>(in.choice(5));
  const auto width = static_cast<offset_t>(in.choice(7));
  std::vector<Entry> mask(static_cast<std::size_t>(batch * width));
  for (Entry& entry : mask) {
    entry = in.choice(16) == 0 ? in.number<Entry>() : static_cast<Entry>(in.flag() ? 1 : 0);
  }
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(batch));
  std::vector<std::int64_t> starts(lengths.size());
  lengths_from_mask(host, batch_view(mask.data(), batch, width), lengths, starts);
  for (offset_t b = 0; b < batch; ++b) {
    const auto start = starts[static_cast<std::size_t>(b)];
    const auto length = lengths[static_cast<std::size_t>(b)];
    for (offset_t s = 0; s < width; ++s) {
      const bool real = s >= start && s < start + length;
      require(mask[static_cast<std::size_t>(b * width + s)] == static_cast<Entry>(real ? 1 : 0));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  try {
    switch (in.choice(11)) {
      case 0: from_bounds<std::int32_t, std::int64_t>(in); break;
      case 1: from_bounds<std::int64_t, std::uint64_t>(in); break;
      case 2: from_bounds<std::int32_t, std::int16_t>(in); break;
      case 3: from_ids<std::int32_t, std::int64_t>(in); break;
      case 4: from_ids<std::int64_t, std::uint64_t>(in); break;
      case 5: from_mask<std::int64_t>(in); break;
      case 6: from_mask<std::uint8_t>(in); break;
      case 7: from_segments<std::int32_t, std::int64_t>(in); break;
      case 8: from_segments<std::int64_t, std::uint64_t>(in); break;
      case 9: from_segments<std::int32_t, std::int8_t>(in); break;
      default: {
        const auto lengths = in.numbers<std::uint64_t>(10);
        const offset_t width = in.number();
        const auto layout = unpacked_layout(lengths, width, context_parallel<>(in.number()));
        check_sizes(layout);
        require(layout.total_tokens() == width * static_cast<offset_t>(lengths.size()));
      }
    }
  } catch (const invalid_input&) {
  }
  return 0;
}
