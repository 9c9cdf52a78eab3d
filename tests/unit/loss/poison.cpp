// What must not matter to a loss, to the last bit: padding, targets that do not count, where the
// gradient goes, what lies beside the rows, and other sequences.
#define BOOST_TEST_MODULE poison
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/logprob/next_token_logprobs.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/nll.hpp"
#include "support/loss_oracle.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr global_counts counts{.tokens = 7.5, .sequences = 3.25};
constexpr offset_t columns = 9;

/// A user's loss on logits.
struct logits_norm {
  static constexpr auto input = loss_input::logits;
  static constexpr auto level = loss_level::token;
  using metrics = no_metrics;

  template <class Sequence>
  auto operator()(const Sequence& s) const {
    const double value = s.sum([&](offset_t t) {
      double sum = 0;
      for (offset_t v = 0; v < s.columns(); ++v) sum += square(s.logits(t)[v]);
      return sum;
    });
    return differentiable(value, [s](offset_t t, double* out) {
      for (offset_t v = 0; v < s.columns(); ++v) out[v] = derivative(s.weight(t), s.logits(t)[v]);
    });
  }
  /// Nobody asks for one of weight 0.
  static double derivative(double weight, double x) { return weight == 0 ? 999 : 2 * weight * x; }
  static double square(double x) { return x * x; }
};

/// Whether the row that predicts token s + 1 of a sequence has a share in the loss.
template <class Loss>
bool has_share(const loss_sample& c, const token_ref& token) {
  const int b = static_cast<int>(token.slot);
  const int t = static_cast<int>(token.index) + 1;
  const int first = b - b % static_cast<int>(sequences_per_tuple<Loss>);
  return t < token.length && c.sample_weight(first) != 0 && c.token_weight(b, t) != 0;
}

/// Packed rows of a sample: those without a share in the loss are filled with `nothing`.
template <class Loss, class T, class View>
std::vector<T> rows_with(const loss_sample& c, const View& view, float nothing) {
  std::vector<T> rows;
  for (offset_t t = 0; t < view.total_tokens(); ++t) {
    const token_ref token = view.token_at(full_row, t);
    const bool shared = has_share<Loss>(c, token);
    for (offset_t v = 0; v < columns; ++v) {
      const auto at = c.at(static_cast<int>(token.slot), static_cast<int>(token.index));
      rows.push_back(
          shared ? static_cast<T>(static_cast<float>(c.outputs[at][static_cast<std::size_t>(v)]))
                 : static_cast<T>(nothing));
    }
  }
  return rows;
}

/// The same sample with `nothing` in the fields of tokens without a share in the loss.
template <class Loss>
loss_sample fields_with(loss_sample c, float nothing) {
  for (int b = 0; b < c.batch(); ++b) {
    for (int t = 1; t < c.length(b); ++t) {
      if (has_share<Loss>(c, {b, t - 1, c.length(b)})) continue;
      for (auto* table : {&c.previous, &c.reference, &c.advantage}) {
        (*table)[c.at(b, t)] = static_cast<double>(nothing);
      }
    }
  }
  return c;
}

/// Everything that a loss gives.
template <class T, class Metrics>
struct outcome {
  double value;
  metric_values<Metrics> metrics;
  std::vector<T> gradient;
};

template <class T, class Metrics>
bool same_bits(const outcome<T, Metrics>& a, const outcome<T, Metrics>& b) {
  return std::memcmp(&a.value, &b.value, sizeof(double)) == 0 && a.metrics == b.metrics &&
         a.gradient.size() == b.gradient.size() &&
         std::memcmp(a.gradient.data(), b.gradient.data(), a.gradient.size() * sizeof(T)) == 0;
}

template <class Layout, class Loss, class T, class G>
auto evaluate(const loss_sample& c, const Layout& layout, const Loss& loss, loss_pass pass,
              const matrix_view<T>& logits, const matrix_view<G>& gradient) {
  self_communicator cp;
  self_communicator tp;
  return evaluate_loss(host, layout, cp, tp, c, loss, logits, column_range(columns),
                       {.counts = counts, .temperature = c.temperature, .pass = pass}, gradient);
}

