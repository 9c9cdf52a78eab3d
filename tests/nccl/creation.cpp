#define BOOST_TEST_MODULE nccl_creation
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/self.hpp"
#include "support/broadcast_suite.hpp"
#include "support/communicator_suite.hpp"
#include "support/nccl.hpp"

using namespace seqpack;
using namespace seqpack::testing;

BOOST_TEST_GLOBAL_FIXTURE(needs_nccl_device);

/// A type of a program, laid out as a float.
struct metres {
  float value;
};
template <>
struct seqpack::nccl_type<metres> : seqpack::nccl_type<float> {};

namespace {

std::string on_device(int device) {
  return "memory of CUDA device " + std::to_string(device);
}

/// A few operations; the suites are for conformance.cpp.
void check_works(nccl_communicator& group, findings& found) {
  check_seat(group, found);
  check_all_gather<plain_struct>(group, found, 5);
  check_reductions<std::int32_t>(group, found, 5);
  check_broadcast<std::int8_t>(group, found, 5);
  check_exchange(group, found);
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_nccl_reduces) {
  using group = nccl_communicator;
  static_assert(group::reduces<char> && group::reduces<signed char> &&
                group::reduces<std::uint8_t>);
  static_assert(group::reduces<int> && group::reduces<long> && group::reduces<long long>);
  static_assert(group::reduces<unsigned> && group::reduces<unsigned long long>);
  static_assert(group::reduces<float> && group::reduces<double>);
  static_assert(group::reduces<__half> && group::reduces<__nv_bfloat16>);
  static_assert(!group::reduces<bool> && !group::reduces<short> && !group::reduces<std::uint16_t>);
  static_assert(!group::reduces<two_bytes> && !group::reduces<plain_struct>);
  static_assert(!group::reduces<long double> && !group::reduces<int*>);
  BOOST_TEST(nccl_type<signed char>::value == ncclInt8);
  BOOST_TEST(nccl_type<std::uint8_t>::value == ncclUint8);
  BOOST_TEST(nccl_type<char>::value == (std::is_signed_v<char> ? ncclInt8 : ncclUint8));
  BOOST_TEST(nccl_type<int>::value == ncclInt32);
  BOOST_TEST(nccl_type<unsigned>::value == ncclUint32);
  BOOST_TEST(nccl_type<long>::value == ncclInt64);
  BOOST_TEST(nccl_type<long long>::value == ncclInt64);
  BOOST_TEST(nccl_type<std::uint64_t>::value == ncclUint64);
  BOOST_TEST(nccl_type<float>::value == ncclFloat32);
  BOOST_TEST(nccl_type<double>::value == ncclFloat64);
  BOOST_TEST(nccl_type<__half>::value == ncclFloat16);
  BOOST_TEST(nccl_type<__nv_bfloat16>::value == ncclBfloat16);
}

BOOST_AUTO_TEST_CASE(local_groups_are_made_by_one_thread) {
  for (const int n : group_sizes()) {
    std::vector<int> devices;
    std::vector<cudaStream_t> streams;
    std::vector<std::unique_ptr<rank_stream>> owners;
    for (int k = n - 1; k >= 0; --k) {  // the order of the devices is the order of the ranks
      check_cuda(cudaSetDevice(k));
      owners.push_back(std::make_unique<rank_stream>());
      devices.push_back(k);
      streams.push_back(*owners.back());
    }
    check_cuda(cudaSetDevice(0));
    auto groups = nccl_communicator::local(devices, streams, patient_nccl);
    int current = -1;
    check_cuda(cudaGetDevice(&current));
    BOOST_TEST(current == 0);
    BOOST_TEST(groups.size() == static_cast<std::size_t>(n));
    run_ranks(n, [&](const rank_place& place, findings& found) {
      const auto k = static_cast<std::size_t>(place.rank);
      nccl_communicator group = std::move(groups[k]);
      check_cuda(cudaSetDevice(devices[k]));
      found.equal(group.rank().value, place.rank, "rank");
      found.equal(group.members(), group_members::all(n), "members");
      found.equal(group.location().to_string(), on_device(devices[k]), "device");
      found.check(group.stream() == streams[k], "stream");
      check_works(group, found);
    });
  }
}

BOOST_AUTO_TEST_CASE(over_a_group_of_one) {
  run_ranks(1, [](const rank_place& place, findings& found) {
    self_communicator self;
    nccl_communicator group = nccl_communicator::over(self, place.stream, patient_nccl);
    found.equal(group.members(), self.members(), "members");
    check_works(group, found);
  });
}

BOOST_AUTO_TEST_CASE(over_another_group_its_members_are_kept) {
  run_group(most_ranks(), [](nccl_communicator& world, findings& found) {
    // World ranks {n-1, ..., 1}, and one that is in no group.
    const offset_t me = world.rank().value;
    nccl_communicator part =
        world.split(me == 0 && world.size() > 1 ? std::nullopt : std::optional<offset_t>(0), -me);
    if (!part.is_member()) {
      found.throws<invalid_input>([&] { nccl_communicator::over(part, world.stream()); },
                                  "caller is world rank 0: it must be a member of the group",
                                  "over a group of others", true);
      found.check(part.get() == nullptr, "no communicator of NCCL");
      return;
    }
    nccl_communicator group = nccl_communicator::over(part, world.stream(), patient_nccl);
    found.equal(group.members(), part.members(), "members");
    found.equal(group.members().to_world({0}).value, world.size() - 1, "world rank of rank 0");
    check_works(group, found);
    check_works(part, found);
  });
}

BOOST_AUTO_TEST_CASE(over_a_group_the_ranks_fail_together) {
  const group_members members({{4}, {7}});
  std::vector<detail::nccl::invitation> all(2);
  detail::nccl::require_all(all, members, all[0]);
  all[1].cuda = cudaErrorNoDevice;
  try {
    detail::nccl::require_all(all, members, all[0]);
    BOOST_TEST(false);
  } catch (const communication_error& e) {
    BOOST_TEST(e.reason() == "rank 1 (world rank 7) has no device: CUDA error cudaErrorNoDevice");
  }
  BOOST_CHECK_EXCEPTION(detail::nccl::require_all(all, members, all[1]), cuda_error,
                        [](const cuda_error& e) { return e.code() == cudaErrorNoDevice; });
  all[1].cuda = cudaSuccess;
  all[0].nccl = ncclSystemError;
  for (const detail::nccl::invitation& mine : all) {
    BOOST_CHECK_EXCEPTION(detail::nccl::require_all(all, members, mine), nccl_error,
                          [](const nccl_error& e) {
                            return e.code() == ncclSystemError &&
                                   e.reason().starts_with("ncclGetUniqueId on rank 0 failed: ") &&
                                   e.reason().find("(NCCL error 2)") != std::string::npos;
                          });
  }
}

BOOST_AUTO_TEST_CASE(a_borrowed_communicator_stays_the_callers) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator owner = make_group(place);
    {
      nccl_communicator group = nccl_communicator::borrow(owner.get(), place.stream, patient_nccl);
      found.check(group.get() == owner.get(), "the handle");
      found.equal(group.rank(), owner.rank(), "rank");
      found.equal(group.members(), group_members::all(place.size), "members");
      check_works(group, found);
    }
    check_works(owner, found);
  });
}

