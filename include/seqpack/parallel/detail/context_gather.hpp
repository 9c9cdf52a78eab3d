/// \file
/// The gathers of shards and their transposes: checks, workspace, and one body for each direction.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/field.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/parallel/detail/group_execution.hpp"
#include "seqpack/parallel/detail/verdict.hpp"
#include "seqpack/parallel/group_execution.hpp"

namespace seqpack::detail::context_gathering {

/// Rows that the caller gives as a workspace, or not.
template <class T>
using given_rows = std::optional<row_view<T>>;

/// Rows of all shards: the caller's workspace, or memory that the group has allocated.
template <class T>
struct shard_rows {
  row_view<T> rows;
  std::shared_ptr<void> memory;
};

/// Checks of this rank alone, or, where asked, of all ranks together.
/// \param prepare checks everything, allocates what is missing and returns it
template <class T, executor E, communicator C, layout L, class Prepare>
shard_rows<T> prepared(C& group, std::string_view operation, const L& layout, offset_t payload,
                       bool check_all_ranks, const Prepare& prepare) {
  group.rank();  // throws alone, and before anything is sent, where the caller is no member
  if (!check_all_ranks) return prepare();
  shard_rows<T> result;
  call_record mine;
  mine.numbers = {{{"payload", static_cast<std::uint64_t>(payload)}, {"element size", sizeof(T)}}};
  const auto own = attempt(mine, "the call", group.members(), [&] {
    result = prepare();
    if constexpr (one_rank<C>) {
      return;  // nobody to compare it with
    } else if constexpr (host_executor<E>) {
      mine.compare(fingerprint(layout));
    } else {
      mine.compare_sizes(fingerprint_of_sizes(layout));
    }
  });
  nesting(own, [&] { require_together(group, operation, mine); });
  return result;
}

/// What all calls check of the layout and of the rows of this rank.
template <executor E, communicator C, class View, class T>
void require_shard(const E& where, const C& group, const View& view, const char* what,
                   const row_view<T>& mine) {
  require_same_stream(where, group);
  require_layout(view);
  require_equal(alone, "context-parallel size of the layout", view.cp.size(), group.size(),
                "the ranks of the group");
  require_equal(alone, (std::string(what) + " rows").c_str(), mine.rows, view.shard_tokens(),
                "the tokens of the layout in one shard");
  require_memory(alone, what, mine.data, mine.rows * mine.payload);
}

/// One rank needs no workspace, and what it gives is not looked at.
template <class View, class T>
void require_workspace(const View& view, offset_t payload, const given_rows<T>& given) {
  if (!given || view.cp.size() == 1) return;
  require_equal(alone, "workspace rows", given->rows, view.rows(all_shards),
                "the tokens of all shards");
  require_equal(alone, "workspace payload", given->payload, payload, "the payload of the shards");
  require_memory(alone, "workspace", given->data, given->rows * given->payload);
}

template <class T>
row_view<T> part_of(const row_view<T>& all, group_rank rank, offset_t rows) {
  return {all.data == nullptr ? nullptr : all.at(rank.value * rows), rows, all.payload};
}

template <class T, communicator C, class View>
shard_rows<T> rows_for(C& group, const View& view, offset_t payload, const given_rows<T>& given) {
  if (group.size() == 1) return {};
  if (given) return {*given, nullptr};
  const offset_t rows = view.rows(all_shards);
  auto memory = group.allocate(rows * payload * static_cast<offset_t>(sizeof(T)));
  T* const data = static_cast<T*>(memory.get());
  return {{data, rows, payload}, std::move(memory)};
}

/// The memory of a table, and of arrays that say where its rows are.
template <class Regions, class Table>
void read_bounds(Regions& memory, const Table& table, const char* what) {
  if constexpr (token_table<Table>) memory.read(table.bounds_touched(), alone, what);
}

/// Where gathered rows go: to a batch, or to the full row.
struct to_batch {
  template <class E, class View, class Field>
  static void require(const View& view, const Field& f) {
    detail::unpacking::require_field<E>(alone, view, all_shards, f);
  }
  template <class E, class L, class Field>
  static void run(const E& where, const L& layout, const Field& f) {
    unpack(where, layout, all_shards, f);
  }
};
struct to_row {
  template <class E, class View, class Field>
  static void require(const View& view, const Field& f) {
    detail::rearranging::require_field(alone, view, all_shards, full_row, f);
  }
  template <class E, class L, class Field>
  static void run(const E& where, const L& layout, const Field& f) {
    rearrange(where, layout, all_shards, full_row, f);
  }
};

/// Where the shards of a gradient come from.
struct from_batch {
  template <class E, class View, class Field>
  static void require(const View& view, const Field& f) {
    detail::packing::require_field<E>(alone, view, all_shards, f);
  }
  template <class E, class L, class Field>
  static void run(const E& where, const L& layout, const Field& f) {
    pack(where, layout, all_shards, f);
  }
};
struct from_row {
  template <class E, class View, class Field>
  static void require(const View& view, const Field& f) {
    detail::rearranging::require_field(alone, view, full_row, all_shards, f);
  }
  template <class E, class L, class Field>
  static void run(const E& where, const L& layout, const Field& f) {
    rearrange(where, layout, full_row, all_shards, f);
  }
};

/// The field as it is with other rows on the side of the shards.
template <class From, class To, class Fill>
field_t<From, To, Fill> make_field(const From& from, const To& to, const Fill& fill) {
  return {from, to, fill};
}

/// An all-gather, then one launch.
template <class Spread, executor E, communicator C, layout L, class S, class To, class Fill,
          class T = std::remove_const_t<S>>
void gather(std::string_view operation, const E& where, C& group, const L& layout,
            const field_t<row_view<S>, To, Fill>& f, const given_rows<T>& given,
            bool check_all_ranks) {
  const row_view<const T> mine = f.from;
  const auto view = layout.view();
  const auto check = [&] {
    require_shard(where, group, view, "source", mine);
    require_workspace(view, mine.payload, given);
    const row_view<const T> gathered(mine.data, view.rows(all_shards), mine.payload);
    Spread::template require<E>(view, make_field(gathered, f.to, f.fill));

    regions<2, 2> memory;
    memory.read_layout(view);
    read_bounds(memory, f.to, "target bounds");
    memory.write(f.to.touched(), alone, "target");
    const bool used = given && group.size() > 1;
    if (used) memory.write(given->touched(), alone, "workspace");
    // A source that is this rank's part of the workspace stays where it is.
    if (!used || part_of(*given, group.rank(), mine.rows).data != mine.data) {
      memory.read(mine.touched(), alone, "source");
    }
    memory.require_apart();
  };
  [[maybe_unused]] const auto named = name_operation(group, operation);
  const auto work = prepared<T, E>(group, operation, layout, mine.payload, check_all_ranks, [&] {
    check();
    return rows_for(group, view, mine.payload, given);
  });
  row_view<const T> gathered = mine;  // the rows of the only rank are all rows
  [[maybe_unused]] const auto here = make_current(group);
  if (group.size() > 1) {
    keeping(group, work.memory,
            [&] { group.all_gather(mine.data, work.rows.data, mine.rows * mine.payload); });
    gathered = work.rows;
  }
  Spread::run(where, layout, make_field(gathered, f.to, f.fill));
}

/// \throws invalid_input for a fill value other than 0: it would count as often as there are ranks.
template <class T, class Fill>
void require_no_fill(const Fill& fill) {
  static_assert(!std::invocable<const Fill&, offset_t>,
                "the padding of a gradient is 0: the field takes no function of the column");
  if constexpr (std::equality_comparable<T>) {
    if (!(fill_value<T>(fill, 0) == T{})) {
      reject("fill", "not 0", "the padding of a gradient is 0");
    }
  }
}

/// One launch, then a reduce-scatter.
template <class Collect, executor E, communicator C, layout L, class From, class T, class Fill>
void reduce(std::string_view operation, const E& where, C& group, const L& layout,
            const field_t<From, row_view<T>, Fill>& f, const given_rows<T>& given,
            bool check_all_ranks) {
  const row_view<T> mine = f.to;
  const auto view = layout.view();
  const auto check = [&] {
    require_no_fill<T>(f.fill);
    require_shard(where, group, view, "target", mine);
    require_workspace(view, mine.payload, given);
    const row_view<T> all(mine.data, view.rows(all_shards), mine.payload);
    Collect::template require<E>(view, make_field(f.from, all, f.fill));

    regions<2, 2> memory;
    memory.read_layout(view);
    memory.read(f.from.touched(), alone, "source");
    read_bounds(memory, f.from, "source bounds");
    memory.write(mine.touched(), alone, "target");
    if (given && group.size() > 1) memory.write(given->touched(), alone, "workspace");
    memory.require_apart();
  };
  [[maybe_unused]] const auto named = name_operation(group, operation);
  const auto work = prepared<T, E>(group, operation, layout, mine.payload, check_all_ranks, [&] {
    check();
    return rows_for(group, view, mine.payload, given);
  });
  [[maybe_unused]] const auto here = make_current(group);
  const bool alone = group.size() == 1;
  Collect::run(where, layout, make_field(f.from, alone ? mine : work.rows, f.fill));
  if (!alone) {
    keeping(group, work.memory, [&] {
      group.reduce_scatter(static_cast<const T*>(work.rows.data), mine.data,
                           mine.rows * mine.payload, reduction::sum);
    });
  }
}

/// A workspace parameter that an argument is converted to.
template <class T>
using workspace_rows = std::type_identity_t<row_view<std::remove_const_t<T>>>;

}  // namespace seqpack::detail::context_gathering
