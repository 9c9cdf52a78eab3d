// A language model with attention on every grid of data-, context- and tensor-parallel ranks: an
// oracle that takes the sequences one by one says what must come out.
#define BOOST_TEST_MODULE mpi_attention_model
#include "support/attention_model.hpp"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "support/mpi.hpp"

namespace {

using namespace seqpack;
using namespace seqpack::testing;

using parallel = context_parallel<dynamic, any_sharding>;

/// This rank in a grid of data by context by tensor parallelism. Context-parallel ranks are
/// numbered against the order of the world, so that a rank of one group is none of another.
struct grid {
  offset_t data_size;
  mpi_communicator data;
  mpi_communicator cp;
  mpi_communicator tp;
  mpi_communicator alone;
  std::string name;

  grid(mpi_communicator& all, offset_t dp_size, offset_t cp_size, offset_t tp_size)
      : data_size(dp_size),
        data(all.split(all.rank().value % (cp_size * tp_size), all.rank().value)),
        cp(all.split(all.rank().value / (cp_size * tp_size) * tp_size + all.rank().value % tp_size,
                     -all.rank().value)),
        tp(all.split(all.rank().value / tp_size, all.rank().value)),
        alone(all.split(all.rank().value, 0)),
        name(std::to_string(dp_size) + " x " + std::to_string(cp_size) + " x " +
             std::to_string(tp_size)) {}

  auto groups() { return attention_groups{cp, tp}; }
  /// The same without context parallelism.
  auto without_cp() { return attention_groups{alone, tp}; }

  /// Calls f with every sharding of sequences that there is for these ranks, and its name.
  template <class F>
  void for_each_sharding(const F& f) {
    f(parallel(cp.size(), zigzag{}), "zigzag");
    if (cp.size() == 1) return;
    f(parallel(cp.size(), contiguous{}), "contiguous");
    f(parallel(cp.size(), striped{}), "striped");
  }
};

/// Calls f for every grid of all ranks.
template <class F>
void on_every_grid(mpi_communicator& all, const F& f) {
  for (offset_t dp = 1; dp <= all.size(); ++dp) {
    for (offset_t cp = 1; dp * cp <= all.size(); ++cp) {
      if (all.size() % (dp * cp) != 0) continue;
      grid g(all, dp, cp, all.size() / (dp * cp));
      f(g);
    }
  }
}

/// Calls f with every packing, under every sharding.
template <class F>
void for_each_packing(grid& g, const F& f) {
  const auto pack_all = [&](const parallel& cp, const std::string& sharding) {
    const each_multiple_of<> each{cp.divisor()};
    const total_multiple_of<> total{8 * cp.total_divisor()};
    const padding absorbing{each, total, absorb_tail{}};
    const padding with_ghost{each, total, ghost_tail{}};
    const std::string what = g.name + ", " + sharding + ", ";
    f(what + "padded bounds", packed(absorbing, cp), cp);
    f(what + "real bounds", packed_with_real_bounds(absorbing, cp), cp);
    f(what + "padded bounds, ghost", packed(with_ghost, cp), cp);
    f(what + "real bounds, ghost", packed_with_real_bounds(with_ghost, cp), cp);
    if (!cp.cuts_row()) f(what + "not packed", not_packed(cp), cp);
  };
  g.for_each_sharding(pack_all);
  if (g.cp.size() > 1) pack_all(parallel(g.cp.size(), row_contiguous{}), "row_contiguous");
}

/// The sequences of one data-parallel rank, dealt out like cards.
std::vector<tokens> dealt(const std::vector<tokens>& sequences, const mpi_communicator& data) {
  std::vector<tokens> result;
  for (auto k = static_cast<std::size_t>(data.rank().value); k < sequences.size();
       k += static_cast<std::size_t>(data.size())) {
    result.push_back(sequences[k]);
  }
  return result;
}

double sum_over(mpi_communicator& group, double x) {
  double sum = 0;
  group.all_reduce(static_cast<const double*>(&x), &sum, 1, reduction::sum);
  return sum;
}

struct frame {
  mpi_communicator all = world();
  findings found = my_findings();

  ~frame() { found.report(); }

