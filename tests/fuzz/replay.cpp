// Runs a fuzz target without libFuzzer: over all files of the folders and files that are named, and
// over as many inputs of pseudorandom bytes as --random says.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "input.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void run_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw std::runtime_error("cannot read " + path.string());
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

void run_random(int count) {
  std::mt19937 bits(20'240'917);
  for (int k = 0; k < count; ++k) {
    std::vector<std::uint8_t> bytes(bits() % 96);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(bits());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  int random = 0;
  for (int k = 1; k < argc; ++k) {
    if (std::string_view(argv[k]) == "--random" && k + 1 < argc) {
      random = std::atoi(argv[++k]);
      continue;
    }
    for (const fs::path& path : files_of(argv[k])) {
      run_file(path);
      ++files;
    }
  }
  run_random(random);
  std::cout << files << " files and " << random << " random inputs\n";
}
