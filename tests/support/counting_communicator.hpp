/// \file
/// A communicator of one's own, which counts what it is asked for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/self.hpp"

namespace seqpack::testing {

/// A communicator as a user would write it: around another one, counting calls.
template <communicator Inner = self_communicator>
class counting_communicator {
 public:
  static constexpr bool on_device = Inner::on_device;
  template <class T>
  static constexpr bool reduces = Inner::template reduces<T>;

  explicit counting_communicator(Inner inner = {}) : inner_(std::move(inner)) {}

  bool is_member() const { return inner_.is_member(); }
  group_rank rank() const { return inner_.rank(); }
  offset_t size() const { return inner_.size(); }
  const group_members& members() const { return inner_.members(); }
  memory_location location() const { return inner_.location(); }
  memory_location location_of(const void* p) const { return inner_.location_of(p); }
  template <class T>
  void all_gather(const T* mine, T* all, offset_t n) {
    ++collectives;
    inner_.all_gather(mine, all, n);
  }
  template <class T>
  void all_reduce(const T* in, T* out, offset_t n, reduction how) {
    ++collectives;
    inner_.all_reduce(in, out, n, how);
  }
  template <class T>
  void reduce_scatter(const T* in, T* out, offset_t n, reduction how) {
    ++collectives;
    inner_.reduce_scatter(in, out, n, how);
  }
  template <class T>
  void broadcast(T* data, offset_t n, group_rank root) {
    if (n > 0) ++collectives;
    inner_.broadcast(data, n, root);
  }
  void join_broadcast(offset_t bytes, group_rank root) {
    ++collectives;
    inner_.join_broadcast(bytes, root);
  }
  void exchange(const std::byte* mine, std::byte* all, offset_t bytes) {
    ++collectives;
    inner_.exchange(mine, all, bytes);
  }
  void wait() { inner_.wait(); }
  counting_communicator split(std::optional<offset_t> colour, offset_t key) {
    return counting_communicator(inner_.split(colour, key));
  }
  std::shared_ptr<void> allocate(offset_t bytes) { return inner_.allocate(bytes); }

  int collectives = 0;

 private:
  Inner inner_;
};

}  // namespace seqpack::testing