BOOST_AUTO_TEST_CASE(a_communicator_that_blocks_is_adopted) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    ncclComm_t comm = nullptr;
    check_nccl(ncclCommInitRank(&comm, place.size, place.id, place.rank), "ncclCommInitRank");
    {
      nccl_communicator group = nccl_communicator::adopt(comm, place.stream, patient_nccl);
      found.equal(group.rank().value, place.rank, "rank");
      check_works(group, found);
      nccl_communicator part = group.split(place.rank % 2, 0);
      check_works(part, found);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_communicator_in_setup_is_waited_for) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    ncclComm_t comm = nullptr;
    ncclConfig_t config = detail::nccl::non_blocking();
    if (place.rank > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ncclCommInitRankConfig(&comm, place.size, place.id, place.rank, &config);
    nccl_communicator group = nccl_communicator::adopt(comm, place.stream, patient_nccl);
    check_works(group, found);
  });
}

BOOST_AUTO_TEST_CASE(a_moved_communicator_works) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator first = make_group(place);
    nccl_communicator group = std::move(first);
    found.check(first.get() == nullptr, "nothing is left");
    check_works(group, found);
    nccl_communicator other = group.split(0, -place.rank);
    group = std::move(other);  // destroys the first one
    found.equal(group.rank().value, place.size - 1 - place.rank, "rank in the second one");
    check_works(group, found);
  });
}

