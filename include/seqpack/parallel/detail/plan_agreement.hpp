/// \file
/// Whether all ranks have the same plan and, if not, which number differs first: a search that all
/// ranks make together, of which each sees only hashes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/detail/calls.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/math.hpp"
#include "seqpack/layout/detail/hash.hpp"
#include "seqpack/parallel/detail/majority.hpp"
#include "seqpack/plan/row_plan.hpp"

namespace seqpack::detail {

/// The numbers of a plan, one after another, and their names.
class plan_numbers {
 public:
  explicit plan_numbers(const row_plan& plan) : plan_(plan) {}

  offset_t size() const noexcept { return pieces_begin() + 3 * pieces(); }
  offset_t operator[](offset_t k) const {
    if (k < sequences_begin()) return plan_.bounds()[index(k)];
    if (k < pieces_begin()) return plan_.sequences()[index(k - sequences_begin())];
    const sequence_piece& piece = plan_.pieces()[index((k - pieces_begin()) / 3)];
    return std::array{piece.sequence, piece.first, piece.length}[part_of(k)];
  }
  std::string name(offset_t k) const {
    if (k < sequences_begin()) return entry_name("bounds", k);
    if (k < pieces_begin()) return entry_name("sequences", k - sequences_begin());
    constexpr std::array names{"sequence", "first token", "length"};
    return error_text{names[part_of(k)], " of piece ", (k - pieces_begin()) / 3}.joined();
  }

  offset_t sequences() const noexcept { return static_cast<offset_t>(plan_.sequences().size()); }
  offset_t pieces() const noexcept { return static_cast<offset_t>(plan_.pieces().size()); }

 private:
  static std::size_t index(offset_t k) noexcept { return static_cast<std::size_t>(k); }
  offset_t sequences_begin() const noexcept { return plan_.rows() + 1; }
  offset_t pieces_begin() const noexcept { return sequences_begin() + sequences(); }
  std::size_t part_of(offset_t k) const noexcept { return index((k - pieces_begin()) % 3); }

  const row_plan& plan_;
};

/// A plan in a few numbers.
struct plan_record {
  static constexpr std::size_t longest_subject = 127;
  static constexpr std::array<const char*, 4> size_names{"number of ranks", "number of rows",
                                                         "number of sequences", "number of pieces"};

  std::string subject;
  std::array<offset_t, 4> sizes{};
  std::uint64_t hash = 0;

  void write(records::writer& to) const {
    to.text(subject);
    for (const offset_t n : sizes) to.put(n);
    to.put(hash);
  }
  static plan_record read(records::reader& from) {
    plan_record r;
    r.subject = from.text("subject of the agreement", longest_subject);
    for (std::size_t k = 0; k < r.sizes.size(); ++k) r.sizes[k] = from.size(size_names[k]);
    r.hash = from.get<std::uint64_t>();
    return r;
  }
};

/// Some of a rank's numbers, or hashes of them.
struct plan_excerpt {
  static constexpr offset_t count = 24;
  std::array<std::uint64_t, count> values{};

  void write(records::writer& to) const {
    for (const std::uint64_t v : values) to.put(v);
  }
  static plan_excerpt read(records::reader& from) {
    plan_excerpt r;
    for (std::uint64_t& v : r.values) v = from.get<std::uint64_t>();
    return r;
  }
};

/// Searches for the first number in which the plans of two ranks of a group differ. **Collective**: every
/// exchange makes what remains 24 times smaller, and all ranks come to the same end.
template <communicator C>
class plan_search {
 public:
  plan_search(C& group, std::string_view operation, const plan_numbers& numbers)
      : group_(group), operation_(operation), numbers_(numbers), end_(numbers.size()) {}

