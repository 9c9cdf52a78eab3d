/// \file
/// What a rank tells the others in a split.
#pragma once

#include "seqpack/comm/detail/record.hpp"
#include "seqpack/core/config.hpp"

namespace seqpack::detail {

/// One rank's part of a split.
struct split_record {
  bool joins = false;
  offset_t colour = 0;
  offset_t key = 0;

  void write(records::writer& to) const {
    to.flag(joins);
    to.put(colour);
    to.put(key);
  }
  static split_record read(records::reader& from) {
    const bool joins = from.flag("part in the split");
    const auto colour = from.get<offset_t>();
    return {joins, colour, from.get<offset_t>()};
  }
};

}  // namespace seqpack::detail
