// The ranks as a grid: data x context x tensor parallel.
#pragma once

#include <seqpack/comm/communicator.hpp>
#include <seqpack/core/error.hpp>
#include <string>

namespace train_text {

using seqpack::offset_t;

/// The groups of one rank. Neighbours in the world share a vocabulary, since they talk the most.
template <seqpack::communicator C>
struct grid {
  C tp;        ///< ranks that have the other columns of the vocabulary
  C cp;        ///< ranks that have the other tokens of the same packed rows
  C dp;        ///< ranks that have other sequences
  C replicas;  ///< dp x cp: ranks that have the same columns, so that their gradients add up
};

/// **Collective** over the world.
/// \throws seqpack::invalid_input, on all ranks, where the world has no such grid
template <seqpack::communicator C>
grid<C> make_grid(C& world, offset_t cp, offset_t tp) {
  if (world.size() % (cp * tp) != 0) {
    seqpack::reject("number of ranks", world.size(),
                    "it must be a multiple of " + std::to_string(cp * tp) +
                        ", the context- times the tensor-parallel ranks");
  }
  const offset_t me = world.rank().value;
  const offset_t my_tp = me % tp;
  const offset_t my_cp = me / tp % cp;
  const offset_t my_dp = me / (tp * cp);
  return {.tp = world.split(my_dp * cp + my_cp, me),
          .cp = world.split(my_dp * tp + my_tp, me),
          .dp = world.split(my_cp * tp + my_tp, me),
          .replicas = world.split(my_tp, me)};
}

/// The sum over a group, on all of its ranks.
template <seqpack::communicator C>
double sum_over(C& group, double mine) {
  group.all_reduce(&mine, &mine, 1, seqpack::reduction::sum);
  return mine;
}

}  // namespace train_text