BOOST_AUTO_TEST_CASE(arguments_that_are_refused) {
  const rank_stream stream;
  const ncclUniqueId id = new_id();
  const auto create = [&](offset_t size, offset_t rank, int ms) {
    return [&, size, rank, ms] {
      nccl_communicator::create(id, size, {rank}, stream,
                                {.deadline = std::chrono::milliseconds(ms)});
    };
  };
  findings found;
  found.throws<invalid_input>(create(0, 0, 10), "size is 0: it must be from 1 to 2147483647",
                              "no ranks");
  found.throws<invalid_input>(create(offset_t{1} << 31, 0, 10),
                              "size is 2147483648: it must be from 1 to 2147483647",
                              "too many ranks");
  for (const offset_t rank : {-1, 2}) {
    found.throws<invalid_input>(
        create(2, rank, 10),
        "rank is " + std::to_string(rank) + ": it must be from 0 to 1, the last rank of the group",
        "a rank outside of the group");
  }
  for (const int ms : {0, -5}) {
    const nccl_options none{.deadline = std::chrono::milliseconds(ms)};
    const std::string text = "deadline is " + std::to_string(ms) + " ms: it must be positive";
    self_communicator self;
    const std::vector<int> devices{0};
    const std::vector<cudaStream_t> streams{stream};
    found.throws<invalid_input>(create(1, 0, ms), text, "create");
    found.throws<invalid_input>([&] { nccl_communicator::over(self, stream, none); }, text, "over");
    found.throws<invalid_input>([&] { nccl_communicator::local(devices, streams, none); }, text,
                                "local");
    found.throws<invalid_input>([&] { nccl_communicator::adopt(nullptr, stream, none); }, text,
                                "adopt");
  }
  found.throws<invalid_input>([&] { nccl_communicator::adopt(nullptr, stream); },
                              "communicator is null: it must be one", "adopt");
  found.throws<invalid_input>([&] { nccl_communicator::borrow(nullptr, stream); },
                              "communicator is null: it must be one", "borrow");

  const auto local = [&](std::vector<int> devices, std::size_t count) {
    return [&stream, devices, count] {
      nccl_communicator::local(devices, std::vector<cudaStream_t>(count, stream));
    };
  };
  found.throws<invalid_input>(
      local({}, 0), "number of devices is 0: it must be from 1 to 2147483647", "no devices");
  found.throws<invalid_input>(local({0, 0}, 1),
                              "number of streams is 1: it must be 2, one for each device",
                              "too few streams");
  const std::string last = std::to_string(device_count() - 1);
  found.throws<invalid_input>(local({0, device_count()}, 2),
                              "devices[1] is " + std::to_string(device_count()) +
                                  ": it must be from 0 to " + last + ", the last device",
                              "a device that does not exist");
  found.throws<invalid_input>(
      local({-1}, 1), "devices[0] is -1: it must be from 0 to " + last + ", the last device",
      "a negative device");
  found.report();
}

