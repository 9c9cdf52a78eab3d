/// \file
/// What the kernels of a call asked of memory, where the CUDA runtime under the tests can count it:
/// 32-byte sectors, accesses by width, instructions.
///
/// SEQPACK_CUDA_PROFILE_VARIABLE names the environment variable that tells that runtime a file. At
/// the end of the process it writes there, as JSON, {"kernels": [{"kernel": name, "launches": n,
/// "thread_instructions": n, "local_loads": n, "local_stores": n, "int_div64": n,
/// "global_load": {"sectors": n, "bytes": n, "width": {"1": n, ..., "16": n}}, "global_store": ...}]}.
/// Where it is not set nothing can count, and the tests are skipped.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string>

#include "seqpack/core/config.hpp"

namespace seqpack::testing {

/// The sum over the kernels of a call.
struct kernel_profile {
  struct access {
    double sectors = 0;
    double bytes = 0;
    double wide_bytes = 0;  ///< by accesses of 16 bytes
  };
  double launches = 0;
  double instructions = 0;
  double local = 0;
  double wide_divisions = 0;
  access load;
  access store;

  double sectors() const { return load.sectors + store.sectors; }
};

namespace profiling {

inline constexpr auto call_variable = "SEQPACK_PROFILED_CALL";
inline const char* variable() {
  return std::getenv("SEQPACK_CUDA_PROFILE_VARIABLE");
}

inline kernel_profile::access access_of(const nlohmann::json& found) {
  return {found.at("sectors"), found.at("bytes"), 16 * found.at("width").at("16").get<double>()};
}

/// The kernels whose names have this in them.
inline kernel_profile read(const std::filesystem::path& file, const std::string& kernels) {
  kernel_profile sum;
  const auto document = nlohmann::json::parse(std::ifstream(file));
  for (const auto& kernel : document.at("kernels")) {
    if (kernel.at("kernel").get<std::string>().find(kernels) == std::string::npos) continue;
    sum.launches += kernel.at("launches").get<double>();
    sum.instructions += kernel.at("thread_instructions").get<double>();
    sum.local += kernel.at("local_loads").get<double>() + kernel.at("local_stores").get<double>();
    sum.wide_divisions += kernel.at("int_div64").get<double>();
    const auto add = [](kernel_profile::access& to, const kernel_profile::access& found) {
      to.sectors += found.sectors;
      to.bytes += found.bytes;
      to.wide_bytes += found.wide_bytes;
    };
    add(sum.load, access_of(kernel.at("global_load")));
    add(sum.store, access_of(kernel.at("global_store")));
  }
  return sum;
}

}  // namespace profiling

/// Runs the call of this name in a process of its own, and reads what its kernels did.
/// \param kernels what is in the names of those that count
inline kernel_profile profile_of(const std::string& call, const std::string& kernels) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("seqpack-profile-" + std::to_string(::getpid()) + ".json");
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv(profiling::variable(), file.c_str(), 1);
    ::setenv(profiling::call_variable, call.c_str(), 1);
    ::execl("/proc/self/exe", "profiled", nullptr);
    std::_Exit(1);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(status == 0);
  const kernel_profile result = profiling::read(file, kernels);
  std::filesystem::remove(file);
  return result;
}

/// Derive a global fixture from it. In the process of a call it runs that and leaves; in that of the
/// tests it skips them where nothing can count.
struct needs_kernel_profile {
  /// \param calls each has a name, and a function run()
  template <std::ranges::range Calls>
  explicit needs_kernel_profile(const Calls& calls) {
    if (profiling::variable() == nullptr) {
      std::puts("skipped: no CUDA runtime that counts what kernels do");
      std::_Exit(77);
    }
    const char* const name = std::getenv(profiling::call_variable);
    if (name == nullptr) return;
    for (const auto& call : calls) {
      if (call.name != name) continue;
      call.run();
      std::exit(0);  // where the file is written
    }
    std::_Exit(1);
  }
};

}  // namespace seqpack::testing
