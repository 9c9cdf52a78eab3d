#include "report.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include "../text_tools/format.hpp"
#include "chart.hpp"

namespace train_text {

namespace {

using text_tools::counted;
using text_tools::percent;
using text_tools::with_decimals;
using text_tools::with_separators;
using text_tools::with_unit;

/// A bar as long as the loss, and a mark at the unigram's.
std::string bar(double loss, double unigram, double largest) {
  constexpr double width = 40;
  const auto length_of = [&](double x) {
    return static_cast<std::size_t>(std::lround(width * std::min(1.0, x / largest)));
  };
  std::string text(length_of(loss), '#');
  const std::size_t mark = length_of(unigram);
  if (text.size() <= mark) text.resize(mark + 1, ' ');
  text[mark] = '|';
  return text;
}

double largest_loss(const loss_curve& curve, double unigram) {
  double largest = unigram;
  for (const curve_point& point : curve) {
    largest = std::max({largest, point.training.value_or(0), point.validation.value_or(0)});
  }
  return largest;
}

std::string to_csv(const loss_curve& curve, double unigram) {
  std::ostringstream csv;
  csv << std::setprecision(10) << "step,epoch,training,validation,unigram\n";
  const auto put = [&](const std::optional<double>& loss) {
    csv << ',';
    if (loss) csv << *loss;
  };
  for (const curve_point& point : curve) {
    csv << point.step << ',' << point.epoch;
    put(point.training);
    put(point.validation);
    csv << ',' << unigram << '\n';
  }
  return csv.str();
}

line_chart to_chart(const loss_curve& curve, double unigram) {
  chart_line training{.name = "training batches", .colour = "#7aa6d8", .points = {}, .width = 1.5};
  chart_line validation{
      .name = "held-out text", .colour = "#c8442e", .points = {}, .width = 2.5, .marked = true};
  for (const curve_point& point : curve) {
    const auto step = static_cast<double>(point.step);
    if (point.training) training.points.emplace_back(step, *point.training);
    if (point.validation) validation.points.emplace_back(step, *point.validation);
  }
  return {.title = "A byte-level language model learns",
          .x_label = "steps",
          .y_label = "loss, nats per byte",
          .lines = {training, validation},
          .levels = {{"unigram entropy, " + with_decimals(unigram, 2), unigram}}};
}

/// A file that is there once all of it is written, and before that is not, or as it was.
class new_file {
 public:
  /// \throws std::runtime_error where there can be no such file
  explicit new_file(std::filesystem::path path)
      : path_(std::move(path)),
        temporary_(path_.string() + '.' + std::to_string(getpid()) + ".tmp") {
    errno = std::filesystem::is_directory(path_) ? EISDIR : 0;
    if (errno == 0) file_.open(temporary_, std::ios::binary);
    if (!file_.is_open()) fail();
  }
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;
  ~new_file() {
    file_.close();
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }

  void write(const std::string& content) {
    errno = 0;
    file_ << content;
    file_.close();
    if (!file_) fail();
  }
  void publish() {
    errno = 0;
    if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  [[noreturn]] void fail() const {
    const std::string why = errno != 0 ? ": " + std::generic_category().message(errno) : "";
    throw std::runtime_error(path_.string() + " cannot be written" + why);
  }

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::ofstream file_;
};

/// Both files of a curve. Neither is there before both can be.
struct curve_files {
  new_file csv;
  new_file svg;

  explicit curve_files(const std::filesystem::path& folder)
      : csv(folder / "loss_curve.csv"), svg(folder / "loss_curve.svg") {}
};

}  // namespace

void print_corpus(std::ostream& out, const corpus& text, double unigram) {
  const auto part = [](const std::vector<std::string>& sequences) {
    return counted(static_cast<std::int64_t>(sequences.size()), "sequence") + ", " +
           counted(count_bytes(sequences), "byte");
  };
  out << counted(text.files, "file") << ": " << part(text.training) << " to train on; "
      << part(text.validation) << " held out\n"
      << "Unigram entropy of the training text: " << with_decimals(unigram, 3)
      << " nats = " << with_decimals(unigram / std::log(2.0), 3) << " bits per byte, perplexity "
      << with_decimals(std::exp(unigram), 2) << "\n\n";
}

void print_curve(std::ostream& out, const loss_curve& curve, double unigram) {
  const double largest = largest_loss(curve, unigram);
  out << "epoch   step  training  held out   nats per byte; | is the unigram entropy\n";
  double sum = 0;
  int count = 0;
  for (const curve_point& point : curve) {
    if (point.validation) {
      out << std::setw(5) << point.epoch << std::setw(7) << point.step << std::setw(10)
          << (count > 0 ? with_decimals(sum / count, 4) : "-") << std::setw(10)
          << with_decimals(*point.validation, 4) << "   "
          << bar(*point.validation, unigram, largest) << '\n';
      sum = 0;
      count = 0;
    }
    if (point.training) {
      sum += *point.training;
      ++count;
    }
  }
  out << "training: the mean over the batches since the line before\n\n";
}

void print_perplexities(std::ostream& out, double unigram, double training, double validation) {
  out << "perplexity        nats    bits\n";
  const auto line = [&](const char* name, double loss) {
    out << std::left << std::setw(9) << name << std::right << std::setw(7)
        << with_decimals(std::exp(loss), 2) << std::setw(7) << with_decimals(loss, 3)
        << std::setw(8) << with_decimals(loss / std::log(2.0), 3) << '\n';
  };
  line("unigram", unigram);
  line("training", training);
  line("held out", validation);
  out << '\n';
}

void print_ranks(std::ostream& out, const grid_sizes& sizes) {
  const std::int64_t ranks = sizes.dp * sizes.cp * sizes.tp;
  if (ranks == 1) return;
  out << counted(ranks, "rank") << ": " << sizes.dp << " data-parallel x " << sizes.cp
      << " context-parallel x " << sizes.tp << " tensor-parallel\n\n";
}

void print_speeds(std::ostream& out, std::span<const speed> speeds, std::int64_t repeats) {
  out << "forward step, loss and gradient  micro-batches        tokens   padding   real tokens"
         "   against\n"
      << "of the same sequences               of a rank  with padding              per second"
         "    [B, S]\n";
  const auto rate = [](const speed& s) {
    return s.seconds > 0 ? static_cast<double>(s.real_tokens) / s.seconds : 0;
  };
  for (const speed& s : speeds) {
    const double slowest = rate(speeds.back());
    out << std::left << std::setw(32) << s.name << std::right << std::setw(14)
        << with_separators(s.micro_batches) << std::setw(14) << with_separators(s.tokens)
        << std::setw(10) << percent(s.tokens - s.real_tokens, s.tokens) << std::setw(14)
        << with_unit(rate(s), "") << std::setw(9)
        << (slowest > 0 ? with_decimals(rate(s) / slowest, 2) + " x" : "-") << '\n';
  }
  out << "fastest of " << counted(repeats, "run")
      << "; the library skips padding, the model cannot\n\n";
}

void check_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // what fails shows where a file is opened
  const curve_files can_be_opened(folder);
}

void write_curve(std::ostream& out, const std::filesystem::path& folder, const loss_curve& curve,
                 double unigram) {
  curve_files files(folder);
  files.csv.write(to_csv(curve, unigram));
  files.svg.write(to_svg(to_chart(curve, unigram)));
  files.csv.publish();
  files.svg.publish();
  out << "The loss curve:\n"
      << files.csv.path().string() << '\n'
      << files.svg.path().string() << '\n';
}

}  // namespace train_text
