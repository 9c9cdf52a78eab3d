// Options of the example.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sharding.hpp"

namespace train_text {

struct options {
  std::vector<std::string> files;
  std::string output;

  std::int64_t longest = 1024;     ///< bytes of a sequence
  std::int64_t batch = 8;          ///< sequences of a micro-batch
  std::int64_t micro_batches = 4;  ///< micro-batches of a step, of all data-parallel ranks
  std::int64_t epochs = 10;
  std::int64_t steps = 0;  ///< at most, where not 0
  std::int64_t buckets = 4096;
  double learning_rate = 0.05;
  std::int64_t repeats = 3;

  std::int64_t threads = 1;
  std::int64_t cp = 1;
  std::int64_t tp = 1;
  sharding_kind sharding = sharding_kind::zigzag;
  std::int64_t pad_each = 0;  ///< 0: the least that the sharding can cut
  std::int64_t pad_total = 1;
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