BOOST_AUTO_TEST_CASE(an_error_of_nccl_is_an_nccl_error) {
  const rank_stream stream;
  ncclUniqueId no_id{};
  try {
    nccl_communicator::create(no_id, 1, {0}, stream, {.deadline = std::chrono::seconds(20)});
    BOOST_TEST(false);
  } catch (const nccl_error& e) {
    BOOST_TEST(e.code() != ncclSuccess);
    const std::string number = "(NCCL error " + std::to_string(e.code()) + ")";
    BOOST_TEST(e.reason().find("ncclCommInitRankConfig failed: ") == 0u);
    BOOST_TEST(e.reason().find(number) != std::string::npos);
    BOOST_TEST(std::string(e.where().file).find("seqpack/comm/nccl.hpp") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(where_memory_is) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    nccl_communicator group = make_group(place);
    const std::string here = on_device(place.device);
    found.equal(group.location().to_string(), here, "the group's");
    found.equal(group.location_of(group.allocate(8).get()).to_string(), here, "allocated");
    const int number = 0;
    found.equal(group.location_of(&number).to_string(), "host memory", "pageable");
    void* memory = nullptr;
    check_cuda(cudaMallocHost(&memory, 8));
    found.equal(group.location_of(memory).to_string(), "host memory", "pinned");
    check_cuda(cudaFreeHost(memory));
    check_cuda(cudaMallocManaged(&memory, 8, cudaMemAttachGlobal));
    found.equal(group.location_of(memory).to_string(), "memory anywhere", "managed");
    check_cuda(cudaFree(memory));
    found.check(cudaPeekAtLastError() == cudaSuccess, "no error is left behind");
    if (device_count() < 2) return;
    const int other = (place.device + 1) % device_count();
    check_cuda(cudaSetDevice(other));
    check_cuda(cudaMalloc(&memory, 8));
    found.equal(group.location_of(memory).to_string(), on_device(other), "of another device");
    check_cuda(cudaFree(memory));
  });
}

BOOST_AUTO_TEST_CASE(a_type_of_the_program_is_reduced_as_what_it_is_laid_out_as) {
  static_assert(nccl_communicator::reduces<metres>);
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    group_array<metres, nccl_communicator> length(group, {{1.5f}});
    group.all_reduce(static_cast<const metres*>(length.data()), length.data(), 1, reduction::sum);
    found.equal(length.values().front().value, 1.5f * static_cast<float>(group.size()), "sum");
  });
}

// On the stream of legacy order, which is the current device's.
BOOST_AUTO_TEST_CASE(another_device_may_be_current) {
  if (device_count() < 2) return;
  run_ranks(most_ranks(), [](rank_place place, findings& found) {
    place.stream = nullptr;
    nccl_communicator group = make_group(place);
    const auto source = group.allocate(4);
    const auto target = group.allocate(4 * place.size);
    const std::int32_t mine = 10 + place.rank;
    check_cuda(cudaMemcpyAsync(source.get(), &mine, 4, cudaMemcpyHostToDevice, nullptr));
    const int other = (place.device + 1) % device_count();
    const auto is_current = [&](const char* after) {
      int current = -1;
      check_cuda(cudaGetDevice(&current));
      found.equal(current, other, std::string("the current device after ") + after);
    };
    check_cuda(cudaSetDevice(other));
    group.all_gather(static_cast<const std::int32_t*>(source.get()),
                     static_cast<std::int32_t*>(target.get()), 1);
    is_current("all_gather");
    group.wait();
    is_current("wait");
    const auto memory = group.allocate(8);
    is_current("allocate");
    found.equal(group.location_of(memory.get()).to_string(), on_device(place.device), "allocated");
    check_exchange(group, found);
    is_current("exchange");
    {
      nccl_communicator part = group.split(0, 0);
      is_current("split");
      found.equal(part.location().to_string(), on_device(place.device), "device of a part");
    }
    is_current("the destructor");
    std::vector<std::int32_t> got(static_cast<std::size_t>(place.size));
    check_cuda(cudaSetDevice(place.device));
    check_cuda(cudaMemcpy(got.data(), target.get(), got.size() * 4, cudaMemcpyDeviceToHost));
    for (int r = 0; r < place.size; ++r) {
      found.equal(got[static_cast<std::size_t>(r)], 10 + r, "gathered");
    }
  });
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_had) {
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    found.throws<cuda_error>([&] { group.allocate(offset_t{1} << 50); },
                             "CUDA error cudaErrorMemoryAllocation", "a petabyte", true);
    found.check(cudaPeekAtLastError() == cudaSuccess, "no error is left behind");
    check_works(group, found);
    found.check(group.allocate(0) != nullptr, "no bytes");
  });
}

BOOST_AUTO_TEST_CASE(memory_outlives_the_group) {
  run_ranks(most_ranks(), [](const rank_place& place, findings& found) {
    const auto memory = make_group(place).allocate(4);
    check_cuda(cudaMemsetAsync(memory.get(), 7, 4, place.stream));
    const auto* const data = static_cast<const unsigned char*>(memory.get());
    found.equal(read_device(place.stream, data, 4), std::vector<unsigned char>(4, 7), "memory");
  });
}