/// Dense rows, the gradient in memory of its own.
template <class G, class T, class Layout, class Loss>
auto evaluate_apart(const loss_sample& c, const Layout& layout, const Loss& loss, loss_pass pass,
                    const std::vector<T>& logits) {
  std::vector<G> gradient(logits.size(), static_cast<G>(12345.0F));
  const offset_t rows = layout.total_tokens();
  const auto result = evaluate(c, layout, loss, pass, matrix_view(logits.data(), rows, columns),
                               matrix_view(gradient.data(), rows, columns));
  return outcome<G, typename Loss::metrics>{result.value(), result.metrics(), gradient};
}

/// Dense rows that the gradient overwrites.
template <class T, class Layout, class Loss>
auto evaluate_in_place(const loss_sample& c, const Layout& layout, const Loss& loss, loss_pass pass,
                       std::vector<T> logits) {
  const matrix_view rows(logits.data(), layout.total_tokens(), columns);
  const auto result = evaluate(c, layout, loss, pass, rows, rows);
  return outcome<T, typename Loss::metrics>{result.value(), result.metrics(), logits};
}

/// Calls f(sample, layout, pass) for samples of several shapes, with and without a ghost that has
/// rows.
template <class F>
void for_each_run(const F& f) {
  std::mt19937 random(7);
  for (const int batch : {2, 4, 6}) {
    for (const double temperature : {1.0, 0.7}) {
      const loss_sample c = random_sample(random, batch, static_cast<int>(columns), temperature);
      for (const offset_t multiple : {1, 32}) {
        const auto layout = make_layout(
            c.lengths,
            padding{each_multiple_of<3>{}, total_multiple_of<>{3 * multiple}, ghost_tail{}});
        f(c, layout, loss_pass::fused);
        f(c, layout, loss_pass::per_sequence);
      }
    }
  }
}

/// Calls f(loss) for a loss of each kind.
template <class F>
void for_each_loss(const F& f) {
  f(nll{});
  f(clipped_policy_gradient<loss_level::sequence, kl_estimate::k3, ratio_level::sequence>(
      {.kl_penalty = 0.1}));
  f(dpo(dpo_options{.beta = 0.3, .sft_weight = 0.2, .sft_average = true}));
  f(logits_norm{});
}

/// Calls f(std::type_identity<T>) for the types of logits.
template <class F>
void for_each_logit(const F& f) {
  f(std::type_identity<double>());
  f(std::type_identity<float>());
  f(std::type_identity<_Float16>());
}

/// Rows without a share in the loss have gradient 0.
/// \returns how many elements of the others are not 0
template <class Loss, class Layout, class T>
std::ptrdiff_t check_zeros(const loss_sample& c, const Layout& layout,
                           const std::vector<T>& gradient) {
  const auto view = layout.view();
  bool all_zero = true;
  std::ptrdiff_t others = 0;
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    const bool zero = gradient[k] == T{0};
    if (!has_share<Loss>(c, view.token_at(full_row, static_cast<offset_t>(k) / columns))) {
      all_zero = all_zero && zero;
    } else if (!zero) {
      ++others;
    }
  }
  BOOST_TEST(all_zero, "the gradient of a row without a share in the loss is not 0");
  return others;
}

}  // namespace

BOOST_AUTO_TEST_CASE(rows_without_a_share_may_hold_anything) {
  for_each_logit([]<class T>(std::type_identity<T>) {
    for_each_loss([](const auto& loss) {
      using Loss = std::remove_cvref_t<decltype(loss)>;
      std::ptrdiff_t others = 0;
      for_each_run([&](const loss_sample& c, const auto& layout, loss_pass pass) {
        const auto with = [&](float nothing) {
          return evaluate_apart<T>(fields_with<Loss>(c, nothing), layout, loss, pass,
                                   rows_with<Loss, T>(c, layout.view(), nothing));
        };
        const auto plain = with(1.5F);
        BOOST_TEST(std::isfinite(plain.value));
        others += check_zeros<Loss>(c, layout, plain.gradient);
        for (const float poison : {not_a_number, infinity, -infinity}) {
          BOOST_TEST(same_bits(with(poison), plain), "rows of " << poison << " change something");
        }
      });
      BOOST_TEST(others > 100);
    });
  });
}

