// seqpack-pack-text: packs the paragraphs of text files into planned rows, shards them over context-parallel ranks,
// brings them back, and says what each padding costs.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <seqpack/seqpack.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>
#if defined(PACK_TEXT_THREADS)
#include <seqpack/exec/threads.hpp>
#endif

#include "../command_line/command_line.hpp"
#include "../text_tools/corpus.hpp"
#include "../text_tools/progress.hpp"
#include "batch.hpp"
#include "report.hpp"
#include "round_trip.hpp"

namespace {

using namespace pack_text;
using text_tools::paragraph_reader;

struct options {
  std::vector<std::string> files;
  std::size_t batch = 256;
  std::size_t longest = 4096;
  offset_t row = 0;
  offset_t total_multiple = 1024;
  int threads = 1;
  int repeats = 3;
};

void describe(CLI::App& app, options& o) {
  const auto number = [&](const char* name, auto& value, const char* meaning, std::int64_t most) {
    command_line::add_number(app, name, value, meaning, {1, most});
  };
  app.add_option("files", o.files, "Text files; without any, licence texts of the system")
      ->type_name("");
  number("--batch", o.batch, "Sequences of a batch, which are planned together", 1 << 20);
  number("--longest", o.longest, "Bytes of a sequence; longer paragraphs are cut", 1 << 20);
  command_line::add_number(
      app, "--row", o.row,
      "Tokens that a row holds, rounded up as the padding asks; 0 for --longest", {0, 1 << 30});
  number("--total-multiple", o.total_multiple, "What the padded totals are multiples of", 1 << 30);
  number("--repeats", o.repeats, "Runs of each call, the fastest of which counts", 1000);
  number("--threads", o.threads, "Host threads", 4096);
}

/// Takes every batch through every scenario.
template <class Executor>
totals run(const Executor& where, const options& o, paragraph_reader& reader,
           std::vector<scenario>& scenarios) {
  totals sum;
  workspace tensors;
  text_tools::progress progress("bytes");
  for (auto paragraphs = reader.next(o.batch); !paragraphs.empty();
       paragraphs = reader.next(o.batch)) {
    require_memory_for(paragraphs);
    const batch text = make_batch(paragraphs);
    for (scenario& s : scenarios) run_scenario(where, text, tensors, s, o.repeats);
    sum.add(text);
    progress.show(reader.bytes_read(), reader.bytes());
  }
  return sum;
}

totals run_where_asked(const options& o, paragraph_reader& reader,
                       std::vector<scenario>& scenarios) {
  if (o.threads == 1) return run(seqpack::host, o, reader, scenarios);
#if defined(PACK_TEXT_THREADS)
  return run(seqpack::host_threads(o.threads), o, reader, scenarios);
#else
  throw std::runtime_error("--threads: this program was built without seqpack::threads");
#endif
}

void pack_files(const options& o) {
  std::vector<std::filesystem::path> files(o.files.begin(), o.files.end());
  if (files.empty()) files = text_tools::default_files();
  const auto file_count = static_cast<offset_t>(files.size());
  paragraph_reader reader(std::move(files), o.longest);
  std::vector<scenario> scenarios =
      make_scenarios(o.total_multiple, o.row > 0 ? o.row : static_cast<offset_t>(o.longest));

  const totals sum = run_where_asked(o, reader, scenarios);
  if (sum.batches == 0) throw std::runtime_error("there is no text in the input");
  print_input(std::cout, sum, file_count);
  print_table(std::cout, scenarios, sum);
  print_legend(std::cout, o.threads, o.repeats);
}

int fail(int status, const char* message) {
  std::cerr << "seqpack-pack-text: " << message << '\n';
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  CLI::App app(
      "Packs the paragraphs of text files into planned rows, and checks that they come back",
      "seqpack-pack-text");
  try {
    describe(app, o);
    if (const auto help = command_line::parse(app, argc, argv)) {
      std::cout << *help;
    } else {
      pack_files(o);
    }
    return std::cout.flush() ? 0 : fail(2, "cannot write to standard output");
  } catch (const round_trip_error& error) {
    return fail(1, error.what());
  } catch (const std::bad_alloc&) {
    return fail(2, "there is not enough memory");
  } catch (const std::exception& error) {
    return fail(2, error.what());
  }
}