  /// \returns the difference or, where the numbers are the same after all, an empty one
  difference find(std::size_t rank, std::size_t reference) {
    while (end_ - begin_ > plan_excerpt::count) {
      const std::size_t part = first_difference(hashes(), rank, reference);
      // Hashes of equal numbers do not differ, but those of different ones may be the same.
      if (part == none) return {};
      const offset_t end = cut(part + 1);
      begin_ = cut(part);
      end_ = end;
    }
    plan_excerpt mine;
    for (offset_t k = begin_; k < end_; ++k) {
      mine.values[static_cast<std::size_t>(k - begin_)] = static_cast<std::uint64_t>(numbers_[k]);
    }
    const std::size_t place = first_difference(mine, rank, reference);
    if (place == none || begin_ + static_cast<offset_t>(place) >= end_) return {};
    const auto text = [&](std::size_t r) {
      return std::to_string(static_cast<offset_t>(received_[r].values[place]));
    };
    return {numbers_.name(begin_ + static_cast<offset_t>(place)), text(rank), text(reference)};
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// What remains, in about equal parts.
  offset_t cut(std::size_t part) const noexcept {
    const offset_t size = end_ - begin_;
    const auto k = static_cast<offset_t>(part);
    return begin_ + divide(size, plan_excerpt::count) * k +
           min_of(k, remainder(size, plan_excerpt::count));
  }
  /// Of what remains, up to the end of each part.
  plan_excerpt hashes() const {
    plan_excerpt mine;
    hasher hash;
    offset_t next = begin_;
    for (std::size_t part = 0; part < mine.values.size(); ++part) {
      for (; next < cut(part + 1); ++next) hash.add(numbers_[next]);
      mine.values[part] = hash.value();
    }
    return mine;
  }
  std::size_t first_difference(const plan_excerpt& mine, std::size_t rank, std::size_t reference) {
    received_ = exchange_records(group_, operation_, mine);
    const auto& a = received_[rank].values;
    const auto found = std::mismatch(a.begin(), a.end(), received_[reference].values.begin());
    return found.first == a.end() ? none : static_cast<std::size_t>(found.first - a.begin());
  }

  C& group_;
  std::string_view operation_;
  const plan_numbers& numbers_;
  offset_t begin_ = 0;
  offset_t end_;
  std::vector<plan_excerpt> received_;
};

/// \param ranks of a step_plan; 0: a row_plan
/// \throws collective_mismatch on all ranks, where they do not have the same plan.
template <communicator C>
void require_same_plan(C& group, const row_plan& plan, offset_t ranks, std::string_view what) {
  const group_rank me = group.rank();  // throws alone, and before anything is sent
  if constexpr (!one_rank<C>) {
    constexpr std::string_view operation = "agree on a plan";
    const plan_numbers numbers(plan);
    plan_record mine;
    mine.subject = what.substr(0, plan_record::longest_subject);
    mine.sizes = {ranks, plan.rows(), numbers.sequences(), numbers.pieces()};
    hasher hash;
    for (offset_t k = 0; k < numbers.size(); ++k) hash.add(numbers[k]);
    mine.hash = hash.value();

    const std::vector<plan_record> all = exchange_records(group, operation, mine);
    const auto each = [&](const auto& get) {
      std::vector<decltype(get(mine))> values;
      for (const plan_record& r : all) values.push_back(get(r));
      return values;
    };
    require_same(group.members(), each([](const plan_record& r) { return r.subject; }),
                 [](const std::string& a, const std::string& b) {
                   return difference{"subject of the agreement", "\"" + a + "\"", "\"" + b + "\""};
                 });
    const std::string of = mine.subject.empty() ? "" : " of " + mine.subject;
    for (std::size_t k = 0; k < mine.sizes.size(); ++k) {
      require_same_number(group.members(), each([=](const plan_record& r) { return r.sizes[k]; }),
                          plan_record::size_names[k] + of);
    }
    const std::vector<std::uint64_t> all_hashes = each([](const plan_record& r) { return r.hash; });
    require_same(group.members(), all_hashes, [&](std::uint64_t found, std::uint64_t expected) {
      const auto rank_of = [&](std::uint64_t h) {
        return static_cast<std::size_t>(std::find(all_hashes.begin(), all_hashes.end(), h) -
                                        all_hashes.begin());
      };
      plan_search<C> search(group, operation, numbers);
      difference d = search.find(rank_of(found), rank_of(expected));
      if (d.name.empty()) return difference{"hash" + of, hex(found), hex(expected)};
      d.name += of;
      return d;
    });
  }
  static_cast<void>(me);
}

}  // namespace seqpack::detail
