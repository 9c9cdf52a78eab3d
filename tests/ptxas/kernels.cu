// The kernels that are looked at in ptxas's report: what training calls, and the largest of each
// kind. Never run.
#include <cuda_bf16.h>

#include <cstdint>

#include "seqpack/seqpack.cuh"

using namespace seqpack;

namespace {

struct column_number {
  SEQPACK_HD offset_t operator()(offset_t column) const { return column; }
};
struct three_bytes {
  std::uint8_t a, b, c;
};

using layout_type = layout_view<context_parallel<>>;

}  // namespace

void moves(const cuda_stream<>& where, const layout_type& layout, float* f, __nv_bfloat16* h,
           std::int64_t* ids, std::int32_t* starts, three_bytes* odd) {
  pack(where, layout, shard{1}, field(batch_view<const std::int64_t>(ids, 4, 8), row_view(ids, 8)));
  pack(where, layout, all_shards,
       field(batch_view<const float>(f, 4, 8, 16), row_view<float>(f, 8, 16)),
       field(batch_view<const std::int32_t>(starts, 4, 8, 2), row_view<std::int32_t>(starts, 8, 2),
             column_number{}),
       field(left_padded_view(batch_view<const three_bytes>(odd, 4, 8), starts),
             row_view<three_bytes>(odd, 8)));
  unpack(where, layout, all_shards,
         field(row_view<const __nv_bfloat16>(h, 8, 64), batch_view<__nv_bfloat16>(h, 4, 8, 64)));
  unpack(where, layout, full_row,
         field(row_view<const float>(f, 8, 2),
               ragged_view<float, std::int32_t>(row_view<float>(f, 8, 2), starts, 4)));
  unpack_own(where, layout, shard{0},
             field(row_view<const float>(f, 8), batch_view<float>(f, 4, 8)));
  rearrange(where, layout, all_shards, shard{1},
            field(row_view<const float>(f, 8, 4), row_view<float>(f, 8, 4)));
  const row_view<std::int32_t> array(starts, 8);
  per_token(where, layout, shard{1}, position_ids(array), sequence_index(array),
            padding_mask(row_view<bool>(nullptr, 8)),
            labels(batch_view<const std::int64_t>(ids, 4, 8), array));
}

template <class T>
void log_probs(const cuda_stream<>& where, T* logits, std::int64_t* labels, compute_type<T>* out) {
  self_communicator tp;
  const matrix_view<T> rows(logits, 8, 32);
  const row_view<const std::int64_t> label_rows(labels, 8);
  const row_view<compute_type<T>> numbers(out, 8);
  const label_log_prob_rows<compute_type<T>> results{numbers, numbers, numbers, numbers};
  label_log_probs(where, tp, rows, column_range(32), label_rows, results);
  label_log_probs_backward(where, rows, column_range(32), label_rows, results, numbers, rows);
}
template void log_probs(const cuda_stream<>&, __nv_bfloat16*, std::int64_t*, float*);
template void log_probs(const cuda_stream<>&, float*, std::int64_t*, float*);

namespace {

struct text {
  std::int64_t* ids;
  float* numbers;

  auto fields() const {
    const batch_view<const float> values(numbers, 4, 8);
    return field_list(token_field(input_ids, batch_view<const std::int64_t>(ids, 4, 8)),
                      token_field(token_mask, values), token_field(advantages, values),
                      token_field(prev_logprobs, values), token_field(reference_logprobs, values));
  }
};

}  // namespace

void losses_of_rows(const cuda_stream<>& where, const packed_layout<context_parallel<>>& layout,
                    const text& batch, __nv_bfloat16* logits) {
  self_communicator alone;
  const matrix_view<__nv_bfloat16> rows(logits, 8, 32);
  const loss_options options{.counts = {.tokens = 8, .sequences = 4}};
  evaluate_loss(where, layout, alone, alone, batch, nll{}, rows, column_range(32), options, rows);
  evaluate_loss(where, layout, alone, alone, batch, clipped_policy_gradient{}, rows,
                column_range(32), options, rows);
}
