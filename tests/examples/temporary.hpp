/// \file
/// Files that a test leaves nothing of.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace seqpack::testing {

/// A folder that is gone with this object.
class temporary_folder {
 public:
  temporary_folder() {
    std::string pattern = std::filesystem::temp_directory_path() / "seqpack-test-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder " + pattern);
    path_ = pattern;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() { std::filesystem::remove_all(path_); }

  const std::string& path() const noexcept { return path_; }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }
  /// Nothing, where there is no such file.
  std::string read(const std::string& name) const {
    std::ifstream file(path_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

/// A file that is gone with this object.
class temporary_file {
 public:
  explicit temporary_file(const std::string& content = "") { folder_.write("file", content); }

  std::string path() const { return folder_.path() + "/file"; }

 private:
  temporary_folder folder_;
};

}  // namespace seqpack::testing
