/// \file
/// row_packer: rows from a stream of sequences, with a bounded look-ahead.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/plan/detail/row_rules.hpp"
#include "seqpack/plan/detail/stream_state.hpp"
#include "seqpack/plan/detail/units.hpp"
#include "seqpack/plan/plan_options.hpp"
#include "seqpack/plan/row_plan.hpp"
#include "seqpack/policy/padding.hpp"
#include "seqpack/policy/sharding.hpp"

namespace seqpack {

/// Options of row_packer.
struct row_packer_options {
  /// A sequence is in a row at the latest when this many more have been pushed.
  offset_t look_ahead = 1024;
  /// Or when this many more padded tokens have been.
  offset_t look_ahead_tokens = max_tokens;
  offset_t most_sequences = max_tokens;  ///< of a row
  seqpack::too_long too_long = seqpack::too_long::refuse;
};

/// Puts the sequences of a stream into rows: push lengths, take rows.
///
///     row_packer packer(8192, padding, cp, {.look_ahead = 2048});
///     for (const document& d : documents) {
///       packer.push(d.length);
///       while (auto row = packer.take()) train_on(*row);
///     }
///     packer.finish();
///     while (auto row = packer.take()) train_on(*row);
///
/// A row is made when the oldest sequence has waited as long as the look-ahead says: it and, the longest
/// first, those of the others that still fit. What a row holds is decided as by plan_rows, by the
/// same policies. Rows depend on what was pushed alone, and not on when they are taken.
///
/// A row is a list of pieces in slot order: the number of the sequence, its first token and how many.
/// Only with too_long::split is a sequence in more than one piece; they are consecutive entries of the
/// stream, and each counts as a sequence. The lengths of the pieces are those of the row's layout:
///
///     make_layout(piece_lengths(*row), padding, cp)
///
/// Memory and the time of a push are O(look_ahead) and what the rows take that are not taken yet.
template <padding_policy P = no_padding, context_parallel_policy C = no_context_parallel>
class row_packer {
 public:
  /// \param capacity, padding, cp as for plan_rows
  /// \throws invalid_input as plan_rows does for them, for a look-ahead below 0, a limit of sequences below
  /// 1, and a total multiple with which the sharding would divide some rows and others not.
  constexpr explicit row_packer(offset_t capacity, const P& padding = {}, const C& cp = {},
                                const row_packer_options& options = {})
      : rules_(detail::row_rules_of(capacity, padding, cp)),
        options_(options),
        divisor_(cp.divisor()) {
    detail::require_tuples(1, options.most_sequences);
    const auto require = [](const char* what, offset_t value) {
      if (value < 0 || value > max_tokens) {
        reject(what, value, {"it must be from 0 to ", max_tokens});
      }
    };
    const offset_t multiple = padding.total_multiple();
    if (!padding.has_fixed_total && multiple % divisor_ != 0 && divisor_ % multiple != 0) {
      reject(
          "total_multiple_of", multiple,
          {"it must be a multiple of ", divisor_, ", what the sharding divides by, or divide it"});
    }
    const fast_divisor& of_row = rules_.layout.row_divisor;
    const bool kept = of_row.divides(multiple) ||
                      (padding.each() % multiple == 0 && of_row.divides(padding.each()));
    if (!padding.has_fixed_total && !kept) {
      reject("total_multiple_of", multiple,
             {"it must be a multiple of ", of_row.value(), ", what the sharding divides a row by"});
    }
    require("look_ahead", options.look_ahead);
    require("look_ahead_tokens", options.look_ahead_tokens);
  }

  /// The next sequence, under the number of sequences that were pushed before it.
  /// \throws invalid_input as the other one does.
  constexpr void push(offset_t length) { push(next_number_, length); }

  /// The next sequence, under a number of the caller's, which rows give back.
  /// \throws invalid_input for a number below 0, a length below 0 or above max_tokens, one that no row
  /// has room for (with too_long::refuse), and one that the sharding does not divide. The packer is then
  /// as it was.
  constexpr void push(offset_t number, offset_t length) {
    if (number < 0) reject("number of a sequence", number, "it must be at least 0");
    const offset_t whole[] = {length};
    const auto items =
        detail::items_of(rules_, detail::lengths_of(whole, rules_, number), options_.too_long, 1);
    const auto contents = detail::contents_of(rules_, items.lengths, 1, number);
    require_divisible(number, contents);
    offset_t first = 0;
    for (std::size_t k = 0; k < contents.size(); ++k) {
      const offset_t size = items.lengths[k];
      add({{number, first, size}, contents[k], entries_, tokens_});
      first += size;
    }
    next_number_ = next_number_ < std::numeric_limits<offset_t>::max() ? next_number_ + 1 : 0;
  }

