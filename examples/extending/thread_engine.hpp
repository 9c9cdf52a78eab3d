// Stands in for the engine of another language: its ranks are threads of this program.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "communicator.hpp"

namespace thread_engine {

/// Threads that post a pointer each, and read those of the others between come() and go().
class group {
 public:
  group(std::int64_t size, std::chrono::milliseconds deadline)
      : posted(static_cast<std::size_t>(size)), deadline_(deadline) {}

  /// Until all have come, or the deadline has passed for one: false then, for all.
  bool come() { return meet(arrived_, true); }
  /// Until all have read.
  void go() { meet(gone_, false); }
  /// The same object for all threads that name the same ranks.
  std::shared_ptr<group> make(const std::vector<std::int64_t>& ranks) {
    const std::lock_guard lock(mutex_);
    auto& entry = made_[ranks];
    if (!entry) entry = std::make_shared<group>(std::ssize(ranks), deadline_);
    return entry;
  }

  std::vector<void*> posted;

 private:
  bool meet(std::size_t& count, bool with_deadline) {
    std::unique_lock lock(mutex_);
    if (broken_) return false;
    const int round = round_;
    if (++count == posted.size()) {
      count = 0;
      ++round_;
      changed_.notify_all();
    }
    const auto done = [&] { return round_ != round || broken_; };
    if (!with_deadline) {
      changed_.wait(lock, done);
    } else if (!changed_.wait_for(lock, deadline_, done)) {
      broken_ = true;
      changed_.notify_all();
    }
    return !broken_;
  }

  std::chrono::milliseconds deadline_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t arrived_ = 0;
  std::size_t gone_ = 0;
  int round_ = 0;
  bool broken_ = false;
  std::map<std::vector<std::int64_t>, std::shared_ptr<group>> made_;
};

struct seat {
  std::shared_ptr<group> threads;
  std::int64_t rank;
};

inline int all_gather(void* context, const void* mine, void* all, std::int64_t bytes) {
  const seat& me = *static_cast<seat*>(context);
  group& threads = *me.threads;
  threads.posted[static_cast<std::size_t>(me.rank)] = const_cast<void*>(mine);
  if (!threads.come()) return 1;
  for (auto* to = static_cast<std::byte*>(all); const void* const from : threads.posted) {
    if (to != from) std::memcpy(to, from, static_cast<std::size_t>(bytes));
    to += bytes;
  }
  threads.go();
  return 0;
}

inline int broadcast(void* context, void* data, std::int64_t bytes, std::int64_t root) {
  const seat& me = *static_cast<seat*>(context);
  group& threads = *me.threads;
  threads.posted[static_cast<std::size_t>(me.rank)] = data;
  if (!threads.come()) return 1;
  const void* const from = threads.posted[static_cast<std::size_t>(root)];
  if (data != from) std::memcpy(data, from, static_cast<std::size_t>(bytes));
  threads.go();
  return 0;
}

inline int make_group(void* context, const std::int64_t* ranks, std::int64_t count, void** made) {
  const seat& me = *static_cast<seat*>(context);
  const std::vector<std::int64_t> list(ranks, ranks + count);
  const auto place = std::ranges::find(list, me.rank) - list.begin();
  *made = new seat{me.threads->make(list), place};
  return 0;
}

inline void release(void* context) {
  delete static_cast<seat*>(context);
}

/// Calls f(communicator) in as many threads, each with its rank, and waits for them.
template <class F>
void run(std::int64_t ranks, std::chrono::milliseconds deadline, const F& f) {
  const auto all = std::make_shared<group>(ranks, deadline);
  std::vector<std::jthread> threads;
  for (std::int64_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      callback_communicator world({new seat{all, r}, all_gather, broadcast, make_group, release},
                                  seqpack::group_members::all(ranks), {r});
      f(world);
    });
  }
}

}  // namespace thread_engine
