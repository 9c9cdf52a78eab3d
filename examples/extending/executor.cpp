// Packs with a user-defined executor, and runs operations on it that look at what it does.
#include "executor.hpp"

#include <iostream>
#include <numeric>
#include <seqpack/seqpack.hpp>
#include <set>
#include <stdexcept>
#include <vector>

using namespace seqpack;

/// Notes which thread does a row.
struct note_threads {
  std::thread::id* of;

  offset_t rows() const { return 1024; }
  offset_t row_bytes() const { return 4096; }  // a row writes that much, an executor is told
  void process(offset_t first, offset_t last) const {
    std::fill(of + first, of + last, std::this_thread::get_id());
  }
};

/// Fails in its last row.
struct fail {
  offset_t rows() const { return 1024; }
  offset_t row_bytes() const { return 4096; }
  void process(offset_t, offset_t last) const {
    if (last == rows()) throw std::runtime_error("the last row");
  }
};

int main() {
  const jthreads four{.count = 4};

  std::vector<std::thread::id> ids(1024);
  execute(four, note_threads{ids.data()});
  bool right = std::set(ids.begin(), ids.end()).size() == 4 && ids[0] == std::this_thread::get_id();
  try {
    execute(four, fail{});
    right = false;
  } catch (const std::runtime_error&) {
  }

  constexpr offset_t payload = 128;
  const auto layout = make_layout(std::vector{900, 17, 1024, 256}, padding{each_multiple_of<16>{}},
                                  context_parallel<4>{});
  std::vector<float> hidden(4 * 1024 * payload);
  std::iota(hidden.begin(), hidden.end(), 1.0F);
  const auto packed_by = [&](const auto& where) {
    std::vector<float> shards(static_cast<std::size_t>(layout.total_tokens() * payload));
    pack(where, layout, all_shards,
         field(batch_view(hidden.data(), 4, 1024, payload),
               row_view(shards.data(), layout.total_tokens(), payload)));
    return shards;
  };
  right = right && packed_by(four) == packed_by(host);
  std::cout << "executor: four threads, " << (right ? "as expected" : "WRONG") << '\n';
  return right && std::cout.flush() ? 0 : 1;
}
