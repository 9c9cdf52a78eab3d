#define BOOST_TEST_MODULE nccl_deadlines
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;
using namespace std::chrono_literals;

BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

namespace {

/// \param what the stream, or "split (the stream)" in a call of the library that waits for it
std::string waited_in(const std::string& what) {
  return what + " has waited 1500 ms for another rank, the deadline of the communicator";
}
const std::string waited = waited_in("the stream");

/// The call must throw deadline_passed with this text, when the deadline has passed and not much
/// later.
template <class Call>
void check_deadline(findings& found, const std::string& text, const Call& call,
                    const std::string& what) {
  const auto took = time_of([&] { found.throws<deadline_passed>(call, text, what, true); });
  found.check(took >= hasty.deadline, what + ": before the deadline");
  found.check(took < hasty.deadline + 30s, what + ": long after the deadline");
}

/// After an error everything is refused, for the same reason and at once.
void check_refuses_everything(nccl_communicator& group, findings& found,
                              const std::string& reason) {
  std::byte one{};
  std::vector<std::byte> all(static_cast<std::size_t>(group.size()));
  float* const no_array = nullptr;
  const float* const no_source = nullptr;
  const auto refuses = [&](const auto& call, const char* what) {
    found.throws<communication_error>(call, "the communicator cannot be used any more: " + reason,
                                      what, true);
  };
  const auto memory = group.allocate(256);
  const auto target = group.allocate(256 * group.size());
  auto* const data = static_cast<float*>(memory.get());
  auto* const other = static_cast<float*>(target.get());
  const float* const source = data;
  const auto took = time_of([&] {
    refuses([&] { group.wait(); }, "wait");
    refuses([&] { group.all_gather(source, other, 4); }, "all_gather");
    refuses([&] { group.all_gather(no_source, no_array, 0); }, "all_gather of nothing");
    refuses([&] { group.all_reduce(source, other, 4, reduction::sum); }, "all_reduce");
    refuses(
        [&] { group.reduce_scatter(static_cast<const float*>(other), data, 4, reduction::sum); },
        "reduce_scatter");
    refuses([&] { group.broadcast(data, 4, group_rank{0}); }, "broadcast");
    refuses([&] { group.join_broadcast(16, group_rank{0}); }, "join_broadcast");
    refuses([&] { group.exchange(&one, all.data(), 1); }, "exchange");
    refuses([&] { group.split(0, 0); }, "split");
    refuses([&] { broadcast_tensor(tensor_view<float>(data, {4}), group_rank{0}, group); },
            "broadcast_tensor");
  });
  found.check(took < hasty.deadline, "the refusals waited");
  found.check(group.get() == nullptr, "the handle is gone");
}

/// All ranks but rank 0 run `body`; rank 0 stays until they are done, and then its group must be
/// destroyed without trouble.
template <class Body>
void without_rank_0(const Body& body) {
  const int n = most_ranks();
  if (n < 2) return;
  meeting done(n);
  run_ranks(n, [&](const rank_place& place, findings& found) {
    nccl_communicator group = make_hasty_group(place);
    if (place.rank > 0) {
      try {
        body(group, found);
      } catch (const std::exception& e) {
        found.check(false, std::string("an exception: ") + e.what());
      }
    }
    found.check(done.arrive_and_wait(), "all ranks come to the end");
  });
}

bool is_idle(cudaStream_t stream) {
  return cudaStreamQuery(stream) == cudaSuccess;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rank_that_never_joins) {
  // Also where there is one device only: the others are missing.
  const int n = std::max(1, most_ranks() - 1);
  run_ranks(n, [&](const rank_place& place, findings& found) {
    const auto create = [&] {
      nccl_communicator::create(place.id, n + 1, {place.rank}, place.stream, hasty);
    };
    check_deadline(
        found,
        "ncclCommInitRankConfig has waited 1500 ms for another rank, the deadline of the "
        "communicator",
        create, "create");
    found.check(is_idle(place.stream), "the stream is idle");
  });
}

BOOST_AUTO_TEST_CASE(a_rank_that_never_calls) {
  without_rank_0([](nccl_communicator& group, findings& found) {
    group_array<std::int32_t, nccl_communicator> mine(group, {1, 2, 3});
    const auto size = static_cast<std::size_t>(group.size());
    group_array<std::int32_t, nccl_communicator> all(group, 3 * size, -77);
    const auto called = time_of(
        [&] { group.all_gather(static_cast<const std::int32_t*>(mine.data()), all.data(), 3); });
    found.check(called < hasty.deadline, "the call returns before the others come");
    check_deadline(found, waited, [&] { group.wait(); }, "wait");
    found.check(is_idle(group.stream()), "nothing is in flight");
    found.equal(read_device(group.stream(), all.data(), 3 * size),
                std::vector<std::int32_t>(3 * size, -77), "target");
    found.equal(read_device(group.stream(), mine.data(), 3), std::vector<std::int32_t>{1, 2, 3},
                "source");
    check_refuses_everything(group, found, waited);
  });
}

// The exception leaves when the stream has come to its end, with the caller's work behind the
// collective.
BOOST_AUTO_TEST_CASE(nothing_is_in_flight_after_an_error) {
  without_rank_0([](nccl_communicator& group, findings& found) {
    void* pinned = nullptr;
    check_cuda(cudaMallocHost(&pinned, sizeof(std::int32_t)));
    auto* const number = static_cast<std::int32_t*>(pinned);
    *number = -1;
    group_array<std::int32_t, nccl_communicator> data(group, {77});
    group.broadcast(data.data(), 1, group_rank{0});
    check_cuda(cudaMemcpyAsync(number, data.data(), sizeof *number, cudaMemcpyDeviceToHost,
                               group.stream()));
    check_deadline(found, waited, [&] { group.wait(); }, "wait");
    found.equal(*number, 77, "copied behind the broadcast, and before the exception");
    check_cuda(cudaFreeHost(pinned));
  });
}

BOOST_AUTO_TEST_CASE(calls_that_wait_for_a_rank_that_never_calls) {
  without_rank_0([](nccl_communicator& group, findings& found) {
    std::byte mine{};
    std::vector<std::byte> all(static_cast<std::size_t>(group.size()), std::byte{7});
    check_deadline(found, waited, [&] { group.exchange(&mine, all.data(), 1); }, "exchange");
    found.check(all == std::vector<std::byte>(all.size(), std::byte{7}), "nothing was written");
    check_refuses_everything(group, found, waited);
  });
  without_rank_0([](nccl_communicator& group, findings& found) {
    const std::string text = waited_in("split (the stream)");
    check_deadline(found, text, [&] { group.split(0, 0); }, "split");
    check_refuses_everything(group, found, text);
  });
  without_rank_0([](nccl_communicator& group, findings& found) {
    group.join_broadcast(100, group_rank{0});
    check_deadline(found, waited, [&] { group.wait(); }, "join_broadcast");
    check_refuses_everything(group, found, waited);
  });
}

BOOST_AUTO_TEST_CASE(a_rank_that_never_calls_broadcast_tensor) {
  without_rank_0([](nccl_communicator& group, findings& found) {
    group_array<float, nccl_communicator> buffer(group, 12, untouched);
    const tensor_view<float> mine(buffer.data(), {3, 4});
    const std::string text = waited_in("broadcast_tensor (the stream)");
    check_deadline(
        found, text, [&] { broadcast_tensor(mine, group_rank{0}, group); }, "broadcast_tensor");
    found.equal(read_device(group.stream(), buffer.data(), 12), std::vector<float>(12, untouched),
                "receiver");
    check_refuses_everything(group, found, text);
  });
}

// Of groups that were not adopted it is known which of their ranks are in this process.
BOOST_AUTO_TEST_CASE(the_ranks_that_have_not_come_are_named) {
  const int n = most_ranks();
  if (n < 3) return;
  constexpr nccl_options brief{.deadline = 5s};
  for (const bool of_a_part : {false, true}) {
    meeting done(n);
    run_ranks(n, [&](const rank_place& place, findings& found) {
      nccl_communicator all = make_group(place, brief);
      check_exchange(all, found);
      // Two parts in the order of the ranks, or the group as it is.
      std::optional<nccl_communicator> part;
      if (of_a_part) part.emplace(all.split(place.rank < n - 1 ? 0 : 1, 0));
      nccl_communicator& group = of_a_part ? *part : all;
      if (group.size() > 1) check_exchange(group, found);
      const auto size = group.size();
      if (size > 1 && place.rank == size - 1) {
        group_array<float, nccl_communicator> data(group, {1.0f});
        group.broadcast(data.data(), 1, group_rank{0});
        std::string absent = "rank 0";
        for (offset_t r = 1; r < size - 1; ++r) absent += ", rank " + std::to_string(r);
        found.throws<deadline_passed>(
            [&] { group.wait(); },
            "the stream has waited 5000 ms for another rank, the deadline of the communicator; " +
                absent + (size == 2 ? " has not come" : " have not come"),
            "wait", true);
      }
      found.check(done.arrive_and_wait(), "all ranks come to the end");
    });
  }
}

// Rank 0 brings the header and not the data.
BOOST_AUTO_TEST_CASE(a_root_that_stops_between_header_and_data) {
  without_rank_0([](nccl_communicator& group, findings& found) {
    group_array<float, nccl_communicator> buffer(group, 12, untouched);
    group.broadcast(buffer.data(), 12, group_rank{0});
    check_deadline(found, waited, [&] { buffer.values(); }, "wait");
    found.equal(read_device(group.stream(), buffer.data(), 12), std::vector<float>(12, untouched),
                "receiver");
  });
}

BOOST_AUTO_TEST_CASE(a_rank_that_is_late) {
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    const offset_t me = group.rank().value;
    for (const offset_t late : {offset_t{0}, group.size() - 1}) {
      if (me == late) std::this_thread::sleep_for(300ms);
      check_all_gather<std::int32_t>(group, found, 5);
      if (me == late) std::this_thread::sleep_for(300ms);
      check_still_usable(group, found, "a late rank");
    }
  });
}

