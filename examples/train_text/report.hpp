// What the example prints and writes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <span>
#include <string>

#include "corpus.hpp"
#include "curve.hpp"

namespace train_text {

/// Sequences, bytes, and the entropy of single bytes.
void print_corpus(std::ostream& out, const corpus& text, double unigram);

/// One line for each validation, with a bar, and where the unigram's would end.
void print_curve(std::ostream& out, const loss_curve& curve, double unigram);

/// \param training, validation losses at the end, in nats per byte
void print_perplexities(std::ostream& out, double unigram, double training, double validation);

/// The grid of the ranks, where there is more than one.
struct grid_sizes {
  std::int64_t dp = 1;
  std::int64_t cp = 1;
  std::int64_t tp = 1;
};
void print_ranks(std::ostream& out, const grid_sizes& sizes);

/// How fast batches went through a step.
struct speed {
  std::string name;
  std::int64_t micro_batches = 0;  ///< of the data-parallel rank that has the most
  std::int64_t tokens = 0;         ///< padding included, of all data-parallel ranks
  std::int64_t real_tokens = 0;
  double seconds = 0;
};

/// \param repeats runs, of which the fastest was taken
void print_speeds(std::ostream& out, std::span<const speed> speeds, std::int64_t repeats);

/// Makes the folder, and opens files in it, of which nothing stays.
/// \throws std::runtime_error for a folder that cannot be written to
void check_folder(const std::filesystem::path& folder);

/// Writes loss_curve.csv and loss_curve.svg, and prints their paths.
/// \throws std::runtime_error where they cannot be written; what was there before stays then
void write_curve(std::ostream& out, const std::filesystem::path& folder, const loss_curve& curve,
                 double unigram);

}  // namespace train_text
