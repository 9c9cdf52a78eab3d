/// \file
/// The golden losses on one rank, under paddings of all kinds, fused and sequence by sequence.
#pragma once

#include <boost/test/unit_test.hpp>
#include <string>

#include "seqpack/comm/self.hpp"
#include "support/loss_grid.hpp"

namespace seqpack::testing {

/// Calls f(name, packing) for paddings of all kinds, and for a batch as it is.
template <class F>
void for_each_packing(const golden::loss_case& c, F&& f) {
  const each_multiple_of<> one{1};
  const each_multiple_of<> three{3};
  const total_multiple_of<> any{1};
  const total_multiple_of<> sixteen{16};
  offset_t content = 0;
  for (const auto length : c.seq_lengths) content += (length + 2) / 3 * 3;
  const fixed_total<> full{content};
  const fixed_total<> roomy{content + 5};

  f("each 1", packed(padding{one, any}));
  f("each 3", packed(padding{three, any}));
  f("each 1, total 16", packed(padding{one, sixteen}));
  f("each 3, total 16", packed(padding{three, sixteen}));
  f("each 3, total 16, ghost", packed(padding{three, sixteen, ghost_tail{}}));
  f("each 3, fixed", packed(padding{three, roomy}));
  f("each 3, fixed, ghost", packed(padding{three, roomy, ghost_tail{}}));
  f("each 3, fixed, empty ghost", packed(padding{three, full, ghost_tail{}}));
  f("each 4", packed(padding{each_multiple_of<4>{}}));
  f("not packed", not_packed());
}

/// One case on one rank. `with_loss(case, f)` calls f with its loss.
template <class T, class WithLoss>
void check_on_one_rank(findings& found, const golden::loss_case& c, const std::string& which,
                       const WithLoss& with_loss) {
  self_communicator cp;
  self_communicator tp;
  const column_range columns(c.vocab);
  with_loss(c, [&](const auto& loss) {
    for_each_packing(c, [&](const std::string& name, const auto& packing) {
      for (const loss_pass pass : {loss_pass::fused, loss_pass::per_sequence}) {
        const std::string way = pass == loss_pass::fused ? ", fused" : ", per sequence";
        // A batch may be wider than its longest sequence.
        const auto result =
            run_golden<T>(c, loss, packing, c.width + 1, cp, tp, columns, true, pass);
        check_golden(found, which + ", " + name + way, c, result, columns);
      }
    });
  });
}

/// All cases of one loss.
template <class T, class WithLoss>
void check_golden_losses(const std::string& loss, std::size_t expected_cases,
                         const WithLoss& with_loss) {
  findings found;
  std::size_t count = 0;
  for (const auto& c : golden::loss_cases()) {
    if (c.loss != loss) continue;
    check_on_one_rank<T>(found, c, "case " + std::to_string(count++), with_loss);
  }
  BOOST_TEST(count == expected_cases);
  found.report();
}

}  // namespace seqpack::testing
