#include <seqpack/seqpack.hpp>
#include <vector>

int main() {
  using namespace seqpack;
  const auto layout =
      make_layout(std::vector{5, 3}, padding{each_multiple_of<4>{}}, context_parallel<2>{});
  const std::vector<int> ids(16, 1);
  std::vector<int> shards(12);
  pack(host, layout, all_shards, field(batch_view(ids.data(), 2, 8), shards));
  return shards == std::vector{1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1, 1} ? 0 : 1;
}
