/// \file
/// A file as bytes, and what to compare bytes by.
#pragma once

#include <boost/crc.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <seqpack/comm/tensor.hpp>

/// Whether the help is asked for, which one rank prints then.
inline bool wants_help(int argc, char** argv, bool prints) {
  if (argc != 2 || std::string_view(argv[1]) != "--help") return false;
  if (prints) std::cout << "usage: mpirun -n RANKS " << argv[0] << " FILE\n";
  return true;
}

/// The bytes of the file that the arguments name; nothing, with the reason on standard error, where
/// they name none, or one that cannot be read.
inline std::optional<std::vector<char>> read_file(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << std::string("usage: mpirun -n RANKS ") + argv[0] + " FILE\n";
    return std::nullopt;
  }
  std::error_code error;
  std::string why = "it is no regular file";
  std::vector<char> bytes;
  if (std::filesystem::is_regular_file(argv[1], error)) {
    errno = 0;
    bytes.resize(std::filesystem::file_size(argv[1], error));
    std::ifstream file(argv[1], std::ios::binary);
    if (file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()))) return bytes;
    why = std::generic_category().message(errno);
  } else if (error) {
    why = error.message();
  }
  std::cerr << std::string(argv[0]) + ": " + argv[1] + " cannot be read: " + why + "\n";
  return std::nullopt;
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
