// What users call, inlined into code of their own and compiled with their warnings: no header may be the
// cause of one. It is compiled and linked; main() runs one round.
#include <optional>
#include <seqpack/draw/draw.hpp>
#include <seqpack/seqpack.hpp>
#include <vector>

using namespace seqpack;

namespace {

struct text {
  std::vector<offset_t> lengths;
  std::vector<int> ids;
  std::vector<float> numbers;

  auto fields() const {
    const auto rows = static_cast<offset_t>(lengths.size());
    const batch_view<const float> field(numbers.data(), rows, 8);
    return field_list(token_field(input_ids, batch_view(ids.data(), rows, 8)),
                      token_field(prev_logprobs, field), token_field(advantages, field),
                      token_field(reference_logprobs, field), token_field(token_mask, field));
  }
};

struct table {
  static constexpr auto attention = attention_input::packed_parameters;
  static constexpr auto output = output_kind::logits;
  std::vector<float> logits = {};

  template <class Input>
  model_output<float> operator()(const Input& input) {
    logits.assign(static_cast<std::size_t>(input.ids.rows * 16), 0.5F);
    return {matrix_view<float>(logits.data(), input.ids.rows, 16), column_range(16)};
  }
};

template <class Loss>
double train(const text& batch, const Loss& loss) {
  const std::vector<text> batches{batch};
  auto next = batches.begin();
  table model;
  no_timer timer;
  const forward_setup setup(packed(padding{each_multiple_of<4>{}}), &text::lengths);
  const global_counts counts = count_valid(host, batch, &text::lengths);
  auto step =
      forward_step(host, timer, next, model, loss, setup,
                   {.global_valid_toks = counts.tokens, .global_valid_seqs = counts.sequences});
  const auto result = step.loss(step.output.rows);
  double sum = result.value();
  result.metrics().for_each([&](auto, double value) { sum += value; });
  return sum;
}

template <class Layout>
offset_t move(const Layout& layout, std::vector<int>& ids) {
  const auto batch = layout.batch_size();
  std::vector<int> row(static_cast<std::size_t>(layout.total_tokens()));
  std::vector<int> shards(row.size());
  std::vector<int> positions(row.size());
  std::vector<int> next(row.size());
  std::vector<unsigned char> mask(row.size());
  const batch_view tokens(ids.data(), batch, 8);
  pack(host, layout, full_row, field(tokens, row, 7));
  rearrange(host, layout, full_row, all_shards, field(row, shards));
  per_token(host, layout, all_shards, position_ids(positions), labels(tokens, next),
            padding_mask(mask));
  unpack(host, layout, all_shards, field(shards, tokens, [](offset_t k) { return int(k); }));
  offset_t sum = row.front() + next.back() + positions.back() + mask.front();
  for (offset_t r = 0; r < layout.context_parallel().size(); ++r) {
    sum += real_tokens(layout, shard{r});
  }
  return sum + static_cast<offset_t>(layout_hash(layout) % 8 + draw_text(layout).size());
}

offset_t pad(const std::vector<offset_t>& lengths, std::vector<int>& ids, const padding_numbers& n,
             offset_t cp) {
  return with_padding<ghost_tail>(n, [&](const auto& padding) {
    return move(make_layout(lengths, padding, context_parallel{cp, contiguous{}}), ids);
  });
}

}  // namespace

offset_t settings(const std::vector<offset_t>& lengths, std::vector<int>& ids, offset_t x,
                  offset_t y, bool forget);

/// Numbers that are there at times, as a program gets them from its options.
offset_t settings(const std::vector<offset_t>& lengths, std::vector<int>& ids, offset_t x,
                  offset_t y, bool forget) {
  offset_t sum = 0;
  padding_numbers n = derive_padding({.tensor_parallel = x,
                                      .sequence_parallel = x > 3,
                                      .pipeline_parallel = x,
                                      .hybrid_expert_parallel = true,
                                      .sequence_multiple = 8,
                                      .longest_packed = y});
  if (forget) n.fixed_total.reset();
  if (x > 1) {
    sum += with_padding<ghost_tail>(n, [&](const auto& p) {
      return make_layout(lengths, p, context_parallel<>{2}).total_tokens();
    });
  } else {
    sum += with_padding(n, [&](const auto& p) {
      offset_t content = 0;
      for (const offset_t length : lengths) content += p.padded_length(length);
      return total_for(p, content);
    });
  }
  sum += with_padding<ghost_tail>(n, [&](const auto& p) {
    try {
      return make_layout(lengths, p, context_parallel{2, striped{}}).total_tokens();
    } catch (const invalid_input&) {
      return offset_t{-1};
    }
  });
  for (int k = 0; k < 3; ++k) {
    padding_numbers m = derive_padding({.context_parallel = y,
                                        .pipeline_parallel = x > 2 ? 2 : 1,
                                        .fp8 = fp8_recipe::mxfp8,
                                        .longest_packed = 100});
    if (k == 1) m.fixed_total = x;
    if (k == 2) m.fixed_total.reset();
    sum +=
        with_padding<ghost_tail>(m, [&](auto p) { return total_for(p, x) + p.padded_length(y); });
  }
  return sum + pad(lengths, ids, n, 1);
}

int main(int argc, char**) {
  const auto one = static_cast<offset_t>(argc);
  text batch{{5, 3}, std::vector<int>(16, 1), std::vector<float>(16, 1)};
  offset_t sum = settings(batch.lengths, batch.ids, one, one, false);

  std::vector<offset_t> found(2);
  std::vector<offset_t> starts(2);
  lengths_from_mask(host, batch_view(batch.ids.data(), 2, 8), found, starts);
  const std::vector<offset_t> order{1, 0};
  const auto adopted = from_cu_seqlens(std::vector<int>{0, 3, 8}, std::vector<int>{0, 4, 12}, 12,
                                       context_parallel{2, striped{}}, {.order = order});
  sum += move(adopted, batch.ids) + layout_part(adopted, 0, 1).total_tokens();
  sum += unpacked_layout(batch.lengths, 8).total_tokens();
  sum += from_position_ids(std::vector<int>{0, 1, 0, 1, 2}).total_tokens();
  std::vector<int> bounds(3);
  std::vector<int> owners(12);
  sum += make_packed_seq_params(host, adopted, std::span(owners), std::span(bounds)).max_seqlen_q;

  double loss = train(batch, nll{});
  loss += train(batch, dpo<>({.beta = 0.5}));
  loss += train(batch,
                clipped_policy_gradient<loss_level::token, kl_estimate::k3>({.kl_penalty = 0.5}));

  self_communicator alone;
  agree(alone, adopted);
  std::vector<float> sent(4, 1);
  sum +=
      broadcast_tensor(tensor_view(sent.data(), {2, 2}), group_rank{0}, alone).shape().elements();
  return sum > 0 && loss == loss ? 0 : 1;
}
