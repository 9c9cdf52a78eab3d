// Options of the example.
#pragma once

#include <cstdint>
#include <seqpack/policy/any_sharding.hpp>
#include <string>
#include <vector>

namespace train_text {

/// How the sequences of a step come into micro-batches.
enum class planning {
  balanced,  ///< as few rows as hold them, and data-parallel ranks that cost about the same
  in_order,  ///< rows of neighbours
  none       ///< so many sequences each, whatever their lengths
};

struct options {
  std::vector<std::string> files;
  std::string output;

  std::int64_t longest = 1024;     ///< bytes of a sequence
  std::int64_t batch = 8;          ///< sequences of a micro-batch that is not planned
  std::int64_t micro_batches = 4;  ///< those of a step, of all data-parallel ranks
  planning plan = planning::balanced;
  std::int64_t row = 0;  ///< tokens of a planned row; 0: room for two of the longest sequence
  std::int64_t epochs = 10;
  std::int64_t steps = 0;  ///< at most, where not 0
  std::int64_t buckets = 4096;
  double learning_rate = 0.05;
  std::int64_t repeats = 3;

  std::int64_t threads = 1;
  std::int64_t cp = 1;
  std::int64_t tp = 1;
  seqpack::sharding_kind sharding = seqpack::sharding_kind::zigzag;
  std::int64_t pad_each = 0;   ///< 0: the least that the sharding can cut
  std::int64_t pad_total = 0;  ///< the same of the row
};

/// What this build of the example can do.
struct abilities {
  bool threads = false;
  bool ranks = false;
};

/// Someone asked for help.
struct help_wanted {
  std::string text;
};

/// \throws help_wanted; std::exception for arguments that are none
options parse_options(int argc, char** argv, const abilities& able);

}  // namespace train_text
