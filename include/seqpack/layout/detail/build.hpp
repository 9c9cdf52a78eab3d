/// \file
/// Building the arrays of a layout on the host: lengths in the order of the slots, the order and its
/// inverse, and the memory that all of it is written to.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/layout/detail/bounds.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/layout/order.hpp"

namespace seqpack::detail {

inline constexpr subject of_storage{"the storage"};

/// Where the lengths begin: a pointer where they are in one piece, so that vectors, spans and arrays
/// share one instantiation.
template <std::ranges::random_access_range Lengths>
constexpr auto first_of(const Lengths& lengths) {
  if constexpr (std::ranges::contiguous_range<const Lengths>) {
    return std::ranges::data(lengths);
  } else {
    return std::ranges::begin(lengths);
  }
}

template <class Iterator>
struct lengths_in_batch_order {
  Iterator first;
  offset_t size;

  using integer = std::iter_value_t<Iterator>;
  constexpr integer raw(offset_t k) const { return first[k]; }
  constexpr offset_t count() const noexcept { return size; }
  constexpr offset_t operator[](offset_t k) const { return to_offset(first[k]); }
  std::string name(offset_t k) const { return entry_name("lengths", k); }
};

template <class Iterator>
struct lengths_in_slot_order {
  Iterator first;
  slot_order order;

  using integer = std::iter_value_t<Iterator>;
  constexpr integer raw(offset_t k) const { return first[order[k]]; }
  constexpr offset_t count() const noexcept { return static_cast<offset_t>(order.size()); }
  constexpr offset_t operator[](offset_t k) const { return to_offset(first[order[k]]); }
  std::string name(offset_t k) const { return entry_name("lengths", order[k]); }
};

/// \throws invalid_input for an entry outside [0, batch) or named twice.
///
/// O(batch) memory. A template, so that only programs that build layouts pay for compiling it.
template <std::same_as<slot_order> Order>
constexpr void require_order(const Order& order, offset_t batch) {
  std::vector<bool> taken(static_cast<std::size_t>(batch));
  for (offset_t k = 0; k < static_cast<offset_t>(order.size()); ++k) {
    const offset_t sequence = order[k];
    if (sequence < 0 || sequence >= batch) {
      reject(entry_name("order", k), sequence,
             {"it must be a sequence of the batch, from 0 to ", batch - 1});
    }
    if (taken[static_cast<std::size_t>(sequence)]) {
      reject(entry_name("order", k), sequence, "each sequence may be packed at most once");
    }
    taken[static_cast<std::size_t>(sequence)] = true;
  }
}

template <layout_index Index>
constexpr void write_order(const slot_order& order, std::span<Index> forward,
                           std::span<Index> slot_of) {
  for (Index& slot : slot_of) slot = -1;
  for (offset_t k = 0; k < static_cast<offset_t>(order.size()); ++k) {
    forward[static_cast<std::size_t>(k)] = static_cast<Index>(order[k]);
    slot_of[static_cast<std::size_t>(order[k])] = static_cast<Index>(k);
  }
}

constexpr void require_room(const char* name, std::size_t size, offset_t needed) {
  if (static_cast<offset_t>(size) < needed) {
    reject({"size of ", name}, static_cast<offset_t>(size),
           {"it must hold at least ", needed, " entries"});
  }
}

/// \throws invalid_input for more sequences than the bounds can count.
template <layout_index Index>
constexpr void require_batch(offset_t batch) {
  constexpr offset_t most = max_total<Index> - 2;
  if (batch > most) {
    reject("number of sequences", batch, {"it must be at most ", most});
  }
}

/// \throws invalid_input for an array of the storage that is null or misaligned, or that shares
/// memory with another one, with the lengths or with the order, all of which are read while it is
/// written. Not for constant expressions, which have no addresses.
template <class Storage, class Iterator>
void require_apart(Iterator first, offset_t batch, const slot_order& order, const Storage& storage,
                   offset_t entries) {
  regions<2, 4> memory;
  if constexpr (std::is_pointer_v<Iterator>) {
    memory.read(bytes_of(first, batch), alone, "lengths");
  }
  order.visit([&](auto rows) {
    memory.read(bytes_of(rows.data(), static_cast<offset_t>(rows.size())), alone, "order");
  });
  const auto write = [&](auto array, offset_t count, const char* name) {
    require_memory(of_storage, name, array.data(), count);
    memory.write(bytes_of(array.data(), count), of_storage, name);
  };
  write(storage.cu_seqlens, entries, "cu_seqlens");
  write(storage.cu_seqlens_padded, entries, "cu_seqlens_padded");
  if (order) {
    write(storage.order, static_cast<offset_t>(order.size()), "order");
    write(storage.slot_of, batch, "slot_of");
  }
  memory.require_apart();
}

/// The rules for the slots of an order, of which there may be none.
template <layout_index Index, class Rounding>
constexpr bounds_rules<Index, Rounding> rules_for(const slot_order& order,
                                                  const bounds_rules<Index, Rounding>& rules) {
  return order && order.size() == 0 ? rules.for_no_slots() : rules;
}

/// Checks everything, then writes all arrays. `batch` lengths begin at `first`.
template <layout_index Index, class Rounding, class Iterator, class Storage>
constexpr layout_sizes build(Iterator first, offset_t batch,
                             const bounds_rules<Index, Rounding>& given, const slot_order& order,
                             const Storage& storage) {
  const auto rules = rules_for(order, given);
  require_batch<Index>(batch);
  require_width(rules.width);
  const auto write = [&](const auto& slots) {
    layout_sizes sizes = check_lengths(slots, rules);
    require_room("cu_seqlens", storage.cu_seqlens.size(), sizes.segments + 1);
    require_room("cu_seqlens_padded", storage.cu_seqlens_padded.size(), sizes.segments + 1);
    if (!std::is_constant_evaluated()) {
      require_apart(first, batch, order, storage, sizes.segments + 1);
    }
    write_bounds(sizes, slots, rules, storage.cu_seqlens.data(), storage.cu_seqlens_padded.data());
    return sizes;
  };
  if (!order) return write(lengths_in_batch_order<Iterator>{first, batch});

  require_order(order, batch);
  require_room("order", storage.order.size(), static_cast<offset_t>(order.size()));
  require_room("slot_of", storage.slot_of.size(), batch);
  const layout_sizes sizes = write(lengths_in_slot_order<Iterator>{first, order});
  write_order<Index>(order, storage.order, storage.slot_of.first(static_cast<std::size_t>(batch)));
  return sizes;
}

/// The memory of a layout on the host.
template <layout_index Index>
struct host_arrays {
  std::vector<Index> cu_seqlens;
  std::vector<Index> cu_seqlens_padded;
  std::vector<Index> order;
  std::vector<Index> slot_of;

