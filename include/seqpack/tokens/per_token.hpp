/// \file
/// Per-token arrays of a full row or a shard: position ids, sequence index, padding mask, labels,
/// and the map itself as gather indices.
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "seqpack/core/config.hpp"
#include "seqpack/core/detail/checks.hpp"
#include "seqpack/core/detail/exact.hpp"
#include "seqpack/core/detail/narrow.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"
#include "seqpack/layout/detail/checks.hpp"
#include "seqpack/layout/detail/status.hpp"
#include "seqpack/layout/layout_view.hpp"
#include "seqpack/move/detail/checks.hpp"
#include "seqpack/move/detail/windows.hpp"

namespace seqpack {

/// An array with one element per token of a place, and the function that gives it:
/// `function(view, token)`, SEQPACK_HD. It may have
/// - `template <class Executor> require(subject, view)`, which throws for a layout that it cannot
///   serve; the subject is what errors call the array
/// - `add_reads(regions, subject)`, which says with `regions.read(bytes, subject, name)` what memory
///   it reads: at most two pieces
template <element T, class Function>
struct token_array {
  row_view<T> out;
  Function function;
};

/// Label options.
struct label_options {
  offset_t shift = 1;      ///< k >= 1: the label is the k-th next token of the same sequence
  offset_t ignore = -100;  ///< where there is none; the label type must be able to hold it
  /// V, where it is known: labels are then from 0 to V - 1, and the ignored one is not.
  offset_t vocabulary = dynamic;
};

namespace detail::token_functions {

template <class T>
struct position_id {
  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    detail::require_range<T>(whose, "largest position id", max_of(view.longest_padded - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View&, const token_ref& token) const {
    return static_cast<T>(token.index);
  }
};

template <class T>
struct sequence_index {
  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    detail::require_range<T>(whose, "largest sequence index", max_of(view.segments - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View&, const token_ref& token) const {
    return static_cast<T>(token.slot);
  }
};

template <class T>
struct padding_flag {
  template <class Executor, class View>
  void require(detail::subject, const View&) const {}
  template <class View>
  SEQPACK_HD T operator()(const View&, const token_ref& token) const {
    return static_cast<T>(!token.real());
  }
};

/// "holds -128 to 127"
template <class T>
std::string label_range() {
  if constexpr (std::is_arithmetic_v<T>) {
    return (std::floating_point<T> ? "holds all whole numbers from " : "holds ") + whole_range<T>();
  } else {
    return "does not hold it exactly";
  }
}

template <class T, token_table Tokens>
struct label {
  Tokens tokens;
  label_options options;

  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    if (options.shift < 1) {
      reject(whose.name("label shift"), options.shift, "it must be at least 1");
    }
    if (!holds_whole<T>(options.ignore)) {
      reject(whose.name("ignored label"), options.ignore, {"the label type ", label_range<T>()});
    }
    require_vocabulary(whose);
    detail::require_equal(whose, "tokens payload", tokens.payload(), 1, "one id per token");
    detail::require_table<Executor>(whose, "tokens", view, tokens, false);
    if (!may_lose && options.vocabulary == dynamic) return;
    if constexpr (std::is_arithmetic_v<id> && host_executor<Executor>) {
      require_ids(whose, view);
    } else if (view.status == nullptr) {
      reject(whose.name(may_lose ? "label type" : "vocabulary"),
             may_lose ? "narrower than the ids" : "given",
             "on a device the layout must have a status word, which tells of ids that do not fit");
    }
  }
  template <class Regions>
  void add_reads(Regions& memory, detail::subject whose) const {
    memory.read(tokens.touched(), whose, "tokens");
    memory.read(tokens.bounds_touched(), whose, "tokens bounds");
  }
  template <class View>
  SEQPACK_HD T operator()(const View& view, const token_ref& token) const {
    // The difference, not the sum: a shift may be as large as it likes.
    if (options.shift >= token.length - token.index) return static_cast<T>(options.ignore);
    const offset_t b = view.sequence_in(token.slot);
    const offset_t column = tokens.lead(b) + token.index + options.shift;
    if constexpr (bounds_in_memory<Tokens>) {
      if (column < 0 || column >= tokens.columns(b)) return static_cast<T>(options.ignore);
    }
    const id value = *tokens.at(b, column);
    if constexpr (std::is_arithmetic_v<id>) {
      if (!fits(value)) {
        refuse(view.status, {layout_error::label_refused, b, whole(value),
                             value < id{} ? least() : most(), token.index + options.shift});
        return static_cast<T>(options.ignore);
      }
    }
    return static_cast<T>(value);
  }

