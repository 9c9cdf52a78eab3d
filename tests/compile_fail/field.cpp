// Fields whose ends do not fit each other.
#include <string>
#include <vector>

#include "seqpack/pack/layout.hpp"
#include "seqpack/pack/pack.hpp"
#include "seqpack/pack/unpack.hpp"

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
#endif

// expect 1: the target of a field must be writable
#if SEQPACK_FAIL == 1
  pack(host, layout, full_row, field(batch, read_only));
#endif

// expect 2: the source and the target of a field must have the same element type
#if SEQPACK_FAIL == 2
  pack(host, layout, full_row, field(batch, wide));
#endif

// expect 3: the target of a field must be writable
#if SEQPACK_FAIL == 3
  unpack(host, layout, full_row, field(packed, read_only_batch));
#endif

// expect 4: the fill of a field must be a value of its element type or a function of the column
#if SEQPACK_FAIL == 4
  pack(host, layout, full_row, field(batch, packed, std::string("pad")));
#endif

// expect 5: the source of a packed field is a batch
#if SEQPACK_FAIL == 5
  std::vector<int> other(3);
  pack(host, layout, full_row, field(other, packed));
#endif

// expect 6: the target of an unpacked field is a batch
#if SEQPACK_FAIL == 6
  std::vector<int> other(3);
  unpack(host, layout, full_row, field(other, packed));
#endif

// A place is not a number.
// expect 7: satisfaction of 'place<Place>' .with Place = int
// expect 7: 'int' does not satisfy 'place'
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
#if SEQPACK_FAIL == 9
  pack(host, layout, full_row);
#endif
}
