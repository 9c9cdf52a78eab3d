// Gathers in a group of one, which executors and groups go together, and what only one rank sees.
// tests/mpi/context_gather.cpp has more ranks.
#define BOOST_TEST_MODULE context_gather
#include "seqpack/parallel/context_gather.hpp"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "support/as_device.hpp"
#include "support/context_gather_suite.hpp"
#include "support/refused.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using boost::test_tools::per_element;

/// Two ranks, or one, all of which bring what this one brings. Counts what it is asked for.
template <bool OnDevice>
class echo_group : public communicator_base<echo_group<OnDevice>> {
 public:
  static constexpr bool on_device = OnDevice;
  template <class T>
  static constexpr bool reduces = std::is_arithmetic_v<T>;

  explicit echo_group(offset_t ranks = 2)
      : communicator_base<echo_group>(group_members::all(ranks), world_rank{0}) {}

  memory_location location() const { return {}; }
  memory_location location_of(const void*) const { return {}; }
  void exchange(const std::byte* mine, std::byte* all, offset_t bytes) {
    ++exchanges;
    gather_bytes(mine, all, bytes);
  }
  void join_broadcast(offset_t, group_rank) {}
  void wait() {}
  echo_group split(std::optional<offset_t>, offset_t) { return echo_group(this->size()); }
  std::shared_ptr<void> allocate(offset_t bytes) {
    ++allocations;
    if (out_of_memory) throw std::bad_alloc();
    return {::operator new(static_cast<std::size_t>(bytes)), [](void* p) { ::operator delete(p); }};
  }
  int stream() const { return stream_number; }

  int exchanges = 0;
  int gathers = 0;
  int allocations = 0;
  int stream_number = 0;
  bool out_of_memory = false;

 private:
  friend communicator_base<echo_group>;
  void require_usable() const { this->require_member(); }
  void gather_bytes(const void* mine, void* all, offset_t bytes) {
    ++gathers;
    auto* const out = static_cast<std::byte*>(all);
    std::memmove(out, mine, static_cast<std::size_t>(bytes));
    std::memcpy(out + bytes, out, static_cast<std::size_t>(bytes));
  }
  void broadcast_bytes(void*, offset_t, group_rank) {}
  template <class T>
  void reduce(const T* in, T* out, offset_t n, reduction) {
    for (offset_t k = 0; k < n; ++k) out[k] = in[k] + in[k];
  }
  template <class T>
  void reduce_blocks(const T* in, T* out, offset_t n, reduction how) {
    reduce(in, out, n, how);
  }
};
static_assert(communicator<echo_group<false>> && communicator<echo_group<true>>);

/// The calling thread, under the name of a stream.
struct numbered_stream {
  int stream;
};
/// What it says to be on a device.
struct device_like {};

}  // namespace

template <>
struct seqpack::executor_traits<numbered_stream> : executor_traits<host_t> {
  template <class Op>
  static void run(numbered_stream, const Op& op) {
    op.process(0, op.rows());
  }
};
template <>
struct seqpack::executor_traits<device_like> {
  static constexpr bool on_device = true;
  template <class Op>
  static void run(device_like, const Op& op) {
    run_as_device(op);
  }
};