 private:
  using id = typename Tokens::value_type;
  /// Whether the label type lacks a value that an id may have.
  static constexpr bool may_lose = [] {
    if constexpr (std::is_arithmetic_v<T> && std::is_arithmetic_v<id>) {
      return !holds_all<T, id>;
    } else {
      return as_float<T> && std::integral<id>;
    }
  }();

  /// Whether an id can be a label.
  SEQPACK_HD constexpr bool fits(id value) const {
    if constexpr (may_lose && std::is_arithmetic_v<T>) {
      if (!holds_exactly<T>(value)) return false;
    } else if constexpr (may_lose) {
      if (!holds_exactly<offset_t>(value) || !holds_whole<T>(static_cast<offset_t>(value))) {
        return false;
      }
    }
    return options.vocabulary == dynamic ||
           (holds_exactly<offset_t>(value) && static_cast<offset_t>(value) >= 0 &&
            static_cast<offset_t>(value) < options.vocabulary);
  }
  /// The limits of labels, for messages.
  SEQPACK_HD constexpr offset_t least() const {
    if (options.vocabulary != dynamic) return 0;
    if constexpr (std::is_arithmetic_v<T>) {
      return smallest_whole<T>;
    } else {
      return smallest_whole<offset_t>;
    }
  }
  SEQPACK_HD constexpr offset_t most() const {
    if (options.vocabulary != dynamic) return options.vocabulary - 1;
    if constexpr (std::is_arithmetic_v<T>) {
      return largest_whole<T>;
    } else {
      return largest_whole<offset_t>;
    }
  }
  void require_vocabulary(detail::subject whose) const {
    const offset_t size = options.vocabulary;
    if (size == dynamic) return;
    if (!std::is_arithmetic_v<id>) {
      reject(whose.name("vocabulary"), "given", "ids that are no numbers have none");
    }
    if (size < 1 || size > max_tokens) {
      reject(whose.name("vocabulary"), size, {"it must be from 1 to ", max_tokens});
    }
    if (options.ignore >= 0 && options.ignore < size) {
      reject(whose.name("ignored label"), options.ignore,
             {"it must be no id of the vocabulary, 0 to ", size - 1});
    }
  }

  /// For messages: what an offset cannot hold becomes the nearest that it can.
  SEQPACK_HD static constexpr offset_t whole(id value) {
    if (holds_exactly<offset_t>(value)) return static_cast<offset_t>(value);
    return value < id{} ? smallest_whole<offset_t> : largest_whole<offset_t>;
  }

