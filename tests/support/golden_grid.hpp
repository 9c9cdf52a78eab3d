/// \file
/// The golden losses on grids of context-parallel and tensor-parallel ranks: each rank compares its
/// own rows and columns.
#pragma once

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "support/loss_grid.hpp"
#include "support/mpi.hpp"

namespace seqpack::testing {

/// The library's shardings behind one type, as a user might write one: the choice is made at run
/// time, so that every loss is compiled once.
struct chosen_sharding {
  enum kind { zigzag_kind, contiguous_kind, striped_kind, row_kind } which = zigzag_kind;

  template <class F>
  constexpr auto with(const F& f) const {
    if (which == contiguous_kind) return f(contiguous{});
    if (which == striped_kind) return f(striped{});
    if (which == row_kind) return f(row_contiguous{});
    return f(zigzag{});
  }
  constexpr bool cuts_row() const { return which == row_kind; }
  constexpr offset_t divisor(offset_t cp) const {
    return with([&](auto s) { return s.divisor(cp); });
  }
  constexpr offset_t total_divisor(offset_t cp) const { return cuts_row() ? cp : divisor(cp); }
  constexpr shard_position to_shard(offset_t token, offset_t length, offset_t cp) const {
    return with([&](auto s) { return s.to_shard(token, length, cp); });
  }
  constexpr offset_t to_token(shard_position p, offset_t length, offset_t cp) const {
    return with([&](auto s) { return s.to_token(p, length, cp); });
  }
  constexpr offset_t run(shard_position p, offset_t length, offset_t cp) const {
    return with([&](auto s) { return s.run(p, length, cp); });
  }
};

/// This rank's place: `data` grids of the same size side by side.
struct grid {
  offset_t data;
  mpi_communicator cp;
  mpi_communicator tp;
  mpi_communicator alone;
};

/// \returns nothing on a rank that is left over
inline std::optional<grid> make_grid(mpi_communicator& all, offset_t cp_size, offset_t tp_size) {
  const offset_t me = all.rank().value;
  const offset_t size = cp_size * tp_size;
  const bool in_it = me < all.size() / size * size;
  const offset_t data = me / size;
  const offset_t row = me % size / tp_size;
  const offset_t column = me % tp_size;
  const auto colour = [&](offset_t k) { return in_it ? std::optional(k) : std::nullopt; };
  grid made{data, all.split(colour(data * tp_size + column), row),
            all.split(colour(data * cp_size + row), column), all.split(me, 0)};
  if (!in_it) return std::nullopt;
  return made;
}

/// Where the columns of the ranks end: uneven shards, also empty ones.
inline std::vector<std::vector<offset_t>> column_cuts(offset_t tp_size, offset_t vocab) {
  if (tp_size == 1) return {{0, vocab}};
  if (tp_size == 2) return {{0, vocab * 5 / 12, vocab}, {0, vocab, vocab}, {0, 0, vocab}};
  return {{0, 1, vocab - 1, vocab}, {0, vocab * 7 / 12, vocab * 7 / 12, vocab}};
}

/// All checks of one grid.
class grid_checks {
 public:
  grid_checks(findings& found, grid& g) : found_(found), grid_(g) {}

  /// One case with one loss, under all packings and `shardings`.
  template <class T, class Loss, class... Sharding>
  void check(const golden::loss_case& c, const std::string& which, const Loss& loss,
             const Sharding&... shardings) {
    for (const auto& cuts : column_cuts(grid_.tp.size(), c.vocab)) {
      const auto r = static_cast<std::size_t>(grid_.tp.rank().value);
      columns_ = {cuts.at(r), cuts.at(r + 1), c.vocab};
      what_ = which + ", columns to " + std::to_string(cuts.at(1));
      // Without context parallelism and padding: what all others must be to the last bit.
      const auto alone = run_golden<T>(c, loss, packed(padding{each_multiple_of<>{1}}), c.width,
                                       grid_.alone, grid_.tp, columns_, false);
      check_golden(found_, what_ + ", reference", c, alone, columns_);
      (for_each_packing(c, context_parallel(grid_.cp.size(), shardings),
                        [&](const std::string& name, const auto& packing, offset_t width) {
                          check_packing(c, name, loss, packing, width, alone);
                        }),
       ...);
    }
  }

  /// The ranks of the grid have had the same numbers, and each token was with one of them.
  void finish() {
    check_same_bits("context-parallel", grid_.cp);
    check_same_bits("tensor-parallel", grid_.tp);
    long long rows = 0;
    grid_.cp.all_reduce(&rows_, &rows, 1, reduction::sum);
    found_.equal(rows, expected_rows_, "real tokens of all ranks");
  }

