/// \file
/// What every communicator must do. check_communicator is instantiated for each model, and called
/// by all ranks of a group of any size.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/subgroup.hpp"
#include "support/findings.hpp"
#include "support/group_memory.hpp"

namespace seqpack::testing {

/// 12 bytes, no operators but equality.
struct plain_struct {
  std::int32_t a;
  float b;
  std::int8_t c;
  std::int8_t padding[3];
  friend bool operator==(const plain_struct&, const plain_struct&) = default;
};
/// The bits of a half, a bfloat16, ...
struct two_bytes {
  std::uint16_t bits;
  friend bool operator==(const two_bytes&, const two_bytes&) = default;
};

/// Element k of rank r: different for all ranks and neighbours.
template <class T>
T element_of(offset_t rank, std::size_t k) {
  const auto n = static_cast<offset_t>(k) * 7 + rank * 101 + 3;
  if constexpr (std::is_same_v<T, plain_struct>) {
    return {static_cast<std::int32_t>(n),
            static_cast<float>(n) / 2,
            static_cast<std::int8_t>(n % 100),
            {}};
  } else if constexpr (std::is_same_v<T, two_bytes>) {
    return {static_cast<std::uint16_t>(n % 60000)};
  } else if constexpr (std::is_same_v<T, bool>) {
    return n % 3 == 0;
  } else {
    return static_cast<T>(n % 120);
  }
}
template <class T>
std::vector<T> elements_of(offset_t rank, std::size_t size) {
  std::vector<T> result;
  for (std::size_t k = 0; k < size; ++k) result.push_back(element_of<T>(rank, k));
  return result;
}
template <class C>
void check_seat(C& group, findings& found) {
  found.check(group.is_member(), "a member");
  found.equal(group.members().size(), group.size(), "number of members");
  found.check(group.rank().value >= 0 && group.rank().value < group.size(), "own rank");
  for (offset_t r = 0; r < group.size(); ++r) {
    const world_rank world = group.members().to_world({r});
    found.equal(group.members().to_group(world).value, r, "back from the world rank");
  }
  found.throws<invalid_input>([&] { group.members().to_world({group.size()}); },
                              "group rank is " + std::to_string(group.size()) +
                                  ": it must be from 0 to " + std::to_string(group.size() - 1) +
                                  ", the last rank of the group",
                              "world rank of a rank that does not exist");
}

template <class T, class C>
void check_all_gather(C& group, findings& found, std::size_t n) {
  const std::string what =
      "all_gather of " + std::to_string(n) + " x " + std::to_string(sizeof(T)) + " bytes";
  const offset_t me = group.rank().value;
  const auto size = static_cast<std::size_t>(group.size());
  std::vector<T> expected;
  for (std::size_t r = 0; r < size; ++r) {
    for (const T& e : elements_of<T>(static_cast<offset_t>(r), n)) expected.push_back(e);
  }
  group_array<T, C> mine(group, elements_of<T>(me, n));
  group_array<T, C> all(group, n * size, element_of<T>(77, 1));
  group.all_gather(static_cast<const T*>(mine.data()), all.data(), static_cast<offset_t>(n));
  found.equal(all.values(), expected, what);
  found.equal(mine.values(), elements_of<T>(me, n), what + ", source");

  std::vector<T> own_part(n * size, element_of<T>(77, 1));
  for (std::size_t k = 0; k < n; ++k) {
    own_part[static_cast<std::size_t>(me) * n + k] = element_of<T>(me, k);
  }
  group_array<T, C> in_place(group, own_part);
  group.all_gather(static_cast<const T*>(in_place.data() + static_cast<std::size_t>(me) * n),
                   in_place.data(), static_cast<offset_t>(n));
  found.equal(in_place.values(), expected, what + ", in place");
}

/// The reduction of element k over ranks, from the definition; sums stay below 2^7.
template <class T>
T reduced(offset_t size, std::size_t k, reduction how) {
  T result{};
  for (offset_t r = 0; r < size; ++r) {
    const T value = static_cast<T>(element_of<T>(r, k) / T(8));
    if (r == 0) {
      result = value;
    } else if (how == reduction::sum) {
      result = static_cast<T>(result + value);
    } else if (how == reduction::max) {
      result = std::max(result, value);
    } else {
      result = std::min(result, value);
    }
  }
  return result;
}

template <class T, class C>
void check_reductions(C& group, findings& found, std::size_t n) {
  const offset_t me = group.rank().value;
  const auto size = static_cast<std::size_t>(group.size());
  const auto count = static_cast<offset_t>(n);
  const auto input = [&](std::size_t first, std::size_t elements) {
    std::vector<T> values;
    for (std::size_t k = first; k < first + elements; ++k) {
      values.push_back(static_cast<T>(element_of<T>(me, k) / T(8)));
    }
    return values;
  };
  for (const reduction how : {reduction::sum, reduction::max, reduction::min}) {
    const std::string what = std::to_string(static_cast<int>(how)) + ". reduction of " +
                             std::to_string(n) + " x " + std::to_string(sizeof(T)) + " bytes";
    std::vector<T> expected;
    for (std::size_t k = 0; k < n; ++k) expected.push_back(reduced<T>(group.size(), k, how));
    group_array<T, C> in(group, input(0, n));
    group_array<T, C> out(group, n, T(1));
    group.all_reduce(static_cast<const T*>(in.data()), out.data(), count, how);
    found.equal(out.values(), expected, what);
    group.all_reduce(static_cast<const T*>(in.data()), in.data(), count, how);
    found.equal(in.values(), expected, what + ", in place");

    group_array<T, C> blocks(group, input(0, n * size));
    group_array<T, C> mine(group, n, T(1));
    group.reduce_scatter(static_cast<const T*>(blocks.data()), mine.data(), count, how);
    std::vector<T> own;
    for (std::size_t k = 0; k < n; ++k) {
      own.push_back(reduced<T>(group.size(), static_cast<std::size_t>(me) * n + k, how));
    }
    found.equal(mine.values(), own, what + ", scattered");
  }
}

template <class T, class C>
void check_broadcast(C& group, findings& found, std::size_t n) {
  for (offset_t root = 0; root < group.size(); ++root) {
    const bool is_root = group.rank().value == root;
    group_array<T, C> data(
        group, is_root ? elements_of<T>(root, n) : std::vector<T>(n, element_of<T>(77, 1)));
    group.broadcast(data.data(), static_cast<offset_t>(n), group_rank{root});
    found.equal(data.values(), elements_of<T>(root, n),
                "broadcast of " + std::to_string(n) + " from " + std::to_string(root));

    // The rank behind the root has no memory.
    const bool without = group.rank().value == (root + 1) % group.size() && !is_root;
    group_array<T, C> again(
        group, is_root ? elements_of<T>(root, n) : std::vector<T>(n, element_of<T>(77, 1)));
    if (without) {
      group.join_broadcast(static_cast<offset_t>(n * sizeof(T)), group_rank{root});
    } else {
      group.broadcast(again.data(), static_cast<offset_t>(n), group_rank{root});
      found.equal(again.values(), elements_of<T>(root, n), "broadcast beside one without memory");
    }
  }
}

template <class C>
void check_exchange(C& group, findings& found) {
  const auto mine = elements_of<std::uint8_t>(group.rank().value, 33);
  std::vector<std::uint8_t> all(33 * static_cast<std::size_t>(group.size()));
  group.exchange(reinterpret_cast<const std::byte*>(mine.data()),
                 reinterpret_cast<std::byte*>(all.data()), 33);
  for (offset_t r = 0; r < group.size(); ++r) {
    const auto first = all.begin() + r * 33;
    found.equal(std::vector<std::uint8_t>(first, first + 33), elements_of<std::uint8_t>(r, 33),
                "exchange");
  }
}

/// The numbers of all members, gathered.
template <class C>
std::vector<std::int64_t> gather_numbers(C& group, std::int64_t mine) {
  group_array<std::int64_t, C> in(group, {mine});
  group_array<std::int64_t, C> all(group, static_cast<std::size_t>(group.size()), -1);
  group.all_gather(static_cast<const std::int64_t*>(in.data()), all.data(), 1);
  return all.values();
}

template <class C>
void check_split(C& group, findings& found) {
  const offset_t me = group.rank().value;
  {
    C half = group.split(me % 2, 0);
    std::vector<std::int64_t> expected;
    for (offset_t r = me % 2; r < group.size(); r += 2) expected.push_back(r);
    found.equal(half.size(), static_cast<offset_t>(expected.size()), "size of a half");
    found.equal(half.rank().value, me / 2, "rank in a half");
    found.equal(gather_numbers(half, me), expected, "members of a half");
    C quarter = half.split(half.rank().value % 2, -half.rank().value);
    std::vector<std::int64_t> fewer;
    for (offset_t r = me % 4; r < group.size(); r += 4) fewer.insert(fewer.begin(), r);
    found.equal(gather_numbers(quarter, me), fewer, "members of a quarter, in the order of keys");
    for (offset_t r = 0; r < quarter.size(); ++r) {
      found.equal(quarter.members().to_world({r}),
                  group.members().to_world({fewer[static_cast<std::size_t>(r)]}),
                  "world rank of a member of a quarter");
    }
  }
  {
    C reversed = group.split(1000000007, -me);
    found.equal(reversed.rank().value, group.size() - 1 - me, "rank in the reversed group");
    check_broadcast<std::int32_t>(reversed, found, 5);
  }
  {
    C without_first = group.split(me == 0 ? std::nullopt : std::optional<offset_t>(0), 0);
    found.equal(without_first.is_member(), me != 0, "member without rank 0");
    if (me == 0) {
      found.throws<invalid_input>([&] { without_first.rank(); }, "it must be a member of the group",
                                  "rank of no member", true);
      std::int32_t number = 5;
      found.throws<invalid_input>([&] { without_first.broadcast(&number, 1, group_rank{0}); },
                                  "it must be a member of the group", "broadcast of no member",
                                  true);
      found.equal(number, 5, "data of no member");
    } else {
      found.equal(without_first.size(), group.size() - 1, "size without rank 0");
      check_all_gather<std::int32_t>(without_first, found, 3);
    }
  }
}

template <class C>
void check_subgroup(C& group, findings& found) {
  const offset_t me = group.rank().value;
  const offset_t last = group.size() - 1;
  // {3, 1} of four: the order of the list is the order of the ranks.
  std::vector<group_rank> list{{last}};
  if (group.size() > 2) list.push_back({last - 2});
  C some = subgroup(group, list);
  const bool in_it = me == last || (group.size() > 2 && me == last - 2);
  found.equal(some.is_member(), in_it, "member of the list");
  if (in_it) {
    found.equal(some.rank().value, offset_t{me == last ? 0 : 1}, "rank in the order of the list");
    found.equal(gather_numbers(some, me).front(), last, "first member of the list");
  }
  if (group.size() > 1) {
    found.throws<collective_mismatch>([&] { subgroup(group, {{me == 0 ? 0 : 1}}); },
                                      "list of ranks on rank 1", "subgroup of different lists",
                                      true);
  }
  // A mistake on one rank is told to all; with one rank it is that one.
  const auto list_of = [&](group_rank wrong) {
    return std::vector<group_rank>{{0}, me == last ? wrong : group_rank{0}};
  };
  found.throws<collective_mismatch>(
      [&] {
        const bool mistaken = me == last;
        subgroup(group, {{0}, {mistaken ? group.size() : last}});
      },
      "ranks[1] on " + detail::rank_name(group.members(), {last}) + " is " +
          std::to_string(group.size()) + ": it must be from 0 to " + std::to_string(last) +
          ", the last rank of the group",
      "subgroup of a rank that does not exist", group.size() == 1);
  found.throws<collective_mismatch>([&] { subgroup(group, list_of({0})); },
                                    "each rank may be named once", "subgroup of a rank twice",
                                    true);
  found.equal(gather_numbers(group, me).back(), last, "the group after wrong lists");
}

/// What the caller gets wrong, on all ranks alike: nothing is sent.
template <class C>
void check_refusals(C& group, findings& found) {
  group_array<float, C> a(group, 8, 1.0f);
  group_array<float, C> b(group, 8 * static_cast<std::size_t>(group.size()), 2.0f);
  const float* const in = a.data();
  const std::string members = std::to_string(group.size() - 1);
  found.throws<invalid_input>(
      [&] { group.all_gather(in, b.data(), -1); },
      "number of elements is -1: it must be from 0 to " + std::to_string(max_tokens / group.size()),
      "a negative count");
  found.throws<invalid_input>(
      [&] { group.all_gather(static_cast<const float*>(nullptr), b.data(), 2); },
      "mine is null: it must point to 2 elements", "a null source");
  found.throws<invalid_input>([&] { group.all_gather(in, static_cast<float*>(nullptr), 2); },
                              "all is null: it must point to 2 elements", "a null target");
  found.throws<invalid_input>(
      [&] { group.all_reduce(in, a.data() + 1, 4, reduction::sum); },
      "arrays is overlapping: what a collective reads and writes must be apart", "an overlap");
  found.throws<invalid_input>(
      [&] {
        group.reduce_scatter(static_cast<const float*>(b.data()), b.data(), 4, reduction::sum);
      },
      "arrays is overlapping: what a collective reads and writes must be apart",
      "an overlap of blocks");
  for (const offset_t root : {offset_t{-1}, group.size()}) {
    found.throws<invalid_input>([&] { group.broadcast(a.data(), 8, group_rank{root}); },
                                "root is " + std::to_string(root) + ": it must be from 0 to " +
                                    members + ", the last rank of the group",
                                "a root outside of the group");
  }
  found.equal(a.values(), std::vector<float>(8, 1.0f), "nothing was written");
  // Nothing at all is legal, also without arrays.
  group.all_gather(static_cast<const float*>(nullptr), static_cast<float*>(nullptr), 0);
  group.all_reduce(static_cast<const float*>(nullptr), static_cast<float*>(nullptr), 0,
                   reduction::max);
  group.broadcast(static_cast<float*>(nullptr), 0, group_rank{0});
}

template <communicator C>
void check_communicator(C& group, findings& found) {
  check_seat(group, found);
  for (const std::size_t n : {0, 1, 3, 1000}) {
    check_all_gather<std::int8_t>(group, found, n);
    check_all_gather<plain_struct>(group, found, n);
    check_broadcast<two_bytes>(group, found, n);
    check_reductions<std::int32_t>(group, found, n);
    check_reductions<float>(group, found, n);
  }
  check_all_gather<double>(group, found, 17);
  check_reductions<std::int64_t>(group, found, 5);
  check_reductions<std::uint64_t>(group, found, 5);
  check_reductions<std::uint8_t>(group, found, 5);
  check_reductions<double>(group, found, 5);
  check_broadcast<std::int64_t>(group, found, 70000);
  check_exchange(group, found);
  check_split(group, found);
  check_subgroup(group, found);
  check_refusals(group, found);
  found.equal(gather_numbers(group, group.rank().value).size(),
              static_cast<std::size_t>(group.size()), "the group is usable at the end");
}

}  // namespace seqpack::testing
