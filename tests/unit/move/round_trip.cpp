// Every element type and payload width comes back bit for bit, padding included.
#define BOOST_TEST_MODULE round_trip
#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/buffers.hpp"
#include "support/elements.hpp"
#include "support/layouts.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

constexpr offset_t payloads[] = {1, 2, 3, 5, 7, 16, 33};

/// Whether element [i, d] of a buffer is value(i, d), or the fill where there is none.
template <class T, class Expected>
bool holds(const poisoned_buffer<T>& buffer, offset_t payload, Expected expected) {
  const auto rows = static_cast<offset_t>(buffer.size()) / payload;
  for (offset_t i = 0; i < rows; ++i) {
    for (offset_t d = 0; d < payload; ++d) {
      if (!same_bytes(buffer.data()[i * payload + d], expected(i, d))) return false;
    }
  }
  return true;
}

template <class T>
struct source {
  source(const oracle::numbers& lens, offset_t row_width, offset_t row_payload)
      : width(row_width),
        payload(row_payload),
        table(static_cast<offset_t>(lens.size()) * width * payload) {
    for (std::size_t b = 0; b < lens.size(); ++b) {
      for (offset_t s = 0; s < lens[b]; ++s) {
        for (offset_t d = 0; d < payload; ++d) {
          table[static_cast<std::size_t>(index(static_cast<offset_t>(b), s) * payload + d)] =
              value(static_cast<offset_t>(b), s, d);
        }
      }
    }
  }
  offset_t index(offset_t b, offset_t s) const { return b * width + s; }
  static T value(offset_t b, offset_t s, offset_t d) { return make_element<T>(31 * b + 7 * s + d); }

  offset_t width;
  offset_t payload;
  poisoned_buffer<T> table;  // the columns behind a length stay poison
};

template <class T, class Layout, class Place>
void round_trip(const Layout& layout, Place at, const oracle::tokens& tokens, source<T>& from,
                offset_t batch) {
  const offset_t payload = from.payload;
  const auto rows = static_cast<offset_t>(tokens.size());
  const T fill = make_element<T>(97);
  poisoned_buffer<T> packed(rows * payload);
  poisoned_buffer<T> back(batch * from.width * payload);
  pack(host, layout, at,
       field(batch_view<const T>(from.table.data(), batch, from.width, payload),
             row_view(packed.data(), rows, payload), fill));
  BOOST_TEST(packed.guards_intact());
  BOOST_TEST(holds(packed, payload, [&](offset_t row, offset_t d) {
    const auto& token = tokens[static_cast<std::size_t>(row)];
    return token.real ? source<T>::value(token.row, token.position, d) : fill;
  }));

  unpack(host, layout, at,
         field(row_view(packed.data(), rows, payload),
               batch_view(back.data(), batch, from.width, payload), fill));
  BOOST_TEST(back.guards_intact());
  std::vector<bool> real(static_cast<std::size_t>(batch * from.width));
  for (const auto& token : tokens) {
    if (token.real) real[static_cast<std::size_t>(from.index(token.row, token.position))] = true;
  }
  BOOST_TEST(holds(back, payload, [&](offset_t position, offset_t d) {
    if (!real[static_cast<std::size_t>(position)]) return fill;
    return source<T>::value(position / from.width, position % from.width, d);
  }));
}

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(every_place_and_payload, Element, all_elements) {
  using T = typename Element::type;
  const oracle::numbers lens{5, 0, 9, 1};
  const oracle::packed expected = oracle::pack(
      {.lens = lens, .each = 4, .fixed_total = 32, .tail_to = oracle::tail::ghost, .cp = 2});
  const auto layout = make_layout(
      lens, padding{each_multiple_of<4>{}, fixed_total<32>{}, ghost_tail{}}, context_parallel<2>{});
  for (const offset_t payload : payloads) {
    source<T> from(lens, 11, payload);
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      round_trip<T>(layout, at, tokens, from, 4);
    });
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(order_and_striped_shards, Element, element_sizes) {
  using T = typename Element::type;
  const oracle::numbers lens{5, 0, 9, 1};
  const oracle::packed expected = oracle::pack({.lens = lens,
                                                .each = 3,
                                                .total_multiple = 12,
                                                .cp = 3,
                                                .sharding = oracle::kind::striped,
                                                .order = {2, 3, 0}});
  const std::vector<offset_t> order{2, 3, 0};
  const auto layout = make_layout(lens, padding{each_multiple_of<3>{}, total_multiple_of<12>{}},
                                  context_parallel<3, striped>{}, {.order = order});
  for (const offset_t payload : payloads) {
    source<T> from(lens, 9, payload);
    for_each_place(expected, [&](auto at, const oracle::tokens& tokens) {
      round_trip<T>(layout, at, tokens, from, 4);
    });
  }
}
