/// \file
/// Memory that a group moves, filled from and read to vectors.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "seqpack/comm/communicator.hpp"

namespace seqpack::testing {

/// How tests copy between vectors and the memory of C; specialised where that is a device's.
template <class C>
struct group_copies {
  static void upload(C&, void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  static void download(C& group, void* to, const void* from, std::size_t bytes) {
    group.wait();
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
};

/// An array that a group can move, between guards.
template <class T, class C>
class group_array {
 public:
  group_array(C& group, const std::vector<T>& values)
      : group_(group),
        size_(values.size()),
        memory_(group.allocate(static_cast<offset_t>(2 * guard + values.size() * sizeof(T)))) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values.data());
    std::vector<unsigned char> all(guard, poison);
    all.insert(all.end(), bytes, bytes + size_ * sizeof(T));
    all.insert(all.end(), guard, poison);
    group_copies<C>::upload(group_, memory_.get(), all.data(), all.size());
  }
  group_array(C& group, std::size_t size, const T& value)
      : group_array(group, std::vector<T>(size, value)) {}

  T* data() const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(memory_.get()) + guard);
  }
  std::size_t size() const { return size_; }

  /// The elements, after everything in the stream. Throws where a guard was written.
  std::vector<T> values() const {
    std::vector<unsigned char> all(2 * guard + size_ * sizeof(T));
    group_copies<C>::download(group_, all.data(), memory_.get(), all.size());
    for (std::size_t k = 0; k < all.size(); ++k) {
      if ((k < guard || k >= all.size() - guard) && all[k] != poison) {
        throw std::runtime_error("memory beside an array was written");
      }
    }
    std::vector<T> result(size_);
    if (size_ > 0) std::memcpy(result.data(), all.data() + guard, size_ * sizeof(T));
    return result;
  }

 private:
  static constexpr std::size_t guard = 256;
  static constexpr unsigned char poison = 0xA5;

  C& group_;
  std::size_t size_;
  std::shared_ptr<void> memory_;
};

/// The elements of any memory of the group.
template <class T, class C>
std::vector<T> read_memory(C& group, const T* data, std::size_t size) {
  std::vector<T> result(size);
  group_copies<C>::download(group, result.data(), data, size * sizeof(T));
  return result;
}

}  // namespace seqpack::testing
