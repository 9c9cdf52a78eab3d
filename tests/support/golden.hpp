/// \file
/// Values that a reference system produced, from tests/data.
#pragma once

#include <boost/property_tree/json_parser.hpp>
#include <boost/property_tree/ptree.hpp>
#include <optional>
#include <string>
#include <vector>

namespace golden {

using numbers = std::vector<long long>;
using tree = boost::property_tree::ptree;

/// One packed batch; token t of sequence b is the number 1000 * (b + 1) + t, and the pad is 0.
struct pack_case {
  std::string name;
  long long width;
  numbers seq_lengths;
  long long pad_each;
  long long pad_total_multiple;
  std::optional<long long> pad_total_to;
  long long cp_size;
  numbers cu_seqlens;
  numbers cu_seqlens_padded;
  long long max_seqlen;
  long long total_tokens;
  numbers packed;
  std::vector<numbers> shards;
};

/// One training configuration and the padding that it needs, or none where it is refused.
struct params_case {
  struct padding {
    long long pad_each;
    long long pad_total_multiple;
    std::optional<long long> pad_total_to;
  };
  long long tp_size;
  bool sequence_parallel;
  long long pp_size;
  long long cp_size;
  std::string fp8_recipe;  ///< empty: none
  bool hybrid_ep;
  long long make_sequence_length_divisible_by;
  long long max_seq_len_in_batch;
  std::optional<padding> expected;
};

/// Sequences to plan, and what other planners make of them. Loads are in padded tokens.
struct plan_case {
  struct parts {
    long long k;
    long long lower_bound;
    long long max_load;  ///< by largest differencing
    long long lpt_max_load;
  };
  std::string name;
  numbers lengths;
  long long each;
  long long capacity;
  long long ffd_rows;
  long long mffd_rows;
  long long lower_bound;
  long long lower_bound_l2;
  std::vector<parts> balanced;
};

inline tree read(const char* file) {
  tree document;
  boost::property_tree::read_json(std::string(SEQPACK_TEST_DATA) + "/" + file, document);
  return document;
}

/// The reader keeps every value as text.
inline long long number(const tree& node) {
  return std::stoll(node.data());
}

/// The reader turns null into the text "null".
inline std::optional<long long> optional_number(const tree& node) {
  if (node.data() == "null") return std::nullopt;
  return number(node);
}

inline numbers number_list(const tree& node) {
  numbers result;
  for (const auto& [key, entry] : node) result.push_back(number(entry));
  return result;
}

inline pack_case to_pack_case(const tree& node) {
  pack_case c{.name = node.get_child("name").data(),
              .width = number(node.get_child("width")),
              .seq_lengths = number_list(node.get_child("seq_lengths")),
              .pad_each = number(node.get_child("pad_each")),
              .pad_total_multiple = number(node.get_child("pad_total_multiple")),
              .pad_total_to = optional_number(node.get_child("pad_total_to")),
              .cp_size = number(node.get_child("cp_size")),
              .cu_seqlens = number_list(node.get_child("cu_seqlens")),
              .cu_seqlens_padded = number_list(node.get_child("cu_seqlens_padded")),
              .max_seqlen = number(node.get_child("max_seqlen")),
              .total_tokens = number(node.get_child("total_tokens")),
              .packed = number_list(node.get_child("packed")),
              .shards = {}};
  for (const auto& [key, shard] : node.get_child("shards")) c.shards.push_back(number_list(shard));
  return c;
}

inline params_case to_params_case(const tree& node) {
  std::vector<tree> column;
  for (const auto& [key, entry] : node) column.push_back(entry);
  params_case c{.tp_size = number(column.at(0)),
                .sequence_parallel = column.at(1).data() == "true",
                .pp_size = number(column.at(2)),
                .cp_size = number(column.at(3)),
                .fp8_recipe = column.at(4).data() == "null" ? "" : column.at(4).data(),
                .hybrid_ep = column.at(5).data() == "true",
                .make_sequence_length_divisible_by = number(column.at(6)),
                .max_seq_len_in_batch = number(column.at(7)),
                .expected = std::nullopt};
  if (column.at(8).data() == "error") return c;
  std::vector<tree> padding;
  for (const auto& [key, entry] : column.at(8)) padding.push_back(entry);
  c.expected = {.pad_each = number(padding.at(0)),
                .pad_total_multiple = number(padding.at(1)),
                .pad_total_to = optional_number(padding.at(2))};
  return c;
}

inline plan_case to_plan_case(const tree& node) {
  const auto value = [&](const tree& of, const char* key) { return number(of.get_child(key)); };
  plan_case c{.name = node.get_child("name").data(),
              .lengths = number_list(node.get_child("lengths")),
              .each = value(node, "each"),
              .capacity = value(node, "capacity"),
              .ffd_rows = value(node, "ffd_rows"),
              .mffd_rows = value(node, "mffd_rows"),
              .lower_bound = value(node, "lower_bound"),
              .lower_bound_l2 = value(node, "lower_bound_l2"),
              .balanced = {}};
  for (const auto& [key, part] : node.get_child("balanced")) {
    c.balanced.push_back({value(part, "k"), value(part, "lower_bound"), value(part, "max_load"),
                          value(part, "lpt_max_load")});
  }
  return c;
}

/// pack.json, 80 cases.
inline std::vector<pack_case> pack_cases() {
  std::vector<pack_case> result;
  const tree document = read("pack.json");
  for (const auto& [key, node] : document) result.push_back(to_pack_case(node));
  return result;
}

/// plans.json, 49 cases.
inline std::vector<plan_case> plan_cases() {
  std::vector<plan_case> result;
  const tree document = read("plans.json");
  for (const auto& [key, node] : document.get_child("cases")) {
    result.push_back(to_plan_case(node));
  }
  return result;
}

/// params.json, 200 rows.
inline std::vector<params_case> params_cases() {
  std::vector<params_case> result;
  const tree document = read("params.json");
  for (const auto& [key, node] : document.get_child("rows")) {
    result.push_back(to_params_case(node));
  }
  return result;
}

}  // namespace golden
