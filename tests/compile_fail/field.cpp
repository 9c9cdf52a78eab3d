// Fields whose ends do not fit each other.
#include <string>
#include <vector>

#include "seqpack/layout/layout.hpp"
#include "seqpack/move/byte_field.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"

using namespace seqpack;

void run() {
  const auto layout = make_layout(std::vector<int>{2, 1});
  std::vector<int> ids(6);
  std::vector<int> packed(3);
  const std::vector<int> read_only(3);
  std::vector<long long> wide(3);
  const batch_view batch(ids.data(), 2, 3);
  [[maybe_unused]] const batch_view<const int> read_only_batch = batch;

#if SEQPACK_FAIL == 0
  pack(host, layout, full_row, field(batch, packed));
  pack(host, layout, full_row, field(read_only_batch, packed, 7));
  pack(host, layout, shard{0}, field(batch, packed, [](offset_t column) { return column; }));
  unpack(host, layout, full_row, field(read_only, batch));
  pack(host, layout, full_row,
       byte_field(byte_batch(ids.data(), 4, 2, 3), byte_rows(packed.data(), 4, 3), 4));
#endif

// expect 1: the target of a field must be writable
// errors 1: 1
#if SEQPACK_FAIL == 1
  pack(host, layout, full_row, field(batch, read_only));
#endif

// expect 2: the source and the target of a field must have the same element type
// errors 2: 1
#if SEQPACK_FAIL == 2
  pack(host, layout, full_row, field(batch, wide));
#endif

// expect 3: the target of a field must be writable
// errors 3: 1
#if SEQPACK_FAIL == 3
  unpack(host, layout, full_row, field(packed, read_only_batch));
#endif

// expect 4: the fill of a field must be a value of its element type or a function of the column
// errors 4: 1
#if SEQPACK_FAIL == 4
  pack(host, layout, full_row, field(batch, packed, std::string("pad")));
#endif

// expect 5: the source of a packed field is a batch: a batch_view.data, B, S., left_padded_view or ragged_view
// errors 5: 1
#if SEQPACK_FAIL == 5
  std::vector<int> other(3);
  pack(host, layout, full_row, field(other, packed));
#endif

// expect 6: the target of an unpacked field is a batch: a batch_view.data, B, S., left_padded_view or ragged_view
// errors 6: 1
#if SEQPACK_FAIL == 6
  std::vector<int> other(3);
  unpack(host, layout, full_row, field(other, packed));
#endif

// A place is not a number.
// expect 7: satisfaction of 'place<Place>' .with Place = int
// expect 7: 'int' does not satisfy 'place'
// errors 7: 1
#if SEQPACK_FAIL == 7
  pack(host, layout, 0, field(batch, packed));
#endif

// A view of a temporary would dangle.
// expect 8: no matching function for call to 'seqpack::row_view<int>::row_view.std::vector<int>
// expect 8: no matching constructor for initialization of 'const row_view<int>'
#if SEQPACK_FAIL == 8
  const row_view<int> dangling(std::vector<int>(3));
#endif

// Without any field there is nothing to do.
// expect 9: sizeof ... .From .... > 0 .with From = ...' evaluated to 'false'
// expect 9: 'sizeof....From. > 0' .0 > 0. evaluated to false
// errors 9: 1
#if SEQPACK_FAIL == 9
  pack(host, layout, full_row);
#endif

// The ends of an unpack given to pack, and the other way round.
// expect 10: the source of a packed field is a batch
// errors 10: 1
#if SEQPACK_FAIL == 10
  pack(host, layout, full_row, field(packed, batch));
#endif

// expect 11: the target of an unpacked field is a batch
// errors 11: 1
#if SEQPACK_FAIL == 11
  unpack_own(host, layout, shard{0}, field(batch, packed));
#endif

// expect 12: the target of a packed field is packed rows: a row_view, an mdspan or a contiguous range
// errors 12: 1
#if SEQPACK_FAIL == 12
  pack(host, layout, full_row, field(batch, batch));
#endif

// expect 13: the source of an unpacked field is packed rows: a row_view, an mdspan or a contiguous range
// errors 13: 1
#if SEQPACK_FAIL == 13
  unpack(host, layout, full_row, field(batch, batch));
#endif

// expect 14: the source and the target of a rearranged field are packed rows
// errors 14: 1
#if SEQPACK_FAIL == 14
  rearrange(host, layout, full_row, all_shards, field(batch, packed));
#endif

// What is no view and nothing that packed rows can be made of; a temporary would be gone.
// expect 15: the source of a field is a batch .batch_view, left_padded_view, ragged_view. or packed rows
// errors 15: 1
#if SEQPACK_FAIL == 15
  unpack(host, layout, full_row, field(std::vector<int>(3), batch));
#endif

// expect 16: the target of a field is packed rows .row_view, an mdspan, or a contiguous range
// errors 16: 1
#if SEQPACK_FAIL == 16
  std::vector<bool> bits(3);
  pack(host, layout, full_row, field(batch, bits));
#endif

// expect 17: the source of a field is a batch
// errors 17: 1
#if SEQPACK_FAIL == 17
  rearrange(host, layout, full_row, all_shards, field(ids.data(), packed));
#endif

// One field of several.
// expect 18: the source and the target of a field must have the same element type
// errors 18: 1
#if SEQPACK_FAIL == 18
  pack(host, layout, full_row, field(batch, packed), field(batch, wide));
#endif

// A list of lengths is no layout.
// expect 19: satisfaction of 'layout<L>' .with L = std::vector<int
// expect 19: 'std::vector<int>' does not satisfy 'layout'
// errors 19: 1
#if SEQPACK_FAIL == 19
  pack(host, std::vector<int>{2, 1}, full_row, field(batch, packed));
#endif

// The size of an element says nothing of a view of another type.
// expect 20: the ends of a byte_field are views of std::byte: byte_batch, byte_rows
// errors 20: 1
#if SEQPACK_FAIL == 20
  pack(host, layout, full_row, byte_field(batch, byte_rows(packed.data(), 4, 3), 4));
#endif
}
