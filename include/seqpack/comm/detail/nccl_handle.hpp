/// \file
/// Owner of an ncclComm_t: setup, destruction, and calls that have no deadline of their own. CMake
/// component: seqpack::nccl.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <atomic>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/detail/nccl_site.hpp"
#include "seqpack/comm/error.hpp"
#include "seqpack/comm/nccl_error.hpp"
#include "seqpack/core/source_location.hpp"

namespace seqpack::detail::nccl {

/// The asynchronous error of a communicator, ncclInProgress, or ncclSuccess.
inline ncclResult_t state_of(ncclComm_t comm) noexcept {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm, &state);
  return asked == ncclSuccess ? state : asked;
}
constexpr bool has_failed(ncclResult_t code) noexcept {
  return code != ncclSuccess && code != ncclInProgress;
}

/// A call of NCCL that has no deadline of its own, made by a thread of its own, which
/// lasts as long as the call does. Where no thread can be made, it has completed when the object is
/// made.
class background_call {
 public:
  template <class Call>
  background_call(int device, const Call& call) noexcept {
    const auto make = [device, call] {
      const current_device here(device);
      const relaxed_capture undisturbed;
      const ncclResult_t code = call();
      return code == ncclInProgress ? ncclSuccess : code;
    };
    try {
      auto result = std::make_shared<std::atomic<ncclResult_t>>(ncclInProgress);
      std::thread([make, result] { result->store(make()); }).detach();
      result_ = std::move(result);
    } catch (const std::exception&) {
      made_here_ = make();
    }
  }

  /// ncclInProgress until the call has returned.
  ncclResult_t result() const noexcept { return result_ ? result_->load() : made_here_; }
  bool is_over() const noexcept { return result() != ncclInProgress; }

 private:
  std::shared_ptr<const std::atomic<ncclResult_t>> result_;
  ncclResult_t made_here_ = ncclSuccess;
};

/// An ncclComm_t at its site, and what is to be done with it at the end.
class handle {
 public:
  /// None.
  handle() = default;
  /// One that a call of NCCL puts there. It is aborted unless ready() follows.
  explicit handle(const site& at) : handle(at, nullptr, end::abort) {}
  /// One that is there.
  handle(const site& at, ncclComm_t comm, bool owned)
      : handle(at, comm, owned ? end::destroy : end::leave) {}
  handle(handle&&) noexcept = default;
  handle& operator=(handle&& other) noexcept {
    handle taken(std::move(other));
    std::swap(at_, taken.at_);
    std::swap(comm_, taken.comm_);
    std::swap(part_, taken.part_);
    std::swap(ends_, taken.ends_);
    return *this;
  }
  ~handle() {
    if (get() == nullptr || ends_ == end::leave) return;
    if (ends_ == end::destroy && finalize()) {
      const auto call = start([](ncclComm_t comm) { return ncclCommDestroy(comm); });
      detail::wait_until(at_.deadline, [&] { return call.is_over(); });
    } else {
      abort();
    }
  }

  const site& at() const noexcept { return at_; }
  ncclComm_t get() const noexcept {
    return comm_ == nullptr ? nullptr : std::atomic_ref(*comm_).load();
  }
  /// Where a call of NCCL writes it, at once or from a thread of its own later.
  ncclComm_t* address() noexcept { return comm_.get(); }
  /// Its setup has completed.
  void ready() noexcept { ends_ = end::destroy; }
  /// NCCL makes another one of this one, and may write it until an abort of this one is over.
  void makes(const handle& part) noexcept { part_ = part.comm_; }

  /// Waits until what NCCL does for this communicator outside of streams has completed.
  /// \param code what the call returned
  /// \throws nccl_error, deadline_passed
  void settle(ncclResult_t code, const char* operation, source_location where) const {
    if (has_failed(code)) throw nccl_error(code, operation, get(), where);
    const bool over = detail::wait_until(at_.deadline, [&] {
      code = state_of(get());
      return code != ncclInProgress;
    });
    if (has_failed(code)) throw nccl_error(code, operation, get(), where);
    if (!over) throw deadline_passed(operation, at_.deadline, where);
  }

  /// Ends what is in flight, and the communicator with it. The stream goes on without the data.
  /// \returns what did not come to its end before the deadline passed once more, to be put after
  /// the reason of the abort; nothing where all of it did.
  const char* abort() noexcept {
    if (get() == nullptr) return "";
    const background_call call = start_abort();
    bool busy = false;
    detail::wait_until(at_.deadline, [&] {
      busy = ends_ != end::abort && at_.state() == cudaErrorNotReady;
      return !busy && call.is_over();
    });
    if (call.is_over()) return busy ? "; the stream is still busy after an abort" : "";
    return busy ? "; NCCL has not ended the communicator, and the stream is still busy"
                : "; NCCL has not ended the communicator";
  }
  /// Does not wait for its end.
  background_call start_abort() noexcept {
    return start([](ncclComm_t comm) { return ncclCommAbort(comm); });
  }

 private:
  enum class end { leave, destroy, abort };

  handle(const site& at, ncclComm_t comm, end ends)
      : at_(at), comm_(std::make_shared<ncclComm_t>(comm)), ends_(ends) {}

  /// The last call for this communicator. What NCCL may write to meanwhile lives as long as it.
  template <class Call>
  background_call start(const Call& call) noexcept {
    ncclComm_t const comm = std::atomic_ref(*comm_).exchange(nullptr);
    return {at_.device, [call, comm, written = std::pair(comm_, part_)] { return call(comm); }};
  }

  /// Waits until everything has completed.
  /// \returns whether it has, without errors, before the deadline passed.
  bool finalize() const noexcept {
    ncclComm_t const comm = get();
    if (!at_.is_captured()) {
      detail::wait_until(at_.deadline, [&] {
        return has_failed(state_of(comm)) || at_.state() != cudaErrorNotReady;
      });
      if (at_.state() != cudaSuccess) return false;
    }
    if (state_of(comm) != ncclSuccess) return false;
    const background_call call(at_.device, [comm] { return ncclCommFinalize(comm); });
    detail::wait_until(at_.deadline, [&] {
      return call.is_over() && (has_failed(call.result()) || state_of(comm) != ncclInProgress);
    });
    return call.result() == ncclSuccess && state_of(comm) == ncclSuccess;
  }

  site at_;
  std::shared_ptr<ncclComm_t> comm_;
  std::shared_ptr<ncclComm_t> part_;
  end ends_ = end::leave;
};

/// Calls return where they would wait for other ranks.
inline ncclConfig_t non_blocking() noexcept {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

}  // namespace seqpack::detail::nccl
