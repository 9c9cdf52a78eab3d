// The text: sequences to train on, and some that are held out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace train_text {

struct corpus {
  std::int64_t files = 0;
  std::vector<std::string> training;    ///< in an order that mixes the files, always the same
  std::vector<std::string> validation;  ///< one sequence in ten
};

/// The paragraphs of files, or of the default ones where none is named.
/// \throws std::runtime_error for a file that cannot be read, and for less than ten paragraphs
corpus read_corpus(const std::vector<std::string>& files, std::int64_t longest);

/// Bytes of some sequences.
std::int64_t count_bytes(const std::vector<std::string>& sequences);

/// The entropy of the bytes of some sequences, each taken alone, in nats: what the best model
/// without a context reaches.
double unigram_entropy(const std::vector<std::string>& sequences);

}  // namespace train_text
