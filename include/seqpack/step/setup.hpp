/// \file
/// The setup of training steps: what stays the same from one to the next.
#pragma once

#include <memory>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/self.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/step/packing.hpp"

namespace seqpack {

/// What stays the same from step to step: how batches are packed, how their lengths are found, and
/// the groups.
///
///     forward_setup setup(packed(padding{each_multiple_of<8>{}}, context_parallel<2>{}),
///                         &text::lengths, cp_group, tp_group);
template <packing_policy Packing, class Lengths, communicator CP = self_communicator,
          communicator TP = self_communicator>
class forward_setup {
 public:
  /// Without other ranks.
  forward_setup(Packing packing, Lengths projection)
      : packing_(std::move(packing)),
        lengths_(std::move(projection)),
        cp_(std::make_shared<CP>()),
        tp_(std::make_shared<TP>()) {}
  /// \param cp, tp the context- and tensor-parallel groups of this rank: the rows and columns of a
  /// grid. They must outlive the setup, and the losses of its steps.
  forward_setup(Packing packing, Lengths projection, CP& cp, TP& tp)
      : packing_(std::move(packing)),
        lengths_(std::move(projection)),
        cp_(std::shared_ptr<void>(), &cp),
        tp_(std::shared_ptr<void>(), &tp) {}

  /// Without tensor-parallel ranks.
  forward_setup(Packing packing, Lengths projection, CP& cp)
      : packing_(std::move(packing)),
        lengths_(std::move(projection)),
        cp_(std::shared_ptr<void>(), &cp),
        tp_(std::make_shared<TP>()) {}

  const Packing& packing() const noexcept { return packing_; }
  const Lengths& lengths() const noexcept { return lengths_; }
  /// The number of the next step; copies of a setup count together.
  offset_t count_step() const noexcept { return ++*steps_; }
  CP& cp() const noexcept { return *cp_; }
  TP& tp() const noexcept { return *tp_; }

 private:
  Packing packing_;
  Lengths lengths_;
  std::shared_ptr<CP> cp_;
  std::shared_ptr<TP> tp_;
  std::shared_ptr<offset_t> steps_ = std::make_shared<offset_t>(0);
};

template <class P, class L>
forward_setup(P, L) -> forward_setup<P, L>;
template <class P, class L, class CP>
forward_setup(P, L, CP&) -> forward_setup<P, L, CP>;
template <class P, class L, class CP, class TP>
forward_setup(P, L, CP&, TP&) -> forward_setup<P, L, CP, TP>;

}  // namespace seqpack
