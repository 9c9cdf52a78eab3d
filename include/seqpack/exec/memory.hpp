/// \file
/// Memory where an executor works, with an owner, and the way of small results to the host.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"

namespace seqpack {

/// How an executor gets memory, and how its results come to the host. This form serves every
/// executor of the host; cuda_stream has its own.
template <class E>
struct executor_memory {
  static_assert(host_executor<E>,
                "memory on a device comes from a cuda_stream, which knows a memory resource");

  /// Memory for so many bytes, aligned to a cache line, not initialised.
  static std::shared_ptr<void> allocate(const E&, offset_t bytes) {
    static constexpr std::align_val_t line{64};
    return {::operator new(static_cast<std::size_t>(bytes), line),
            [](void* p) { ::operator delete(p, line); }};
  }
  /// Copies results to the host once all that was put before it is over.
  static void read(const E&, void* to, const void* from, offset_t bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
};

/// Memory that lives as long as it is needed: an array of elements where an executor works. Copies
/// share it. The elements are not initialised.
template <element T>
class workspace {
 public:
  workspace() = default;
  /// Allocates; nothing where `size` is 0.
  template <executor E>
  workspace(const E& where, offset_t size) : size_(size) {
    if (size > 0) {
      memory_ =
          executor_memory<std::remove_cvref_t<E>>::allocate(where, size * offset_t{sizeof(T)});
    }
  }

  T* data() const noexcept { return static_cast<T*>(memory_.get()); }
  /// For who must keep the memory.
  const std::shared_ptr<void>& owner() const noexcept { return memory_; }
  offset_t size() const noexcept { return size_; }
  row_view<T> rows() const { return {data(), size_}; }
  /// The same memory as rows of `payload` elements.
  row_view<T> rows(offset_t payload) const { return {data(), size_ / payload, payload}; }
  std::span<T> span() const noexcept { return {data(), static_cast<std::size_t>(size_)}; }

 private:
  std::shared_ptr<void> memory_;
  offset_t size_ = 0;
};

/// Copies `count` elements to the host once everything that was put into the executor before it is
/// over, and waits for that.
template <executor E, element T>
void read_back(const E& where, T* to, const T* from, offset_t count) {
  executor_memory<std::remove_cvref_t<E>>::read(where, to, from, count * offset_t{sizeof(T)});
}

namespace detail {

/// One value in every element.
template <class T>
struct fill_operation {
  row_view<T> out;
  T value;

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return sizeof(T); }
  offset_t units() const noexcept { return out.rows; }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) out.data[first] = value;
  }
  SEQPACK_HD void operator()(offset_t k) const { out.data[k] = value; }
};

}  // namespace detail

/// Writes one value to every element of an array. One launch.
template <executor E, element T>
void fill(const E& where, const workspace<T>& array, std::type_identity_t<T> value) {
  execute(where, detail::fill_operation<T>{array.rows(), value});
}

}  // namespace seqpack