  /// Every id that becomes a label, in whatever shard: all ranks come to the same verdict.
  template <class View>
  void require_ids(detail::subject whose, const View& view) const {
    for (offset_t slot = 0; slot < view.sequences; ++slot) {
      const offset_t b = view.sequence_in(slot);
      const offset_t lead = tokens.lead(b);
      const offset_t length = view.length(slot);
      for (offset_t s = options.shift; s < length; ++s) {
        const id value = *tokens.at(b, lead + s);
        if (fits(value)) continue;
        reject({whose.name("tokens"), "[", b, "][", s, "]"}, value,
               options.vocabulary == dynamic
                   ? "the label type " + label_range<T>()
                   : "a label must be from 0 to " + std::to_string(most()));
      }
    }
  }
};

template <class T>
struct batch_position {
  offset_t width;

  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    if (!product_within(view.batch, width, max_tokens)) {
      reject(whose.name("batch size * width"), {view.batch, " * ", width},
             {"it must be at most ", max_tokens});
    }
    if (width < view.longest) {
      reject(whose.name("width"), width,
             {"it must be at least ", view.longest, ", the longest real length of the layout"});
    }
    if constexpr (std::unsigned_integral<T>) {
      reject(whose.name("element type"), "unsigned", "it must hold -1, for padding");
    }
    detail::require_range<T>(whose, "largest batch position", max_of(view.batch * width - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View& view, const token_ref& token) const {
    if (!token.real()) return static_cast<T>(-1);
    return static_cast<T>(view.sequence_in(token.slot) * width + token.index);
  }
};

template <class T>
struct row_position {
  template <class Executor, class View>
  void require(detail::subject whose, const View& view) const {
    detail::require_range<T>(whose, "largest row", max_of(view.total - 1, 0));
  }
  template <class View>
  SEQPACK_HD T operator()(const View& view, const token_ref& token) const {
    return static_cast<T>(view.row_of(full_row, token.slot, token.index));
  }
};

template <class Out>
using element_of = typename decltype(row_view(std::declval<Out>()))::element_type;

/// Several arrays as one bulk operation: the token of a row is looked up once for all of them.
template <class View, class Place, class... Arrays>
struct fill_arrays;

template <class View, class Place>
struct fill_arrays<View, Place> {
  SEQPACK_HD void write(const View&, offset_t, const token_ref&) const {}
  void write_run(const View&, offset_t, const token_run&) const {}
};

template <class View, class Place, class T, class Function, class... Rest>
struct fill_arrays<View, Place, token_array<T, Function>, Rest...> {
  token_array<T, Function> array;
  fill_arrays<View, Place, Rest...> rest;

  constexpr fill_arrays(token_array<T, Function> first, Rest... others)
      : array(first), rest(others...) {}

  SEQPACK_HD void write(const View& view, offset_t row, const token_ref& token) const {
    *array.out.at(row) = array.function(view, token);
    rest.write(view, row, token);
  }
  void write_run(const View& view, offset_t row, const token_run& run) const {
    T* const out = array.out.at(row);
    for (offset_t k = 0; k < run.count; ++k) {
      out[k] = array.function(view, {run.first.slot, run.first.index + k, run.first.length});
    }
    rest.write_run(view, row, run);
  }
};

template <class View, class Place, class... Arrays>
struct token_operation {
  View view;
  Place at;
  fill_arrays<View, Place, Arrays...> arrays;
  offset_t bytes = 0;

  offset_t rows() const noexcept { return view.rows(at); }
  offset_t row_bytes() const noexcept { return bytes; }
  void process(offset_t first, offset_t last) const {
    for_each_run(view, at, first, last,
                 [&](offset_t row, const token_run& run) { arrays.write_run(view, row, run); });
  }

  // Tiles of rows: 8 for each of 256 threads.
  using scratch_type = window_memory<typename View::index_type>;
  static constexpr offset_t tile_rows = 2048;