namespace {

/// Elements that are small whole numbers, which all of these types hold exactly.
template <class T, class Value>
void check_small_type(nccl_communicator& group, findings& found, const std::string& name,
                      const Value& value, bool reduces) {
  const offset_t me = group.rank().value;
  const auto size = static_cast<int>(group.size());
  group_array<T, nccl_communicator> mine(group, {T(static_cast<float>(me)), T(1.0f)});
  group_array<T, nccl_communicator> all(group, static_cast<std::size_t>(2 * size), T(0.0f));
  group.all_gather(static_cast<const T*>(mine.data()), all.data(), 2);
  const auto gathered = all.values();
  for (int r = 0; r < size; ++r) {
    const auto k = static_cast<std::size_t>(2 * r);
    found.equal(value(gathered[k]), static_cast<float>(r), name + " gathered");
    found.equal(value(gathered[k + 1]), 1.0f, name + " gathered");
  }
  const auto sent = broadcast_tensor<T>(
      me == size - 1 ? std::optional(tensor_view<T>(mine.data(), {2})) : std::nullopt,
      group_rank{size - 1}, group);
  found.equal(value(read_memory(group, sent.data(), 2)[0]), static_cast<float>(size - 1),
              name + " sent");
  if (!reduces) return;
  const auto reduce = [&](reduction how) {
    group_array<T, nccl_communicator> out(group, 2, T(0.0f));
    group.all_reduce(static_cast<const T*>(mine.data()), out.data(), 2, how);
    return value(out.values()[0]);
  };
  found.equal(reduce(reduction::sum), static_cast<float>(size * (size - 1) / 2), name + " summed");
  found.equal(reduce(reduction::max), static_cast<float>(size - 1), name + " largest");
  found.equal(reduce(reduction::min), 0.0f, name + " least");
}

template <class T>
float as_float(T value) {
  return static_cast<float>(value);
}

}  // namespace

BOOST_AUTO_TEST_CASE(half_bfloat16_and_fp8_travel_and_are_reduced) {
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    check_small_type<__half>(group, found, "half", as_float<__half>, true);
    check_small_type<__nv_bfloat16>(group, found, "bfloat16", as_float<__nv_bfloat16>, true);
    int major = 0;
    check_cuda(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, group.location().device));
    const bool has_fp8 = major >= 9;
    check_small_type<__nv_fp8_e4m3>(group, found, "e4m3", as_float<__nv_fp8_e4m3>, has_fp8);
    check_small_type<__nv_fp8_e5m2>(group, found, "e5m2", as_float<__nv_fp8_e5m2>, has_fp8);
  });
}

BOOST_AUTO_TEST_CASE(host_memory_is_refused_on_all_ranks) {
  if (most_ranks() < 2) return;
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    std::vector<float> host(12, untouched);
    const std::string device = std::to_string(1 % device_count());
    check_refused(group, found,
                  "data on rank 1 is host memory: it must be memory of CUDA device " + device +
                      ", which the group moves there",
                  [&](float* data) {
                    float* const mine = group.rank().value == 1 ? host.data() : data;
                    broadcast_tensor(tensor_view<float>(mine, {12}), group_rank{0}, group);
                  });
    found.equal(host, std::vector<float>(12, untouched), "host memory");
  });
}

BOOST_AUTO_TEST_CASE(memory_of_another_device_is_refused_on_all_ranks) {
  if (most_ranks() < 2) return;
  run_group(most_ranks(), [](nccl_communicator& group, findings& found) {
    void* other = nullptr;
    check_cuda(cudaSetDevice(0));
    check_cuda(cudaMalloc(&other, 12 * sizeof(float)));
    check_cuda(cudaSetDevice(group.location().device));
    check_refused(group, found,
                  "data on rank 1 is memory of CUDA device 0: it must be memory of CUDA device 1, "
                  "which the group moves there",
                  [&](float* data) {
                    float* const mine = group.rank().value == 1 ? static_cast<float*>(other) : data;
                    broadcast_tensor(tensor_view<float>(mine, {12}), group_rank{0}, group);
                  });
    check_cuda(cudaFree(other));
  });
}
