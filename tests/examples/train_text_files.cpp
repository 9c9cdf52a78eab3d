#define BOOST_TEST_MODULE examples_train_text_files
#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>

#include "../../examples/train_text/report.hpp"
#include "temporary.hpp"

namespace {

using seqpack::testing::temporary_folder;

/// While it lives no file can become larger, as on a full disk.
class full_disk {
 public:
  explicit full_disk(rlim_t most_bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{most_bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;
  ~full_disk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

const train_text::loss_curve curve{{.step = 0, .epoch = 0, .training = 5.5, .validation = 5.5},
                                   {.step = 1, .epoch = 1, .training = {}, .validation = 5.0}};

/// What is told of a curve that cannot be written.
std::string refusal(const std::string& folder, rlim_t most_bytes) {
  std::ostringstream out;
  std::string told = "nothing";
  try {
    const full_disk full(most_bytes);
    train_text::write_curve(out, folder, curve, 3.0);
  } catch (const std::runtime_error& error) {
    told = error.what();
  }
  BOOST_TEST(out.str() == "");
  return told;
}

std::ptrdiff_t files_in(const std::string& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_no_file) {
  const temporary_folder folder;
  BOOST_TEST(refusal(folder.path(), 0) ==
             folder.path() + "/loss_curve.csv cannot be written: File too large");
  BOOST_TEST(files_in(folder.path()) == 0);
  // Room for the first, but not for the second.
  BOOST_TEST(refusal(folder.path(), 512) ==
             folder.path() + "/loss_curve.svg cannot be written: File too large");
  BOOST_TEST(files_in(folder.path()) == 0);
}

BOOST_AUTO_TEST_CASE(a_full_disk_leaves_the_curve_that_was_there) {
  const temporary_folder folder;
  folder.write("loss_curve.csv", "csv");
  folder.write("loss_curve.svg", "svg");
  BOOST_TEST(refusal(folder.path(), 512) ==
             folder.path() + "/loss_curve.svg cannot be written: File too large");
  BOOST_TEST(files_in(folder.path()) == 2);
  BOOST_TEST(folder.read("loss_curve.csv") == "csv");
  BOOST_TEST(folder.read("loss_curve.svg") == "svg");
}

BOOST_AUTO_TEST_CASE(a_check_leaves_nothing_but_the_folder) {
  const temporary_folder folder;
  train_text::check_folder(folder.path() + "/not/yet");
  BOOST_TEST(files_in(folder.path() + "/not/yet") == 0);
  std::ostringstream out;
  train_text::write_curve(out, folder.path() + "/not/yet", curve, 3.0);
  BOOST_TEST(files_in(folder.path() + "/not/yet") == 2);
  BOOST_TEST(folder.read("not/yet/loss_curve.csv") ==
             "step,epoch,training,validation,unigram\n0,0,5.5,5.5,3\n1,1,,5,3\n");
}
