// What log-probabilities ask of memory: one read of the logits forward; one read and one write back,
// in place. Masked rows are not touched.
#define BOOST_TEST_MODULE profile_log_probs
#include <cuda_bf16.h>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"
#include "support/kernel_profile.hpp"

using namespace seqpack;
using testing::kernel_profile;

namespace {

/// Logits of a shape, of which every `every`-th row counts.
struct shape {
  offset_t rows;
  offset_t vocabulary;
  offset_t every = 1;

  double counted_elements() const {
    return static_cast<double>((rows + every - 1) / every * vocabulary);
  }
  double elements() const { return static_cast<double>(rows * vocabulary); }
};

enum class pass { forward, backward };

template <class T>
void run(const shape& s, pass what) {
  const testing::test_stream stream;
  const auto where = stream.executor();
  std::vector<std::int64_t> labels(static_cast<std::size_t>(s.rows), ignored_label);
  for (offset_t row = 0; row < s.rows; row += s.every) {
    labels[static_cast<std::size_t>(row)] = row % s.vocabulary;
  }
  const testing::device_array<std::int64_t> device_labels(labels);
  const testing::device_array<T> logits(static_cast<std::size_t>(s.rows * s.vocabulary));
  check_cuda(cudaMemset(logits.data(), 0, logits.size() * sizeof(T)));
  const testing::device_array<float> ones(std::vector<float>(labels.size(), 1));
  const log_prob_state<float> state(where, s.rows);
  const matrix_view<T> rows(logits.data(), s.rows, s.vocabulary);
  const row_view<const std::int64_t> label_rows(device_labels.data(), s.rows);
  self_communicator tp;
  if (what == pass::forward) {
    label_log_probs(where, tp, rows, column_range(s.vocabulary), label_rows, state.rows());
  } else {
    // What the forward pass would have left: all logits are 0.
    const auto set = [&](const row_view<float>& numbers, float value) {
      const std::vector<float> values(static_cast<std::size_t>(s.rows), value);
      check_cuda(cudaMemcpy(numbers.data, values.data(), values.size() * sizeof(float),
                            cudaMemcpyHostToDevice));
    };
    stream.wait();
    set(state.rows().max, 0);
    set(state.rows().sum, static_cast<float>(s.vocabulary));
    label_log_probs_backward(where, rows, column_range(s.vocabulary), label_rows, state.rows(),
                             row_view<const float>(ones.data(), s.rows), rows);
  }
  stream.wait();
}

struct profiled {
  std::string name;
  std::function<void()> run;
  double read;     ///< bytes of logits that must be
  double written;  ///< bytes of the gradient; 0 forward
  double elements;
};

template <class T>
void add(std::vector<profiled>& calls, const std::string& type, const shape& s) {
  const std::string of = ", [" + std::to_string(s.rows) + ", " + std::to_string(s.vocabulary) +
                         "] " + type +
                         (s.every > 1 ? ", 1 row in " + std::to_string(s.every) : std::string());
  const double read = s.counted_elements() * sizeof(T);
  calls.push_back(
      {"forward" + of, [s] { run<T>(s, pass::forward); }, read, 0, s.counted_elements()});
  calls.push_back({"backward in place" + of, [s] { run<T>(s, pass::backward); }, read,
                   s.elements() * sizeof(T), s.elements()});
}

const std::vector<profiled>& all_profiled() {
  static const std::vector<profiled> calls = [] {
    std::vector<profiled> result;
    add<__nv_bfloat16>(result, "bf16", {512, 32000});
    add<__nv_bfloat16>(result, "bf16", {64, 128256});
    add<__nv_bfloat16>(result, "bf16", {64, 128256, 4});
    add<__nv_bfloat16>(result, "bf16", {2048, 4096});
    add<float>(result, "float", {256, 32000});
    return result;
  }();
  return calls;
}

struct profile_fixture : testing::needs_kernel_profile {
  profile_fixture() : needs_kernel_profile(all_profiled()) {}
};
BOOST_TEST_GLOBAL_FIXTURE(profile_fixture);

}  // namespace

BOOST_AUTO_TEST_CASE(gates) {
  std::puts(
      "| log-probabilities | sectors read, x ideal | written, x ideal | instructions an element |\n"
      "|---|--:|--:|--:|");
  for (const profiled& call : all_profiled()) {
    BOOST_TEST_CONTEXT(call.name) {
      const kernel_profile found = testing::profile_of(call.name, "rows_of_");
      BOOST_TEST(found.launches == 1);
      const double read = found.load.sectors / (call.read / 32);
      BOOST_TEST(read <= 1.02);
      BOOST_TEST(read >= 1);
      BOOST_TEST(found.load.wide_bytes >= 0.99 * call.read);
      double written = 0;
      if (call.written > 0) {
        written = found.store.sectors / (call.written / 32);
        BOOST_TEST(written <= 1.02);
        BOOST_TEST(written >= 1);
        BOOST_TEST(found.store.wide_bytes >= 0.99 * call.written);
      }
      BOOST_TEST(found.instructions / call.elements <= 16);
      BOOST_TEST(found.local == 0);
      BOOST_TEST(found.wide_divisions == 0);
      std::printf("| %s | %.3f | %s | %.1f |\n", call.name.c_str(), read,
                  written > 0 ? std::to_string(written).substr(0, 5).c_str() : "",
                  found.instructions / call.elements);
    }
  }
}
