/// \file
/// Rows by the room that is left in them: what best fit and first fit ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "seqpack/core/config.hpp"
#include "seqpack/core/math.hpp"

namespace seqpack::detail {

/// Numbers of rows and of what is put into them: fewer than 2^31, and half the memory to move.
using row_number = std::int32_t;
inline constexpr row_number no_row = -1;

constexpr std::size_t nth(offset_t number) noexcept {
  return static_cast<std::size_t>(number);
}

/// A set of numbers from 0 to a largest one, as a tree of words of 64 bits: a bit of a word says whether
/// there are bits in a word of the level below. Every operation looks at one or two words of each level.
class bit_tree {
 public:
  constexpr explicit bit_tree(offset_t largest) {
    offset_t bits = largest + 1;
    do {
      bits = (bits + 63) / 64;
      levels_.emplace_back(nth(bits), 0);
    } while (bits > 1);
  }

  constexpr void insert(offset_t number) {
    for (auto& level : levels_) {
      std::uint64_t& word = level[nth(number >> 6)];
      const bool was_there = word != 0;
      word |= bit(number);
      if (was_there) return;
      number >>= 6;
    }
  }
  constexpr void erase(offset_t number) {
    for (auto& level : levels_) {
      std::uint64_t& word = level[nth(number >> 6)];
      word &= ~bit(number);
      if (word != 0) return;
      number >>= 6;
    }
  }
  /// The smallest number that is at least `number`, or -1.
  constexpr offset_t find(offset_t number) const {
    for (std::size_t up = 0; up < levels_.size(); ++up) {
      const auto word = nth(number >> 6);
      if (word >= levels_[up].size()) return -1;
      const std::uint64_t rest = levels_[up][word] & (~std::uint64_t{0} << (number & 63));
      if (rest == 0) {
        number = (number >> 6) + 1;
        continue;
      }
      offset_t found = (number & ~offset_t{63}) + lowest(rest);
      while (up > 0) found = found * 64 + lowest(levels_[--up][nth(found)]);
      return found;
    }
    return -1;
  }

 private:
  static constexpr std::uint64_t bit(offset_t number) noexcept {
    return std::uint64_t{1} << (number & 63);
  }
  static constexpr offset_t lowest(std::uint64_t word) noexcept { return __builtin_ctzll(word); }

  std::vector<std::vector<std::uint64_t>> levels_;
};

/// Rows by room, where rooms are small numbers: a list for each room, and the set of those that have
/// rows.
class room_lists {
 public:
  constexpr room_lists(offset_t largest_room, offset_t most_rows)
      : rooms_(largest_room),
        first_(nth(largest_room + 1), no_row),
        next_(nth(most_rows), no_row) {}

  /// Takes out the row with the least room that is at least `size`, of several the one that was put in
  /// last, or gives no_row.
  constexpr row_number take(offset_t size) {
    const offset_t room = rooms_.find(size);
    if (room < 0) return no_row;
    const row_number row = first_[nth(room)];
    first_[nth(room)] = next_[nth(row)];
    if (first_[nth(room)] == no_row) rooms_.erase(room);
    return row;
  }
  constexpr void put(row_number row, offset_t room) {
    if (first_[nth(room)] == no_row) rooms_.insert(room);
    next_[nth(row)] = first_[nth(room)];
    first_[nth(room)] = row;
  }

 private:
  bit_tree rooms_;
  std::vector<row_number> first_;
  std::vector<row_number> next_;
};

/// The same for rooms of any size: a search tree that is a heap in numbers made from those of its rows,
/// so that it is about as flat as one of random insertions (Seidel, Aragon: Randomized search trees,
/// 1996).
class room_tree {
 public:
  constexpr room_tree(offset_t /*largest_room*/, offset_t most_rows)
      : nodes_(nth(most_rows), node{}) {}

