// The forms of the passes over rows of logits: for hosts, for teams of threads and for single units.
#define BOOST_TEST_MODULE log_prob_operations
#include "seqpack/logprob/detail/log_prob_operations.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "seqpack/exec/executor.hpp"

using namespace seqpack;
using labels_of = std::vector<std::int64_t>;

namespace {

/// What `Op` does to a row by a team of one thread, in the place of what it does on the host.
template <class Op>
struct by_one_thread : Op {
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) static_cast<const Op&>(*this)(single_thread{}, first);
  }
};

/// Both forms of an operation leave the same in two arrays, apart from rounding.
template <class T>
void check_near(const std::vector<T>& found, const std::vector<T>& wanted, double allowed) {
  BOOST_TEST_REQUIRE(found.size() == wanted.size());
  for (std::size_t k = 0; k < found.size(); ++k) {
    const auto a = static_cast<double>(found[k]);
    const auto b = static_cast<double>(wanted[k]);
    BOOST_TEST(std::abs(a - b) <= allowed * (1 + std::abs(b)));
  }
}

}  // namespace

using computed_types = std::tuple<float, double>;
BOOST_AUTO_TEST_CASE_TEMPLATE(the_form_for_many_threads_does_the_same, T, computed_types) {
  using C = compute_type<T>;
  constexpr double allowed = sizeof(C) == 8 ? 1e-14 : 1e-6;
  for (const offset_t columns : {1, 3, 8, 33, 1000}) {
    std::mt19937 random(static_cast<unsigned>(columns));
    std::normal_distribution<float> value(0, 3);
    std::vector<T> logits(static_cast<std::size_t>(4 * columns));
    for (T& x : logits) x = static_cast<T>(value(random));
    // Row 1 has no label, row 2 none of this rank's columns, row 3 no derivative.
    const labels_of labels{columns / 2, ignored_label, columns + 5, 0};
    for (offset_t v = 0; v < columns; ++v) {
      logits[static_cast<std::size_t>(columns + v)] =
          static_cast<T>(std::numeric_limits<float>::quiet_NaN());
    }
    const std::vector<C> derivatives{2, 1, -3, 0};
    const matrix_view<const T> view(logits.data(), 4, columns);
    const column_range range(0, columns, columns + 10);

    std::vector<C> parts(16), found_parts(16), numbers(16), found_numbers(16);
    const auto rows = [](std::vector<C>& from) {
      const auto part = [&](offset_t k) { return row_view<C>(from.data() + 4 * k, 4); };
      return label_log_prob_rows<C>{part(0), part(1), part(2), part(3)};
    };
    const C scale = static_cast<C>(0.8);
    using scan = detail::log_prob_scan<true, T, C>;
    execute(host, scan{view, range, labels.data(), parts.data(), {}, scale});
    execute(host, by_one_thread<scan>{{view, range, labels.data(), found_parts.data(), {}, scale}});
    check_near(found_parts, parts, allowed);
    execute(host, scan{view, range, labels.data(), nullptr, rows(numbers), scale});
    execute(host,
            by_one_thread<scan>{{view, range, labels.data(), nullptr, rows(found_numbers), scale}});
    check_near(found_numbers, numbers, allowed);

    const auto forward = rows(numbers);
    const label_log_prob_rows<const C> read{forward.log_probs, forward.max, forward.sum,
                                            forward.entropy};
    std::vector<C> gradient(logits.size()), found(logits.size());
    const auto backward = [&](std::vector<C>& out) {
      const matrix_view<C> to(out.data(), 4, columns);
      return detail::log_prob_backward<T, C, C>{
          view, range, labels.data(), read, derivatives.data(), to, columns, scale};
    };
    execute(host, backward(gradient));
    execute(host, by_one_thread<detail::log_prob_backward<T, C, C>>{backward(found)});
    check_near(found, gradient, allowed);
    if (columns > 1) BOOST_TEST(gradient[static_cast<std::size_t>(columns / 2)] > 0);
    for (offset_t v = 0; v < columns; ++v) {
      BOOST_TEST(found[static_cast<std::size_t>(columns + v)] == 0);
      BOOST_TEST(found[static_cast<std::size_t>(3 * columns + v)] == 0);
    }
  }
}