  /// The next row, or nothing: more sequences must be pushed first.
  std::optional<std::vector<sequence_piece>> take() {
    if (taken_ == ready_.size()) return std::nullopt;
    std::optional<std::vector<sequence_piece>> row(std::move(ready_[taken_++]));
    if (2 * taken_ >= ready_.size()) {  // rarely enough that a row costs O(1)
      ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(taken_));
      taken_ = 0;
    }
    return row;
  }

  /// The end of the stream: all that is held goes into rows. Then a new stream may begin; the numbers of
  /// sequences go on.
  constexpr void finish() {
    while (!held_.empty()) make_row();
  }

  /// Sequences, or pieces, that are in no row yet.
  constexpr offset_t held() const noexcept { return static_cast<offset_t>(held_.size()); }
  /// Rows that can be taken.
  constexpr offset_t ready() const noexcept {
    return static_cast<offset_t>(ready_.size() - taken_);
  }

  /// The state between two pushes, as numbers to be written to a file: 64 bits each, the same on every
  /// machine. A packer that is made with the same arguments and that loads it makes the rows that this
  /// one would make.
  constexpr std::vector<offset_t> save() const {
    detail::state_writer state;
    each_setting([&](const char*, offset_t number) { state.add(number); });
    state.add(next_number_);
    state.add(static_cast<offset_t>(held_.size()));
    for (const waiting& w : held_) {
      write(state, w.piece);
      state.add(w.entry - entries_);  // below 0
      state.add(static_cast<offset_t>(w.tokens - tokens_));
    }
    state.add(ready());
    for (std::size_t k = taken_; k < ready_.size(); ++k) {
      state.add(static_cast<offset_t>(ready_[k].size()));
      for (const sequence_piece& piece : ready_[k]) write(state, piece);
    }
    return state.finish();
  }

  /// Takes the place of all that was pushed to this packer.
  /// \throws invalid_input, naming what is wrong, for a state that was cut off or changed, that is of
  /// another version, or that belongs to a packer of other arguments. The packer is then as it was.
  constexpr void load(std::span<const offset_t> saved) {
    detail::state_reader state(saved);
    row_packer loaded = *this;
    loaded.clear();
    each_setting([&](const char* what, offset_t number) { state.expect(what, number); });
    loaded.next_number_ = state.next("next number", 0, std::numeric_limits<offset_t>::max());
    const offset_t held = state.count("number of held sequences", 5);
    offset_t entry = -options_.look_ahead - 1;
    for (offset_t k = 0; k < held; ++k) {
      waiting w = read_waiting(state, entry + 1);
      entry = w.entry;
      loaded.insert(w);
    }
    const offset_t rows = state.count("number of ready rows", 1);
    for (offset_t k = 0; k < rows; ++k) loaded.ready_.push_back(read_row(state));
    state.finish();
    *this = std::move(loaded);
  }

 private:
  /// A piece that is in no row yet; `entry` and `tokens` say how much was pushed before it.
  struct waiting {
    sequence_piece piece;
    offset_t content = 0;
    offset_t entry = 0;
    std::uint64_t tokens = 0;  ///< wraps; only differences are looked at
  };
  /// A held piece, for those who look for sizes.
  struct by_size {
    offset_t content;
    offset_t entry;
    /// The largest first; of equal ones, the oldest.
    friend constexpr bool operator<(const by_size& a, const by_size& b) noexcept {
      return a.content != b.content ? a.content > b.content : a.entry < b.entry;
    }
  };

  template <class F>
  constexpr void each_setting(const F& f) const {
    f("capacity", rules_.capacity);
    f("most content of a row", rules_.most_content);
    f("each_multiple_of", rules_.layout.each);
    f("total_multiple_of", rules_.layout.total_multiple);
    f("fixed_total", rules_.layout.fixed_total);
    f("tail", rules_.layout.ghost);
    f("divisor of the sharding", divisor_);
    f("divisor of the row", rules_.layout.row_divisor.value());
    f("look_ahead", options_.look_ahead);
    f("look_ahead_tokens", options_.look_ahead_tokens);
    f("most_sequences", options_.most_sequences);
    f("too_long", static_cast<offset_t>(options_.too_long));
  }