BOOST_AUTO_TEST_CASE(the_destructor_ends_what_never_ends) {
  const int n = most_ranks();
  if (n < 2) return;
  meeting done(n);
  run_ranks(n, [&](const rank_place& place, findings& found) {
    auto group = std::make_unique<nccl_communicator>(make_hasty_group(place));
    if (place.rank > 0) {
      const auto memory = group->allocate(12);
      const auto target = group->allocate(12 * place.size);
      check_cuda(cudaMemsetAsync(target.get(), 7, 12 * static_cast<std::size_t>(n), place.stream));
      group->all_gather(static_cast<const float*>(memory.get()), static_cast<float*>(target.get()),
                        3);
      const auto took = time_of([&] { group.reset(); });
      found.check(took >= hasty.deadline, "it did not wait");
      found.check(took < hasty.deadline + 30s, "it waited for long");
      found.check(is_idle(place.stream), "nothing is in flight");
      const auto* const bytes = static_cast<const unsigned char*>(target.get());
      found.equal(read_device(place.stream, bytes, 12), std::vector<unsigned char>(12, 7),
                  "target");
    }
    found.check(done.arrive_and_wait(), "all ranks come to the end");
  });
}

// What is in flight when the object goes is not thrown away.
BOOST_AUTO_TEST_CASE(the_destructor_waits_for_what_is_issued) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    std::shared_ptr<void> memory;
    {
      nccl_communicator group = make_group(place);
      check_still_usable(group, found, "its creation");
      memory = group.allocate(4);
      const std::int32_t mine = 10 + place.rank;
      check_cuda(cudaMemcpyAsync(memory.get(), &mine, 4, cudaMemcpyHostToDevice, place.stream));
      if (place.rank == 0) std::this_thread::sleep_for(300ms);
      group.broadcast(static_cast<std::int32_t*>(memory.get()), 1, group_rank{0});
    }
    const auto* const number = static_cast<const std::int32_t*>(memory.get());
    found.equal(read_device(place.stream, number, 1).front(), 10, "from rank 0");
  });
}

