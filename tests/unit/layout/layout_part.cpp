// Some sequences of a layout: every token is where it is in the whole one, counted from the part's
// first row.
#define BOOST_TEST_MODULE layout_part
#include "seqpack/layout/layout.hpp"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "support/layouts.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

}  // namespace

BOOST_AUTO_TEST_CASE(tokens_stay_where_they_are) {
  for_each_layout({5, 0, 3, 9, 1}, {}, [](const auto& layout, const auto&, const auto&) {
    const auto whole = layout.view();
    if (whole.cp.cuts_row()) return;
    for (offset_t first = 0; first <= 5; ++first) {
      for (offset_t count = 0; first + count <= 5; ++count) {
        const auto part = layout_part(layout, first, count);
        const auto view = part.view();
        BOOST_TEST(view.sequences == count);
        BOOST_TEST(view.total == whole.begin_of(first + count) - whole.begin_of(first));
        for (offset_t slot = 0; slot < count; ++slot) {
          BOOST_TEST(view.length(slot) == whole.length(first + slot));
          for (offset_t k = 0; k < view.padded_length(slot); ++k) {
            BOOST_TEST(view.row_of(full_row, slot, k) + whole.begin_of(first) ==
                       whole.row_of(full_row, first + slot, k));
            for (offset_t rank = 0; rank < whole.cp.size(); ++rank) {
              const offset_t row = view.row_of(shard{rank}, slot, k);
              const offset_t expected = whole.row_of(shard{rank}, first + slot, k);
              BOOST_TEST((row < 0 ? row : row + whole.share_begin(first)) == expected);
            }
          }
        }
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(slots_that_do_not_exist) {
  const auto layout = make_layout(std::vector{3, 4});
  BOOST_CHECK_EXCEPTION(layout_part(layout, 1, 2), invalid_input,
                        refused("number of slots", "2", "from 0 to 1"));
  BOOST_CHECK_EXCEPTION(layout_part(layout, -1, 1), invalid_input,
                        refused("first slot", "-1", "from 0 to 2"));
  BOOST_CHECK_EXCEPTION(layout_part(layout, 3, 0), invalid_input,
                        refused("first slot", "3", "from 0 to 2"));
}
