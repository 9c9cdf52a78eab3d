// seqpack-train-text: trains a byte-level language model on the paragraphs of text files, packed;
// the ranks of mpirun share the sequences, the tokens and the vocabulary, and come to the same
// losses.
//
//     mpirun -n 8 seqpack-train-text --cp 2 --tp 2
#include <seqpack/seqpack.hpp>
#if defined(TRAIN_TEXT_THREADS)
#include <seqpack/exec/threads.hpp>
#endif
#if defined(TRAIN_TEXT_RANKS)
#include <chrono>
#include <seqpack/comm/mpi.hpp>
#endif

#include "options.hpp"
#include "program.hpp"

namespace {

#if defined(TRAIN_TEXT_THREADS)
constexpr bool with_threads = true;
auto executor_for(const train_text::options& o) {
  return seqpack::host_threads(o.threads);
}
#else
constexpr bool with_threads = false;
auto executor_for(const train_text::options&) {
  return seqpack::host;
}
#endif

#if defined(TRAIN_TEXT_RANKS)
constexpr bool with_ranks = true;
auto make_world() {
  return seqpack::mpi_communicator::duplicate(MPI_COMM_WORLD,
                                              {.deadline = std::chrono::minutes(1)});
}
using environment = seqpack::mpi_environment;
seqpack::offset_t ranks_of_machine() {
  MPI_Comm machine = MPI_COMM_NULL;
  int ranks = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &ranks);
  MPI_Comm_free(&machine);
  return ranks;
}
#else
constexpr bool with_ranks = false;
auto make_world() {
  return seqpack::self_communicator();
}
struct environment {};
seqpack::offset_t ranks_of_machine() {
  return 1;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  [[maybe_unused]] const environment until_the_end;
  auto world = make_world();
  const seqpack::offset_t neighbours = ranks_of_machine();
  return train_text::tell_errors(world.rank().value == 0, [&] {
    const auto options =
        train_text::parse_options(argc, argv, {.threads = with_threads, .ranks = with_ranks});
    return train_text::run(executor_for(options), world, options, neighbours);
  });
}
