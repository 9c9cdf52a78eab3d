// Text files as sequences of bytes: one paragraph is one sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace text_tools {

/// Reads the paragraphs of several files, which blank lines separate, one after the other.
class paragraph_reader {
 public:
  /// \param longest paragraphs of more bytes come in several sequences
  /// \throws std::runtime_error naming a file that cannot be read
  paragraph_reader(std::vector<std::filesystem::path> files, std::size_t longest);

  /// The next `count` paragraphs, fewer at the end of the input.
  std::vector<std::string> next(std::size_t count);

  std::uintmax_t bytes_read() const noexcept { return bytes_read_ - waiting(); }
  /// The size of all files together.
  std::uintmax_t bytes() const noexcept { return bytes_; }

 private:
  bool next_line();
  bool next_paragraph(std::string& paragraph);
  std::string take(std::size_t size);
  std::size_t waiting() const noexcept { return text_.size() - taken_; }

  std::vector<std::filesystem::path> files_;
  std::size_t longest_;
  std::size_t opened_ = 0;
  std::ifstream file_;
  std::string line_;
  std::string text_;       // of the paragraph that is read
  std::size_t taken_ = 0;  // bytes at its start that have been handed out
  std::uintmax_t bytes_read_ = 0;
  std::uintmax_t bytes_ = 0;
};

/// The text to read when none is named: the licences that the system keeps, else this project's
/// own documents.
std::vector<std::filesystem::path> default_files();

}  // namespace text_tools