  constexpr row_number take(offset_t size) {
    row_number found = no_row;
    for (row_number n = root_; n != no_row;) {
      const bool fits = nodes_[nth(n)].room >= size;
      if (fits) found = n;
      n = fits ? nodes_[nth(n)].left : nodes_[nth(n)].right;
    }
    if (found != no_row) erase(found);
    return found;
  }
  constexpr void put(row_number row, offset_t room) {
    nodes_[nth(row)] = {.room = room, .put = ++puts_};
    row_number* link = &root_;
    while (*link != no_row && priority(*link) > priority(row)) link = &towards(*link, row);
    split(*link, row);
    *link = row;
  }

 private:
  struct node {
    offset_t room = 0;
    offset_t put = 0;  ///< when: the later, the further to the left among equal rooms
    row_number left = no_row;
    row_number right = no_row;
  };

  static constexpr std::uint64_t priority(row_number row) noexcept {
    return static_cast<std::uint64_t>(row + 1) * 0x9E37'79B9'7F4A'7C15u;
  }
  constexpr bool before(row_number a, row_number b) const {
    const node& x = nodes_[nth(a)];
    const node& y = nodes_[nth(b)];
    return x.room != y.room ? x.room < y.room : x.put > y.put;
  }
  constexpr row_number& towards(row_number n, row_number row) {
    return before(row, n) ? nodes_[nth(n)].left : nodes_[nth(n)].right;
  }

  /// What is before a row becomes its left branch, and the rest the right one.
  constexpr void split(row_number tree, row_number row) {
    row_number* left = &nodes_[nth(row)].left;
    row_number* right = &nodes_[nth(row)].right;
    while (tree != no_row) {
      if (before(tree, row)) {
        *left = tree;
        left = &nodes_[nth(tree)].right;
        tree = *left;
      } else {
        *right = tree;
        right = &nodes_[nth(tree)].left;
        tree = *right;
      }
    }
    *left = no_row;
    *right = no_row;
  }

  constexpr void erase(row_number row) {
    row_number* link = &root_;
    while (*link != row) link = &towards(*link, row);
    row_number left = nodes_[nth(row)].left;
    row_number right = nodes_[nth(row)].right;
    while (left != no_row && right != no_row) {
      if (priority(left) > priority(right)) {
        *link = left;
        link = &nodes_[nth(left)].right;
        left = *link;
      } else {
        *link = right;
        link = &nodes_[nth(right)].left;
        right = *link;
      }
    }
    *link = left != no_row ? left : right;
  }

  std::vector<node> nodes_;
  row_number root_ = no_row;
  offset_t puts_ = 0;
};

/// Rows in their order, by room: a tree whose node has the most room of the rows below it.
class room_order {
 public:
  /// Rows of equal room.
  constexpr room_order(offset_t room, offset_t rows) {
    while (leaves_ < rows) leaves_ *= 2;
    most_.assign(nth(2 * leaves_), closed);
    for (offset_t k = 0; k < rows; ++k) most_[nth(leaves_ + k)] = room;
    for (offset_t n = leaves_ - 1; n > 0; --n) most_[nth(n)] = larger_below(n);
  }

  /// The first row whose room is at least `size`, or no_row.
  constexpr row_number find(offset_t size) const {
    if (most_[1] < size) return no_row;
    offset_t n = 1;
    while (n < leaves_) n = 2 * n + (most_[nth(2 * n)] < size);
    return static_cast<row_number>(n - leaves_);
  }
  constexpr offset_t room(row_number row) const { return most_[nth(leaves_ + row)]; }
  constexpr void set(row_number row, offset_t room) {
    offset_t n = leaves_ + row;
    most_[nth(n)] = room;
    while ((n /= 2) > 0 && most_[nth(n)] != larger_below(n)) most_[nth(n)] = larger_below(n);
  }

  /// The room of a row that takes nothing more.
  static constexpr offset_t closed = -1;

 private:
  constexpr offset_t larger_below(offset_t n) const {
    return max_of(most_[nth(2 * n)], most_[nth(2 * n + 1)]);
  }

  offset_t leaves_ = 1;
  std::vector<offset_t> most_;
};

}  // namespace seqpack::detail