namespace {

using pair_layout = packed_layout<context_parallel<2>>;
using pair_view = pair_layout::view_type;

template <class E, class C, class L, class T>
concept gathers = requires(const E& where, C& group, const L& layout, row_view<const T> mine,
                           batch_view<T> batch, row_view<T> rows) {
  all_gather_unpack(where, group, layout, field(mine, batch), rows);
  all_gather_unpack(where, group, layout, field(mine, batch));
  all_gather_rows(where, group, layout, field(mine, rows), rows);
  all_gather_rows(where, group, layout, field(mine, rows));
};
template <class E, class C, class L, class T>
concept scatters = requires(const E& where, C& group, const L& layout, row_view<const T> row,
                            batch_view<const T> batch, row_view<T> mine) {
  pack_reduce_scatter(where, group, layout, field(batch, mine), mine);
  pack_reduce_scatter(where, group, layout, field(batch, mine));
  reduce_scatter_rows(where, group, layout, field(row, mine), mine);
  reduce_scatter_rows(where, group, layout, field(row, mine));
};
static_assert(gathers<host_t, self_communicator, pair_layout, float>);
static_assert(scatters<host_t, self_communicator, pair_layout, float>);
static_assert(gathers<host_t, echo_group<false>, pair_layout, point>);
static_assert(scatters<host_t, echo_group<false>, pair_layout, float>);
static_assert(!scatters<host_t, echo_group<false>, pair_layout, point>, "a struct has no sum");
static_assert(!gathers<host_t, echo_group<true>, pair_layout, float>);
static_assert(!scatters<host_t, echo_group<true>, pair_layout, float>);
static_assert(!gathers<device_like, echo_group<false>, pair_view, float>);
static_assert(gathers<device_like, echo_group<true>, pair_view, float>);
static_assert(gathers<device_like, self_communicator, pair_view, float>, "nothing moves");
static_assert(!gathers<device_like, echo_group<true>, pair_layout, float>,
              "the layout is on the host");
static_assert(gathers_on<host_t, self_communicator> && !gathers_on<host_t, int> &&
              !gathers_on<int, self_communicator>);

/// Two ranks, lengths 4 and 2; this rank's shard holds 4 rows.
struct fixture {
  echo_group<false> group;
  pair_layout layout =
      make_layout(std::vector{4, 2}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  std::vector<std::int64_t> mine{100, 103, 200, -1};
  std::vector<std::int64_t> workspace = untouched<std::int64_t>(8);
  std::vector<std::int64_t> batch = untouched<std::int64_t>(8);

  auto target() { return field(mine, batch_view(batch.data(), 2, 4), 9); }
  void nothing_written() {
    BOOST_TEST(batch == untouched<std::int64_t>(8), per_element());
    BOOST_TEST(workspace == untouched<std::int64_t>(8), per_element());
  }
};

/// The exact text.
auto says(const std::string& text) {
  return [=](const invalid_input& e) {
    BOOST_TEST(e.what() == text);
    return true;
  };
}

}  // namespace

BOOST_AUTO_TEST_CASE(conforms_in_a_group_of_one) {
  self_communicator group;
  findings found;
  check_context_gather(host, group, found, [](const auto& layout) { return layout; }, 9);
  found.report();
}

BOOST_AUTO_TEST_CASE(conforms_with_the_functions_of_a_device) {
  self_communicator group;
  findings found;
  check_context_gather(
      device_like{}, group, found, [](const auto& layout) { return layout.view(); }, 3);
  found.report();
}

BOOST_AUTO_TEST_CASE(one_rank_needs_no_workspace) {
  self_communicator group;
  const auto layout = make_layout(std::vector{2, 1}, padding{each_multiple_of<2>{}});
  std::vector<float> mine{1, 2, 3, 4};
  std::vector<float> batch(4);
  const auto f = field(mine, batch_view(batch.data(), 2, 2));
  all_gather_unpack(host, group, layout, f, row_view<float>());
  BOOST_TEST(batch == (std::vector<float>{1, 2, 3, 0}), per_element());
  // Not even one that could not be used.
  all_gather_unpack(host, group, layout, f, batch);
  all_gather_unpack(host, group, layout, f, row_view<float>(nullptr, 1, 7));
  echo_group<false> counting(1);
  all_gather_unpack(host, counting, layout, f);
  all_gather_rows(host, counting, layout, field(mine, batch));
  BOOST_TEST(counting.allocations + counting.gathers == 0);
  const std::vector<float> gradient{5, 6, 7, 8};
  pack_reduce_scatter(host, group, layout, field(batch_view(gradient.data(), 2, 2), mine),
                      row_view<float>());
  BOOST_TEST(mine == (std::vector<float>{5, 6, 7, 0}), per_element());
}

BOOST_FIXTURE_TEST_CASE(one_gather_and_nothing_else, fixture) {
  all_gather_unpack(host, group, layout, target(), workspace);
  // Both ranks brought the same: rank 1's tokens are the chunks in the middle.
  BOOST_TEST(batch == (std::vector<std::int64_t>{100, 100, 103, 103, 200, 200, 9, 9}),
             per_element());
  BOOST_TEST(group.gathers == 1);
  BOOST_TEST(group.exchanges == 0);
  BOOST_TEST(group.allocations == 0);
  all_gather_unpack(host, group, layout, target());
  BOOST_TEST(group.gathers == 2);
  BOOST_TEST(group.allocations == 1);
  all_gather_unpack(host, group, layout, target(), workspace, {.check_all_ranks = true});
  BOOST_TEST(group.exchanges == 1);
  BOOST_TEST(group.allocations == 1);
  all_gather_unpack(host, group, layout, target(), {.check_all_ranks = true});
  BOOST_TEST(group.exchanges == 2);
  BOOST_TEST(group.allocations == 2);
}

BOOST_FIXTURE_TEST_CASE(wrong_calls_send_and_allocate_nothing, fixture) {
  const auto short_field = field(row_view(mine.data(), 3), batch_view(batch.data(), 2, 4));
  BOOST_CHECK_EXCEPTION(
      all_gather_unpack(host, group, layout, short_field), invalid_input,
      says("source rows is 3: it must be 4, the tokens of the layout in one shard"));
  BOOST_CHECK_EXCEPTION(
      all_gather_unpack(host, group, layout, target(), row_view(workspace.data(), 8, 2)),
      invalid_input, says("workspace payload is 2: it must be 1, the payload of the shards"));
  BOOST_CHECK_EXCEPTION(
      all_gather_unpack(host, group, layout, target(), row_view<std::int64_t>(nullptr, 8)),
      invalid_input, says("workspace is null: it must point to 8 elements"));
  BOOST_CHECK_EXCEPTION(
      all_gather_unpack(host, group, layout, field(mine, batch_view(batch.data(), 1, 4, 2)),
                        workspace),
      invalid_input, says("target payload is 2: it must be 1, the payload of its source"));
  nothing_written();
  BOOST_TEST(group.gathers == 0);
  BOOST_TEST(group.allocations == 0);
}

BOOST_FIXTURE_TEST_CASE(memory_that_is_used_twice, fixture) {
  std::vector<std::int64_t> memory = untouched<std::int64_t>(40);
  const auto at = [&](offset_t first) { return memory.data() + first; };
  const auto refuse = [&](offset_t source, offset_t target_at, offset_t work,
                          const std::string& text) {
    BOOST_CHECK_EXCEPTION(
        all_gather_unpack(host, group, layout,
                          field(row_view(at(source), 4), batch_view(at(target_at), 2, 4)),
                          row_view(at(work), 8)),
        invalid_input, says(text + ": outputs must not alias"));
    BOOST_TEST(memory == untouched<std::int64_t>(40), per_element());
  };
  refuse(0, 3, 20, "target is in the memory of source");
  refuse(0, 10, 17, "workspace is in the memory of target");
  refuse(0, 10, 3, "workspace is in the memory of source");
  // Rank 1's part of the workspace is not this rank's.
  refuse(24, 0, 20, "workspace is in the memory of source");
  refuse(20, 22, 20, "workspace is in the memory of target");

  const auto refuse_gradient = [&](offset_t source, offset_t target_at, offset_t work,
                                   const std::string& text) {
    BOOST_CHECK_EXCEPTION(
        pack_reduce_scatter(host, group, layout,
                            field(batch_view(at(source), 2, 4), row_view(at(target_at), 4)),
                            row_view(at(work), 8)),
        invalid_input, says(text + ": outputs must not alias"));
    BOOST_TEST(memory == untouched<std::int64_t>(40), per_element());
  };
  refuse_gradient(0, 7, 20, "target is in the memory of source");
  refuse_gradient(0, 10, 7, "workspace is in the memory of source");
  refuse_gradient(0, 20, 20, "workspace is in the memory of target");
}

BOOST_FIXTURE_TEST_CASE(other_stream_than_that_of_the_group, fixture) {
  group.stream_number = 3;
  all_gather_unpack(numbered_stream{3}, group, layout, target(), workspace);
  fixture again;
  again.group.stream_number = 3;
  BOOST_CHECK_EXCEPTION(
      all_gather_unpack(numbered_stream{4}, again.group, layout, again.target(), again.workspace),
      invalid_input,
      says("stream of the executor is another one than the group's: both must put their work into "
           "the same stream"));
  again.nothing_written();
}

BOOST_FIXTURE_TEST_CASE(fill_of_a_gradient, fixture) {
  const std::vector<std::int64_t> gradient(8, 1);
  const batch_view source(gradient.data(), 2, 4);
  const auto before = mine;
  BOOST_CHECK_EXCEPTION(pack_reduce_scatter(host, group, layout, field(source, mine, 5), workspace),
                        invalid_input, says("fill is not 0: the padding of a gradient is 0"));
  BOOST_TEST(mine == before, per_element());
  nothing_written();
  pack_reduce_scatter(host, group, layout, field(source, mine, 0), workspace);
  BOOST_TEST(mine == (std::vector<std::int64_t>{2, 2, 2, 0}), per_element());
}

BOOST_FIXTURE_TEST_CASE(allocation_that_fails, fixture) {
  group.out_of_memory = true;
  BOOST_CHECK_THROW(all_gather_unpack(host, group, layout, target()), std::bad_alloc);
  BOOST_TEST(group.gathers == 0);
  // The echo is a rank 1 to which the same happens.
  BOOST_CHECK_EXCEPTION(
      all_gather_unpack(host, group, layout, target(), {.check_all_ranks = true}),
      collective_mismatch,
      says("the call on rank 0 is refused: std::bad_alloc; refused on 2 ranks: 0, 1"));
  nothing_written();
}

BOOST_FIXTURE_TEST_CASE(no_member_and_no_arrays, fixture) {
  self_communicator all;
  self_communicator none = all.split(std::nullopt, 0);
  for (const bool together : {false, true}) {
    BOOST_CHECK_EXCEPTION(
        all_gather_unpack(host, none, layout, target(), workspace, {.check_all_ranks = together}),
        invalid_input, refused("caller", "world rank 0", "it must be a member of the group"));
  }
  const layout_view<context_parallel<2>> view{
      .sequences = 1, .segments = 1, .batch = 2, .total = 8};
  BOOST_CHECK_EXCEPTION(all_gather_unpack(host, group, view, target(), workspace), invalid_input,
                        refused("the layout's cu_seqlens", "null", "needs its arrays"));
  nothing_written();
}

BOOST_FIXTURE_TEST_CASE(bounds_of_a_ragged_gradient_are_read, fixture) {
  // Two sequences of the layout; the offsets lie where the target is written.
  std::vector<std::int64_t> values(6, 1);
  std::vector<std::int64_t> rows{0, 4, 6, 7};
  const auto before = rows;
  const auto call = [&](const std::int64_t* offsets) {
    pack_reduce_scatter(host, group, layout,
                        field(ragged_view(row_view(values), offsets, 2), row_view(rows)),
                        workspace);
  };
  BOOST_CHECK_EXCEPTION(call(rows.data()), invalid_input,
                        says("target is in the memory of source bounds: outputs must not alias"));
  BOOST_TEST(rows == before, per_element());
  nothing_written();
  call(before.data());
}

BOOST_AUTO_TEST_CASE(ragged_and_left_padded_targets) {
  self_communicator group;
  const auto layout = make_layout(std::vector{2, 3}, padding{each_multiple_of<4>{}});
  const std::vector<int> mine{10, 11, -1, -1, 20, 21, 22, -1};
  const std::vector<int> offsets{0, 2, 5};
  std::vector<int> values(5);
  all_gather_unpack(host, group, layout,
                    field(mine, ragged_view(row_view(values), offsets.data(), 2)));
  BOOST_TEST(values == (std::vector<int>{10, 11, 20, 21, 22}), per_element());
  const std::vector<int> starts{2, 1};
  std::vector<int> table(8);
  all_gather_unpack(
      host, group, layout,
      field(mine, left_padded_view(batch_view(table.data(), 2, 4), starts.data()), 7));
  BOOST_TEST(table == (std::vector<int>{7, 7, 10, 11, 7, 20, 21, 22}), per_element());
  // The offsets are read: they must not be written.
  std::vector<int> both{0, 2, 5, 0, 0, 0, 0, 0};
  BOOST_CHECK_EXCEPTION(
      all_gather_unpack(host, group, layout,
                        field(mine, ragged_view(row_view(both.data() + 2, 5), both.data(), 2))),
      invalid_input, says("target is in the memory of target bounds: outputs must not alias"));
}