// Nothing else ends what is in the stream.
BOOST_AUTO_TEST_CASE(a_borrowed_communicator_is_aborted_too) {
  const int n = most_ranks();
  if (n < 2) return;
  meeting done(n);
  run_ranks(n, [&](const rank_place& place, findings& found) {
    ncclComm_t comm = nullptr;
    check_nccl(ncclCommInitRank(&comm, n, place.id, place.rank), "ncclCommInitRank");
    {
      nccl_communicator warm = nccl_communicator::borrow(comm, place.stream, patient_nccl);
      check_still_usable(warm, found, "its creation");
    }
    nccl_communicator group = nccl_communicator::borrow(comm, place.stream, hasty);
    if (place.rank > 0) {
      group_array<float, nccl_communicator> data(group, {1.0f});
      group.broadcast(data.data(), 1, group_rank{0});
      check_deadline(found, waited, [&] { group.wait(); }, "wait");
      found.check(is_idle(place.stream), "nothing is in flight");
      check_refuses_everything(group, found, waited);
    }
    found.check(done.arrive_and_wait(), "all ranks come to the end");
    if (group.get() != nullptr) ncclCommAbort(comm);
  });
}

BOOST_AUTO_TEST_CASE(a_group_whose_parent_failed_goes_on) {
  const int n = most_ranks();
  if (n < 3) return;
  meeting done(n);
  run_ranks(n, [&](const rank_place& place, findings& found) {
    std::optional<nccl_communicator> part;
    nccl_communicator group = make_hasty_group(place, [&](nccl_communicator& warm) {
      part.emplace(warm.split(place.rank == 0 ? 0 : 1, 0));
      check_exchange(*part, found);
    });
    if (place.rank > 0) {
      group_array<float, nccl_communicator> data(group, {1.0f});
      group.broadcast(data.data(), 1, group_rank{0});
      check_deadline(found, waited, [&] { group.wait(); }, "wait");
      check_exchange(*part, found);
    }
    found.check(done.arrive_and_wait(), "all ranks come to the end");
  });
}
