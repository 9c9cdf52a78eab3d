/// \file
/// How the threads that evaluate a loss together share the targets of a sequence out.
#pragma once

#include "seqpack/core/config.hpp"
#include "seqpack/exec/team.hpp"

namespace seqpack::detail {

/// The threads that evaluate a loss together, as every copy of a sequence knows them. All of them
/// call the loss; where it visits targets, each visits some, and all get what comes of it. Inside
/// of a function of a target every thread has another target: what is visited there, each visits
/// alone.
template <team Team>
class sequence_team {
 public:
  /// \param inside of this thread, whether it is inside of a function of a target
  SEQPACK_HD sequence_team(const Team& team, bool& inside) : team_(&team), inside_(&inside) {}

  /// Whether it is this thread that records.
  SEQPACK_HD bool records() const { return *inside_ || team_->rank() == 0; }
  /// step(so far, t) for all targets t, from `neutral`. Thread k visits 1 + k, 1 + k + size, ...:
  /// what comes of it depends on the values and on the number of threads.
  template <class Step, class Combine>
  SEQPACK_HD double visit(offset_t length, double neutral, const Step& step,
                          const Combine& combine) const {
    const bool inside = *inside_;
    const offset_t first = inside ? 1 : 1 + team_->rank();
    const offset_t stride = inside ? 1 : team_->size();
    *inside_ = true;
    double result = neutral;
    for (offset_t t = first; t < length; t += stride) step(result, t);
    *inside_ = inside;
    return inside ? result : team_->reduce(result, combine);
  }

 private:
  const Team* team_;
  bool* inside_;
};

/// One thread visits the targets in their order.
template <>
class sequence_team<single_thread> {
 public:
  sequence_team() = default;
  SEQPACK_HD sequence_team(const single_thread&, bool&) {}

  SEQPACK_HD bool records() const { return true; }
  template <class Step, class Combine>
  SEQPACK_HD double visit(offset_t length, double neutral, const Step& step, const Combine&) const {
    double result = neutral;
    for (offset_t t = 1; t < length; ++t) step(result, t);
    return result;
  }
};

}  // namespace seqpack::detail
