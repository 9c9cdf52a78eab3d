// The row kernels of a softmax, against their definitions in long double.
#define BOOST_TEST_MODULE softmax
#include "seqpack/logprob/detail/softmax.hpp"

#include "seqpack/logprob/detail/softmax_host.hpp"
#include "seqpack/logprob/detail/softmax_team.hpp"
#include "seqpack/logprob/logits.hpp"

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/buffers.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;
using detail::softmax::part;

// What users have as a 16-bit type: it converts to float and from it, and does nothing else.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  explicit bfloat16(float x) {
    const auto wide = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t up = x != x ? 0 : 0x7FFF + ((wide >> 16) & 1);  // to nearest even
    bits = static_cast<std::uint16_t>((wide + up) >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

using logit_types = std::tuple<float, double, bfloat16>;

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// What a correct sum may be off by, relative to it.
template <class T>
constexpr double tolerance = std::is_same_v<T, double> ? 1e-14 : 1e-6;
/// The rounding of a result in T.
template <class T>
constexpr double rounding = std::is_same_v<T, bfloat16> ? 1.0 / 256 : tolerance<T>;

template <class T>
double number(T x) {
  return static_cast<double>(static_cast<compute_type<T>>(x));
}

template <class T>
T logit_of(double x) {
  return static_cast<T>(static_cast<compute_type<T>>(x));
}

template <class T>
long double rounded_product(T x, compute_type<T> scale) {
  const compute_type<T> y = static_cast<compute_type<T>>(x) * scale;
  return y;
}

template <class T>
std::vector<T> normal_row(std::mt19937& random, offset_t n, double mean = 0, double width = 3) {
  std::normal_distribution<double> draw(mean, width);
  std::vector<T> row(static_cast<std::size_t>(n));
  for (T& x : row) x = logit_of<T>(draw(random));
  return row;
}

template <class T>
struct definition {
  long double max = -inf;
  long double sum = 0;
  long double weighted = 0;

  definition(std::span<const T> row, compute_type<T> scale) {
    for (const T x : row) max = std::max(max, rounded_product(x, scale));
    for (const T x : row) {
      const long double y = rounded_product(x, scale);
      if (y == -inf) continue;
      sum += std::exp(y - max);
      weighted += (y - max) * std::exp(y - max);
    }
  }
};

template <class T, class C>
void check_part(const part<C>& found, const definition<T>& wanted, bool entropy = true,
                double allowed = tolerance<T>) {
  BOOST_TEST(static_cast<long double>(found.max) == wanted.max);
  BOOST_TEST(std::abs(static_cast<long double>(found.sum) - wanted.sum) <= allowed * wanted.sum);
  if (entropy) {
    BOOST_TEST(std::abs(static_cast<long double>(found.weighted) - wanted.weighted) <=
               2 * allowed * (wanted.sum - wanted.weighted));
  } else {
    BOOST_TEST(found.weighted == 0);
  }
}

template <class C>
bool same_bits(const part<C>& a, const part<C>& b) {
  return a.max == b.max && a.sum == b.sum && a.weighted == b.weighted;
}

template <bool Entropy, class T>
auto scan(std::span<const T> row, compute_type<T> scale = 1) {
  return detail::softmax::scan_row<Entropy>(row.data(), static_cast<offset_t>(row.size()), scale);
}
template <bool Entropy, class T>
auto scan_in_chunks(std::span<const T> row, compute_type<T> scale = 1) {
  return detail::softmax::scan_row<Entropy>(single_thread{}, row.data(),
                                            static_cast<offset_t>(row.size()), scale);
}

/// All ways to look at a row: op(part, whether it has `weighted`).
template <class T, class Op>
void for_each_scan(const std::vector<T>& elements, compute_type<T> scale, Op op) {
  const std::span<const T> row(elements);
  op(scan<false>(row, scale), false);
  op(scan<true>(row, scale), true);
  op(scan_in_chunks<false>(row, scale), false);
  op(scan_in_chunks<true>(row, scale), true);
}

template <class T>
void check_row(const std::vector<T>& row, compute_type<T> scale = 1) {
  const definition<T> wanted(row, scale);
  for_each_scan(row, scale,
                [&](const auto& found, bool entropy) { check_part<T>(found, wanted, entropy); });
}

/// Positions that a block, a group of lanes or the rest behind them could lose.
const std::vector<std::size_t> edges{0,   1,   15,  16,  31,  32,   33,   63,   64,  510,
                                     511, 512, 513, 543, 544, 1023, 1024, 1088, 1099};

}  // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(rows_of_many_sizes, T, logit_types) {
  std::mt19937 random(1);
  for (const offset_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 511, 512, 513, 1000, 1024, 32000}) {
    BOOST_TEST_CONTEXT("n = " << n) {
      const auto row = normal_row<T>(random, n);
      check_row(row);
      check_row(row, static_cast<compute_type<T>>(0.5));
      check_row(row, static_cast<compute_type<T>>(1 / 0.7));
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_element_is_an_empty_part, T, logit_types) {
  for_each_scan(std::vector<T>{}, 1, [](const auto& found, bool) {
    BOOST_TEST(found.max == -inf);
    BOOST_TEST(found.sum == 0);
    BOOST_TEST(found.weighted == 0);
  });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_address_does_not_matter, T, logit_types) {
  std::mt19937 random(2);
  for (const offset_t n : {5, 63, 512, 1100}) {
    const auto row = normal_row<T>(random, n);
    const auto scale = static_cast<compute_type<T>>(1 / 0.7);
    const auto wanted = scan<true>(std::span<const T>(row), scale);
    const compute_type<T> share = 1 / wanted.sum;
    std::vector<T> gradient(row.size());
    detail::softmax::gradient_row(row.data(), gradient.data(), n, scale, wanted.max, share);
    for (std::size_t k = 0; k < 64 / sizeof(T); ++k) {
      poisoned_buffer<T> moved(n, k * sizeof(T));
      std::copy(row.begin(), row.end(), moved.data());
      const std::span<const T> view = moved.span();
      BOOST_TEST(same_bits(scan<true>(view, scale), wanted));
      detail::softmax::gradient_row(moved.data(), moved.data(), n, scale, wanted.max, share);
      BOOST_TEST(std::equal(gradient.begin(), gradient.end(), moved.data(),
                            [](T a, T b) { return number(a) == number(b); }));
      BOOST_TEST(moved.guards_intact());
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(large_logits, T, logit_types) {
  std::mt19937 random(3);
  for (const double mean : {1e4, -1e4, 3e7}) {
    check_row(normal_row<T>(random, 1500, mean));
    check_row(normal_row<T>(random, 1500, mean), static_cast<compute_type<T>>(0.25));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(wide_spreads, T, logit_types) {
  std::mt19937 random(4);
  for (const double width : {30.0, 100.0, 1e4, 1e20}) {
    for (int round = 0; round < 20; ++round) check_row(normal_row<T>(random, 700, 0, width));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_largest_numbers, T, logit_types) {
  const double most = number(logit_of<T>(std::is_same_v<T, double> ? 1.7e308 : 3e38));
  std::vector<T> row(600, logit_of<T>(-most));
  check_row(row);
  row[599] = logit_of<T>(most);
  check_row(row);
  row[0] = logit_of<T>(most);
  check_row(row);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(rows_that_rise_or_fall, T, logit_types) {
  for (const double step : {1e-7, 1e-5, 1e-3, 0.1, 2.0}) {
    std::vector<T> row;
    for (int k = 0; k < 20000; ++k) row.push_back(logit_of<T>(step * k));
    check_row(row);
    std::reverse(row.begin(), row.end());
    check_row(row);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_error_does_not_grow_with_the_row, T, logit_types) {
  std::mt19937 random(5);
  constexpr offset_t n = 256 * 1024;
  check_row(normal_row<T>(random, n));
  // Equal terms: their roundings do not cancel.
  for (const double rest : {-1.2, -0.3, -7.7}) {
    std::vector<T> row(n, logit_of<T>(rest));
    row[0] = logit_of<T>(0);
    check_row(row);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(masked_logits_have_probability_0, T, logit_types) {
  std::mt19937 random(6);
  for (const offset_t n : {2, 40, 512, 1100, 3000}) {
    for (const int kept_of_10 : {0, 1, 5, 9}) {
      auto row = normal_row<T>(random, n);
      for (std::size_t k = 1; k < row.size(); ++k) {
        if (static_cast<int>(random() % 10) >= kept_of_10) row[k] = logit_of<T>(-inf);
      }
      check_row(row);
      std::reverse(row.begin(), row.end());
      check_row(row, static_cast<compute_type<T>>(1 / 0.7));
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_row_of_masked_logits_only, T, logit_types) {
  std::mt19937 random(7);
  const auto finite = scan<true>(std::span<const T>(normal_row<T>(random, 50)));
  for (const std::size_t n : {1U, 17U, 512U, 1100U}) {
    for_each_scan(std::vector<T>(n, logit_of<T>(-inf)), 1, [&](const auto& found, bool) {
      BOOST_TEST(found.max == -inf);
      BOOST_TEST(found.sum == 0);
      BOOST_TEST(found.weighted == 0);
      BOOST_TEST(same_bits(merge(finite, found), finite));
      BOOST_TEST(same_bits(merge(found, finite), finite));
      BOOST_TEST(same_bits(merge(found, found), found));
    });
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_nan_is_never_hidden, T, logit_types) {
  std::mt19937 random(8);
  const auto check = [&](std::vector<T> row, std::size_t k, double value) {
    row[k] = logit_of<T>(value);
    const auto finite = scan<true>(std::span<const T>(normal_row<T>(random, 20, 100)));
    double most = -inf;
    for (const T x : row) most = std::max(most, number(x));
    for_each_scan(row, 1, [&](const auto& found, bool) {
      BOOST_TEST(found.max == most);
      BOOST_TEST(std::isnan(found.sum));
      BOOST_TEST(std::isnan(merge(found, finite).sum));
      BOOST_TEST(std::isnan(merge(finite, found).sum));
    });
  };
  for (const double value : {not_a_number, -not_a_number}) {
    for (std::size_t n = 1; n < 40; ++n) {
      for (std::size_t k = 0; k < n; ++k) {
        check(normal_row<T>(random, static_cast<offset_t>(n)), k, value);
        check(std::vector<T>(n, logit_of<T>(-inf)), k, value);
      }
    }
    for (const std::size_t k : edges) check(normal_row<T>(random, 1100), k, value);
    for (const std::size_t k : edges) check(std::vector<T>(1100, logit_of<T>(-inf)), k, value);
  }
  for_each_scan(std::vector<T>(600, logit_of<T>(not_a_number)), 1,
                [](const auto& found, bool) { BOOST_TEST(std::isnan(found.sum)); });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(infinity_gives_no_finite_sum, T, logit_types) {
  std::mt19937 random(9);
  const auto finite = scan<true>(std::span<const T>(normal_row<T>(random, 20)));
  for (const offset_t n : {1, 2, 40, 1100}) {
    for (const std::size_t k : edges) {
      if (k >= static_cast<std::size_t>(n)) continue;
      auto row = normal_row<T>(random, n);
      row[k] = logit_of<T>(inf);
      for_each_scan(row, 1, [&](const auto& found, bool) {
        BOOST_TEST(!std::isfinite(found.sum));
        BOOST_TEST(!std::isfinite(merge(found, finite).sum));
        BOOST_TEST(!std::isfinite(merge(finite, found).sum));
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_part_whose_maximum_is_no_number) {
  const part<float> finite{2, 3, -1};
  for (const double value : {inf, not_a_number}) {
    const part<float> other{static_cast<float>(value), 1, 0};
    BOOST_TEST(!std::isfinite(merge(finite, other).sum));
    BOOST_TEST(!std::isfinite(merge(other, finite).sum));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(parts_of_a_row_in_every_order, T, logit_types) {
  std::mt19937 random(10);
  auto row = normal_row<T>(random, 1300, 0, 20);
  std::fill(row.begin() + 700, row.begin() + 900, logit_of<T>(-inf));  // a whole part
  const std::vector<std::vector<std::ptrdiff_t>> ends{
      {1300}, {1, 1300}, {600, 600, 1300}, {3, 700, 900, 1300}, {17, 700, 900, 1299, 1300}};
  const definition<T> wanted(row, 1);
  for (const auto& list : ends) {
    std::vector<part<compute_type<T>>> parts;
    std::ptrdiff_t first = 0;
    for (const std::ptrdiff_t last : list) {
      parts.push_back(scan<true>(std::span<const T>(row.begin() + first, row.begin() + last)));
      first = last;
    }
    std::vector<std::size_t> order(parts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    do {
      auto left = parts[order.front()];
      auto right = parts[order.back()];
      for (std::size_t k = 1; k < order.size(); ++k) {
        left = merge(left, parts[order[k]]);
        right = merge(parts[order[order.size() - 1 - k]], right);
      }
      check_part<T>(left, wanted, true, 2 * tolerance<T>);
      check_part<T>(right, wanted, true, 2 * tolerance<T>);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

BOOST_AUTO_TEST_CASE(exp_over_its_range) {
  double worst = 0;
  for (int k = -870000; k <= 880000; ++k) {
    const float x = std::max(static_cast<float>(k) * 1e-4F, -87.0F);
    const double wanted = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(detail::softmax::exp_of(x)) / wanted - 1));
  }
  BOOST_TEST_MESSAGE("largest relative error of exp: " << worst);
  BOOST_TEST(worst <= 3e-7);
  BOOST_TEST(detail::softmax::exp_of(0.0F) == 1);
  BOOST_TEST(detail::softmax::exp_of(-0.0F) == 1);
  BOOST_TEST(detail::softmax::exp_of(1e-30F) == 1);
  BOOST_TEST(detail::softmax::exp_of(-2.5) == std::exp(-2.5));
}

BOOST_AUTO_TEST_CASE(exp_below_its_range) {
  float most = 0;
  float least = 0;
  for (float x = -87; x > -std::numeric_limits<float>::max() / 2; x *= 1.0001F) {
    const float e = detail::softmax::exp_of(std::nextafter(x, -1e38F));
    most = std::max(most, e);
    least = std::min(least, e);
  }
  BOOST_TEST(most <= 2e-38F);
  BOOST_TEST(least == 0);
  BOOST_TEST(detail::softmax::exp_of(-std::numeric_limits<float>::max()) == 0);
  BOOST_TEST(detail::softmax::exp_of(-std::numeric_limits<float>::infinity()) == 0);
  BOOST_TEST(detail::softmax::exp_of(-inf) == 0);
}

BOOST_AUTO_TEST_CASE(exp_of_what_is_no_number) {
  int wrong = 0;
  for (const std::uint32_t sign : {0U, 0x80000000U}) {
    for (std::uint32_t payload = 1; payload < 0x800000; payload += payload < 0x1000 ? 1 : 1009) {
      const auto x = std::bit_cast<float>(sign | 0x7F800000U | payload);
      if (!std::isnan(detail::softmax::exp_of(x))) ++wrong;
    }
  }
  BOOST_TEST(wrong == 0);
  BOOST_TEST(!std::isfinite(detail::softmax::exp_of(std::numeric_limits<float>::infinity())));
  BOOST_TEST(std::isnan(detail::softmax::exp_of(not_a_number)));
  BOOST_TEST(detail::softmax::exp_of(inf) == inf);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(gradients, T, logit_types) {
  using C = compute_type<T>;
  // A rounded exponent is as much off as it is large.
  const auto near = [](double found, long double wanted, double allowed, long double exponent) {
    if (wanted == 0) return found == 0;
    const long double more = std::numeric_limits<C>::epsilon() * std::abs(exponent);
    return std::abs(found - wanted) <= (allowed + more) * std::abs(wanted);
  };
  std::mt19937 random(11);
  for (const offset_t n : {0, 1, 2, 31, 32, 33, 511, 512, 513, 1000, 32000}) {
    for (const C scale : {C(1), static_cast<C>(1 / 0.7)}) {
      auto row = normal_row<T>(random, n);
      if (n > 20) row[17] = logit_of<T>(-inf);
      const auto found = scan<false>(std::span<const T>(row), scale);
      const C max = n == 0 ? C(0) : found.max;
      const C factor = static_cast<C>(0.375);
      const C share = n == 0 ? C(0) : factor / found.sum;
      poisoned_buffer<T> out(n);
      detail::softmax::gradient_row(row.data(), out.data(), n, scale, max, share);
      BOOST_TEST(out.guards_intact());

      long double sum = 0;
      int wrong = 0;
      for (std::size_t k = 0; k < row.size(); ++k) {
        const long double y = rounded_product(row[k], scale);
        const long double wanted = -static_cast<long double>(share) * std::exp(y - max);
        const double one = detail::softmax::gradient_of(row[k], scale, max, share);
        if (!near(number(out[k]), wanted, rounding<T>, y - max)) ++wrong;
        if (!near(one, wanted, tolerance<T>, y - max)) ++wrong;
        sum += number(out[k]);
      }
      BOOST_TEST(wrong == 0);
      if (n > 0) {
        BOOST_TEST(std::abs(sum + static_cast<long double>(factor)) <=
                   2 * rounding<T> * static_cast<double>(factor));
      }

      detail::softmax::gradient_row(row.data(), row.data(), n, scale, max, share);
      BOOST_TEST(std::equal(row.begin(), row.end(), out.data(),
                            [](T a, T b) { return number(a) == number(b); }));
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_gradient_of_a_nan_is_one, T, logit_types) {
  using C = compute_type<T>;
  for (const std::size_t k : edges) {
    std::vector<T> row(1100, logit_of<T>(0.5));
    row[k] = logit_of<T>(not_a_number);
    detail::softmax::gradient_row(row.data(), row.data(), 1100, C(1), C(8), C(1));
    const auto others = std::count_if(row.begin(), row.end(), [](T x) { return number(x) < 0; });
    BOOST_TEST(others == 1099);
    BOOST_TEST(std::isnan(number(row[k])));
  }
}