 private:
  template <class CP, class F>
  static void for_each_packing(const golden::loss_case& c, const CP& cp, const F& f) {
    const offset_t d = cp.divisor();
    const offset_t whole = cp.total_divisor();
    const each_multiple_of<> each{d};
    const total_multiple_of<> least{cp.cuts_row() ? whole : 1};
    const total_multiple_of<> multiple{8 * whole};
    offset_t content = 0;
    for (const auto length : c.seq_lengths) content += round_up(length, d);
    const fixed_total<> roomy{round_up(content, whole) + 3 * whole};
    const auto width = round_up(offset_t{c.width}, d);
    f("each", packed(padding{each, least}, cp), width);
    f("total", packed(padding{each, multiple}, cp), width);
    f("fixed, ghost, real bounds", packed_with_real_bounds(padding{each, roomy, ghost_tail{}}, cp),
      width);
    if (!cp.cuts_row()) f("not packed", not_packed(cp), width);
  }

  template <class T, class Loss, class Packing>
  void check_packing(const golden::loss_case& c, const std::string& name, const Loss& loss,
                     const Packing& packing, offset_t width,
                     const grid_result<T, typename Loss::metrics>& alone) {
    const auto ranks = static_cast<double>(grid_.cp.size());
    for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
      for (const bool normalize : {true, false}) {
        const std::string what = what_ + ", " + name +
                                 (pass == loss_pass::fused ? ", fused" : ", per sequence") +
                                 (normalize ? ", normalized" : "");
        const auto result =
            run_golden<T>(c, loss, packing, width, grid_.cp, grid_.tp, columns_, normalize, pass);
        const double loss_factor = normalize ? 1 / ranks : 1;
        const double gradient_factor = normalize ? 1 : ranks;
        check_golden(found_, what, c, result, columns_, loss_factor, gradient_factor);
        // The numbers of ranks are powers of 2: products with them are exact.
        found_.equal(result.value, alone.value * loss_factor, what + ", bits of the loss");
        found_.check(result.metrics == alone.metrics, what + ", bits of the metrics");
        check_gradient_bits(what, result.gradient, alone.gradient, static_cast<T>(gradient_factor));
        note(c, result);
      }
    }
  }

  template <class Gradient, class T>
  void check_gradient_bits(const std::string& what, const Gradient& gradient,
                           const Gradient& expected, T factor) {
    bool same = true;
    for (std::size_t b = 0; b < gradient.size(); ++b) {
      for (std::size_t s = 0; s < gradient[b].size(); ++s) {
        for (std::size_t v = 0; v < gradient[b][s].size(); ++v) {
          same = same && gradient[b][s][v] == expected[b][s][v] * factor;
        }
      }
    }
    found_.check(same, what + ", bits of the gradient");
  }

  template <class Result>
  void note(const golden::loss_case& c, const Result& result) {
    numbers_.push_back(result.value);
    result.metrics.for_each([&](std::string_view, double x) { numbers_.push_back(x); });
    rows_ += result.rows;
    for (const auto length : c.seq_lengths) expected_rows_ += length;
  }

  void check_same_bits(const std::string& name, mpi_communicator& group) {
    const auto n = static_cast<offset_t>(numbers_.size());
    std::vector<double> all(numbers_.size() * static_cast<std::size_t>(group.size()));
    group.all_gather(static_cast<const double*>(numbers_.data()), all.data(), n);
    for (offset_t r = 0; r < group.size(); ++r) {
      found_.check(
          std::memcmp(numbers_.data(), all.data() + r * n, numbers_.size() * sizeof(double)) == 0,
          "losses and metrics on " + name + " rank " + std::to_string(r));
    }
  }

  findings& found_;
  grid& grid_;
  column_range columns_;
  std::string what_;
  std::vector<double> numbers_;
  long long rows_ = 0;
  long long expected_rows_ = 0;
};

/// Calls f(checks, case, its name) for the cases of a loss, of which there are so many, on every grid
/// that the ranks can be. Those that would be there more than three times are left to tests with
/// fewer ranks.
template <class F>
void on_every_grid(const std::string& loss, std::size_t expected_cases, const F& f) {
  auto all = world();
  auto found = my_findings();
  const auto cases = golden::loss_cases();
  for (const offset_t cp_size : {1, 2, 4}) {
    for (const offset_t tp_size : {1, 2, 3}) {
      if (cp_size * tp_size > all.size() || 3 * cp_size * tp_size < all.size()) continue;
      auto made = make_grid(all, cp_size, tp_size);
      if (!made) continue;
      grid_checks checks(found, *made);
      std::size_t count = 0;
      for (std::size_t k = 0; k < cases.size(); ++k) {
        // Grids side by side are at different cases.
        const std::size_t at = (k + static_cast<std::size_t>(made->data)) % cases.size();
        if (cases[at].loss != loss) continue;
        ++count;
        f(checks, cases[at],
          "CP " + std::to_string(cp_size) + ", TP " + std::to_string(tp_size) + ", case " +
              std::to_string(at));
      }
      checks.finish();
      found.equal(count, expected_cases, "cases of " + loss);
    }
  }
  found.report();
}

/// Every kind of sharding, where there are ranks to shard over.
template <class F>
void for_each_sharding(const F& f) {
  using enum chosen_sharding::kind;
  for (const auto kind : {zigzag_kind, contiguous_kind, striped_kind, row_kind}) {
    f(chosen_sharding{kind});
  }
}

}  // namespace seqpack::testing
