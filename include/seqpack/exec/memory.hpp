/// \file
/// Memory where an executor works: its owner, fills, and small results on the host.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"
#include "seqpack/exec/executor.hpp"

namespace seqpack {

/// An array of elements where an executor works, and its owner: the library's one owner of memory
/// that an executor allocates. Copies share the memory, as an operation's result may outlive what
/// made it, and the type says nothing of the executor. The elements are not initialised.
///
/// The other owner, tensor, holds what a communicator allocates; see comm/tensor.hpp.
template <element T>
class executor_array {
 public:
  executor_array() = default;
  /// Allocates; nothing where `size` is 0.
  template <executor E>
  executor_array(const E& where, offset_t size) : size_(size) {
    static_assert(memory_executor<E>,
                  "executor_traits of this executor has no memory: those of a host executor derive "
                  "from host_executor_traits; on a device pass a cuda_stream, which knows a memory "
                  "resource");
    if (size > 0) {
      memory_ =
          executor_traits<std::remove_cvref_t<E>>::allocate(where, size * offset_t{sizeof(T)});
    }
  }

  T* data() const noexcept { return static_cast<T*>(memory_.get()); }
  /// Keeps the memory alive.
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

/// Copies `count` elements to the host once all that was put into the executor before has finished,
/// and waits for that.
template <memory_executor E, element T>
void read_back(const E& where, T* to, const T* from, offset_t count) {
  executor_traits<std::remove_cvref_t<E>>::read(where, to, from, count * offset_t{sizeof(T)});
}

namespace detail {

/// One value in every element.
template <class T>
struct fill_operation {
  row_view<T> out;
  T value;

  offset_t rows() const noexcept { return out.rows; }
  offset_t row_bytes() const noexcept { return sizeof(T); }
  void process(offset_t first, offset_t last) const {
    for (; first < last; ++first) out.data[first] = value;
  }
  SEQPACK_HD void operator()(offset_t k) const { out.data[k] = value; }
};

}  // namespace detail

/// Writes one value to every element of an array. One launch.
template <executor E, element T>
void fill(const E& where, const executor_array<T>& array, std::type_identity_t<T> value) {
  execute(where, detail::fill_operation<T>{array.rows(), value});
}

}  // namespace seqpack
