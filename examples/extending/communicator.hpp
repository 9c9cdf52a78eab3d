// A user-defined communicator: an engine of another language, given as functions with a context.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <seqpack/comm/communicator.hpp>
#include <seqpack/comm/split.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

/// What the engine gives. All but `release` return 0, or a code where they failed, also where a rank
/// did not come in time. Then the engine no longer touches the memory that it was given.
struct engine_calls {
  void* context;
  /// `mine` may be this rank's part of `all`.
  int (*all_gather)(void* context, const void* mine, void* all, std::int64_t bytes);
  int (*broadcast)(void* context, void* data, std::int64_t bytes, std::int64_t root);
  /// The group of some ranks of this one, in that order. Called by those alone.
  int (*make_group)(void* context, const std::int64_t* ranks, std::int64_t count, void** made);
  void (*release)(void* context);
};

/// Moves host memory. Reductions are a gather and a loop: the same order, and so the same bits, on
/// all ranks.
class callback_communicator : public seqpack::communicator_base<callback_communicator> {
 public:
  using offset_t = seqpack::offset_t;
  static constexpr bool on_device = false;
  template <class T>
  static constexpr bool reduces = std::is_arithmetic_v<T>;

  /// \param calls whose context the communicator takes over; null for a caller that is no member
  callback_communicator(const engine_calls& calls, seqpack::group_members members,
                        seqpack::world_rank me)
      : communicator_base(std::move(members), me),
        calls_(calls),
        context_(calls.context, calls.release) {}

  seqpack::memory_location location() const { return seqpack::memory_location::host(); }
  seqpack::memory_location location_of(const void*) const { return location(); }
  std::shared_ptr<void> allocate(offset_t bytes) const {
    return std::make_shared<std::byte[]>(static_cast<std::size_t>(bytes));
  }
  void wait() { require_usable(); }  // every call has completed on return

  void exchange(const std::byte* mine, std::byte* all, offset_t bytes) {
    all_gather(mine, all, bytes);
  }
  void join_broadcast(offset_t bytes, seqpack::group_rank root) {
    std::vector<std::byte> bounce(static_cast<std::size_t>(bytes));
    broadcast(bounce.data(), bytes, root);
  }
  callback_communicator split(std::optional<offset_t> colour, offset_t key) {
    auto mine = members_of_split(*this, colour, key).members;
    std::vector<std::int64_t> ranks;
    for (offset_t r = 0; r < mine.size(); ++r) {
      ranks.push_back(members().to_group(mine.to_world({r})).value);
    }
    engine_calls made = calls_;
    made.context = nullptr;
    if (colour) {
      check(calls_.make_group(context_.get(), ranks.data(), std::ssize(ranks), &made.context),
            "make_group");
    }
    return {made, std::move(mine), me()};
  }

 private:
  // What communicator_base asks for. It has checked sizes and pointers; nothing here is of size 0.
  friend communicator_base;

  void require_usable() const {
    require_member();
    if (!broken_.empty()) throw seqpack::communication_error("cannot be used any more: " + broken_);
  }
  void gather_bytes(const void* mine, void* all, offset_t bytes) {
    check(calls_.all_gather(context_.get(), mine, all, bytes), "all_gather");
  }
  void broadcast_bytes(void* data, offset_t bytes, seqpack::group_rank root) {
    check(calls_.broadcast(context_.get(), data, bytes, root.value), "broadcast");
  }
  template <class T>
  void reduce(const T* in, T* out, offset_t n, seqpack::reduction how) {
    const auto all = std::make_unique<T[]>(static_cast<std::size_t>(size() * n));
    gather_bytes(in, all.get(), n * offset_t{sizeof(T)});
    for (offset_t k = 0; k < n; ++k) {
      out[k] = all[static_cast<std::size_t>(k)];
      for (offset_t r = 1; r < size(); ++r) {
        const T next = all[static_cast<std::size_t>(r * n + k)];
        out[k] = how == seqpack::reduction::sum   ? static_cast<T>(out[k] + next)
                 : how == seqpack::reduction::max ? std::max(out[k], next)
                                                  : std::min(out[k], next);
      }
    }
  }
  template <class T>
  void reduce_blocks(const T* in, T* out, offset_t n, seqpack::reduction how) {
    const auto blocks = std::make_unique<T[]>(static_cast<std::size_t>(size() * n));
    reduce(in, blocks.get(), size() * n, how);
    std::copy_n(blocks.get() + rank().value * n, n, out);
  }

  /// After an error the ranks no longer agree on what comes next: everything is refused.
  void check(int code, const char* call) {
    if (code == 0) return;
    broken_ = operation_text(call) + " returned " + std::to_string(code);
    throw seqpack::communication_error(broken_);
  }

  engine_calls calls_;
  std::unique_ptr<void, void (*)(void*)> context_;
  std::string broken_;
};

static_assert(seqpack::communicator<callback_communicator>);
