#include <seqpack/exec/threads.hpp>
#include <seqpack/seqpack.hpp>
#include <vector>

int main() {
  using namespace seqpack;
  const auto layout = make_layout(std::vector{5, 3});
  const std::vector<int> ids(16, 1);
  std::vector<int> row(8);
  pack(host_threads{2}, layout, full_row, field(batch_view(ids.data(), 2, 8), row));
  return row == std::vector<int>(8, 1) ? 0 : 1;
}
