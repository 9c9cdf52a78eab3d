#include <cstdint>
#include <iostream>
#include <seqpack/comm/broadcast.hpp>
#include <seqpack/comm/nccl.hpp>
#include <seqpack/comm/self.hpp>

int main() {
  try {
    seqpack::self_communicator self;
    auto group = seqpack::nccl_communicator::over(self, nullptr);
    const auto memory = group.allocate(3 * sizeof(std::int64_t));
    seqpack::tensor_view<std::int64_t> ids(static_cast<std::int64_t*>(memory.get()), {3});
    const auto received = seqpack::broadcast_tensor(ids, seqpack::group_rank{0}, group);
    group.wait();
    std::cout << received.shape().to_string() << " in " << group.location().to_string() << '\n';
    return received.data() == ids.data ? 0 : 1;
  } catch (const seqpack::cuda_error& e) {
    std::cout << "no device: " << e.what() << '\n';
    return 0;
  }
}
