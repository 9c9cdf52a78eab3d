#include "json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace inspect {

using nlohmann::json;

void json_writer::separate() {
  if (!first_) out_ << ',';
  first_ = false;
}

void json_writer::begin(char bracket) {
  separate();
  out_ << bracket;
  first_ = true;
}

void json_writer::end(char bracket) {
  out_ << bracket;
  first_ = false;
}

void json_writer::key(const char* name) {
  separate();
  out_ << json(name).dump() << ':';
  first_ = true;
}

void json_writer::number(offset_t value) {
  separate();
  out_ << json(value).dump();
}

void json_writer::flag(bool value) {
  separate();
  out_ << json(value).dump();
}

template <class T, class F>
void json_writer::list(std::span<const T> values, const F& entry) {
  constexpr std::size_t most = 4096;
  begin_array();
  while (!values.empty()) {
    const auto some = values.first(std::min(most, values.size()));
    json part = json::array();
    for (const T& value : some) part.push_back(entry(value));
    const std::string text = part.dump();
    separate();
    out_.write(text.data() + 1, static_cast<std::streamsize>(text.size() - 2));  // the brackets
    values = values.subspan(some.size());
  }
  end_array();
}

void json_writer::numbers(std::span<const std::int32_t> values) {
  list(values, [](std::int32_t value) { return json(value); });
}

void json_writer::numbers(std::span<const offset_t> values) {
  list(values, [](offset_t value) { return json(value); });
}

void json_writer::flags(std::span<const std::uint8_t> values) {
  list(values, [](std::uint8_t value) { return json(value != 0); });
}

void json_writer::tokens(std::span<const offset_t> ids) {
  list(ids, [](offset_t id) {
    return id == no_token ? json() : json::array({id >> 32, id & 0xFFFFFFFF});
  });
}

}  // namespace inspect
