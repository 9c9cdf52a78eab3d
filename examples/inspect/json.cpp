#include "json.hpp"

#include <nlohmann/json.hpp>

namespace inspect {

namespace {

using json = nlohmann::ordered_json;

json token_list(const std::vector<offset_t>& ids, const std::vector<batch_position>& tokens) {
  json list = json::array();
  for (const offset_t id : ids) {
    if (id == no_token) {
      list.push_back(nullptr);
    } else {
      const batch_position& token = tokens[to_size(id)];
      list.push_back(json::array({token.sequence, token.index}));
    }
  }
  return list;
}

json flag_list(const std::vector<std::uint8_t>& flags) {
  json list = json::array();
  for (const std::uint8_t flag : flags) list.push_back(flag != 0);
  return list;
}

json shard_object(const shard_report& shard, const std::vector<batch_position>& tokens) {
  json object;
  object["row"] = token_list(shard.row, tokens);
  object["position_ids"] = shard.position_ids;
  object["seq_idx"] = shard.seq_idx;
  object["padding_mask"] = flag_list(shard.padding_mask);
  object["labels"] = token_list(shard.labels, tokens);
  object["real_tokens_per_sequence"] = shard.real_tokens_per_sequence;
  return object;
}

}  // namespace

std::string to_json(const layout_report& report) {
  json object;
  object["cu_seqlens"] = report.cu_seqlens;
  object["cu_seqlens_padded"] = report.cu_seqlens_padded;
  object["max_seqlen"] = report.max_seqlen;
  object["total_tokens"] = report.total_tokens;
  object["has_padding"] = report.has_padding;
  object["row"] = token_list(report.row, report.tokens);
  object["shards"] = json::array();
  for (const shard_report& shard : report.shards) {
    object["shards"].push_back(shard_object(shard, report.tokens));
  }
  return object.dump() + "\n";
}

}  // namespace inspect
