// Losses by the threads of a warp or a block: what they make of a batch beside the host, and the
// same bits whatever the layout is.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/train_batch.cuh"

BOOST_AUTO_TEST_SUITE(loss_loss_sums)

using namespace seqpack;
using namespace seqpack::testing;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

/// Lengths around the numbers of threads, in rows so wide. Pairs of them, for losses of two.
policy_text make_text(offset_t width) {
  policy_text text;
  text.width = width;
  for (const int length : {0, 1, 2, 31, 32, 33, 34, 65, 256, 257, 258, 512, 513, 514}) {
    if (length <= width) text.lengths.push_back(length);
  }
  text.lengths.push_back(static_cast<int>(width));
  if (text.lengths.size() % 2 == 1) text.lengths.push_back(static_cast<int>(width) - 1);
  const auto batch = static_cast<offset_t>(text.lengths.size());
  for (offset_t k = 0; k < batch * width; ++k) {
    text.ids.push_back(k * 5 % 8);
    text.token_masks.push_back(k % 7 != 3);
    text.previous.push_back(-1.5 - 0.013 * static_cast<double>(k % 97));
    text.reference.push_back(-2.5 + 0.017 * static_cast<double>(k % 89));
    text.advantage.push_back(1 - 0.029 * static_cast<double>(k % 83));
  }
  for (offset_t b = 0; b < batch; ++b) text.sample_masks.push_back(b == 5 ? 0 : b == 2 ? 0.5F : 1);
  return text;
}

/// The same sequences in a wider table.
policy_text widened(const policy_text& text, offset_t width) {
  policy_text wide;
  wide.width = width;
  wide.lengths = text.lengths;
  wide.sample_masks = text.sample_masks;
  const auto widen = [&](auto& to, const auto& from) {
    for (offset_t b = 0; b < static_cast<offset_t>(text.lengths.size()); ++b) {
      const auto row = from.begin() + b * text.width;
      to.insert(to.end(), row, row + text.width);
      to.resize(static_cast<std::size_t>((b + 1) * width));
    }
  };
  widen(wide.ids, text.ids);
  widen(wide.token_masks, text.token_masks);
  widen(wide.previous, text.previous);
  widen(wide.reference, text.reference);
  widen(wide.advantage, text.advantage);
  return wide;
}

double log_prob(offset_t b, offset_t t) {
  return -0.001 * static_cast<double>((b * 7919 + t * 104729) % 5003) - 0.1;
}

}  // namespace

namespace loss_sums {

struct visits {
  static constexpr std::string_view name = "visits";
  static constexpr auto kind = metric_kind::sum;
};
struct calls {
  static constexpr std::string_view name = "calls";
  static constexpr auto kind = metric_kind::sum;
};
struct least {
  static constexpr std::string_view name = "least";
  static constexpr auto kind = metric_kind::min;
};

/// Sums in the functions of sums, for some targets alone, and in a derivative; records in all
/// places.
struct nested {
  static constexpr auto input = loss_input::next_token_logprobs;
  static constexpr auto level = loss_level::token;
  using metrics = metric_list<visits, calls, least>;

  template <class Sequence>
  SEQPACK_HD auto operator()(const Sequence& s) const {
    s.record(calls{}, 1);
    const double mean = s.mean([&](offset_t t) { return s.logp(t); });
    const double value = s.sum([&](offset_t t) {
      s.record(visits{}, 1);
      s.record(least{}, s.logp(t));
      if (t % 61 != 1) return s.logp(t) - mean;
      return s.logp(t) * s.sum([&](offset_t u) { return u <= t ? s.logp(u) : 0; }) +
             s.max([&](offset_t u) { return s.logp(u) * s.logp(t); }) + s.tokens();
    });
    return differentiable(value, [s, mean](offset_t t) {
      if (t % 61 != 1) return mean;
      return s.sum([&](offset_t u) { return u >= t ? s.logp(u) : mean; }) / s.mean_divisor();
    });
  }
};

}  // namespace loss_sums

namespace {

using loss_sums::nested;

/// Everything that one loss leaves; the derivatives by sequence and target.
struct outcome {
  std::vector<double> tuples;
  std::vector<double> totals;
  std::vector<double> derivatives;

  bool same_bits(const outcome& other) const {
    const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 8) == 0;
    };
    return same(tuples, other.tuples) && same(totals, other.totals) &&
           same(derivatives, other.derivatives);
  }
};

template <class E>
std::vector<double> read(const E& where, const executor_array<double>& values) {
  std::vector<double> result(static_cast<std::size_t>(values.size()));
  read_back(where, result.data(), values.data(), values.size());
  return result;
}

void put(host_t, const executor_array<double>& to, const std::vector<double>& from) {
  std::copy(from.begin(), from.end(), to.data());
}
void put(const cuda_stream<>& where, const executor_array<double>& to,
         const std::vector<double>& from) {
  check_cuda(cudaMemcpyAsync(to.data(), from.data(), from.size() * sizeof(double),
                             cudaMemcpyHostToDevice, where.stream));
}

