/// \file
/// The header of a broadcast, its verdict, and the one broadcast under all the others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/element_type.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/comm/tensor.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack::detail {

namespace records {

template <>
struct traits<element_type> {
  static void write(writer& to, const element_type& type) {
    to.put(type.size());
    to.text(type.name());
  }
  static element_type read(reader& from) {
    const offset_t size = from.size("size of an element");
    const std::string name = from.text("name of the element type", element_type::longest_name);
    if (size == 0 && name.empty()) return {};
    return {name, size};
  }
};

template <>
struct traits<tensor_shape> {
  static void write(writer& to, const tensor_shape& shape) {
    to.put(static_cast<std::int32_t>(shape.dims()));
    for (const offset_t extent : shape.extents()) to.put(extent);
  }
  static tensor_shape read(reader& from) {
    std::array<offset_t, max_dims> extents{};
    const auto dims =
        static_cast<std::size_t>(from.get<std::int32_t>("number of dimensions", 0, max_dims));
    for (std::size_t d = 0; d < dims; ++d) extents[d] = from.get<offset_t>();
    return tensor_shape(std::span<const offset_t>(extents.data(), dims));
  }
};

template <>
struct traits<memory_location> {
  static void write(writer& to, const memory_location& location) {
    to.choice(location.where);
    to.put(location.device);
  }
  static memory_location read(reader& from) {
    const auto where = from.choice("kind of memory", memory_location::kind::on_closed_device);
    constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
    return {where, from.get<std::int32_t>("device", 0, most)};
  }
};

}  // namespace records

/// What one rank says about itself. The fixed-size header of the broadcast.
struct broadcast_header {
  enum class brings : std::int32_t { nothing, a_type, a_tensor };

  brings what = brings::nothing;
  bool root_is_world = false;  ///< root is a world rank outside of the group
  bool null = false;
  bool read_only = false;
  offset_t root = 0;
  element_type type;
  tensor_shape shape;
  bool dense = true;
  memory_location found;
  memory_location wanted;

  void write(records::writer& to) const {
    to.choice(what);
    for (const bool flag : {root_is_world, null, read_only, dense}) to.flag(flag);
    to.put(root);
    records::traits<element_type>::write(to, type);
    records::traits<tensor_shape>::write(to, shape);
    for (const memory_location& location : {found, wanted}) {
      records::traits<memory_location>::write(to, location);
    }
  }
  static broadcast_header read(records::reader& from) {
    broadcast_header h;
    h.what = from.choice("kind of the tensor", brings::a_tensor);
    h.root_is_world = from.flag("kind of the root");
    h.null = from.flag("null pointer");
    h.read_only = from.flag("read-only data");
    h.dense = from.flag("contiguous data");
    h.root = from.get<offset_t>();
    h.type = records::traits<element_type>::read(from);
    h.shape = records::traits<tensor_shape>::read(from);
    h.found = records::traits<memory_location>::read(from);
    h.wanted = records::traits<memory_location>::read(from);
    return h;
  }
};

/// Everything that can be wrong, in the same order on all ranks.
class broadcast_verdict {
 public:
  broadcast_verdict(const group_members& members, const std::vector<broadcast_header>& headers)
      : members_(members), headers_(headers) {}

  /// \returns the root's header
  /// \throws collective_mismatch
  const broadcast_header& require() const {
    require_root();
    require_tensor_on_root();
    require_size();
    require_buffers();
    require_equal(
        "element type",
        [](const broadcast_header& h) { return h.what != broadcast_header::brings::nothing; },
        [](const broadcast_header& h) { return h.type.to_string(); },
        [](const broadcast_header& a, const broadcast_header& b) { return a.type == b.type; });
    require_equal(
        "shape",
        [](const broadcast_header& h) { return h.what == broadcast_header::brings::a_tensor; },
        [](const broadcast_header& h) { return h.shape.to_string(); },
        [](const broadcast_header& a, const broadcast_header& b) { return a.shape == b.shape; });
    return at(root());
  }

 private:
  const broadcast_header& at(group_rank rank) const {
    return headers_[static_cast<std::size_t>(rank.value)];
  }
  group_rank root() const { return {headers_.front().root}; }
  std::string name(group_rank rank) const { return rank_name(members_, rank); }
  std::string root_name() const { return "the root, " + name(root()); }
  static std::string root_text(const broadcast_header& h) {
    return (h.root_is_world ? "world rank " : "rank ") + std::to_string(h.root);
  }

  template <class Question, class Describe>
  void refuse(const Question& refused, const Describe& describe) const {
    detail::refuse(
        ranks_where(members_.size(), [&](std::size_t r) { return refused(headers_[r]); }),
        [&](group_rank r) { return describe(r, at(r)); });
  }

  void require_root() const {
    const broadcast_header& first = headers_.front();
    refuse(
        [&](const broadcast_header& h) {
          return h.root != first.root || h.root_is_world != first.root_is_world;
        },
        [&](group_rank r, const broadcast_header& h) {
          return collective_mismatch(
              r, "root on " + name(r), root_text(h),
              "all ranks must name the same one, and rank 0 names " + root_text(first));
        });
    if (first.root_is_world || first.root < 0 || first.root >= members_.size()) {
      throw collective_mismatch(
          {0}, "root", root_text(first),
          first.root_is_world ? "it must be a member of the group " + members_.to_string()
                              : "it must be from 0 to " + std::to_string(members_.size() - 1) +
                                    ", the last rank of the group");
    }
  }

