/// \file
/// A file as bytes, and what to compare bytes by.
#pragma once

#include <boost/crc.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <seqpack/comm/tensor.hpp>

/// The bytes of a file, or nothing where it cannot be read.
inline std::optional<std::vector<char>> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file || !std::filesystem::is_regular_file(path)) return std::nullopt;
  return std::vector<char>{std::istreambuf_iterator<char>(file), {}};
}

/// CRC-32, hexadecimal.
inline std::string checksum(std::span<const char> bytes) {
  boost::crc_32_type crc;
  crc.process_bytes(bytes.data(), bytes.size());
  std::ostringstream text;
  text << std::hex << crc.checksum();
  return text.str();
}
inline std::string checksum(const seqpack::tensor<char>& tensor) {
  return checksum(std::span<const char>(tensor.elements()));
}
