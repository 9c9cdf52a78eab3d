/// \file
/// Errors of collectives, and the default deadline of communicators.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

#include "seqpack/comm/rank.hpp"
#include "seqpack/core/error.hpp"
#include "seqpack/core/source_location.hpp"

namespace seqpack {

/// How long a collective waits for another rank by default: longer than a checkpoint or an
/// evaluation that one rank does alone.
inline constexpr std::chrono::milliseconds default_deadline = std::chrono::minutes(10);

/// Ranks called a collective with arguments that do not match, or one of them with arguments that
/// are wrong. All ranks of the group throw it with the same text, nothing has been written on any
/// of them, and the group can be used.
class collective_mismatch : public invalid_input {
 public:
  /// \param rank the first rank whose value was refused.
  collective_mismatch(group_rank rank, std::string entry, std::string value,
                      std::string requirement)
      : invalid_input(std::move(entry), std::move(value), std::move(requirement)), rank_(rank) {}

  /// The first rank whose value was refused.
  group_rank rank() const noexcept { return rank_; }

 private:
  group_rank rank_;
};

/// Ranks could not reach each other. The communicator that threw it refuses everything from then
/// on.
class communication_error : public std::runtime_error {
 public:
  explicit communication_error(const std::string& reason,
                               source_location where = source_location::current())
      : std::runtime_error(reason + " (at " + where.to_string() + ")"),
        reason_(reason),
        where_(where) {}

  /// what() without the source location.
  const std::string& reason() const noexcept { return reason_; }
  /// Where the library made the call that failed.
  const source_location& where() const noexcept { return where_; }

 private:
  std::string reason_;
  source_location where_;
};

/// A peer did not join the call within the deadline of the communicator: it is dead, it stalls, or
/// it never makes this call.
class deadline_passed : public communication_error {
 public:
  deadline_passed(const std::string& operation, std::chrono::milliseconds waited,
                  source_location where = source_location::current())
      : deadline_passed(operation, waited, "", where) {}
  /// \param absent which ranks it has waited for, where that is known: "rank 2 has not come"
  deadline_passed(const std::string& operation, std::chrono::milliseconds waited,
                  const std::string& absent, source_location where = source_location::current())
      : communication_error(operation + " has waited " + std::to_string(waited.count()) +
                                " ms for another rank, the deadline of the communicator" +
                                (absent.empty() ? "" : "; " + absent),
                            where),
        waited_(waited) {}

  std::chrono::milliseconds waited() const noexcept { return waited_; }

 private:
  std::chrono::milliseconds waited_;
};

}  // namespace seqpack