  struct spans_type {
    std::span<Index> cu_seqlens, cu_seqlens_padded, order, slot_of;
  };
  spans_type spans() noexcept { return {cu_seqlens, cu_seqlens_padded, order, slot_of}; }
};

/// A layout on the host but for its policy.
template <layout_index Index>
struct made_layout {
  layout_sizes sizes;
  offset_t batch;
  host_arrays<Index> arrays;
};

template <layout_index Index, class Rounding, class Iterator>
made_layout<Index> make_from(Iterator first, offset_t batch,
                             const bounds_rules<Index, Rounding>& rules, const slot_order& order) {
  require_batch<Index>(batch);
  const auto size = static_cast<std::size_t>(batch);
  host_arrays<Index> arrays;
  arrays.cu_seqlens.resize((order ? order.size() : size) + 1 + rules_for(order, rules).ghost);
  arrays.cu_seqlens_padded.resize(arrays.cu_seqlens.size());
  if (order) {
    arrays.order.resize(order.size());
    arrays.slot_of.resize(size);
  }
  const layout_sizes sizes = build(first, batch, rules, order, arrays.spans());
  return {sizes, batch, std::move(arrays)};
}

/// \param lengths copied first unless they have a size and random access
template <class Lengths, layout_index Index, class Rounding>
made_layout<Index> make(Lengths&& lengths, const bounds_rules<Index, Rounding>& rules,
                        const slot_order& order) {
  using range = const std::remove_cvref_t<Lengths>;
  if constexpr (std::ranges::random_access_range<range> && std::ranges::sized_range<range>) {
    const auto batch = static_cast<offset_t>(std::ranges::size(lengths));
    return make_from(first_of(lengths), batch, rules, order);
  } else {
    std::vector<std::ranges::range_value_t<Lengths>> copy;
    for (const auto length : lengths) copy.push_back(length);
    return make(copy, rules, order);
  }
}

/// What of a view the sizes say.
template <layout_index Index, context_parallel_policy C>
constexpr layout_view<C, Index> view_of_sizes(const layout_sizes& sizes, offset_t batch,
                                              const C& cp) {
  return {.sequences = sizes.sequences,
          .segments = sizes.segments,
          .batch = batch,
          .total = sizes.total,
          .longest = sizes.longest,
          .longest_padded = sizes.longest_padded,
          .padded = sizes.total != sizes.real,
          .cp = cp};
}

/// Rounds every length up to the width of the batch, also 0.
struct whole_width {
  offset_t width;
  SEQPACK_HD constexpr offset_t round_up(offset_t) const noexcept { return width; }
};

}  // namespace seqpack::detail
