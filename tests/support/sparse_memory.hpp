/// \file
/// Memory for tests of large sizes.
#pragma once

#include <sys/mman.h>

#include <boost/test/unit_test.hpp>

#include "seqpack/core/config.hpp"

namespace seqpack::testing {

/// Zeros that take no memory until they are written.
template <class T>
class sparse_memory {
 public:
  explicit sparse_memory(offset_t size)
      : bytes_(static_cast<std::size_t>(size) * sizeof(T)),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    BOOST_REQUIRE(data_ != MAP_FAILED);
  }
  sparse_memory(const sparse_memory&) = delete;
  sparse_memory& operator=(const sparse_memory&) = delete;
  ~sparse_memory() { munmap(data_, bytes_); }

  T* data() const { return static_cast<T*>(data_); }
  T& operator[](offset_t k) const { return data()[k]; }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace seqpack::testing
