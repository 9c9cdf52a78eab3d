// After a deadline an engine may still read what was sent and write what was to be received: where
// that is memory of the library, the group is given both to keep.
#define BOOST_TEST_MODULE kept_memory
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "seqpack/comm/self.hpp"
#include "seqpack/layout/layout.hpp"
#include "seqpack/logprob/next_token_logprobs.hpp"
#include "seqpack/loss/evaluate.hpp"
#include "seqpack/loss/nll.hpp"
#include "seqpack/parallel/context_gather.hpp"
#include "support/train_batch.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

/// Rank 0 of two, whose other rank never comes.
class lonely_group : public communicator_base<lonely_group> {
 public:
  static constexpr bool on_device = false;
  template <class T>
  static constexpr bool reduces = element<T>;

  lonely_group() : communicator_base(group_members::all(2), world_rank{0}) {}

  memory_location location() const { return memory_location::host(); }
  memory_location location_of(const void*) const { return memory_location::host(); }
  void exchange(const std::byte*, std::byte*, offset_t) { give_up({}); }
  void join_broadcast(offset_t, group_rank) { give_up({}); }
  void wait() {}
  lonely_group split(std::optional<offset_t>, offset_t) { return {}; }
  std::shared_ptr<void> allocate(offset_t bytes) {
    return {::operator new(static_cast<std::size_t>(bytes)), [](void* p) { ::operator delete(p); }};
  }
  void keep(std::shared_ptr<void> memory) { kept.push_back(std::move(memory)); }
  bool keeps(const void* memory) const {
    return std::any_of(kept.begin(), kept.end(), [&](auto& k) { return k.get() == memory; });
  }

  std::vector<const void*> in_flight;  ///< where the arrays of the call begin
  std::string called;
  std::vector<std::shared_ptr<void>> kept;

 private:
  friend communicator_base<lonely_group>;
  void require_usable() const { require_member(); }
  void give_up(std::vector<const void*> arrays) {
    in_flight = std::move(arrays);
    called = operation();
    throw deadline_passed(called, std::chrono::milliseconds(5));
  }
  void gather_bytes(const void* mine, void* all, offset_t) { give_up({mine, all}); }
  void broadcast_bytes(void* data, offset_t, group_rank) { give_up({data}); }
  template <class T>
  void reduce(const T* in, T* out, offset_t, reduction) {
    give_up({in, out});
  }
  template <class T>
  void reduce_blocks(const T* in, T* out, offset_t, reduction) {
    give_up({in, out});
  }
};

/// The call gives up under that name, and the group keeps as many of its arrays.
template <class Call>
void check_kept(lonely_group& group, const Call& call, const std::string& name,
                std::vector<bool> library) {
  BOOST_CHECK_THROW(call(), deadline_passed);
  BOOST_TEST(group.called == name);
  BOOST_REQUIRE(group.in_flight.size() == library.size());
  for (std::size_t k = 0; k < library.size(); ++k) {
    BOOST_TEST(group.keeps(group.in_flight[k]) == library[k], name << ", array " << k);
  }
}

const plain_text text{{4, 4}, 4, {1, 2, 3, 4, 5, 6, 7, 0}};

auto layout_of(offset_t ranks) {
  return make_layout(text.lengths, padding{each_multiple_of<4>{}}, context_parallel{ranks});
}

}  // namespace

BOOST_AUTO_TEST_CASE(log_probabilities_over_the_vocabulary) {
  lonely_group tp;
  const std::vector<float> logits(8 * 4, 0.5f);
  const std::vector<std::int64_t> labels(8, 1);
  const log_prob_state<float> state(host, 8);
  check_kept(tp,
             [&] {
               label_log_probs(host, tp, matrix_view<const float>(logits.data(), 8, 4),
                               column_range(0, 4, 8), labels, state.rows());
             },
             "label_log_probs", {true, true});
}

BOOST_AUTO_TEST_CASE(log_probabilities_of_a_loss_over_the_tokens) {
  lonely_group cp;
  self_communicator tp;
  const auto layout = layout_of(2);
  std::vector<float> logits(static_cast<std::size_t>(layout.shard_tokens() * 8), 0.5f);
  const matrix_view<float> view(logits.data(), layout.shard_tokens(), 8);
  check_kept(cp,
             [&] {
               evaluate_loss(host, layout, cp, tp, text, nll{}, view, column_range(8),
                             {.counts = {6, 2}}, view);
             },
             "all_gather", {true, true});
}

BOOST_AUTO_TEST_CASE(log_probabilities_of_a_batch) {
  lonely_group cp;
  self_communicator tp;
  const auto layout = layout_of(2);
  const std::vector<float> logits(static_cast<std::size_t>(layout.shard_tokens() * 8), 0.5f);
  std::vector<float> out(6);
  check_kept(cp,
             [&] {
               next_token_logprobs(
                   host, layout, cp, tp, batch_view<const std::int64_t>(text.ids.data(), 2, 4),
                   matrix_view<const float>(logits.data(), layout.shard_tokens(), 8),
                   column_range(8), batch_view<float>(out.data(), 2, 3));
             },
             "next_token_logprobs", {true, true});
}

BOOST_AUTO_TEST_CASE(workspaces_of_gathers) {
  // What the caller brings, it keeps.
  const auto layout = layout_of(2);
  std::vector<float> shard_rows(static_cast<std::size_t>(layout.shard_tokens()), 1.0f);
  std::vector<float> batch(8);
  lonely_group gathers;
  check_kept(gathers,
             [&] {
               all_gather_unpack(host, gathers, layout,
                                 field(shard_rows, batch_view(batch.data(), 2, 4)));
             },
             "all_gather_unpack", {false, true});
  lonely_group scatters;
  check_kept(scatters,
             [&] {
               pack_reduce_scatter(
                   host, scatters, layout,
                   field(batch_view<const float>(batch.data(), 2, 4), row_view(shard_rows)));
             },
             "pack_reduce_scatter", {true, false});
}
