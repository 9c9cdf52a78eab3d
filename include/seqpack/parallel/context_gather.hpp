/// \file
/// From the shards of all context-parallel ranks to the batch or the full row, and the gradients
/// back.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/layout_hash.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/field.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/rearrange.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/parallel/agree.hpp"
#include "seqpack/parallel/group_execution.hpp"

namespace seqpack {

/// What the calls of this file may be told.
struct context_gather_options {
  /// Exchanges the verdict of every rank first, so that all ranks fail together. One exchange more,
  /// which the host waits for. It must be the same on all ranks: the exchange of one would meet the
  /// data of another.
  bool check_all_ranks = false;
};

namespace detail::context_gathering {

/// Rows that the caller gives as a workspace, or not.
template <class T>
using given_rows = std::optional<row_view<T>>;

/// The workspace of a call, and its memory where the caller gave none.
template <class T>
struct workspace {
  row_view<T> rows;
  std::shared_ptr<void> memory;
};

/// What one rank says about its call: what it has refused, or what it has been given.
struct record {
  bool refused = false;
  detail::agreeing::refusal why;
  bool hashed = false;
  offset_t payload = 0;
  offset_t element_bytes = 0;
  layout_fingerprint layout;

  void refuse(const std::string& what, const std::string& is, const std::string& must) {
    refused = true;
    why = {what, is, must};
  }
  void write(detail::records::writer& to) const {
    to.flag(refused);
    if (refused) return why.write(to);
    to.flag(hashed);
    to.put(payload);
    to.put(element_bytes);
    detail::records::traits<layout_fingerprint>::write(to, layout);
  }
  static record read(detail::records::reader& from) {
    record r;
    r.refused = from.flag("verdict");
    if (r.refused) {
      r.why = detail::agreeing::refusal::read(from);
      return r;
    }
    r.hashed = from.flag("kind of the layout");
    r.payload = from.size("payload");
    r.element_bytes = from.size("element size");
    r.layout = detail::records::traits<layout_fingerprint>::read(from);
    return r;
  }
};

/// \throws collective_mismatch, the same on all ranks: a rank that has refused, payloads, element
/// types or layouts that differ.
inline void require_all(const group_members& members, const std::vector<record>& records) {
  detail::exchanging::refuse(
      detail::exchanging::ranks_where(members.size(),
                                      [&](std::size_t r) { return records[r].refused; }),
      [&](group_rank r) {
        const record& found = records[static_cast<std::size_t>(r.value)];
        return collective_mismatch(
            r, found.why.entry + " on " + detail::exchanging::rank_name(members, r),
            found.why.value, found.why.requirement);
      });
  std::vector<offset_t> payloads;
  std::vector<offset_t> sizes;
  for (const record& r : records) {
    payloads.push_back(r.payload);
    sizes.push_back(r.element_bytes);
  }
  detail::agreeing::require_same_number(members, payloads, "payload");
  detail::agreeing::require_same_number(members, sizes, "element size");
  std::vector<layout_fingerprint> layouts;
  bool all_hashed = true;
  for (const record& r : records) {
    layouts.push_back(r.layout);
    all_hashed = all_hashed && r.hashed;
  }
  // A layout on a device has sizes alone, so that only they can be compared.
  for (layout_fingerprint& layout : layouts) {
    if (!all_hashed) layout.hash = 0;
  }
  detail::agreeing::require_same(members, layouts, detail::agreeing::describe_layouts);
}

/// What a rank may say about its layout without waiting for a device.
template <executor E, layout L>
void describe_layout(record& mine, const L& layout) {
  if constexpr (host_executor<E>) {
    mine.layout = fingerprint(layout);
    mine.hashed = true;
  } else {
    mine.layout = fingerprint_of_sizes(layout);
  }
}

/// Checks of this rank alone, or, where asked, of all ranks together.
/// \param prepare checks everything, allocates what is missing and returns it
template <class T, executor E, communicator C, layout L, class Prepare>
workspace<T> prepared(C& group, std::string_view operation, const L& layout, offset_t payload,
                      const context_gather_options& options, const Prepare& prepare) {
  group.rank();  // throws alone, and before anything is sent, where the caller is no member
  if (!options.check_all_ranks) return prepare();
  record mine;
  mine.payload = payload;
  mine.element_bytes = sizeof(T);
  workspace<T> result;
  try {
    result = prepare();
    describe_layout<E>(mine, layout);
  } catch (const invalid_input& e) {
    mine.refuse(e.entry(), e.value(), e.requirement());
  } catch (const std::exception& e) {
    mine.refuse("the call", "refused", e.what());
  }
  require_all(group.members(), detail::exchanging::exchange_records(group, operation, mine));
  return result;
}

/// What all calls check of the layout and of the rows of this rank.
template <executor E, communicator C, class View, class T>
void require_shard(const E& where, const C& group, const View& view, const char* what,
                   const row_view<T>& mine) {
  detail::require_same_stream(where, group);
  detail::require_layout(view);
  detail::require_equal(detail::alone, "context-parallel size of the layout", view.cp.size(),
                        group.size(), "the ranks of the group");
  detail::require_equal(detail::alone, (std::string(what) + " rows").c_str(), mine.rows,
                        view.shard_tokens(), "the tokens of the layout in one shard");
  detail::require_memory(detail::alone, what, mine.data, mine.rows * mine.payload);
}

/// One rank needs no workspace, and what it gives is not looked at.
template <class View, class T>
void require_workspace(const View& view, offset_t payload, const given_rows<T>& given) {
  if (!given || view.cp.size() == 1) return;
  detail::require_equal(detail::alone, "workspace rows", given->rows, view.rows(all_shards),
                        "the tokens of all shards");
  detail::require_equal(detail::alone, "workspace payload", given->payload, payload,
                        "the payload of the shards");
  detail::require_memory(detail::alone, "workspace", given->data, given->rows * given->payload);
}

template <class T>
row_view<T> part_of(const row_view<T>& all, group_rank rank, offset_t rows) {
  return {all.data == nullptr ? nullptr : all.at(rank.value * rows), rows, all.payload};
}

template <class T, communicator C, class View>
workspace<T> make_workspace(C& group, const View& view, offset_t payload,
                            const given_rows<T>& given) {
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
  if constexpr (token_table<Table>) memory.read(table.bounds_touched(), detail::alone, what);
}

/// Where gathered rows go: to a batch, or to the full row.
struct to_batch {
  template <class E, class View, class Field>
  static void require(const View& view, const Field& f) {
    detail::unpacking::require_field<E>(detail::alone, view, all_shards, f);
  }
  template <class E, class L, class Field>
  static void run(const E& where, const L& layout, const Field& f) {
    unpack(where, layout, all_shards, f);
  }
};
struct to_row {
  template <class E, class View, class Field>
  static void require(const View& view, const Field& f) {
    detail::rearranging::require_field(detail::alone, view, all_shards, full_row, f);
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
    detail::packing::require_field<E>(detail::alone, view, all_shards, f);
  }
  template <class E, class L, class Field>
  static void run(const E& where, const L& layout, const Field& f) {
    pack(where, layout, all_shards, f);
  }
};
struct from_row {
  template <class E, class View, class Field>
  static void require(const View& view, const Field& f) {
    detail::rearranging::require_field(detail::alone, view, full_row, all_shards, f);
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
            const context_gather_options& options) {
  const row_view<const T> mine = f.from;
  const auto view = layout.view();
  const auto check = [&] {
    require_shard(where, group, view, "source", mine);
    require_workspace(view, mine.payload, given);
    const row_view<const T> gathered(mine.data, view.rows(all_shards), mine.payload);
    Spread::template require<E>(view, make_field(gathered, f.to, f.fill));

    detail::regions<2, 2> memory;
    memory.read_layout(view);
    read_bounds(memory, f.to, "target bounds");
    memory.write(f.to.touched(), detail::alone, "target");
    const bool used = given && group.size() > 1;
    if (used) memory.write(given->touched(), detail::alone, "workspace");
    // A source that is this rank's part of the workspace stays where it is.
    if (!used || part_of(*given, group.rank(), mine.rows).data != mine.data) {
      memory.read(mine.touched(), detail::alone, "source");
    }
    memory.require_apart();
  };
  [[maybe_unused]] const auto named = name_operation(group, operation);
  const auto work = prepared<T, E>(group, operation, layout, mine.payload, options, [&] {
    check();
    return make_workspace(group, view, mine.payload, given);
  });
  row_view<const T> gathered = mine;  // the rows of the only rank are all rows
  [[maybe_unused]] const auto here = detail::make_current(group);
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
            const context_gather_options& options) {
  const row_view<T> mine = f.to;
  const auto view = layout.view();
  const auto check = [&] {
    require_no_fill<T>(f.fill);
    require_shard(where, group, view, "target", mine);
    require_workspace(view, mine.payload, given);
    const row_view<T> all(mine.data, view.rows(all_shards), mine.payload);
    Collect::template require<E>(view, make_field(f.from, all, f.fill));

    detail::regions<2, 2> memory;
    memory.read_layout(view);
    memory.read(f.from.touched(), detail::alone, "source");
    read_bounds(memory, f.from, "source bounds");
    memory.write(mine.touched(), detail::alone, "target");
    if (given && group.size() > 1) memory.write(given->touched(), detail::alone, "workspace");
    memory.require_apart();
  };
  [[maybe_unused]] const auto named = name_operation(group, operation);
  const auto work = prepared<T, E>(group, operation, layout, mine.payload, options, [&] {
    check();
    return make_workspace(group, view, mine.payload, given);
  });
  [[maybe_unused]] const auto here = detail::make_current(group);
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

}  // namespace detail::context_gathering

/// Brings the shards of all context-parallel ranks to the batch on every rank: an all-gather, and
/// one unpack straight from what it leaves.
///
///     // logits of this rank: [T / CP, V]; workspace: T rows; all_logits: [B, S, V]
///     all_gather_unpack(host, cp_group, layout, field(my_logits, all_logits), workspace);
///
/// **Collective** over the group, whose ranks are the context-parallel ranks: all of them call it
/// with the same layout, payload and element type. Stream-ordered where the group has a stream;
/// nothing synchronises there, but for the exchange that options.check_all_ranks asks for. With one
/// rank nothing is gathered and the workspace is not used.
///
/// \param where `host`, a multi-threaded host executor, a CUDA stream, or a Thrust execution
/// policy; on the side, host or device, whose memory the group moves, and for a group with a stream
/// in that stream. Thrust policies do not show theirs, and are taken at the caller's word.
/// \param group its size is the CP size of the layout
/// \param f source: this rank's shard, [T / CP, D] of any element type; target: a batch [B, S, D],
/// as for unpack, with the fill value for everything that is not a real token
/// \param work [CP, T / CP, D], T rows; it holds the shards of all ranks in rank-major order
/// afterwards. The source may be this rank's part of it, which then is not copied.
/// \param options whether ranks check together
/// \throws invalid_input on this rank alone, before anything is sent or written: a caller that is
/// not a member, a CP size that is not the size of the group, a source or workspace with the wrong
/// number of rows, what unpack refuses of a target, a null pointer, memory that is written and used
/// for something else, another stream than the group's. The other ranks wait until their deadline.
/// \throws collective_mismatch in the place of that, on all ranks with the same text, where
/// options.check_all_ranks is set; then also for payloads, element sizes and layouts that differ,
/// named as by agree; of layouts on a device only the sizes can. Nothing has been written on any
/// rank, and the group can be used.
/// \throws communication_error, such as deadline_passed.
///
/// Allocates nothing; with options.check_all_ranks O(size) on the host. O(T * D) sent, O(elements
/// of the target) written; one kernel launch on a device beside the collective.
template <executor E, communicator C, layout L, class T, token_table To, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_unpack(const E& where, C& group, const L& layout,
                       const field_t<row_view<T>, To, Fill>& f,
                       detail::context_gathering::workspace_rows<T> work,
                       const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_batch>("all_gather_unpack", where, group, layout, f,
                                         std::optional(work), options);
}
/// The same with a workspace from group.allocate, which is given back on return; where the group
/// has a stream, in its order. With one rank nothing is allocated.
template <executor E, communicator C, layout L, class T, token_table To, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_unpack(const E& where, C& group, const L& layout,
                       const field_t<row_view<T>, To, Fill>& f,
                       const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_batch>("all_gather_unpack", where, group, layout, f,
                                         gathering::given_rows<std::remove_const_t<T>>(), options);
}

/// Brings the shards of all context-parallel ranks to the full row on every rank, padding included.
///
///     all_gather_rows(host, cp_group, layout, field(my_shard, row), workspace);
///
/// \param f source: this rank's shard, [T / CP, D]; target: the full row, [T, D]
///
/// Everything else as all_gather_unpack has it.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_rows(const E& where, C& group, const L& layout,
                     const field_t<row_view<S>, row_view<T>, Fill>& f,
                     detail::context_gathering::workspace_rows<T> work,
                     const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_row>("all_gather_rows", where, group, layout, f,
                                       std::optional(work), options);
}
/// The same with a workspace from group.allocate.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C>
void all_gather_rows(const E& where, C& group, const L& layout,
                     const field_t<row_view<S>, row_view<T>, Fill>& f,
                     const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::gather<gathering::to_row>("all_gather_rows", where, group, layout, f,
                                       gathering::given_rows<T>(), options);
}

/// The transpose of all_gather_unpack, and so its backward pass: every rank has a gradient of the
/// whole batch, and gets the sum of them over the ranks for its own shard, 0 in padding. One pack
/// into the workspace, and a reduce-scatter.
///
///     pack_reduce_scatter(host, cp_group, layout, field(batch_gradient, my_gradient), workspace);
///
/// **Collective**, and stream-ordered, as all_gather_unpack is. With one rank it is a pack.
///
/// \param f source: a batch [B, S, D], as for pack; target: this rank's shard, [T / CP, D]. Its
/// fill is 0. The element type is one that the group can reduce.
/// \param work T rows of D, overwritten; apart from source and target
/// \throws as all_gather_unpack; invalid_input also for a fill other than 0.
///
/// Allocates nothing, with options.check_all_ranks O(size) on the host. O(T * D) written and sent.
template <executor E, communicator C, layout L, token_table From, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void pack_reduce_scatter(const E& where, C& group, const L& layout,
                         const field_t<From, row_view<T>, Fill>& f,
                         detail::context_gathering::workspace_rows<T> work,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_batch>("pack_reduce_scatter", where, group, layout, f,
                                           std::optional(work), options);
}
/// The same with a workspace from group.allocate.
template <executor E, communicator C, layout L, token_table From, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void pack_reduce_scatter(const E& where, C& group, const L& layout,
                         const field_t<From, row_view<T>, Fill>& f,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_batch>("pack_reduce_scatter", where, group, layout, f,
                                           gathering::given_rows<T>(), options);
}

/// The transpose of all_gather_rows: every rank has a gradient of the full row, padding included,
/// and gets the sum of them over the ranks for its own shard.
///
///     reduce_scatter_rows(host, cp_group, layout, field(row_gradient, my_gradient), workspace);
///
/// \param f source: the full row, [T, D]; target: this rank's shard, [T / CP, D]
///
/// Everything else as pack_reduce_scatter has it.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void reduce_scatter_rows(const E& where, C& group, const L& layout,
                         const field_t<row_view<S>, row_view<T>, Fill>& f,
                         detail::context_gathering::workspace_rows<T> work,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_row>("reduce_scatter_rows", where, group, layout, f,
                                         std::optional(work), options);
}
/// The same with a workspace from group.allocate.
template <executor E, communicator C, layout L, class S, class T, class Fill>
  requires runs_on<E, L> && gathers_on<E, C> && (C::template reduces<T>)
void reduce_scatter_rows(const E& where, C& group, const L& layout,
                         const field_t<row_view<S>, row_view<T>, Fill>& f,
                         const context_gather_options& options = {}) {
  namespace gathering = detail::context_gathering;
  gathering::reduce<gathering::from_row>("reduce_scatter_rows", where, group, layout, f,
                                         gathering::given_rows<T>(), options);
}

}  // namespace seqpack