  void require_tensor_on_root() const {
    if (at(root()).what == broadcast_header::brings::a_tensor) return;
    throw collective_mismatch(root(), "tensor on " + root_name(), "absent",
                              "the root must bring the tensor");
  }

  void require_size() const {
    const broadcast_header& h = at(root());
    const offset_t size = h.type.size();
    if (size > 0 && h.shape.elements() <= max_tokens / size) return;
    throw collective_mismatch(
        root(), "tensor on " + root_name(),
        h.shape.to_string() + " of element type " + h.type.to_string(),
        size == 0 ? std::string("it must have an element type")
                  : "it must have at most " + std::to_string(max_tokens) + " bytes");
  }

  void require_buffers() const {
    refuse([](const broadcast_header& h) { return h.null; },
           [&](group_rank r, const broadcast_header& h) {
             return collective_mismatch(
                 r, "data on " + name(r), "null",
                 "it must point to " + std::to_string(h.shape.elements()) + " elements");
           });
    refuse([&](const broadcast_header& h) { return h.read_only && &h != &at(root()); },
           [&](group_rank r, const broadcast_header&) {
             return collective_mismatch(r, "data on " + name(r), "read-only",
                                        "only the root may bring data that cannot be written");
           });
    refuse([](const broadcast_header& h) { return !h.dense; },
           [&](group_rank r, const broadcast_header& h) {
             return collective_mismatch(r, "tensor on " + name(r),
                                        h.shape.to_string() + " with strides that leave gaps",
                                        "it must be contiguous, its last dimension fastest");
           });
    refuse([](const broadcast_header& h) { return !h.wanted.accepts(h.found); },
           [&](group_rank r, const broadcast_header& h) {
             return collective_mismatch(
                 r, "data on " + name(r), h.found.to_string(),
                 "it must be " + h.wanted.to_string() + ", which the group moves there");
           });
  }

  template <class Has, class Text, class Equal>
  void require_equal(const char* what, const Has& has, const Text& text, const Equal& equal) const {
    const broadcast_header& expected = at(root());
    refuse([&](const broadcast_header& h) { return has(h) && !equal(h, expected); },
           [&](group_rank r, const broadcast_header& h) {
             return collective_mismatch(
                 r, what + (" on " + name(r)), text(h),
                 "it must be " + text(expected) + ", the " + what + " on " + root_name());
           });
  }

  const group_members& members_;
  const std::vector<broadcast_header>& headers_;
};

inline void set_root(broadcast_header& h, group_rank root, const group_members&) {
  h.root = root.value;
}
inline void set_root(broadcast_header& h, world_rank root, const group_members& members) {
  const auto rank = members.find(root);
  h.root_is_world = !rank;
  h.root = rank ? rank->value : root.value;
}

template <communicator C>
broadcast_header make_broadcast_header(const std::optional<any_tensor_view>& mine,
                                       const element_type& expected, const C& group) {
  broadcast_header h;
  h.wanted = group.location();
  h.type = expected;
  if (expected != element_type()) h.what = broadcast_header::brings::a_type;
  if (!mine) return h;
  h.what = broadcast_header::brings::a_tensor;
  h.type = mine->type;
  h.shape = mine->shape;
  h.read_only = mine->read_only;
  const bool has_elements = mine->shape.elements() > 0;
  h.null = mine->data == nullptr && has_elements;
  h.dense = is_dense(mine->shape, mine->strides);
  if (has_elements && !h.null) h.found = group.location_of(mine->data);
  return h;
}

/// How a rank makes memory for a tensor that it does not bring; empty: as the group does.
using allocation = std::function<std::shared_ptr<void>(offset_t bytes)>;

template <communicator C>
std::shared_ptr<void> allocate_for_broadcast(C& group, const allocation& given, offset_t bytes) {
  auto memory = given ? given(bytes) : group.allocate(bytes);
  if (memory == nullptr && bytes > 0) throw std::bad_alloc();
  return memory;
}

/// The one broadcast under all the others.
/// \param expected the element type of a rank that brings nothing, if it knows it
template <communicator C, any_rank Root>
any_tensor run_broadcast(const std::optional<any_tensor_view>& mine, const element_type& expected,
                         Root root, C& group, const allocation& given) {
  group.rank();  // throws alone, and before anything is sent, where the caller is no member
  [[maybe_unused]] const auto named = name_operation(group, "broadcast_tensor");
  broadcast_header local = make_broadcast_header(mine, expected, group);
  set_root(local, root, group.members());
  const auto headers = exchange_records(group, "broadcast_tensor", local);
  const broadcast_header& sent = broadcast_verdict(group.members(), headers).require();

  const group_rank from{sent.root};
  any_tensor result;
  if (mine) {
    result = any_tensor(*mine);
  } else {
    const offset_t bytes = sent.shape.elements() * sent.type.size();
    try {
      auto memory = allocate_for_broadcast(group, given, bytes);
      void* const data = memory.get();
      result = any_tensor(any_tensor_view(data, sent.type, sent.shape), std::move(memory));
    } catch (...) {
      group.join_broadcast(bytes, from);
      throw;
    }
  }
  keeping(group, result.memory(), [&] {
    group.broadcast(static_cast<std::byte*>(result.data()), result.view().bytes(), from);
  });
  return result;
}

}  // namespace seqpack::detail