BOOST_AUTO_TEST_CASE(a_gradient_in_place_is_the_same) {
  for_each_logit([]<class T>(std::type_identity<T>) {
    for_each_loss([](const auto& loss) {
      using Loss = std::remove_cvref_t<decltype(loss)>;
      for_each_run([&](const loss_sample& c, const auto& layout, loss_pass pass) {
        const auto logits = rows_with<Loss, T>(c, layout.view(), not_a_number);
        BOOST_TEST(same_bits(evaluate_in_place(c, layout, loss, pass, logits),
                             evaluate_apart<T>(c, layout, loss, pass, logits)));
      });
    });
  });
}

// Arithmetic is in the logits' own type; only what is stored is narrower, or wider.
BOOST_AUTO_TEST_CASE(a_gradient_of_another_type_is_the_same_number) {
  const auto check = []<class T, class G>(std::type_identity<T>, std::type_identity<G>) {
    for_each_loss([](const auto& loss) {
      using Loss = std::remove_cvref_t<decltype(loss)>;
      for_each_run([&](const loss_sample& c, const auto& layout, loss_pass pass) {
        const auto logits = rows_with<Loss, T>(c, layout.view(), not_a_number);
        const auto own = evaluate_apart<T>(c, layout, loss, pass, logits);
        const auto other = evaluate_apart<G>(c, layout, loss, pass, logits);
        bool same = own.value == other.value && own.metrics == other.metrics;
        for (std::size_t k = 0; k < own.gradient.size(); ++k) {
          same = same && other.gradient[k] == static_cast<G>(own.gradient[k]);
        }
        BOOST_TEST(same);
      });
    });
  };
  check(std::type_identity<double>(), std::type_identity<float>());
  check(std::type_identity<float>(), std::type_identity<_Float16>());
}

namespace {

/// Rows that are a part of wider ones, `before` elements from their beginning; every other element
/// holds a mark.
template <class T>
class wide_rows {
 public:
  wide_rows(const std::vector<T>& dense, offset_t before, offset_t behind)
      : rows_(static_cast<offset_t>(dense.size()) / columns),
        before_(before),
        stride_(before + columns + behind),
        all_(static_cast<std::size_t>(rows_ * stride_), mark) {
    for (offset_t t = 0; t < rows_; ++t) {
      std::copy_n(dense.data() + t * columns, columns, view().at(t));
    }
  }

  matrix_view<T> view() { return {all_.data() + before_, rows_, columns, stride_}; }

  std::vector<T> dense() {
    std::vector<T> values;
    for (offset_t t = 0; t < rows_; ++t) {
      values.insert(values.end(), view().at(t), view().at(t) + columns);
    }
    return values;
  }
  bool marks_intact() const {
    for (std::size_t k = 0; k < all_.size(); ++k) {
      const offset_t column = static_cast<offset_t>(k) % stride_ - before_;
      if ((column < 0 || column >= columns) && all_[k] != mark) return false;
    }
    return true;
  }

 private:
  static constexpr T mark = static_cast<T>(-77.0F);

