// A user-defined loss: the chosen sequence of a pair must be ahead of the rejected one by a margin.
#pragma once

#include <cstddef>
#include <seqpack/seqpack.hpp>
#include <string_view>

/// The share of pairs whose chosen sequence is ahead.
struct pairs_in_order {
  static constexpr std::string_view name = "pairs_in_order";
  static constexpr auto kind = seqpack::metric_kind::mean;
  static constexpr auto over = seqpack::count_of::pairs;
};

/// max(0, margin - (mean logp of the chosen - mean logp of the rejected))^2, per pair.
struct margin_loss {
  static constexpr auto input = seqpack::loss_input::next_token_logprobs;
  static constexpr auto level = seqpack::loss_level::sequence;
  static constexpr std::size_t sequences = 2;  // 2k and 2k + 1 of the batch
  using metrics = seqpack::metric_list<pairs_in_order>;
  double margin = 1;

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& chosen, const Sequence& rejected) const {
    const auto mean_logp = [](const Sequence& s) {
      return s.mean([&](seqpack::offset_t t) { return s.logp(t); });
    };
    const double ahead = mean_logp(chosen) - mean_logp(rejected);
    chosen.record(pairs_in_order{}, ahead > 0 ? 1 : 0);
    const double missing = ahead < margin ? margin - ahead : 0;
    // With respect to logp(t), without the weight of the token: a mean is divided by mean_divisor().
    const double of_chosen = -2 * missing / chosen.mean_divisor();
    const double of_rejected = 2 * missing / rejected.mean_divisor();
    return seqpack::differentiable(
        missing * missing, [of_chosen](seqpack::offset_t) { return of_chosen; },
        [of_rejected](seqpack::offset_t) { return of_rejected; });
  }
};

static_assert(seqpack::loss_function<margin_loss>);
