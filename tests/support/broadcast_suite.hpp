/// \file
/// What broadcast_tensor must do on every communicator: check_broadcast_tensor is called by all
/// ranks of a group of any size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "support/communicator_suite.hpp"

namespace seqpack::testing {

inline constexpr float untouched = -77.0f;

/// The name of a rank in messages.
template <class C>
std::string rank_text(const C& group, offset_t rank) {
  const offset_t world = group.members().to_world({rank}).value;
  return "rank " + std::to_string(rank) +
         (world == rank ? "" : " (world rank " + std::to_string(world) + ")");
}

/// After whatever happened before, the group works.
template <class C>
void check_still_usable(C& group, findings& found, const std::string& after) {
  const offset_t root = group.size() - 1;
  std::optional<tensor_view<std::int32_t>> mine;
  group_array<std::int32_t, C> data(group, {1, 2, 3, 4});
  if (group.rank().value == root) mine = tensor_view<std::int32_t>(data.data(), {4});
  const auto received = broadcast_tensor<std::int32_t>(mine, group_rank{root}, group);
  found.equal(read_memory(group, received.data(), 4), std::vector<std::int32_t>{1, 2, 3, 4},
              "broadcast after " + after);
}

/// One shape from every root: to ranks with nothing, with a type alone, and with a buffer.
template <class T, class C>
void check_shape(C& group, findings& found, const tensor_shape& shape) {
  const auto n = static_cast<std::size_t>(shape.elements());
  for (offset_t root = 0; root < group.size(); ++root) {
    const std::string what = shape.to_string() + " from " + std::to_string(root);
    const bool is_root = group.rank().value == root;
    const auto sent = elements_of<T>(root, n);
    group_array<T, C> data(group, sent);
    const tensor_view<T> mine(n > 0 ? data.data() : nullptr, shape);

    const auto owned = is_root ? broadcast_tensor(mine, group_rank{root}, group)
                               : broadcast_tensor<T>(std::nullopt, group_rank{root}, group);
    found.equal(owned.shape(), shape, what + ", shape");
    found.equal(owned.owns_memory(), !is_root, what + ", owner");
    found.equal(read_memory(group, owned.data(), n), sent, what);

    const auto any = broadcast_tensor(is_root ? std::optional<any_tensor_view>(mine) : std::nullopt,
                                      group_rank{root}, group);
    found.equal(any.type(), element_type::of<T>(), what + ", type");
    found.equal(any.shape(), shape, what + ", shape of any type");
    found.equal(read_memory(group, any.template as<T>().data, n), sent, what + ", any type");

    group_array<T, C> buffer(group, is_root ? sent : std::vector<T>(n, element_of<T>(77, 1)));
    const auto used =
        broadcast_tensor(tensor_view<T>(buffer.data(), shape), group_rank{root}, group);
    found.check(used.data() == buffer.data() && !used.owns_memory(), what + ", the buffer is used");
    found.equal(buffer.values(), sent, what + ", buffer");

    // Some with a buffer, some without; the root as a rank of the world.
    const bool brings = is_root || group.rank().value % 2 == 0;
    group_array<T, C> maybe(group, is_root ? sent : std::vector<T>(n, element_of<T>(77, 1)));
    const auto mixed =
        broadcast_tensor(brings ? std::optional(tensor_view<T>(maybe.data(), shape)) : std::nullopt,
                         group.members().to_world({root}), group);
    found.equal(read_memory(group, mixed.data(), n), sent, what + ", mixed");
  }
}

/// One call that all ranks must refuse with the same text, leaving their buffers as they were.
template <class C, class Call>
void check_refused(C& group, findings& found, const std::string& text, Call&& call) {
  group_array<float, C> buffer(group, 12, untouched);
  found.throws<collective_mismatch>([&] { call(buffer.data()); }, text, "refused");
  found.equal(buffer.values(), std::vector<float>(12, untouched), "unchanged after: " + text);
  check_still_usable(group, found, text);
}

/// How a message ends that is about the ranks from `first` to `last`.
inline std::string also_refused(offset_t first, offset_t last) {
  if (last == first) return "";
  std::string text = "; refused on " + std::to_string(last - first + 1) + " ranks: ";
  for (offset_t r = first; r <= last; ++r) text += (r > first ? ", " : "") + std::to_string(r);
  return text;
}

/// Ranks from `first` to `last` differ from the root, rank `root`.
template <class C>
void check_differing(C& group, findings& found, offset_t root, offset_t first, offset_t last) {
  const offset_t me = group.rank().value;
  const bool differs = me >= first && me <= last;
  const std::string others = also_refused(first, last);
  const std::string who = rank_text(group, first);
  const std::string the_root = "the root, " + rank_text(group, root);

  check_refused(
      group, found,
      "shape on " + who + " is [4, 3]: it must be [3, 4], the shape on " + the_root + others,
      [&](float* data) {
        const tensor_shape shape = differs ? tensor_shape{4, 3} : tensor_shape{3, 4};
        broadcast_tensor(tensor_view<float>(data, shape), group_rank{root}, group);
      });
  check_refused(
      group, found,
      "shape on " + who + " is [12]: it must be [3, 4], the shape on " + the_root + others,
      [&](float* data) {
        const tensor_shape shape = differs ? tensor_shape{12} : tensor_shape{3, 4};
        broadcast_tensor(tensor_view<float>(data, shape), group_rank{root}, group);
      });
  check_refused(group, found,
                "element type on " + who + " is int32: it must be float32, the element type on " +
                    the_root + others,
                [&](float* data) {
                  any_tensor_view mine(data, element_type::of<float>(), {12});
                  if (differs) mine.type = element_type::of<std::int32_t>();
                  broadcast_tensor(std::optional(mine), group_rank{root}, group);
                });
  // A rank that brings nothing but expects another type.
  check_refused(group, found,
                "element type on " + who + " is int64: it must be float32, the element type on " +
                    the_root + others,
                [&](float* data) {
                  if (differs) {
                    broadcast_tensor<std::int64_t>(std::nullopt, group_rank{root}, group);
                  } else {
                    broadcast_tensor(tensor_view<float>(data, {12}), group_rank{root}, group);
                  }
                });
  check_refused(group, found, "data on " + who + " is null: it must point to 12 elements" + others,
                [&](float* data) {
                  broadcast_tensor(tensor_view<float>(differs ? nullptr : data, {12}),
                                   group_rank{root}, group);
                });
  check_refused(group, found,
                "tensor on " + who +
                    " is [2, 3] with strides that leave gaps: it must be contiguous, its last "
                    "dimension fastest" +
                    others,
                [&](float* data) {
                  tensor_view<float> mine(data, {2, 3});
                  if (differs) mine.strides = {1, 2};
                  broadcast_tensor(mine, group_rank{root}, group);
                });
}

/// Ranks name different roots: rank 0 counts, whoever is right.
template <class C>
void check_differing_roots(C& group, findings& found) {
  const offset_t last = group.size() - 1;
  for (const offset_t odd : {offset_t{0}, last}) {
    const offset_t first = odd == 0 ? 1 : last;  // the first that differs from rank 0
    const bool differs = group.rank().value == odd;
    const std::string at_0 = std::to_string(odd == 0 ? 1 : 0);
    const std::string elsewhere = std::to_string(odd == 0 ? 0 : 1);
    check_refused(group, found,
                  "root on " + rank_text(group, first) + " is rank " + elsewhere +
                      ": all ranks must name the same one, and rank 0 names rank " + at_0 +
                      also_refused(first, last),
                  [&](float* data) {
                    broadcast_tensor(tensor_view<float>(data, {12}), group_rank{differs ? 1 : 0},
                                     group);
                  });
  }
}

template <class C>
void check_wrong_roots(C& group, findings& found) {
  const std::string last = std::to_string(group.size() - 1);
  for (const offset_t root : {offset_t{-1}, group.size(), offset_t{1} << 40}) {
    check_refused(group, found,
                  "root is rank " + std::to_string(root) + ": it must be from 0 to " + last +
                      ", the last rank of the group",
                  [&](float* data) {
                    broadcast_tensor(tensor_view<float>(data, {12}), group_rank{root}, group);
                  });
  }
  check_refused(
      group, found,
      "root is world rank 12345: it must be a member of the group " + group.members().to_string(),
      [&](float* data) {
        broadcast_tensor(tensor_view<float>(data, {12}), world_rank{12345}, group);
      });
}

/// Nothing, or nothing but null, on the root.
template <class C>
void check_absent_root(C& group, findings& found) {
  for (offset_t root = 0; root < group.size(); ++root) {
    const bool is_root = group.rank().value == root;
    check_refused(group, found,
                  "tensor on the root, " + rank_text(group, root) +
                      " is absent: the root must bring the tensor",
                  [&](float* data) {
                    std::optional<tensor_view<float>> mine;
                    if (!is_root) mine = tensor_view<float>(data, {12});
                    broadcast_tensor(mine, group_rank{root}, group);
                  });
    check_refused(group, found,
                  "data on " + rank_text(group, root) + " is null: it must point to 12 elements",
                  [&](float* data) {
                    broadcast_tensor(tensor_view<float>(is_root ? nullptr : data, {12}),
                                     group_rank{root}, group);
                  });
  }
}

/// What no tensor can be.
template <class C>
void check_impossible_tensors(C& group, findings& found) {
  const offset_t last = group.size() - 1;
  const bool is_root = group.rank().value == last;
  const std::string on_root = "tensor on the root, " + rank_text(group, last);
  const auto broadcast = [&](float* data, element_type type, const tensor_shape& shape) {
    std::optional<any_tensor_view> mine;
    if (is_root) mine = any_tensor_view(data, type, shape);
    broadcast_tensor(mine, group_rank{last}, group);
  };
  check_refused(group, found,
                on_root + " is [12] of element type none: it must have an element type",
                [&](float* data) { broadcast(data, element_type(), {12}); });
  check_refused(group, found,
                on_root +
                    " is [281474976710656] of element type bfloat16: it must have at most "
                    "281474976710656 bytes",
                [&](float* data) { broadcast(data, element_type("bfloat16", 2), {max_tokens}); });
}

/// A rank that cannot allocate raises alone; the others have the tensor.
template <class C>
void check_allocation(C& group, findings& found) {
  struct no_memory : std::runtime_error {
    no_memory() : std::runtime_error("no memory for this") {}
  };
  for (const bool throws : {true, false}) {
    const offset_t root = 0;
    const offset_t poor = group.size() - 1;
    const bool is_root = group.rank().value == root;
    const auto sent = elements_of<std::int64_t>(root, 5000);
    group_array<std::int64_t, C> data(group, sent);
    std::optional<tensor_view<std::int64_t>> mine;
    if (is_root) mine = tensor_view<std::int64_t>(data.data(), {50, 100});
    broadcast_options options;
    offset_t asked = -1;
    options.allocate = [&](offset_t bytes) -> std::shared_ptr<void> {
      asked = bytes;
      if (group.rank().value != poor) return group.allocate(bytes);
      if (throws) throw no_memory();
      return nullptr;
    };
    if (group.rank().value == poor && !is_root) {
      const auto call = [&] {
        broadcast_tensor<std::int64_t>(mine, group_rank{root}, group, options);
      };
      if (throws) {
        found.throws<no_memory>(call, "no memory for this", "an allocation that throws");
      } else {
        found.throws<std::bad_alloc>(call, "bad_alloc", "an allocation that gives null", true);
      }
    } else {
      const auto got = broadcast_tensor<std::int64_t>(mine, group_rank{root}, group, options);
      found.equal(read_memory(group, got.data(), 5000), sent, "beside a rank without memory");
    }
    found.equal(asked, offset_t{is_root ? -1 : 40000}, "bytes asked for");
    check_still_usable(group, found, "an allocation that failed");
  }
}

/// Others may call something else, or the same in another order.
template <class C>
void check_other_calls(C& group, findings& found) {
  const offset_t last = group.size() - 1;
  if (last == 0) return;
  const bool other = group.rank().value == last;
  check_refused(group, found,
                "operation on " + rank_text(group, last) +
                    " is split: it must be broadcast_tensor, the operation on " +
                    rank_text(group, 0),
                [&](float* data) {
                  if (other) {
                    group.split(0, 0);
                  } else {
                    broadcast_tensor(tensor_view<float>(data, {12}), group_rank{0}, group);
                  }
                });
  // Tensor A then B here, B then A there: an error naming both shapes, twice.
  for (int call = 0; call < 2; ++call) {
    const bool a = (call == 0) != other;
    check_refused(group, found,
                  "shape on " + rank_text(group, last) + " is " + (call == 0 ? "[5]" : "[3, 4]") +
                      ": it must be " + (call == 0 ? "[3, 4]" : "[5]") +
                      ", the shape on the root, " + rank_text(group, 0),
                  [&](float* data) {
                    broadcast_tensor(
                        tensor_view<float>(data, a ? tensor_shape{3, 4} : tensor_shape{5}),
                        group_rank{0}, group);
                  });
  }
}

/// Who is no member raises alone, at once, and nothing of it changes.
template <class C>
void check_non_members(C& group, findings& found) {
  if (group.size() < 2) return;
  const offset_t me = group.rank().value;
  const offset_t last = group.size() - 1;
  C others = group.split(me == last ? std::nullopt : std::optional<offset_t>(1), 0);
  group_array<float, C> buffer(group, 3, untouched);
  const tensor_view<float> mine(buffer.data(), {3});
  if (me == last) {
    found.throws<invalid_input>([&] { broadcast_tensor(mine, group_rank{0}, others); },
                                "caller is world rank", "broadcast by no member", true);
    found.equal(buffer.values(), std::vector<float>(3, untouched), "data of no member");
  } else {
    broadcast_tensor(mine, group_rank{0}, others);
  }
  // {3, 1}: the root is a rank of the group, the data are the world's rank 3's.
  if (group.size() < 4) return;
  C reordered = subgroup(group, {{3}, {1}});
  if (!reordered.is_member()) return;
  group_array<std::int64_t, C> number(group, {me});
  broadcast_tensor(tensor_view<std::int64_t>(number.data(), {1}), group_rank{0}, reordered);
  found.equal(number.values().front(), std::int64_t{3}, "root 0 of {3, 1} is rank 3");
  group_array<std::int64_t, C> again(group, {me});
  broadcast_tensor(tensor_view<std::int64_t>(again.data(), {1}), group.members().to_world({1}),
                   reordered);
  found.equal(again.values().front(), std::int64_t{1}, "world root 1 of {3, 1} is rank 1");
  found.throws<collective_mismatch>(
      [&] {
        broadcast_tensor(tensor_view<std::int64_t>(again.data(), {1}),
                         group.members().to_world({0}), reordered);
      },
      "it must be a member of the group " + reordered.members().to_string(),
      "a world root outside of {3, 1}", true);
}

template <communicator C>
void check_broadcast_tensor(C& group, findings& found) {
  for (const tensor_shape& shape :
       {tensor_shape{}, tensor_shape{1}, tensor_shape{7}, tensor_shape{0}, tensor_shape{3, 0, 2},
        tensor_shape{2, 3}, tensor_shape{1, 2, 1, 3, 1, 2, 1, 2}}) {
    check_shape<float>(group, found, shape);
  }
  check_shape<std::int64_t>(group, found, {70000});
  check_shape<std::int8_t>(group, found, {3, 5});
  check_shape<two_bytes>(group, found, {3, 5});
  check_shape<plain_struct>(group, found, {2, 2});

  const offset_t last = group.size() - 1;
  if (last >= 1) {
    check_differing(group, found, 0, last, last);           // one rank
    check_differing(group, found, last, 0, 0);              // one rank, and the root is not 0
    check_differing(group, found, 0, 1, last);              // all but the root
    if (last >= 3) check_differing(group, found, 0, 1, 2);  // several
    check_differing_roots(group, found);
  }
  check_wrong_roots(group, found);
  check_absent_root(group, found);
  check_impossible_tensors(group, found);
  check_allocation(group, found);
  check_other_calls(group, found);
  check_non_members(group, found);
}

}  // namespace seqpack::testing