  offset_t rows_;
  offset_t before_;
  offset_t stride_;
  std::vector<T> all_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_lies_beside_the_rows_stays) {
  for_each_logit([]<class T>(std::type_identity<T>) {
    for_each_loss([](const auto& loss) {
      using Loss = std::remove_cvref_t<decltype(loss)>;
      for_each_run([&](const loss_sample& c, const auto& layout, loss_pass pass) {
        const auto dense = rows_with<Loss, T>(c, layout.view(), not_a_number);
        const auto expected = evaluate_apart<T>(c, layout, loss, pass, dense);
        const auto same = [&](const auto& result, wide_rows<T>& gradient) {
          return same_bits(outcome<T, typename Loss::metrics>{result.value(), result.metrics(),
                                                              gradient.dense()},
                           expected) &&
                 gradient.marks_intact();
        };
        wide_rows<T> logits(dense, 2, 3);
        wide_rows<T> gradient(std::vector<T>(dense.size(), T{5}), 1, 0);
        BOOST_TEST(same(evaluate(c, layout, loss, pass, logits.view(), gradient.view()), gradient));
        BOOST_TEST((logits.marks_intact() && std::memcmp(logits.dense().data(), dense.data(),
                                                         dense.size() * sizeof(T)) == 0),
                   "the logits have changed");
        BOOST_TEST(same(evaluate(c, layout, loss, pass, logits.view(), logits.view()), logits));
      });
    });
  });
}

BOOST_AUTO_TEST_CASE(scaling_stays_inside_of_the_rows) {
  for_each_logit([]<class T>(std::type_identity<T>) {
    std::vector<T> dense;
    for (offset_t k = 0; k < 5 * columns; ++k) dense.push_back(static_cast<T>(0.25F * float(k)));
    wide_rows<T> logits(dense, 2, 3);
    scale_logits(host, logits.view(), 1);
    BOOST_TEST((logits.dense() == dense));
    scale_logits(host, logits.view(), 0.5);
    for (T& x : dense) x = static_cast<T>(x + x);
    BOOST_TEST((logits.dense() == dense));
    BOOST_TEST(logits.marks_intact());
  });
}

namespace {

/// Other tokens and other logits for one sequence.
loss_sample with_another(loss_sample c, int changed, std::mt19937& random) {
  for (int s = 0; s < c.length(changed); ++s) {
    c.ids[c.at(changed, s)] = static_cast<std::int64_t>(random() % columns);
    for (real& x : c.outputs[c.at(changed, s)]) {
      x = std::uniform_real_distribution<double>(-9, 9)(random);
    }
  }
  return c;
}

/// Log-probabilities of all targets and the gradient of a loss, by the sequences of the batch.
struct per_sequence_results {
  std::vector<float> log_probs;
  std::vector<float> gradient;
};

template <class Layout>
per_sequence_results results_of(const loss_sample& c, const Layout& layout, loss_pass pass) {
  const auto logits = rows_with<nll, float>(c, layout.view(), not_a_number);
  const offset_t width = c.width - 1;
  std::vector<float> log_probs(static_cast<std::size_t>(c.batch() * width));
  self_communicator cp;
  self_communicator tp;
  std::vector<float> finite = logits;
  for (float& x : finite) x = std::isnan(x) ? 0.5F : x;
  next_token_logprobs(
      host, layout, cp, tp, batch_view(c.ids.data(), offset_t{c.batch()}, offset_t{c.width}),
      matrix_view(finite.data(), layout.total_tokens(), columns), column_range(columns),
      batch_view(log_probs.data(), offset_t{c.batch()}, width));
  return {log_probs, evaluate_apart<float>(c, layout, nll{}, pass, logits).gradient};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_sequence_does_not_see_the_others) {
  std::mt19937 random(11);
  int differences = 0;
  for_each_run([&](const loss_sample& c, const auto& layout, loss_pass pass) {
    const auto view = layout.view();
    const auto before = results_of(c, layout, pass);
    for (int changed = 0; changed < c.batch(); ++changed) {
      const auto after = results_of(with_another(c, changed, random), layout, pass);
      bool same = true;
      for (std::size_t k = 0; k < before.log_probs.size(); ++k) {
        const bool own = static_cast<int>(k) / (c.width - 1) == changed;
        if (before.log_probs[k] == after.log_probs[k]) continue;
        same = same && own;
        ++differences;
      }
      for (std::size_t k = 0; k < before.gradient.size(); ++k) {
        const auto row = static_cast<offset_t>(k) / columns;
        const bool own = view.token_at(full_row, row).slot == changed;
        if (before.gradient[k] == after.gradient[k]) continue;
        same = same && own;
        ++differences;
      }
      BOOST_TEST(same, "changing sequence " << changed << " has changed another one");
    }
  });
  BOOST_TEST(differences > 0);
}
