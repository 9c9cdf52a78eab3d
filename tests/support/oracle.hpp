/// \file
/// What a packed row must hold, built from the definitions alone with lists and loops. It shares no
/// code with the library and is as slow as it is plain: every answer can be checked by reading.
///
///     const oracle::packed row = oracle::pack({.lens = {5, 3}, .each = 4, .cp = 2});
///     oracle::values(row.shards[0], oracle::id, 0)     // what rank 0 holds, pad 0
///     oracle::labels(row.shards[0], row, oracle::id, 1, -100)
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace oracle {

/// Counts of tokens, indices, ids.
using number = long long;
using numbers = std::vector<number>;

/// The same numbers, of whatever type they are.
template <class T>
numbers to_numbers(const std::vector<T>& values) {
  return {values.begin(), values.end()};
}

enum class kind { zigzag, contiguous, striped, row_contiguous };
enum class tail { absorb, ghost };

/// The lengths and the policies. An absent total multiple is not the same as one of 1: with a ghost
/// tail, the ghost exists only if there is a total in the policy.
struct request {
  numbers lens = {};  ///< real tokens of the sequences
  number each = 1;    ///< each sequence is padded to a multiple of this
  std::optional<number> total_multiple = std::nullopt;
  std::optional<number> fixed_total = std::nullopt;
  tail tail_to = tail::absorb;
  number cp = 1;
  kind sharding = kind::zigzag;
  numbers order = {};  ///< slot -> sequence; empty: slot k is row k
};

/// Why a request has no packed row.
enum class refusal {
  none,
  each_not_divisible,         ///< each > 1 and the sharding's divisor does not divide it
  fixed_total_not_divisible,  ///< by the total multiple or by the sharding's divisor
  negative_length,
  padded_length_not_divisible,  ///< by the sharding's divisor, the tail's length included
  total_not_divisible,          ///< by the number of ranks, where the whole row is cut
  content_above_total,
  nobody_absorbs
};

/// One place of a packed row or of a shard.
struct token {
  number slot;      ///< the sequence that owns it; the ghost's is the number of sequences
  number row;       ///< the sequence of that sequence, -1 for the ghost
  number position;  ///< in its sequence, counted on in padding
  bool real;

  friend bool operator==(const token&, const token&) = default;
};
using tokens = std::vector<token>;

struct packed {
  refusal refused = refusal::none;
  numbers lens;    ///< real lengths by slot, 0 for the ghost at the end if there is one
  numbers padded;  ///< padded lengths by slot
  numbers cu;
  numbers cu_padded;
  number total = 0;
  number max_seqlen = 0;
  bool has_padding = false;
  bool has_ghost = false;
  tokens row;                  ///< T tokens
  std::vector<tokens> shards;  ///< CP lists of T / CP tokens
  tokens all_shards;           ///< the shards one after the other
};

inline std::size_t at(number index) {
  return static_cast<std::size_t>(index);
}

/// Counts up instead of dividing.
inline number next_multiple(number value, number multiple) {
  number result = 0;
  while (result < value) result += multiple;
  return result;
}

/// What must divide every padded length.
inline number divisor(kind sharding, number cp) {
  if (cp == 1 || sharding == kind::row_contiguous) return 1;
  return sharding == kind::zigzag ? 2 * cp : cp;
}

/// What must divide the total.
inline number total_divisor(kind sharding, number cp) {
  return sharding == kind::row_contiguous ? cp : divisor(sharding, cp);
}

/// The positions of a sequence of the given padded length that a rank owns, in its order; not where the
/// whole row is cut.
inline numbers share(kind sharding, number cp, number rank, number padded) {
  numbers result;
  const auto take = [&](number first, number count) {
    for (number k = 0; k < count; ++k) result.push_back(first + k);
  };
  if (cp == 1) {
    take(0, padded);
  } else if (sharding == kind::zigzag) {
    const number chunk = padded / (2 * cp);
    take(rank * chunk, chunk);
    take((2 * cp - 1 - rank) * chunk, chunk);
  } else if (sharding == kind::contiguous) {
    take(rank * (padded / cp), padded / cp);
  } else {
    for (number j = 0; j < padded; ++j) {
      if (j % cp == rank) result.push_back(j);
    }
  }
  return result;
}

/// The lengths of the slots of a request.
inline numbers slot_lengths(const request& r) {
  if (r.order.empty()) return r.lens;
  numbers result;
  for (const number row : r.order) result.push_back(r.lens[at(row)]);
  return result;
}

/// The bounds, or why there are none.
inline packed bounds(const request& r) {
  packed p;
  const auto refuse = [](refusal why) {
    packed nothing;
    nothing.refused = why;
    return nothing;
  };
  const number needed = divisor(r.sharding, r.cp);
  if (r.each > 1 && r.each % needed != 0) return refuse(refusal::each_not_divisible);
  if (r.fixed_total) {
    const number multiple = r.total_multiple.value_or(1);
    if (*r.fixed_total % multiple != 0 || *r.fixed_total % total_divisor(r.sharding, r.cp) != 0) {
      return refuse(refusal::fixed_total_not_divisible);
    }
  }

  p.lens = slot_lengths(r);
  number content = 0;
  for (const number length : p.lens) {
    if (length < 0) return refuse(refusal::negative_length);
    p.padded.push_back(next_multiple(length, r.each));
    content += p.padded.back();
  }
  p.total = r.fixed_total ? *r.fixed_total : next_multiple(content, r.total_multiple.value_or(1));
  if (content > p.total) return refuse(refusal::content_above_total);

  const number left = p.total - content;
  p.has_ghost = r.tail_to == tail::ghost && (r.total_multiple || r.fixed_total);
  if (p.has_ghost) {
    p.lens.push_back(0);
    p.padded.push_back(left);
  } else if (left > 0) {
    if (p.padded.empty()) return refuse(refusal::nobody_absorbs);
    p.padded.back() += left;
  }
  for (const number length : p.padded) {
    if (length % needed != 0) return refuse(refusal::padded_length_not_divisible);
  }

  if (p.total % total_divisor(r.sharding, r.cp) != 0) return refuse(refusal::total_not_divisible);

  p.cu = {0};
  p.cu_padded = {0};
  for (std::size_t k = 0; k < p.lens.size(); ++k) {
    p.cu.push_back(p.cu.back() + p.lens[k]);
    p.cu_padded.push_back(p.cu_padded.back() + p.padded[k]);
    if (p.padded[k] > p.max_seqlen) p.max_seqlen = p.padded[k];
  }
  p.has_padding = p.cu.back() != p.total;
  return p;
}

/// The bounds, the full row and the shards.
inline packed pack(const request& r) {
  packed p = bounds(r);
  if (p.refused != refusal::none) return p;
  const auto token_of = [&](number slot, number position) {
    const bool ghost = p.has_ghost && at(slot) + 1 == p.lens.size();
    const number row = ghost ? -1 : r.order.empty() ? slot : r.order[at(slot)];
    return token{slot, row, position, position < p.lens[at(slot)]};
  };
  const auto slots = static_cast<number>(p.lens.size());
  for (number slot = 0; slot < slots; ++slot) {
    for (number s = 0; s < p.padded[at(slot)]; ++s) p.row.push_back(token_of(slot, s));
  }
  for (number rank = 0; rank < r.cp; ++rank) {
    tokens shard;
    if (r.sharding == kind::row_contiguous) {
      const number size = p.total / r.cp;
      for (number k = 0; k < size; ++k) shard.push_back(p.row[at(rank * size + k)]);
    }
    for (number slot = 0; slot < slots && r.sharding != kind::row_contiguous; ++slot) {
      for (const number s : share(r.sharding, r.cp, rank, p.padded[at(slot)])) {
        shard.push_back(token_of(slot, s));
      }
    }
    p.all_shards.insert(p.all_shards.end(), shard.begin(), shard.end());
    p.shards.push_back(shard);
  }
  return p;
}

/// The usual content of a batch in these tests: token t of row b is 100 * (b + 1) + t.
inline number id(number row, number position) {
  return 100 * (row + 1) + position;
}

/// What a place holds, where a batch holds `content(row, position)`.
template <class Content>
numbers values(const tokens& place, Content content, number pad) {
  numbers result;
  for (const token& t : place) result.push_back(t.real ? content(t.row, t.position) : pad);
  return result;
}

inline numbers position_ids(const tokens& place) {
  numbers result;
  for (const token& t : place) result.push_back(t.position);
  return result;
}

inline numbers sequence_index(const tokens& place) {
  numbers result;
  for (const token& t : place) result.push_back(t.slot);
  return result;
}

/// 1 in padding.
inline numbers padding_mask(const tokens& place) {
  numbers result;
  for (const token& t : place) result.push_back(t.real ? 0 : 1);
  return result;
}

/// The shift-th next real token of the same sequence.
template <class Content>
numbers labels(const tokens& place, const packed& p, Content content, number shift, number ignore) {
  numbers result;
  for (const token& t : place) {
    const bool has_next = t.real && t.position + shift < p.lens[at(t.slot)];
    result.push_back(has_next ? content(t.row, t.position + shift) : ignore);
  }
  return result;
}

inline number real_tokens(const tokens& place) {
  number count = 0;
  for (const token& t : place) {
    if (t.real) ++count;
  }
  return count;
}

/// The [batch, width] table that a place with these values unpacks to, row after row.
inline numbers unpack(const tokens& place, const numbers& held, number batch, number width,
                      number fill) {
  numbers table(at(batch * width), fill);
  for (std::size_t k = 0; k < place.size(); ++k) {
    if (place[k].real) table[at(place[k].row * width + place[k].position)] = held[k];
  }
  return table;
}

}  // namespace oracle
