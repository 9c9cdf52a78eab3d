/// \file
/// Runs a program and keeps what it printed.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "temporary.hpp"

namespace seqpack::testing {

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
  const temporary_folder folder;
  const std::string errors = folder.path() + "/errors";
  std::string command = quoted(program);
  for (const std::string& argument : arguments) command += ' ' + quoted(argument);
  command += " 2>" + quoted(errors);

  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  program_result result;
  char block[4096];
  for (std::size_t size = 0; (size = std::fread(block, 1, sizeof block, pipe)) > 0;) {
    result.out.append(block, size);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  result.err = folder.read("errors");
  return result;
}

/// Bytes of the largest program that has ended so far.
inline std::int64_t most_memory_of_programs() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace seqpack::testing
