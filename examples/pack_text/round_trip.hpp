// Plans the rows of a batch, packs each into the shards of all ranks, brings it back, and checks every
// step.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <seqpack/plan/plan.hpp>
#include <seqpack/plan/plan_rows.hpp>
#include <seqpack/seqpack.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "batch.hpp"

namespace pack_text {

/// One way to pack, and what was measured of it.
struct scenario {
  std::string padding;  ///< its name
  offset_t cp = 1;
  seqpack::padding_numbers numbers;
  bool ghost_tail = false;
  offset_t row = 0;  ///< tokens that a row holds

  offset_t rows = 0;
  offset_t padded_tokens = 0;
  offset_t rows_in_order = 0;  ///< of neighbours, which were counted and not packed
  offset_t tokens_in_order = 0;
  double pack_seconds = 0;
  double unpack_seconds = 0;
  double bytes_packed = 0;
  double bytes_unpacked = 0;
};

/// The least capacity of a row that has room for so many tokens, and that a padding lets it have.
inline offset_t row_capacity(const seqpack::padding_numbers& numbers, offset_t tokens) {
  return seqpack::round_up(seqpack::round_up(tokens, numbers.each), numbers.total_multiple);
}

/// The paddings that are compared, for every context-parallel size.
/// \param tokens that a row has room for, or a few more
inline std::vector<scenario> make_scenarios(offset_t total_multiple, offset_t tokens) {
  std::vector<scenario> scenarios;
  for (const offset_t cp : {1, 2, 4, 8}) {
    // The least that the zigzag sharding can cut.
    const offset_t least = seqpack::context_parallel(cp).divisor();
    const std::string each = "each " + std::to_string(least);
    scenarios.push_back({.padding = each, .cp = cp, .numbers = {.each = least, .fixed_total = {}}});

    // FP8 products want multiples of 16: a training configuration says so, and gets the numbers.
    const seqpack::padding_numbers fp8 = seqpack::derive_padding(
        {.context_parallel = cp,
         .fp8 = seqpack::fp8_recipe::tensorwise,
         .sequence_multiple =
             std::lcm(least, seqpack::token_multiple(seqpack::fp8_recipe::tensorwise))});
    scenarios.push_back({.padding = "each " + std::to_string(fp8.each) + ", total " +
                                    std::to_string(fp8.total_multiple) + " (fp8)",
                         .cp = cp,
                         .numbers = fp8});

    // Few different totals, so that shapes repeat. The tail goes to the last sequence, or to a
    // ghost.
    const seqpack::padding_numbers total{
        .each = least, .total_multiple = total_multiple, .fixed_total = {}};
    const std::string name = each + ", total " + std::to_string(total_multiple);
    scenarios.push_back({.padding = name, .cp = cp, .numbers = total});
    scenarios.push_back(
        {.padding = name + ", ghost", .cp = cp, .numbers = total, .ghost_tail = true});

    // One shape for all rows.
    const offset_t row = row_capacity({.each = least, .fixed_total = {}}, tokens);
    scenarios.push_back({.padding = each + ", row of " + std::to_string(row),
                         .cp = cp,
                         .numbers = {.each = least, .fixed_total = row}});
  }
  for (scenario& s : scenarios) s.row = row_capacity(s.numbers, tokens);
  return scenarios;
}

/// The tensors of a round trip. Kept from call to call: whatever an earlier one left in the packed ones
/// must not matter.
struct workspace {
  std::vector<std::int32_t> ids;  // [CP, T / CP]
  std::vector<float> features;    // [CP, T / CP, feature_count]
  std::vector<std::int32_t> shard_ids;
  std::vector<float> shard_features;
  std::vector<std::int32_t> unpacked_ids;
  std::vector<float> unpacked_features;

