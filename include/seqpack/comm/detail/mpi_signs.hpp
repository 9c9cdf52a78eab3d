/// \file
/// What ranks of an MPI group tell each other once one of them has given up. CMake component:
/// seqpack::mpi.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "seqpack/comm/detail/deadline.hpp"
#include "seqpack/comm/detail/exchange.hpp"
#include "seqpack/comm/detail/record.hpp"
#include "seqpack/comm/mpi_environment.hpp"
#include "seqpack/comm/rank.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/error.hpp"

namespace seqpack::detail::mpi {

/// Signs from one rank to another, outside of collectives: that it has given up the group, or that
/// it waits in a collective, which is the answer to the former. Nothing is sent while all is well.
///
/// They tell a late rank that what it finds in a collective was left there by ranks that have gone,
/// and a rank whose deadline has passed who else has waited, so that it can name those that have
/// not come.
class signs {
 public:
  /// Of a sign.
  enum class kind : std::int32_t { waits, left };
  struct sign {
    kind what = kind::waits;
    std::string operation;  ///< what the rank was asked for

    void write(records::writer& to) const {
      to.choice(what);
      to.text(std::string_view(operation).substr(0, longest_operation));
    }
    static sign read(records::reader& from) {
      const kind what = from.choice("kind of the sign", kind::left);
      return {what, from.text("operation", longest_operation)};
    }
  };

  /// None are sent or heard: the communicator is somebody else's.
  signs() = default;
  /// \param comm the library's own, with these members
  signs(MPI_Comm comm, offset_t size, group_rank me)
      : comm_(comm), me_(me), heard_(static_cast<std::size_t>(size)) {}

  /// Takes what has come. A rank that has left is told that this one waits, where it does.
  void listen(std::optional<std::string_view> waits_in = std::nullopt) {
    for (auto heard = receive(); heard; heard = receive()) {
      const auto& [from, what] = *heard;
      auto& known = heard_[static_cast<std::size_t>(from.value)];
      const bool answers = what.what == kind::left && waits_in;
      if (!known || known->what != kind::left) known = what;
      if (answers) send(kind::waits, *waits_in, from);
    }
  }
  /// The same without any, where a message may take a moment.
  void listen_well() {
    for (int k = 0; k < 4; ++k) listen();
  }
  /// The first rank that is known to have left, and in what.
  std::optional<std::pair<group_rank, std::string>> find_left() const {
    for (std::size_t r = 0; r < heard_.size(); ++r) {
      if (heard_[r] && heard_[r]->what == kind::left) {
        return std::pair(group_rank{static_cast<offset_t>(r)}, heard_[r]->operation);
      }
    }
    return std::nullopt;
  }
  /// Tells all others that this rank has left, once.
  void leave(std::string_view operation) {
    if (std::exchange(has_left_, true)) return;
    for (std::size_t r = 0; r < heard_.size(); ++r) {
      const group_rank rank{static_cast<offset_t>(r)};
      if (rank != me_) send(kind::left, operation, rank);
    }
  }
  /// Waits a moment for the answers of those that wait too. At least one does not, or nobody would.
  /// \returns the ranks without a sign
  std::vector<group_rank> find_absent(std::chrono::milliseconds deadline) {
    std::vector<group_rank> absent;
    detail::wait_until(std::min<std::chrono::milliseconds>(deadline, moment), [&] {
      listen();
      absent = ranks_where(static_cast<offset_t>(heard_.size()), [&](std::size_t r) {
        return !heard_[r] && static_cast<offset_t>(r) != me_.value;
      });
      return absent.size() < 2;
    });
    return absent;
  }
  bool are_heard() const noexcept { return comm_ != MPI_COMM_NULL; }

 private:
  static constexpr int tag = 29101;  // MPI has tags up to 32767 at least
  static constexpr std::size_t longest_operation = 31;
  static constexpr int bytes_of_sign = 64;
  static constexpr std::chrono::milliseconds moment = std::chrono::seconds(1);

  void send(kind what, std::string_view operation, group_rank to) {
    if (!are_heard()) return;
    const auto bytes =
        std::make_shared<records::bytes>(records::write(sign{what, std::string(operation)}));
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(bytes->data(), bytes_of_sign, MPI_BYTE, static_cast<int>(to.value),
                               tag, comm_, &request);
    if (code != MPI_SUCCESS) return;
    int sent = 0;
    MPI_Test(&request, &sent, MPI_STATUS_IGNORE);
    if (sent != 0) return;
    keep_forever(bytes);
    MPI_Request_free(&request);
  }
  std::optional<std::pair<group_rank, sign>> receive() {
    while (are_heard()) {
      int found = 0;
      MPI_Status status;
      if (MPI_Iprobe(MPI_ANY_SOURCE, tag, comm_, &found, &status) != MPI_SUCCESS || found == 0) {
        break;
      }
      int count = 0;
      MPI_Get_count(&status, MPI_BYTE, &count);
      std::vector<std::byte> bytes(static_cast<std::size_t>(std::max(count, 0)));
      if (MPI_Recv(bytes.data(), count, MPI_BYTE, status.MPI_SOURCE, tag, comm_,
                   MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        break;
      }
      try {
        return std::pair(group_rank{status.MPI_SOURCE}, records::read<sign>(bytes));
      } catch (const invalid_input&) {
        continue;  // none of ours
      }
    }
    return std::nullopt;
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  group_rank me_;
  bool has_left_ = false;
  std::vector<std::optional<sign>> heard_;
};

}  // namespace seqpack::detail::mpi
