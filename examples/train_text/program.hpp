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
#include "plan.hpp"
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

inline offset_t longest_of(const corpus& text) {
  std::size_t longest = 0;
  for (const auto* part : {&text.training, &text.validation}) {
    for (const std::string& sequence : *part) longest = std::max(longest, sequence.size());
  }
  return static_cast<offset_t>(longest);
}

/// Trains a model on the text, and measures. **Collective** over all ranks, which get the same.
template <seqpack::executor E, seqpack::communicator C>
outcome train_model(const E& where, grid<C>& ranks, const corpus& text, const options& o,
                    offset_t ranks_of_machine, bool speaks) {
  // How batches are packed and sharded: all numbers are known only now.
  // A sharding that cuts sequences needs multiples of them, one that cuts the row multiples of the row.
  const seqpack::context_parallel cp(o.cp, seqpack::any_sharding{o.sharding});
  const offset_t each = o.pad_each > 0 ? o.pad_each : cp.divisor();
  const offset_t total = o.pad_total > 0 ? o.pad_total : cp.cuts_row() ? cp.total_divisor() : 1;
  const seqpack::padding padding{seqpack::each_multiple_of<>{each},
                                 seqpack::total_multiple_of<>{total}};
  const offset_t row =
      o.row > 0 ? o.row : seqpack::round_up(2 * seqpack::round_up(longest_of(text), each), total);
  if constexpr (seqpack::host_executor<E>) {  // a device refuses by itself what it has not
    seqpack::together(ranks.tp, ranks.replicas, "memory", [&] {
      text_tools::require_memory(
          "memory for the training",
          static_cast<double>(ranks_of_machine) * bytes_of_rank(text, o, padding, cp, row));
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

  const planner plan{row, o.batch, padding, cp, ranks.dp.size()};
  const offset_t per_step = o.batch * o.micro_batches;
  const auto planned = [&](std::span<const std::string> sequences, planning how) {
    return make_planned(where, ranks.dp, sequences, per_step, rows,
                        [&](const auto& lengths) { return plan(how, lengths); });
  };
  const auto training = planned(text.training, o.plan);
  const auto validation = planned(text.validation, o.plan);

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

  // The same sequences in rows that are planned and that are not, and as they are, [B, S], where each
  // sequence is cut as one of S tokens.
  const std::span<const std::string> some =
      std::span(text.training).first(std::min(text.training.size(), to_size(8 * per_step)));
  const seqpack::context_parallel plain_cp(
      o.cp, seqpack::any_sharding{cp.cuts_row() ? seqpack::sharding_kind::contiguous : o.sharding});
  context_model<seqpack::attention_input::mask, E> plain_model(where, weights);
  trainer plain(where, plain_model, setup_of(seqpack::not_packed(plain_cp)), ranks.replicas);
  const auto measured = [&](const char* name, auto& how, const auto& batches) {
    result.speeds.push_back(measure(where, name, how, ranks, weights, batches, o.repeats));
  };
  measured("planned rows", packed, planned(some, planning::balanced));
  measured("rows in order", packed, planned(some, planning::in_order));
  measured("[B, S]", plain,
           make_plain(where, ranks.dp, some, o.batch, per_step, rows, plain_cp.divisor()));
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
