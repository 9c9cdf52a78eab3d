#include "corpus.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <utility>

#include "../text_tools/corpus.hpp"

namespace train_text {

namespace {

/// Not std::shuffle, whose order is the standard library's own.
void shuffle(std::vector<std::string>& sequences) {
  std::mt19937 random(1);
  for (std::size_t k = sequences.size(); k > 1; --k) {
    std::swap(sequences[k - 1], sequences[random() % k]);
  }
}

}  // namespace

corpus read_corpus(const std::vector<std::string>& files, std::int64_t longest) {
  std::vector<std::filesystem::path> paths(files.begin(), files.end());
  if (paths.empty()) paths = text_tools::default_files();
  corpus text;
  text.files = static_cast<std::int64_t>(paths.size());
  text_tools::paragraph_reader reader(std::move(paths), static_cast<std::size_t>(longest));
  constexpr std::size_t one_in = 10;
  for (std::size_t k = 1;; ++k) {
    auto paragraph = reader.next(1);
    if (paragraph.empty()) break;
    (k % one_in == 0 ? text.validation : text.training).push_back(std::move(paragraph.front()));
  }
  if (text.validation.empty()) {
    throw std::runtime_error("the input has " + std::to_string(text.training.size()) +
                             " paragraphs: to train and to validate takes at least 10");
  }
  shuffle(text.training);
  return text;
}

std::int64_t count_bytes(const std::vector<std::string>& sequences) {
  std::int64_t count = 0;
  for (const std::string& sequence : sequences) count += static_cast<std::int64_t>(sequence.size());
  return count;
}

double unigram_entropy(const std::vector<std::string>& sequences) {
  std::array<double, 256> counts{};
  for (const std::string& sequence : sequences) {
    for (const char c : sequence) ++counts[static_cast<unsigned char>(c)];
  }
  const auto total = static_cast<double>(count_bytes(sequences));
  double entropy = 0;
  for (const double count : counts) {
    if (count > 0) entropy -= count / total * std::log(count / total);
  }
  return entropy;
}

}  // namespace train_text
