#include "corpus.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace text_tools {

namespace {

namespace fs = std::filesystem;

/// The regular files of a folder, sorted; links would only repeat some of them.
std::vector<fs::path> files_of(const fs::path& folder, const std::string& extension = "") {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const bool wanted = extension.empty() || entry.path().extension() == extension;
    if (wanted && entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t\r\f") == std::string::npos;
}

/// The size where it is known; a pipe has none.
std::uintmax_t size_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

}  // namespace

paragraph_reader::paragraph_reader(std::vector<fs::path> files, std::size_t longest)
    : files_(std::move(files)), longest_(longest) {
  for (const fs::path& file : files_) {
    if (fs::is_directory(file) || !std::ifstream(file)) {
      throw std::runtime_error(file.string() + " is not a file that can be read");
    }
    bytes_ += size_of(file);
  }
}

std::vector<std::string> paragraph_reader::next(std::size_t count) {
  std::vector<std::string> paragraphs;
  std::string paragraph;
  while (paragraphs.size() < count && next_paragraph(paragraph)) {
    paragraphs.push_back(std::move(paragraph));
  }
  return paragraphs;
}

bool paragraph_reader::next_paragraph(std::string& paragraph) {
  while (waiting() <= longest_ && next_line()) {
    if (!is_blank(line_)) {
      text_.append(line_).append(1, '\n');
    } else if (waiting() > 0) {
      break;
    }
  }
  paragraph = take(std::min(waiting(), longest_));
  return !paragraph.empty();
}

/// The next bytes of the paragraph. What was taken is let go when little more than that is left, so
/// that a long line is not moved for each of its pieces.
std::string paragraph_reader::take(std::size_t size) {
  std::string piece(text_, taken_, size);
  taken_ += size;
  if (waiting() <= longest_) {
    text_.erase(0, taken_);
    taken_ = 0;
  }
  return piece;
}

/// A line of the open file. The end of a file ends a paragraph too, so it reads as an empty line.
bool paragraph_reader::next_line() {
  while (!file_.is_open()) {
    if (opened_ == files_.size()) return false;
    file_.clear();
    file_.open(files_[opened_++]);
    if (!file_) throw std::runtime_error(files_[opened_ - 1].string() + " cannot be opened");
  }
  if (std::getline(file_, line_)) {
    bytes_read_ += line_.size() + 1;
    return true;
  }
  if (file_.bad()) throw std::runtime_error("reading " + files_[opened_ - 1].string() + " failed");
  file_.close();
  line_.clear();
  return true;
}

std::vector<fs::path> default_files() {
  std::vector<fs::path> files = files_of("/usr/share/common-licenses");
  if (!files.empty()) return files;
  const fs::path project = TEXT_TOOLS_FALLBACK;
  files = files_of(project / "docs", ".md");
  for (const char* name : {"README.md", "LICENSE"}) {
    if (fs::is_regular_file(project / name)) files.push_back(project / name);
  }
  return files;
}

}  // namespace text_tools
