// Records of any bytes, as a rank that is broken or not ours may send them: refused with
// invalid_input, or records that are written again as they were read; and what ranks make of them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "input.hpp"
#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/detail/split.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/comm/subgroup.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/logprob/detail/log_prob_checks.hpp"
#include "seqpack/loss/count_valid.hpp"
#include "seqpack/parallel/detail/plan_agreement.hpp"
#include "seqpack/parallel/detail/verdict.hpp"

namespace {

using namespace seqpack;
using testing::input;
using testing::require;

detail::records::bytes bytes_of_record(input& in) {
  detail::records::bytes bytes{};
  const auto rest = in.rest();
  const std::size_t size = rest.size() < bytes.size() ? rest.size() : bytes.size();
  if (size > 0) std::memcpy(bytes.data(), rest.data(), size);
  return bytes;
}

/// What has been read once is a record: writing and reading it changes nothing more.
template <class Record>
void check(input& in) {
  const auto record = detail::records::read<Record>(bytes_of_record(in));
  const detail::records::bytes written = detail::records::write(record);
  require(detail::records::write(detail::records::read<Record>(written)) == written);
}

/// What a broadcast says to headers of three ranks: a verdict, or a mismatch that can be read.
void check_verdict(input& in) {
  const group_members members({{0}, {1}, {2}});
  std::vector<detail::broadcast_header> headers;
  const auto first = detail::records::read<detail::broadcast_header>(bytes_of_record(in));
  for (int r = 0; r < 3; ++r) headers.push_back(first);
  headers[1].what = detail::broadcast_header::brings::nothing;
  try {
    const auto& sent = detail::broadcast_verdict(members, headers).require();
    require(sent.root >= 0 && sent.root < 3);
    require(sent.shape.elements() <= max_tokens);
  } catch (const collective_mismatch& e) {
    require(e.rank().value >= 0 && e.rank().value < 3);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(std::span(data, size));
  try {
    switch (in.choice(10)) {
      case 0: check<detail::broadcast_header>(in); break;
      case 1: check_verdict(in); break;
      case 2: check<detail::split_record>(in); break;
      case 3: check<detail::call_record>(in); break;
      case 4: check<layout_fingerprint>(in); break;
      case 5: check<detail::refusal>(in); break;
      case 6: check<detail::list_record>(in); break;
      case 7: check<detail::column_record>(in); break;
      case 8: check<detail::plan_record>(in); break;
      default: check<global_counts>(in); break;
    }
  } catch (const invalid_input&) {
  }
  return 0;
}
