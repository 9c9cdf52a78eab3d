// Views of any numbers: refused with invalid_input where a size, a stride or a product of them is
// none of a memory; and calls with them, which never touch what is not there.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "input.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/logprob/logits.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/tokens/per_token.hpp"

namespace {

using namespace seqpack;
using testing::input;
using testing::require;
__extension__ typedef __int128 wide;

constexpr std::size_t room = 256;

/// The elements [first, last) that a view reaches, in numbers that cannot overflow.
struct reach {
  wide first = 0;
  wide last = 0;

  bool within(wide begin, wide end) const {
    return first == last || (first >= begin && last <= end);
  }
};

reach reach_of(offset_t batch, offset_t width, offset_t payload, offset_t batch_stride,
               offset_t token_stride) {
  if (batch == 0 || width == 0 || payload == 0) return {};
  const wide across = wide{batch - 1} * batch_stride;
  const wide along = wide{width - 1} * token_stride;
  return {(across < 0 ? across : 0) + (along < 0 ? along : 0),
          (across > 0 ? across : 0) + (along > 0 ? along : 0) + payload};
}

/// A view of 256 elements where it fits there, else of nothing.
template <class T>
struct any_batch {
  std::array<T, room> memory{};
  batch_view<T> view;

  explicit any_batch(input& in) {
    const offset_t batch = in.number();
    const offset_t width = in.number();
    const offset_t payload = in.flag() ? 1 : in.number();
    const bool dense = in.flag();
    const offset_t batch_stride = dense ? 0 : in.number();
    const offset_t token_stride = dense ? 0 : in.number();
    const auto make = [&](T* data) {
      return dense ? batch_view<T>(data, batch, width, payload)
                   : batch_view<T>(data, batch, width, payload, batch_stride, token_stride);
    };
    view = make(nullptr);
    const reach r = reach_of(batch, width, payload, view.batch_stride(), view.stride());
    const auto bytes = view.touched();
    require(static_cast<wide>(bytes.last - bytes.first) == (r.last - r.first) * wide{sizeof(T)});
    const std::size_t middle = room / 2;
    if (r.within(-static_cast<wide>(middle), static_cast<wide>(room - middle))) {
      view = make(memory.data() + middle);
    }
  }
};

template <class T>
row_view<T> any_row(input& in, std::array<T, room>& memory) {
  const offset_t rows = in.number();
  const offset_t payload = in.flag() ? 1 : in.number();
  const row_view<T> nothing(nullptr, rows, payload);
  if (wide{rows} * payload > wide{room}) return nothing;
  return {memory.data(), rows, payload};
}

template <class T>
void batches(input& in) {
  any_batch<T> source(in);
  std::array<T, room> row_memory{};
  const row_view<T> row = any_row<T>(in, row_memory);
  const footprint all = source.view.touched();  // around address 0 where it is a view of nothing
  if (all.first <= all.last) require(all.overlaps(all) == (all.first != all.last));
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(in.choice(8)));
  for (auto& length : lengths) length = static_cast<std::int32_t>(in.within(0, 6));
  const auto layout = make_layout(lengths, padding{each_multiple_of<>{in.within(1, 4)}});
  switch (in.choice(5)) {
    case 0: pack(host, layout, full_row, field(source.view, row)); break;
    case 1: unpack(host, layout, all_shards, field(row, source.view)); break;
    case 2:
      per_token(host, layout, full_row, labels(source.view, row, {in.number(), in.number()}));
      break;
    case 3: per_token(host, layout, shard{in.number()}, batch_index(row, in.number())); break;
    default: {
      std::array<T, room> other{};
      rearrange(host, layout, full_row, all_shards, field(row, any_row<T>(in, other)));
    }
  }
}

template <class Offset>
void ragged(input& in) {
  std::array<std::int64_t, room> memory{};
  const row_view<std::int64_t> values = any_row<std::int64_t>(in, memory);
  const auto offsets = in.numbers<Offset>(9);
  if (offsets.empty()) return;
  const auto batch = static_cast<offset_t>(offsets.size()) - 1;
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(batch));
  for (auto& length : lengths) length = static_cast<std::int32_t>(in.within(0, 6));
  const auto layout = make_layout(lengths);
  std::vector<std::int64_t> row(static_cast<std::size_t>(layout.total_tokens()));
  const ragged_view view(values, offsets.data(), batch);
  if (in.flag()) {
    pack(host, layout, full_row, field(view, row));
  } else {
    unpack(host, layout, full_row, field(row, view));
  }
}

template <class Start>
void left_padded(input& in) {
  any_batch<std::int16_t> table(in);
  const offset_t batch = table.view.batch();
  if (batch > 8) return;
  std::vector<Start> starts(static_cast<std::size_t>(batch));
  for (Start& start : starts) start = in.number<Start>();
  std::vector<std::int32_t> lengths(starts.size());
  for (auto& length : lengths) length = static_cast<std::int32_t>(in.within(0, 6));
  const auto layout = make_layout(lengths);
  std::vector<std::int16_t> row(static_cast<std::size_t>(layout.total_tokens()));
  const left_padded_view view(table.view, starts.data());
  if (in.flag()) {
    pack(host, layout, full_row, field(view, row));
  } else {
    unpack(host, layout, full_row, field(row, view));
  }
}

void matrices(input& in) {
  const offset_t rows = in.number();
  const offset_t columns = in.number();
  const offset_t stride = in.flag() ? columns : in.number();
  const matrix_view<float> view(nullptr, rows, columns, stride);
  const auto bytes = view.touched();
  const wide elements = rows == 0 || columns == 0 ? wide{0} : wide{rows - 1} * stride + columns;
  require(static_cast<wide>(bytes.last - bytes.first) == elements * 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  try {
    switch (in.choice(8)) {
      case 0: batches<std::int8_t>(in); break;
      case 1: batches<std::int64_t>(in); break;
      case 2: batches<float>(in); break;
      case 3: ragged<std::int64_t>(in); break;
      case 4: ragged<std::uint64_t>(in); break;
      case 5: left_padded<std::int64_t>(in); break;
      case 6: left_padded<std::uint64_t>(in); break;
      default: matrices(in); break;
    }
  } catch (const invalid_input&) {
  }
  return 0;
}
