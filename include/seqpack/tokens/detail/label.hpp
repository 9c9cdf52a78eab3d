/// \file
/// The label of a token, and which ids may become one.
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
#include "seqpack/tokens/label_options.hpp"

namespace seqpack::detail::token_functions {

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
        reject({whose.name("tokens"), "[", b, "][", s, "]"}, std::to_string(value),
               options.vocabulary == dynamic
                   ? "the label type " + label_range<T>()
                   : "a label must be from 0 to " + std::to_string(most()));
      }
    }
  }
};

}  // namespace seqpack::detail::token_functions
