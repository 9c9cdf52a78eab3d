// The program, whatever it runs on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iostream>
#include <new>
#include <seqpack/seqpack.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../text_tools/memory.hpp"
#include "../text_tools/progress.hpp"
#include "batch.hpp"
#include "corpus.hpp"
#include "curve.hpp"
#include "grid.hpp"
#include "memory.hpp"
#include "model.hpp"
#include "options.hpp"
#include "report.hpp"
#include "training.hpp"

namespace train_text {

/// What a training ends with.
struct outcome {
  loss_curve curve;
  double training = 0;  ///< losses of the last weights, in nats per byte
  double validation = 0;
  std::vector<speed> speeds;
};

/// Trains a model on the text, and measures. **Collective** over all ranks, which get the same.
template <seqpack::executor E, seqpack::communicator C>
outcome train_model(const E& where, grid<C>& ranks, const corpus& text, const options& o,
                    offset_t ranks_of_machine, bool speaks) {
  // How batches are packed and sharded: all numbers are known only now.
  const seqpack::context_parallel cp(o.cp, chosen_sharding{o.sharding});
  const seqpack::padding padding{
      seqpack::each_multiple_of<>{o.pad_each > 0 ? o.pad_each : cp.divisor()},
      seqpack::total_multiple_of<>{o.pad_total}};
  if constexpr (seqpack::host_executor<E>) {  // a device refuses by itself what it has not
    seqpack::together(ranks.tp, ranks.replicas, "memory", [&] {
      text_tools::require_memory("memory for the training",
                                 static_cast<double>(ranks_of_machine) *
                                     bytes_of_rank(text, o, padding, cp, ranks.dp.size()));
    });
  }
  const auto setup_of = [&](const auto& packing) {
    return seqpack::forward_setup(packing, &text_batch::lengths, ranks.cp, ranks.tp);
  };

  // This rank's columns of the vocabulary, which need not be as many as another's.
  const offset_t me = ranks.tp.rank().value;
  const seqpack::column_range columns(vocabulary * me / o.tp, vocabulary * (me + 1) / o.tp,
                                      vocabulary);
  const context_rows rows(o.buckets);
  const table weights = make_table(where, rows.count(), columns);
  context_model<seqpack::attention_input::packed_parameters, E> model(where, weights);
  trainer packed(where, model, setup_of(seqpack::packed(padding, cp)), ranks.replicas);

  const auto batches_of = [&](const std::vector<std::string>& sequences) {
    return make_batches(where, ranks.dp, sequences, o.batch, o.micro_batches, rows, cp.divisor());
  };
  const auto training = batches_of(text.training);
  const auto validation = batches_of(text.validation);

  outcome result;
  {
    text_tools::progress progress("steps");
    result.curve = train(where, packed, ranks.replicas, weights, training, validation, o,
                         [&](std::uintmax_t done, std::uintmax_t all) {
                           if (speaks) progress.show(done, all);
                         });
  }
  result.training = mean_loss(packed, training);
  result.validation = *result.curve.back().validation;

  // The same model through the same batches as they are, [B, S].
  context_model<seqpack::attention_input::mask, E> padded_model(where, weights);
  trainer padded(where, padded_model, setup_of(seqpack::not_packed(cp)), ranks.replicas);
  const auto some = std::span(training).first(std::min(training.size(), std::size_t{8}));
  result.speeds = {measure(where, "packed", packed, ranks, weights, some, o.repeats),
                   measure(where, "[B, S]", padded, ranks, weights, some, o.repeats)};
  return result;
}

/// The whole program. **Collective** over the world, whose rank 0 prints.
/// \param ranks_of_machine the ranks that share the memory of this one's machine
/// \returns the exit status: 1 where all epochs are over and the model has not learned
template <seqpack::executor E, seqpack::communicator C>
int run(const E& where, C& world, const options& o, offset_t ranks_of_machine = 1) {
  const bool speaks = world.rank().value == 0;
  grid<C> ranks = make_grid(world, o.cp, o.tp);
  // Rank 0 writes at the end. What it cannot write is an error on all, before there is work to lose.
  seqpack::together(ranks.tp, ranks.replicas, "output", [&] {
    if (speaks) check_folder(o.output);
  });
  // A file that one rank cannot read is an error on all.
  const corpus text = seqpack::together(ranks.tp, ranks.replicas, "reading the text",
                                        [&] { return read_corpus(o.files, o.longest); });
  const double unigram = unigram_entropy(text.training);
  if (speaks) print_corpus(std::cout, text, unigram);

  const outcome result = train_model(where, ranks, text, o, ranks_of_machine, speaks);
  const bool learned = std::exp(result.validation) < 0.8 * std::exp(unigram);
  const bool all_epochs = result.curve.back().epoch == o.epochs;  // --steps may end it before
  const int status = learned || !all_epochs ? 0 : 1;
  if (!speaks) return status;

  print_curve(std::cout, result.curve, unigram);
  print_perplexities(std::cout, unigram, result.training, result.validation);
  print_ranks(std::cout, {.dp = ranks.dp.size(), .cp = o.cp, .tp = o.tp});
  print_speeds(std::cout, result.speeds, o.repeats);
  write_curve(std::cout, o.output, result.curve, unigram);
  if (!learned && !all_epochs) std::cout << "\nToo few steps to have learned.\n";
  if (!std::cout.flush()) throw std::runtime_error("cannot write to standard output");
  if (status != 0) {
    std::cerr
        << "seqpack-train-text: the model has not learned: its perplexity on held-out text must "
           "be below 0.8 x the unigram's\n";
  }
  return status;
}

/// The text of an error. A rank's own, about a file, is not cut, as what it tells the others is.
inline std::string text_of(const std::exception& error) {
  try {
    std::rethrow_if_nested(error);
  } catch (const std::runtime_error& own) {
    return own.what();
  } catch (...) {
  }
  return error.what();
}

/// Calls a program and tells what it throws. 2 is the exit status then.
template <class Program>
int tell_errors(bool speaks, const Program& program) {
  try {
    return program();
  } catch (const help_wanted& help) {
    if (speaks) std::cout << help.text;
    return 0;
  } catch (const std::bad_alloc&) {
    std::cerr << "seqpack-train-text: there is not enough memory\n";
    return 2;
  } catch (const std::exception& error) {
    if (speaks) std::cerr << "seqpack-train-text: " << text_of(error) << '\n';
    return 2;
  }
}

}  // namespace train_text