  /// The loss of the whole text, whatever part of it this rank has, and the log-probabilities of
  /// this part.
  void check_loss(grid& g, const std::vector<tokens>& sequences) {
    const auto mine = dealt(sequences, g.data);
    const real expected = total_nll(sequences) / count_targets(sequences);
    const padding none{each_multiple_of<>{1}, total_multiple_of<>{1}, absorb_tail{}};
    const auto plain = g.without_cp().step(make_batch(mine, width_for(mine, 1)),
                                           packed(none, parallel(1)), count_targets(sequences));
    for_each_packing(g, [&](const std::string& what, const auto& packing, const parallel& cp) {
      const plain_text batch = make_batch(mine, width_for(mine, cp.divisor()));
      const auto counts = sum_counts(g.data, count_valid(host, batch, &plain_text::lengths));
      found.equal(counts.tokens, count_targets(sequences), what + ", targets");
      const auto step = g.groups().step(batch, packing, counts.tokens);
      found.equal(step.counts.tokens, count_targets(mine), what + ", targets of this rank");
      check_log_probs(found, what, mine, step);
      const double loss = sum_over(g.data, sum_over(g.cp, step.loss));
      if (!is_close(loss, expected)) found.equal(loss, expected, what + ", loss");
      check_bits(what, mine, step, plain);
      // The numbers of ranks that are powers of 2 divide without a rounding.
      if (cp.size() == 3) return;
      found.equal(step.loss * static_cast<double>(cp.size()), plain.loss, what + ", bits");
    });
  }

  /// Neither packing nor context parallelism changes a bit.
  void check_bits(const std::string& what, const std::vector<tokens>& mine,
                  const attention_step& step, const attention_step& plain) {
    bool same = true;
    for (std::size_t b = 0; b < mine.size(); ++b) {
      for (std::size_t s = 0; s < mine[b].size(); ++s) {
        same = same && step.logits_of(b, s) == plain.logits_of(b, s);
        const bool last = s + 1 == mine[b].size();
        same = same && (last || step.log_prob(b, s) == plain.log_prob(b, s));
      }
    }
    found.check(same, what + ", bits of logits and log-probabilities");
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(every_grid_gives_the_loss_of_the_oracle, frame) {
  on_every_grid(all, [&](grid& g) { check_loss(g, attention_texts()); });
}

BOOST_FIXTURE_TEST_CASE(ranks_without_sequences_take_part, frame, *at_least(2)) {
  const std::vector<tokens> two{to_tokens("A"), to_tokens("Only this one counts.")};
  on_every_grid(all, [&](grid& g) {
    if (g.data_size > 1) check_loss(g, two);
  });
}

BOOST_FIXTURE_TEST_CASE(no_sequence_sees_another, frame) {
  on_every_grid(all, [&](grid& g) {
    if (g.data_size > 1) return;
    for_each_packing(g, [&](const std::string& what, const auto& packing, const parallel& cp) {
      const offset_t width = width_for(attention_texts(), cp.divisor());
      check_isolation(found, what, g.groups(), packing, width);
      check_neighbours(found, what, g.groups(), packing, width);
    });
  });
}

BOOST_FIXTURE_TEST_CASE(what_is_behind_a_sequence_is_never_seen, frame) {
  on_every_grid(all, [&](grid& g) {
    if (g.data_size > 1) return;
    for_each_packing(g, [&](const std::string& what, const auto& packing, const parallel& cp) {
      check_padding_content(found, what, g.groups(), packing, attention_texts(),
                            width_for(attention_texts(), cp.divisor()));
    });
    const auto rows = joined(document_rows());
    g.for_each_sharding([&](const parallel& cp, const std::string& sharding) {
      const not_packed documents(cp, {end_of_document, true, true, true});
      check_padding_content(found, g.name + ", " + sharding + ", documents", g.groups(), documents,
                            rows, width_for(rows, cp.divisor()) + cp.divisor());
    });
  });
}

BOOST_FIXTURE_TEST_CASE(document_options_do_what_they_say, frame) {
  on_every_grid(all, [&](grid& g) {
    if (g.data_size > 1) return;
    g.for_each_sharding([&](const parallel& cp, const std::string& sharding) {
      const auto make = [&](const document_options& o) { return not_packed(cp, o); };
      check_document_options(found, g.name + ", " + sharding, g.groups(), make, cp.divisor());
    });
  });
}

BOOST_FIXTURE_TEST_CASE(documents_in_a_row_are_sequences_of_their_own, frame) {
  on_every_grid(all, [&](grid& g) {
    if (g.data_size > 1) return;
    for_each_packing(g, [&](const std::string& what, const auto& packing, const parallel& cp) {
      if (cp.cuts_row()) return;
      const not_packed documents(cp, {end_of_document, true, true, true});
      check_documents(found, what, g.groups(), documents, packing, cp.divisor());
    });
  });
}