template <class E, class L, class Text, class Layout>
outcome run(const E& where, const L& loss, const Text& text, const Layout& layout) {
  const auto view = layout.view();
  std::vector<double> rows(static_cast<std::size_t>(view.total), std::nan(""));
  for (offset_t b = 0; b < view.batch; ++b) {
    for (offset_t t = 1; t < view.length(b); ++t) {
      rows[static_cast<std::size_t>(view.row_of(all_shards, b, t - 1))] = log_prob(b, t);
    }
  }
  const executor_array<double> log_probs(where, view.total);
  put(where, log_probs, rows);
  const auto placed = place_on(where, layout);
  const auto fields = text.fields();
  const offset_t tuples = view.batch / sequences_per_tuple<L>;
  const executor_array<double> results(where, tuples * detail::tuple_row_size<L>);
  const executor_array<double> totals(where, detail::tuple_row_size<L>);
  outcome found;
  const offset_t ranks = view.cp.size();
  std::vector<std::vector<double>> of_ranks;
  using operation =
      detail::log_prob_loss_operation<std::remove_cvref_t<decltype(placed.view())>,
                                      std::remove_const_t<decltype(fields)>, L, double>;
  for (offset_t r = 0; r < ranks; ++r) {
    const executor_array<double> derivatives(where, view.shard_tokens());
    fill(where, derivatives, 0);
    execute(where, operation{{placed.view(), fields, {}},
                             loss,
                             log_probs.data(),
                             derivatives.data(),
                             shard{r},
                             0.75,
                             results.data()});
    of_ranks.push_back(read(where, derivatives));
  }
  execute(where, detail::loss_total_operation<L>{results.data(), tuples, totals.data()});
  found.tuples = read(where, results);
  found.totals = read(where, totals);
  for (offset_t b = 0; b < view.batch; ++b) {
    for (offset_t t = 1; t < view.length(b); ++t) {
      double sum = 0;
      for (offset_t r = 0; r < ranks; ++r) {
        const offset_t row = view.row_of(shard{r}, b, t - 1);
        if (row >= 0) {
          sum += of_ranks[static_cast<std::size_t>(r)][static_cast<std::size_t>(row)];
        }
      }
      found.derivatives.push_back(sum);
    }
  }
  return found;
}

void check_near(const std::vector<double>& found, const std::vector<double>& wanted) {
  BOOST_TEST_REQUIRE(found.size() == wanted.size());
  int wrong = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (found[k] == wanted[k]) continue;  // infinities too
    wrong += !(std::abs(found[k] - wanted[k]) <= 1e-11 * (1 + std::abs(wanted[k])));
  }
  BOOST_TEST(wrong == 0);
}

/// Rows of a few targets for a thread, of some, and of many.
template <class L>
void check(const L& loss) {
  for (const offset_t width : {130, 1100, 4300}) {
    BOOST_TEST_CONTEXT("width " << width) {
      const policy_text text = make_text(width);
      const device_text on_device(text);
      const test_stream stream;
      const auto where = stream.executor();
      const auto plain = make_layout(text.lengths);
      const outcome wanted = run(host, loss, text, plain);
      const outcome found = run(where, loss, on_device, plain);
      check_near(found.tuples, wanted.tuples);
      check_near(found.totals, wanted.totals);
      check_near(found.derivatives, wanted.derivatives);
      BOOST_TEST(wanted.totals[0] != 0);

      const padding padded{each_multiple_of<16>{}, total_multiple_of<128>{}, ghost_tail{}};
      // So much padding that a number of threads that followed from the layout would be another
      // one.
      const padding wide{each_multiple_of<2048>{}};
      const auto same = [&](const auto& layout) {
        return run(where, loss, on_device, layout).same_bits(found);
      };
      BOOST_TEST(same(make_layout(text.lengths, padded)));
      BOOST_TEST(same(make_layout(text.lengths, wide, context_parallel<4>{})));
      const bool contiguous_shards =
          same(make_layout(text.lengths, padded, context_parallel<2, contiguous>{}));
      BOOST_TEST(contiguous_shards);
      // However wide the table is that the sequences lie in.
      const device_text in_a_wider_table(widened(text, text.width + 5000));
      BOOST_TEST(run(where, loss, in_a_wider_table, plain).same_bits(found));
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(negative_log_likelihood) {
  check(nll{});
}
BOOST_AUTO_TEST_CASE(pairs) {
  check(dpo<reward_over::mean>({.beta = 0.5, .sft_weight = 0.3, .sft_average = true}));
}
BOOST_AUTO_TEST_CASE(policy_gradient) {
  check(clipped_policy_gradient<loss_level::sequence, kl_estimate::k3, ratio_level::sequence>(
      {.kl_penalty = 0.1}));
}
BOOST_AUTO_TEST_CASE(sums_in_sums) {
  check(nested{});
}

BOOST_AUTO_TEST_CASE(more_tuples_than_threads) {
  // Rows of all tuples are added up by threads as well.
  for (const int batch : {31, 1000, 5000}) {
    policy_text text = make_text(2);
    text.lengths.assign(static_cast<std::size_t>(batch), 2);
    const auto tokens = static_cast<std::size_t>(2 * batch);
    text.ids.assign(tokens, 1);
    text.token_masks.assign(tokens, 1);
    text.sample_masks.assign(static_cast<std::size_t>(batch), 1);
    for (auto* field : {&text.previous, &text.reference, &text.advantage})
      field->assign(tokens, -1);
    const auto layout = make_layout(text.lengths);
    const outcome wanted = run(host, nested{}, text, layout);
    const test_stream stream;
    const outcome found = run(stream.executor(), nested{}, device_text(text), layout);
    check_near(found.totals, wanted.totals);
    BOOST_TEST(wanted.totals[2] == batch);  // calls
    BOOST_TEST(found.totals[2] == batch);
  }
}

BOOST_AUTO_TEST_SUITE_END()
