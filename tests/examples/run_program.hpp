/// \file
/// Runs a program and keeps what it printed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace seqpack::testing {

/// A file that is gone with this object.
class temporary_file {
 public:
  explicit temporary_file(const std::string& content = "") {
    std::string pattern = std::filesystem::temp_directory_path() / "seqpack-test-XXXXXX";
    const int descriptor = mkstemp(pattern.data());
    if (descriptor < 0) throw std::runtime_error("no temporary file " + pattern);
    close(descriptor);
    path_ = pattern;
    std::ofstream(path_, std::ios::binary) << content;
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() { std::filesystem::remove(path_); }

  const std::string& path() const noexcept { return path_; }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

struct program_result {
  int status = -1;  ///< the exit status; -1 where it did not exit
  std::string out;
  std::string err;

  auto error_lines() const { return std::count(err.begin(), err.end(), '\n'); }
};

inline std::string quoted(const std::string& argument) {
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

inline program_result run_program(const std::string& program,
                                  const std::vector<std::string>& arguments) {
  const temporary_file errors;
  std::string command = quoted(program);
  for (const std::string& argument : arguments) command += ' ' + quoted(argument);
  command += " 2>" + quoted(errors.path());

  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  program_result result;
  char block[4096];
  for (std::size_t size = 0; (size = std::fread(block, 1, sizeof block, pipe)) > 0;) {
    result.out.append(block, size);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  result.err = errors.content();
  return result;
}

}  // namespace seqpack::testing
