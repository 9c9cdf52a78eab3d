/// \file
/// What every public call on a stream costs: the one list, which the audit compares with what it
/// measures, and from which the table in docs/cuda.md is made.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace seqpack::testing {

/// Whether a call may be made in a capture.
enum class capture {
  yes,      ///< and replayed with other values, and other lengths, in the same memory
  refused,  ///< it throws: what it returns to the host is not known in a capture
  outside   ///< it makes memory that captured calls use: it belongs before the capture
};

/// What one call asks of the runtime. What is not a field is not asked for at all: no copy on the
/// device, no memory outside of stream order, no call in another stream, no event but one behind
/// each copy through pinned memory.
struct call_cost {
  std::string_view call;
  int launches = 0;
  int memsets = 0;
  int to_device_pinned = 0;    ///< copies from pinned memory of the host
  int to_device_pageable = 0;  ///< the same from pageable memory
  int to_host = 0;
  int allocations = 0;  ///< in the order of the stream
  int waits = 0;        ///< calls that the host may have to wait in
  bool polls = false;   ///< asks the stream whether it is done until it is
  capture captured = capture::yes;

  friend constexpr bool operator==(const call_cost&, const call_cost&) = default;
};

/// What a program of the audit measures.
struct audited_program {
  std::string_view source;  ///< in the folder of the tests
  std::span<const call_cost> calls;
};

namespace audited {

/// How a layout of the host gets to the device where its bounds fit into the parameters of a
/// kernel, with one allocation. It is a part of other calls.
inline constexpr int placing = 1;

inline constexpr std::array layout{
    call_cost{.call = "`make_layout` from device lengths",
              .launches = 2,
              .memsets = 1,
              .to_host = 1,
              .allocations = 1,
              .waits = 1,
              .captured = capture::refused},
    call_cost{.call = "`from_cu_seqlens`, checked",
              .launches = 2,
              .memsets = 1,
              .to_host = 1,
              .allocations = 1,
              .waits = 1,
              .captured = capture::refused},
    call_cost{.call = "`from_cu_seqlens`, deferred", .launches = 2, .memsets = 1, .allocations = 1},
    call_cost{
        .call = "`device_layout::check`", .to_host = 1, .waits = 1, .captured = capture::refused},
};

inline constexpr std::array capacity{
    call_cost{.call = "`capacity_layout`, its making",
              .memsets = 3,
              .allocations = 1,
              .captured = capture::outside},
    call_cost{.call = "`capacity_layout::build`", .launches = 2, .memsets = 1},
    call_cost{
        .call = "`capacity_layout::check`", .to_host = 1, .waits = 1, .captured = capture::refused},
};

inline constexpr std::array to_device{
    call_cost{.call = "`to_device`, `place_on`, bounds that fit into the parameters of a kernel",
              .launches = placing,
              .allocations = 1},
    call_cost{.call = "`to_device`, `place_on`, longer bounds",
              .to_device_pinned = 1,
              .allocations = 1,
              .captured = capture::outside},
};

inline constexpr std::array pack{
    call_cost{.call = "`pack`, 1 tensor", .launches = 1},
    call_cost{.call = "`pack`, 3 tensors of different types, widths and fills", .launches = 1},
    call_cost{.call = "`pack` from a ragged or left-padded batch", .launches = 1},
};
inline constexpr std::array pack_64{
    call_cost{.call = "`pack`, 64 tensors", .launches = 1},
};

inline constexpr std::array unpack{
    call_cost{.call = "`unpack`, 1 tensor", .launches = 1},
    call_cost{.call = "`unpack`, 3 tensors of different types, widths and fills", .launches = 1},
    call_cost{.call = "`unpack` to a ragged or left-padded batch", .launches = 1},
    call_cost{.call = "`unpack_own`", .launches = 1},
    call_cost{.call = "`rearrange`", .launches = 1},
};

inline constexpr std::array per_token{
    call_cost{.call = "`per_token`, any arrays", .launches = 1},
    call_cost{.call = "`real_tokens_per_sequence`", .launches = 1},
    call_cost{.call = "`lengths_from_mask`", .launches = 1},
    call_cost{.call = "`make_packed_seq_params`", .launches = 2},
    call_cost{.call = "`shard_bounds`", .launches = 1},
    call_cost{.call = "`make_gathered_key_params`", .launches = 1},
    call_cost{.call = "`ragged_offsets`", .launches = 1},
    call_cost{.call = "`document_starts`", .launches = 1},
    call_cost{.call = "`causal_mask`", .launches = 1},
    call_cost{.call = "`fill`", .launches = 1},
    call_cost{.call = "`read_back`", .to_host = 1, .waits = 1, .captured = capture::refused},
};

inline constexpr std::array log_probs{
    call_cost{.call = "`label_log_probs`", .launches = 1},
    call_cost{.call = "`label_log_probs_backward`", .launches = 1},
    call_cost{.call = "`scale_logits`", .launches = 1},
    call_cost{.call = "`next_token_logprobs`", .launches = 3, .allocations = 2},
    call_cost{.call = "`next_token_logprobs` with the entropy", .launches = 4, .allocations = 2},
    call_cost{.call = "`next_token_logprobs_backward`", .launches = 2, .allocations = 1},
};

inline constexpr std::array loss{
    call_cost{
        .call = "`evaluate_loss`, value and metrics", .launches = placing + 4, .allocations = 5},
    call_cost{
        .call = "`evaluate_loss` with the gradient", .launches = placing + 6, .allocations = 6},
    call_cost{.call = "`loss_result::value` or `metrics`, the first time",
              .to_host = 1,
              .waits = 1,
              .captured = capture::refused},
    call_cost{.call = "`loss_result::value` or `metrics`, later"},
    call_cost{.call = "`count_valid`",
              .launches = placing + 2,
              .to_host = 1,
              .allocations = 3,
              .waits = 1,
              .captured = capture::refused},
};

inline constexpr std::array forward_step{
    call_cost{.call = "`forward_step`, packed, beside the model",
              .launches = placing + 4,
              .allocations = 5},
    call_cost{.call = "`forward_step`, not packed, beside the model",
              .launches = placing + 3,
              .allocations = 4},
    call_cost{
        .call = "the loss of a step, value and metrics", .launches = placing + 4, .allocations = 5},
    call_cost{
        .call = "the loss of a step with the gradient", .launches = placing + 6, .allocations = 6},
};

// The collectives themselves are the library's that makes them; what it launches is not counted.
inline constexpr std::array groups{
    call_cost{.call = "`all_gather_unpack` with a workspace", .launches = 1},
    call_cost{.call = "`all_gather_unpack`", .launches = 1, .allocations = 1},
    call_cost{.call = "`all_gather_rows` with a workspace", .launches = 1},
    call_cost{.call = "`pack_reduce_scatter` with a workspace", .launches = 1},
    call_cost{.call = "`reduce_scatter_rows` with a workspace", .launches = 1},
    call_cost{.call = "`all_gather_unpack` with a workspace and `check_all_ranks`",
              .launches = 1,
              .to_device_pageable = 1,
              .to_host = 1,
              .waits = 3,
              .polls = true,
              .captured = capture::refused},
    call_cost{.call = "`broadcast_tensor` into memory that every rank brings",
              .to_device_pageable = 1,
              .to_host = 1,
              .waits = 3,
              .polls = true,
              .captured = capture::refused},
    call_cost{.call = "`nccl_communicator::wait`", .polls = true, .captured = capture::refused},
};

inline constexpr std::array groups_train{
    call_cost{.call = "`label_log_probs` over several ranks", .launches = 2, .allocations = 2},
    call_cost{.call = "`next_token_logprobs` over several context-parallel ranks",
              .launches = 3,
              .allocations = 3},
    call_cost{.call = "`evaluate_loss` over several context-parallel ranks, value and metrics",
              .launches = placing + 4,
              .allocations = 6},
    call_cost{.call = "`evaluate_loss` over several context-parallel ranks, with the gradient",
              .launches = placing + 6,
              .allocations = 7},
};

}  // namespace audited

