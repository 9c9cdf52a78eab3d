// JSON that is written as its values come.
#pragma once

#include <cstdint>
#include <ostream>
#include <seqpack/core/config.hpp>
#include <span>

namespace inspect {

using seqpack::offset_t;

/// The id of a token says where it is in the batch. Lengths fit into 31 bits.
inline constexpr offset_t id_of(offset_t sequence, offset_t index) {
  return (sequence << 32) | index;
}

/// Stands for padding, and for a label that is ignored.
inline constexpr offset_t no_token = -1;

/// Writes one value of JSON, on one line. Of an array it keeps some thousand entries at a time.
class json_writer {
 public:
  explicit json_writer(std::ostream& out) : out_(out) {}

  void begin_object() { begin('{'); }
  void begin_array() { begin('['); }
  void end_object() { end('}'); }
  void end_array() { end(']'); }
  void key(const char* name);

  void number(offset_t value);
  void flag(bool value);
  void numbers(std::span<const std::int32_t> values);
  void numbers(std::span<const offset_t> values);
  void flags(std::span<const std::uint8_t> values);  ///< 0 is false
  /// [b, s] for each id; null for no_token.
  void tokens(std::span<const offset_t> ids);

 private:
  void separate();
  void begin(char bracket);
  void end(char bracket);
  template <class T, class F>
  void list(std::span<const T> values, const F& entry);

  std::ostream& out_;
  bool first_ = true;  // nothing stands before the next value in its object or array
};

}  // namespace inspect
