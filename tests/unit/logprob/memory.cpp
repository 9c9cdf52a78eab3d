// Memory beyond the logits: O(T), whatever the vocabulary is. Every allocation of this program is
// counted.
#define BOOST_TEST_MODULE memory
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <new>
#include <vector>

#include "seqpack/seqpack.hpp"
#include "support/train_batch.hpp"

namespace {

std::size_t allocated = 0;

// Not inlined: g++ would see memory of malloc given to delete.
void* counted(std::size_t bytes, std::size_t alignment) {
  allocated += bytes;
  void* const p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return counted(bytes, 16);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace {

using namespace seqpack;
using namespace seqpack::testing;

/// Bytes that a loss and its gradient in place take for so many tokens and columns.
std::size_t bytes_of_loss(offset_t tokens, offset_t columns, loss_pass pass) {
  plain_text text{std::vector<int>(4, static_cast<int>(tokens / 4)), tokens / 4, {}};
  text.ids.assign(static_cast<std::size_t>(tokens), 1);
  const auto layout = make_layout(text.lengths);
  std::vector<float> logits(static_cast<std::size_t>(tokens * columns), 1);
  const matrix_view<float> rows(logits.data(), tokens, columns);
  self_communicator one;
  const std::size_t before = allocated;
  const auto result = evaluate_loss(host, layout, one, one, text, nll{}, rows,
                                    column_range(columns), {.counts = {1, 1}, .pass = pass}, rows);
  BOOST_TEST(result.value() > 0);
  return allocated - before;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_loss_takes_memory_for_tokens_not_for_logits) {
  const std::size_t small = bytes_of_loss(400, 10, loss_pass::fused);
  BOOST_TEST(small > 0);
  BOOST_TEST(bytes_of_loss(400, 20000, loss_pass::fused) == small);
  // Per token: a label of 8 bytes; log-probability, maximum and sum; a derivative.
  const std::size_t large = bytes_of_loss(4000, 10, loss_pass::fused);
  BOOST_TEST(large - small == 3600 * (8 + 3 * 4 + 4));
}

BOOST_AUTO_TEST_CASE(one_sequence_after_the_other_takes_no_more) {
  const std::size_t small = bytes_of_loss(400, 10, loss_pass::per_sequence);
  BOOST_TEST(bytes_of_loss(400, 20000, loss_pass::per_sequence) == small);
}