  /// \throws seqpack::invalid_input where that takes too much memory
  void resize(offset_t tokens, offset_t per_rank) {
    text_tools::require_memory("memory for a packed batch",
                               static_cast<double>(token_bytes * (tokens + per_rank)));
    ids.resize(to_size(tokens));
    features.resize(to_size(tokens * feature_count));
    shard_ids.resize(to_size(per_rank));
    shard_features.resize(to_size(per_rank * feature_count));
  }
  /// Nothing has come back yet.
  void clear_unpacked(offset_t positions) {
    unpacked_ids.assign(to_size(positions), 0);
    unpacked_features.assign(to_size(positions * feature_count), 0);
  }
};

/// Not a byte, so that padding can be told from text.
inline constexpr std::int32_t padding_id = 256;

inline seqpack::row_view<float> feature_rows(std::vector<float>& features) {
  return {features.data(), static_cast<offset_t>(features.size()) / feature_count, feature_count};
}

/// Something that was packed did not come back as it was.
class round_trip_error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void require(bool condition, const scenario& s, const std::string& what) {
  if (condition) return;
  throw round_trip_error("cp " + std::to_string(s.cp) + ", " + s.padding + ": " + what);
}

/// The fastest of several runs, in seconds: the others were disturbed.
template <class F>
double fastest(int repeats, F&& f) {
  using clock = std::chrono::steady_clock;
  double best = 0;
  for (int k = 0; k < repeats; ++k) {
    const auto start = clock::now();
    f();
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    best = k == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

/// Each rank's shard, packed alone, must be its part of all shards.
template <class Executor, class Layout>
void check_shards(const Executor& where, const Layout& layout, const batch& text, workspace& w,
                  const scenario& s) {
  for (offset_t rank = 0; rank < s.cp; ++rank) {
    seqpack::pack(where, layout, seqpack::shard{rank},
                  seqpack::field(text.id_view(), w.shard_ids, padding_id),
                  seqpack::field(text.feature_view(), feature_rows(w.shard_features)));
    const auto part_of = [&](const auto& all, const auto& shard) {
      return std::equal(shard.begin(), shard.end(),
                        all.begin() + rank * static_cast<offset_t>(shard.size()));
    };
    require(part_of(w.ids, w.shard_ids) && part_of(w.features, w.shard_features), s,
            "the shard of rank " + std::to_string(rank) + " differs from its part of all shards");
  }
}

/// Brings the shards of a row back, each into its places of [B, S].
template <class Executor, class Layout>
void unpack_shards(const Executor& where, const Layout& layout, const batch& text, workspace& w) {
  const offset_t tokens = layout.shard_tokens();
  for (offset_t rank = 0; rank < layout.context_parallel().size(); ++rank) {
    const seqpack::row_view<const std::int32_t> ids(w.ids.data() + rank * tokens, tokens);
    const seqpack::row_view<const float> features(w.features.data() + rank * tokens * feature_count,
                                                  tokens, feature_count);
    seqpack::unpack_own(
        where, layout, seqpack::shard{rank},
        seqpack::field(ids, seqpack::batch_view(w.unpacked_ids.data(), text.size(), text.width)),
        seqpack::field(features, seqpack::batch_view(w.unpacked_features.data(), text.size(),
                                                     text.width, feature_count)));
  }
}

/// Packs one row, and brings it back.
template <class Executor, class Layout>
void run_row(const Executor& where, const Layout& layout, const batch& text, workspace& w,
             scenario& s, int repeats) {
  w.resize(layout.total_tokens(), layout.shard_tokens());

  // Two tensors of different types, payloads and pad values in one call each way.
  s.pack_seconds += fastest(repeats, [&] {
    seqpack::pack(where, layout, seqpack::all_shards,
                  seqpack::field(text.id_view(), w.ids, padding_id),
                  seqpack::field(text.feature_view(), feature_rows(w.features)));
  });
  s.unpack_seconds += fastest(repeats, [&] { unpack_shards(where, layout, text, w); });

  require(std::count(w.ids.begin(), w.ids.end(), padding_id) ==
              layout.total_tokens() - layout.real_tokens(),
          s, "the packed row holds the wrong number of padding tokens");
  check_shards(where, layout, text, w, s);

  s.padded_tokens += layout.total_tokens();
  s.bytes_packed += static_cast<double>(token_bytes * layout.total_tokens());
  s.bytes_unpacked += static_cast<double>(token_bytes * layout.real_tokens());
}

/// Plans the rows of a batch, and packs each of them.
template <class Executor, class Padding>
void run_plan(const Executor& where, const batch& text, const Padding& padding, workspace& w,
              scenario& s, int repeats) {
  const seqpack::context_parallel cp(s.cp);
  const seqpack::row_plan plan = seqpack::plan_rows(text.lengths, s.row, padding, cp);
  w.clear_unpacked(text.positions());
  for (offset_t k = 0; k < plan.rows(); ++k) {
    const auto layout = seqpack::make_layout(text.lengths, padding, cp,
                                             {.width = text.width, .order = plan.row(k)});
    run_row(where, layout, text, w, s, repeats);
  }
  // All rows together are the batch.
  require(w.unpacked_ids == text.ids, s, "the ids came back changed");
  require(w.unpacked_features == text.features, s, "the features came back changed");
  s.rows += plan.rows();

  const auto in_order = seqpack::plan_rows(text.lengths, s.row, padding, cp,
                                           {.method = seqpack::plan_method::in_order});
  s.rows_in_order += in_order.rows();
  for (const offset_t tokens :
       seqpack::summary_of(in_order, text.lengths, s.row, padding, cp).row_tokens) {
    s.tokens_in_order += tokens;
  }
}

/// Runs a scenario over one batch and adds to its measurements.
/// \throws round_trip_error where the round trip is not exact
template <class Executor>
void run_scenario(const Executor& where, const batch& text, workspace& w, scenario& s,
                  int repeats) {
  const auto with = [&](const auto& padding) { run_plan(where, text, padding, w, s, repeats); };
  if (s.ghost_tail) {
    seqpack::with_padding<seqpack::ghost_tail>(s.numbers, with);
  } else {
    seqpack::with_padding<seqpack::absorb_tail>(s.numbers, with);
  }
}

}  // namespace pack_text