  constexpr void clear() {
    held_.clear();
    sizes_.clear();
    ready_.clear();
    taken_ = 0;
    entries_ = 0;
    tokens_ = 0;
    next_number_ = 0;
  }

  /// Each alone, so that no row is refused for one of its sequences when it is made.
  constexpr void require_divisible(offset_t number, std::span<const offset_t> contents) const {
    for (const offset_t content : contents) {
      const layout_status status = rules_.layout.check_padded(0, content);
      if (!status.ok()) detail::throw_status(status, entry_name("lengths", number));
    }
  }

  constexpr void insert(const waiting& w) {
    held_.push_back(w);
    const by_size key{w.content, w.entry};
    sizes_.insert(std::lower_bound(sizes_.begin(), sizes_.end(), key), key);
  }
  constexpr void add(const waiting& w) {
    insert(w);
    ++entries_;
    tokens_ += static_cast<std::uint64_t>(w.content);
    while (!held_.empty() && overdue(held_.front())) make_row();
  }
  /// Entries and tokens that came after it are as many as the look-ahead says.
  constexpr bool overdue(const waiting& w) const {
    const std::uint64_t after = tokens_ - w.tokens - static_cast<std::uint64_t>(w.content);
    return entries_ - w.entry - 1 >= options_.look_ahead ||
           after >= static_cast<std::uint64_t>(options_.look_ahead_tokens);
  }

  constexpr void make_row() {
    std::vector<offset_t> chosen{held_.front().entry};
    offset_t room = rules_.most_content - held_.front().content;
    for (const by_size& s : sizes_) {
      if (static_cast<offset_t>(chosen.size()) == options_.most_sequences) break;
      if (s.content > room || s.entry == chosen.front()) continue;
      room -= s.content;
      chosen.push_back(s.entry);
    }
    std::sort(chosen.begin(), chosen.end());
    const auto is_chosen = [&](offset_t entry) {
      return std::binary_search(chosen.begin(), chosen.end(), entry);
    };
    std::vector<sequence_piece> row;
    row.reserve(chosen.size());
    for (const waiting& w : held_) {
      if (is_chosen(w.entry)) row.push_back(w.piece);
    }
    std::erase_if(held_, [&](const waiting& w) { return is_chosen(w.entry); });
    std::erase_if(sizes_, [&](const by_size& s) { return is_chosen(s.entry); });
    ready_.push_back(std::move(row));
  }

  static constexpr void write(detail::state_writer& state, const sequence_piece& piece) {
    state.add(piece.sequence);
    state.add(piece.first);
    state.add(piece.length);
  }
  constexpr sequence_piece read_piece(detail::state_reader& state) const {
    sequence_piece piece;
    piece.sequence = state.next("number of a sequence", 0, std::numeric_limits<offset_t>::max());
    piece.first = state.next("first token", 0, max_tokens);
    piece.length = state.next("length", 0, detail::longest_within(rules_, rules_.most_content));
    return piece;
  }
  constexpr waiting read_waiting(detail::state_reader& state, offset_t first_entry) const {
    waiting w{.piece = read_piece(state)};
    w.content = rules_.padded(w.piece.length);
    w.entry = state.next("age of a held sequence", first_entry, -1);
    w.tokens =
        static_cast<std::uint64_t>(state.next("tokens after a held sequence", -max_tokens * 4, 0));
    return w;
  }
  constexpr std::vector<sequence_piece> read_row(detail::state_reader& state) const {
    const offset_t size = state.count("size of a ready row", 3);
    std::vector<sequence_piece> row;
    for (offset_t k = 0; k < size; ++k) row.push_back(read_piece(state));
    return row;
  }

  decltype(detail::row_rules_of(0, std::declval<const P&>(), std::declval<const C&>())) rules_;
  row_packer_options options_;
  offset_t divisor_;
  std::vector<waiting> held_;   ///< the oldest first
  std::vector<by_size> sizes_;  ///< the same by size
  std::vector<std::vector<sequence_piece>> ready_;
  std::size_t taken_ = 0;  ///< of the ready rows
  offset_t entries_ = 0;
  std::uint64_t tokens_ = 0;
  offset_t next_number_ = 0;
};

}  // namespace seqpack
