#include "memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <seqpack/core/error.hpp>
#include <string>

#include "format.hpp"

namespace text_tools {

namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// What the system could give, in bytes; unlimited where it does not say.
double available() {
  std::ifstream file("/proc/meminfo");
  for (std::string name; file >> name;) {
    double kib = 0;
    if (name == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return unlimited;
}

/// The limit of a container; not a number where there is none.
double limit_of(const char* path) {
  std::ifstream file(path);
  double bytes = 0;
  return file >> bytes ? bytes : unlimited;
}

}  // namespace

void require_memory(const std::string& what, double bytes) {
  constexpr double most = 32e9;  // an example has no use for more
  const double limit = std::min({most, available(), limit_of("/sys/fs/cgroup/memory.max"),
                                 limit_of("/sys/fs/cgroup/memory/memory.limit_in_bytes")});
  if (bytes > limit) {
    seqpack::reject(what, with_unit(bytes, "B"), "it must be at most " + with_unit(limit, "B"));
  }
}

}  // namespace text_tools