inline constexpr std::array audited_programs{
    audited_program{"cuda/audit/layout.cu", audited::layout},
    audited_program{"cuda/audit/capacity.cu", audited::capacity},
    audited_program{"cuda/audit/to_device.cu", audited::to_device},
    audited_program{"cuda/audit/pack.cu", audited::pack},
    audited_program{"cuda/audit_pack_64.cu", audited::pack_64},
    audited_program{"cuda/audit/unpack.cu", audited::unpack},
    audited_program{"cuda/audit/per_token.cu", audited::per_token},
    audited_program{"cuda/audit_step/log_probs.cu", audited::log_probs},
    audited_program{"cuda/audit_step/loss.cu", audited::loss},
    audited_program{"cuda/audit_step/forward_step.cu", audited::forward_step},
    audited_program{"nccl/audit/groups.cu", audited::groups},
    audited_program{"nccl/audit/train.cu", audited::groups_train},
};

/// A row of the table.
inline std::string table_row(const call_cost& cost) {
  const auto number = [](int n) { return n == 0 ? std::string("") : std::to_string(n); };
  const auto kinds = [&](int pinned, int pageable) {
    std::string text = pinned == 0 ? "" : number(pinned) + " pinned";
    if (pinned > 0 && pageable > 0) text += ", ";
    return pageable == 0 ? text : text + number(pageable) + " pageable";
  };
  const auto waits = [&] {
    const std::string calls = number(cost.waits);
    if (!cost.polls) return calls;
    return calls.empty() ? std::string("polls") : calls + ", polls";
  };
  std::string row = "|";
  const auto add = [&](const std::string& cell) { row += cell.empty() ? " |" : " " + cell + " |"; };
  add(std::string(cost.call));
  add(number(cost.launches));
  add(number(cost.memsets));
  add(kinds(cost.to_device_pinned, cost.to_device_pageable));
  add(number(cost.to_host));
  add(number(cost.allocations));
  add(waits());
  add(cost.captured == capture::yes       ? "yes"
      : cost.captured == capture::refused ? "throws"
                                          : "before it");
  return row;
}

/// The whole table, as it stands in docs/cuda.md.
inline std::string audit_table() {
  std::string table =
      "| call | launches | memsets | copies to the device | copies to the host | allocations | "
      "waits | in a capture |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const audited_program& program : audited_programs) {
    for (const call_cost& cost : program.calls) table += table_row(cost) + "\n";
  }
  return table;
}

}  // namespace seqpack::testing