  SEQPACK_HD offset_t tiles() const noexcept {
    return divide(view.rows(at) + tile_rows - 1, tile_rows);
  }
  template <class Threads>
  SEQPACK_HD void prepare(const Threads& threads, scratch_type& scratch) const {
    seqpack::prepare(threads, scratch);
  }
  template <class Threads>
  SEQPACK_HD void tile(const Threads& threads, scratch_type& scratch, offset_t number,
                       bool /*continues*/) const {
    const offset_t end = min_of((number + 1) * tile_rows, view.rows(at));
    for (offset_t first = number * tile_rows; first < end;) {
      const auto near = window_of(threads, view, at, first, end - 1, scratch);
      for (offset_t row = first + threads.rank(); row <= near.last; row += threads.size()) {
        // Functions may ask of any sequence, not only of those in the window.
        arrays.write(view, row, near.view.token_at(at, row));
      }
      threads.sync();
      first = near.last + 1;
    }
  }
};

template <class E, class View, class Place, class T, class Function>
void require_array(detail::subject whose, const View& view, Place at,
                   const token_array<T, Function>& array) {
  detail::require_equal(whose, "rows", array.out.rows, view.rows(at),
                        "the tokens of the layout in this place");
  detail::require_equal(whose, "payload", array.out.payload, 1, "one element per token");
  detail::require_memory(whose, "elements", array.out.data, array.out.rows);
  if constexpr (requires { array.function.template require<E>(whose, view); }) {
    array.function.template require<E>(whose, view);
  }
}

template <class Regions, class T, class Function>
void add_regions(Regions& memory, detail::subject whose, const token_array<T, Function>& array) {
  memory.write(array.out.touched(), whose, "elements");
  if constexpr (requires { array.function.add_reads(memory, whose); }) {
    array.function.add_reads(memory, whose);
  }
}

}  // namespace detail::token_functions

// Each of the following names an array for `per_token`: `out` is a row_view or a contiguous range
// with one element per token of the place.

/// Positions that restart at 0 with every sequence and go on counting in its padding.
template <class Out>
auto position_ids(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::position_id<T>>{row_view(out), {}};
}

/// The slot that owns the token, its padding included; the ghost's is the number of sequences.
template <class Out>
auto sequence_index(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::sequence_index<T>>{row_view(out), {}};
}

/// 1 (true) in padding, 0 (false) at real tokens.
template <class Out>
auto padding_mask(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::padding_flag<T>>{row_view(out), {}};
}

/// The shift-th next token of the same sequence, from a batch of token ids, and options.ignore at
/// the last `shift` real tokens of each sequence and in padding: never a neighbour's token, never
/// one that wraps round, and the same for every context-parallel size.
///
/// The label type must hold the ids that become labels exactly, and options.vocabulary must have them.
/// Where the type lacks some value that the ids could have, or the vocabulary is given, a call on the
/// host looks at all of them first, O(tokens), and throws; on a device one that does not fit sets the
/// status of the layout, which `check()` of the layout throws, and its label is options.ignore.
template <class Tokens, class Out>
auto labels(const Tokens& tokens, Out&& out, label_options options = {}) {
  using T = detail::token_functions::element_of<Out>;
  static_assert(token_table<Tokens>,
                "labels come from a batch: a batch_view, left_padded_view or "
                "ragged_view of token ids");
  return token_array<T, detail::token_functions::label<T, Tokens>>{row_view(out),
                                                                   {tokens, options}};
}

/// Gather indices into a batch of the given width: b * width + s, and -1 in padding.
/// \throws invalid_input for a width outside of [0, max_tokens].
template <class Out>
auto batch_index(Out&& out, offset_t width) {
  detail::require_width(width);
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::batch_position<T>>{row_view(out), {width}};
}

/// Gather indices into the full row: t, padding included.
template <class Out>
auto row_index(Out&& out) {
  using T = detail::token_functions::element_of<Out>;
  return token_array<T, detail::token_functions::row_position<T>>{row_view(out), {}};
}

/// Writes any number of per-token arrays of one place.
///
///     per_token(host, layout, shard{rank}, position_ids(positions), padding_mask(mask),
///               labels(ids, targets, {.shift = 1}));
///
/// \param where, layout, at as for pack
/// \param arrays position_ids, sequence_index, padding_mask, labels, batch_index, row_index, or a
/// token_array of one's own; every element of each is written
/// \throws invalid_input before anything is written: a rank out of range, an array of the wrong
/// size, a null pointer, an element type that cannot hold the values, a label shift below 1, an
/// array in the memory of the token ids or of another array.
///
/// Allocates nothing. Does not synchronise; one kernel launch on a device. O(tokens of the place).
template <executor E, layout L, place Place, class... T, class... Function>
  requires runs_on<E, L> && (sizeof...(T) > 0)
void per_token(const E& where, const L& layout, Place at,
               const token_array<T, Function>&... arrays) {
  const auto view = layout.view();
  view.require_place(at);
  detail::require_layout(view);
  offset_t index = 0;
  (detail::token_functions::require_array<E>(detail::of_array(index++), view, at, arrays), ...);

  detail::regions<2 * sizeof...(T), sizeof...(T)> memory;
  memory.read_layout(view);
  index = 0;
  (detail::token_functions::add_regions(memory, detail::of_array(index++), arrays), ...);
  memory.require_apart();

  using view_type = std::remove_const_t<decltype(view)>;
  using operation =
      detail::token_functions::token_operation<view_type, Place, token_array<T, Function>...>;
  execute(where, operation{view, at, {arrays...}, (offset_t{sizeof(T)} + ...)});
}

}  // namespace seqpack
