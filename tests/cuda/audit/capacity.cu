// What layouts with a capacity ask of the runtime; whole steps captured once and replayed with
// other lengths.
#include <boost/test/unit_test.hpp>

#include "seqpack/layout/capacity_layout.cuh"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "support/audit.cuh"

BOOST_AUTO_TEST_SUITE(audit_capacity)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

constexpr auto making = "`capacity_layout`, its making";
constexpr auto building_name = "`capacity_layout::build`";
constexpr auto checking = "`capacity_layout::check`";
constexpr int longest = 6;

template <class Tail>
auto make_capacity(const test_stream& stream, int sequences, offset_t cp) {
  return capacity_layout(stream.executor(), {.sequences = sequences, .width = longest},
                         padding{each_multiple_of<>{8}, fixed_total<>{8 * (sequences + 1)}, Tail{}},
                         context_parallel{cp});
}

/// Lengths in device memory of which the first few count, other ones in each round.
struct lengths {
  device_array<int> values;
  device_array<int> count;

  explicit lengths(int batch) : values(static_cast<std::size_t>(batch)), count(1) { set(0); }
  void set(int round) {
    const auto batch = static_cast<int>(values.size());
    values.upload(audit_lengths(batch, longest, round));
    count.upload({batch < 3 ? batch : batch - round % 3});
  }
};

template <class Tail>
void check_calls() {
  for (const int batch : audited_batches) {
    const lengths given(batch);
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      auto layout =
          audited_call(making, stream, [&] { return make_capacity<Tail>(stream, batch, cp); });
      audited_call(building_name, stream,
                   [&] { layout.build(stream, given.values.data(), given.count.data()); });
      audited_call(checking, stream, [&] { layout.check(stream); });
    }
  }
}

/// build in a graph of its own, and the step that follows in another one.
template <class Tail>
void check_graphs() {
  const int batch = 13;
  const test_stream stream;
  auto layout = make_capacity<Tail>(stream, batch, 2);
  lengths given(batch);
  device_array<int> tokens(static_cast<std::size_t>(batch * longest));
  const device_array<int> shards(static_cast<std::size_t>(layout.total_tokens()));
  const device_array<int> back(tokens.size());
  const batch_view from(tokens.data(), offset_t{batch}, offset_t{longest});
  const batch_view to(back.data(), offset_t{batch}, offset_t{longest});
  const row_view rows(shards.data(), layout.total_tokens());
  const auto build = [&] { layout.build(stream, given.values.data(), given.count.data()); };
  const auto pack_shards = [&] {
    pack(stream.executor(), layout, all_shards, field(from, rows, -1));
  };
  const captured_call step(stream, [&] {
    build();
    pack_shards();
    unpack(stream.executor(), layout, all_shards, field(rows, to, -2));
  });
  BOOST_TEST(step.launches == 4);
  BOOST_TEST(step.memsets == 1);
  BOOST_TEST(step.others == 0);

  std::vector<int> before;
  for (int round = 0; round < 6; ++round) {
    given.set(round);
    set_values(tokens, round);
    poison(shards);
    poison(back);
    step.replay(stream);
    stream.wait();
    const auto replayed = shards.values();
    const auto unpacked = back.values();
    poison(shards);
    auto eager = make_capacity<Tail>(stream, batch, 2);
    eager.build(stream, given.values.data(), given.count.data());
    pack(stream.executor(), eager, all_shards, field(from, rows, -1));
    eager.check(stream);
    layout.check(stream);
    stream.wait();
    BOOST_TEST(replayed == shards.values(), boost::test_tools::per_element());
    BOOST_TEST(replayed != before);
    // Real tokens come back to where they were, and everything else is the fill.
    const auto sent = tokens.values();
    const auto length = given.values.values();
    const int count = given.count.values().front();
    for (int b = 0; b < batch; ++b) {
      for (int s = 0; s < longest; ++s) {
        const auto k = static_cast<std::size_t>(b * longest + s);
        const bool real = b < count && s < length[static_cast<std::size_t>(b)];
        BOOST_TEST(unpacked[k] == (real ? sent[k] : -2));
      }
    }
    before = replayed;
  }

  // Too much content is a status, in a graph as well, and the next lengths are good again.
  given.values.upload(std::vector<int>(static_cast<std::size_t>(batch), longest + 1));
  step.replay(stream);
  BOOST_CHECK_THROW(layout.check(stream), invalid_input);
  BOOST_TEST((shards.guards_intact() && back.guards_intact()));
  given.set(1);
  step.replay(stream);
  layout.check(stream);

  check_refused(checking, stream, [&] { layout.check(stream); });
  check_captured(building_name, stream, build);
}

}  // namespace

BOOST_AUTO_TEST_CASE(calls_with_an_absorbing_tail) {
  check_calls<absorb_tail>();
}
BOOST_AUTO_TEST_CASE(calls_with_a_ghost) {
  check_calls<ghost_tail>();
}
BOOST_AUTO_TEST_CASE(graphs_with_an_absorbing_tail) {
  check_graphs<absorb_tail>();
}
BOOST_AUTO_TEST_CASE(graphs_with_a_ghost) {
  check_graphs<ghost_tail>();
}

BOOST_AUTO_TEST_CASE(every_call_was_measured) {
  require_all_measured("cuda/audit/capacity.cu");
}

BOOST_AUTO_TEST_SUITE_END()
