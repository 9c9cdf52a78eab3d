// Random sequences of collectives with random faults on random ranks. All ranks draw the same plan;
// what must come out follows from the plan alone. Outcomes are compared over MPI itself.
#define BOOST_TEST_MODULE mpi_random_program
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "seqpack/comm/broadcast.hpp"
#include "seqpack/comm/subgroup.hpp"
#include "support/mpi.hpp"

using namespace seqpack;
using namespace seqpack::testing;

namespace {

enum class fault {
  none,
  shape,
  type,
  null,
  strided,
  other_root,
  no_tensor_on_root,
  no_such_root,
  no_memory,
  other_call
};

struct step {
  offset_t root;
  std::vector<offset_t> shape;
  std::vector<int> brings;  ///< per rank: 0 nothing, 1 a type, 2 a tensor
  fault what;
  std::vector<bool> faulty;  ///< per rank
  int collective;            ///< 0: broadcast_tensor, 1: all_reduce, 2: all_gather, 3: split
};

step draw(std::mt19937& random, int size) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  step s{.root = below(size),
         .shape = {},
         .brings = {},
         .what = fault::none,
         .faulty = {},
         .collective = 0};
  for (int d = below(5); d > 0; --d) s.shape.push_back(below(7));
  for (int r = 0; r < size; ++r) s.brings.push_back(r == s.root ? 2 : below(3));
  s.faulty.assign(static_cast<std::size_t>(size), false);
  if (below(3) == 0) {
    s.collective = 1 + below(3);
  } else if (below(2) == 0) {
    s.what = static_cast<fault>(1 + below(9));
    for (int k = 1 + below(size); k > 0; --k)
      s.faulty[static_cast<std::size_t>(below(size))] = true;
    // All with another root would be no fault.
    if (s.what == fault::other_root) s.faulty[0] = false;
  }
  return s;
}

offset_t elements(const step& s) {
  offset_t n = 1;
  for (const offset_t extent : s.shape) n *= extent;
  return n;
}

bool hit(const step& s, offset_t rank) {
  return s.faulty[static_cast<std::size_t>(rank)];
}

/// Whether all ranks must refuse the call, from the plan alone.
bool refused(const step& s, int size) {
  const auto some = [&](auto&& question) {
    for (offset_t r = 0; r < size; ++r) {
      if (hit(s, r) && question(r)) return true;
    }
    return false;
  };
  // Some rank of whom the question is true has the fault, and the root has not, or the other way.
  const auto differs = [&](auto&& question) {
    for (offset_t r = 0; r < size; ++r) {
      if (question(r) && hit(s, r) != hit(s, s.root)) return true;
    }
    return false;
  };
  const auto brings = [&](offset_t r) { return s.brings[static_cast<std::size_t>(r)]; };
  const bool all_hit = std::all_of(s.faulty.begin(), s.faulty.end(), [](bool f) { return f; });
  switch (s.what) {
    case fault::none:
    case fault::no_memory: return false;
    case fault::shape: return differs([&](offset_t r) { return brings(r) == 2; });
    case fault::type: return differs([&](offset_t r) { return brings(r) != 0; });
    case fault::null: return elements(s) > 0 && some([&](offset_t r) { return brings(r) == 2; });
    case fault::strided: return elements(s) > 1 && some([&](offset_t r) { return brings(r) == 2; });
    case fault::other_root: return some([](offset_t) { return true; });
    case fault::no_tensor_on_root: return hit(s, s.root);
    case fault::no_such_root: return true;
    case fault::other_call: return !all_hit;
  }
  return false;
}

std::vector<std::int64_t> sent(const step& s, int index) {
  std::vector<std::int64_t> values;
  for (offset_t k = 0; k < elements(s); ++k) values.push_back(index * 1000 + s.root * 100 + k);
  return values;
}

/// Runs one broadcast as this rank's part of the plan; what happened, as text.
std::string run_broadcast(mpi_communicator& group, const step& s, int index) {
  const offset_t me = group.rank().value;
  const bool faulty = hit(s, me);
  const bool is_root = me == s.root;
  const auto values = sent(s, index);
  const std::vector<std::int64_t> before(values.size(), -5);
  std::vector<std::int64_t> buffer = is_root ? values : before;
  buffer.reserve(1);  // never null

  std::vector<offset_t> shape = s.shape;
  if (s.what == fault::shape && faulty) shape.size() < 8 ? shape.push_back(1) : shape.pop_back();
  const auto type = s.what == fault::type && faulty ? element_type::of<double>()
                                                    : element_type::of<std::int64_t>();
  any_tensor_view mine(buffer.data(), type, tensor_shape(std::span<const offset_t>(shape)));
  if (s.what == fault::null && faulty) mine.data = nullptr;
  if (s.what == fault::strided && faulty) {
    for (offset_t& stride : mine.strides) stride *= 2;
  }
  group_rank root{s.root};
  if (s.what == fault::other_root && faulty) root.value = (s.root + 1) % group.size();
  if (s.what == fault::no_such_root) root.value = group.size() + 3;
  int brings = s.brings[static_cast<std::size_t>(me)];
  if (s.what == fault::no_tensor_on_root && faulty && is_root) brings = 0;
  broadcast_options options;
  if (s.what == fault::no_memory && faulty) {
    options.allocate = [](offset_t) -> std::shared_ptr<void> { throw std::bad_alloc(); };
  }

  try {
    if (s.what == fault::other_call && faulty) {
      group.split(0, 0);
      return "split";
    }
    std::vector<std::int64_t> received;
    if (brings == 1 && type == element_type::of<std::int64_t>()) {
      const auto t = broadcast_tensor<std::int64_t>(std::nullopt, root, group, options);
      received.assign(t.elements().begin(), t.elements().end());
    } else if (brings == 1) {
      broadcast_tensor<double>(std::nullopt, root, group, options);
      return "a double";
    } else {
      const auto t =
          broadcast_tensor(brings == 2 ? std::optional(mine) : std::nullopt, root, group, options);
      const auto* const data = static_cast<const std::int64_t*>(t.data());
      received.assign(data, data + t.shape().elements());
    }
    return received == values ? "received" : "received something else";
  } catch (const std::bad_alloc&) {
    return "no memory";
  } catch (const collective_mismatch& e) {
    return (buffer == (is_root ? values : before) ? "refused: " : "refused and WRITTEN: ") +
           std::string(e.what());
  }
}

std::string run_other(mpi_communicator& group, const step& s) {
  const offset_t me = group.rank().value;
  const offset_t size = group.size();
  if (s.collective == 1) {
    std::int64_t sum = me;
    group.all_reduce(static_cast<const std::int64_t*>(&sum), &sum, 1, reduction::sum);
    return sum == size * (size - 1) / 2 ? "summed" : "summed WRONG";
  }
  if (s.collective == 2) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(size));
    group.all_gather(&me, all.data(), 1);
    for (offset_t r = 0; r < size; ++r) {
      if (all[static_cast<std::size_t>(r)] != r) return "gathered WRONG";
    }
    return "gathered";
  }
  auto part = group.split(me % 2, -me);
  std::int64_t sum = me;
  part.all_reduce(static_cast<const std::int64_t*>(&sum), &sum, 1, reduction::max);
  const offset_t highest = (size - 1 - me) % 2 == 0 ? size - 1 : size - 2;
  return sum == highest && part.rank().value == (highest - me) / 2 ? "split" : "split WRONG";
}

/// The outcomes of all ranks, over MPI itself.
std::vector<std::string> outcomes_of_all(const std::string& mine) {
  std::vector<char> fixed(512, '\0');
  std::copy_n(mine.begin(), std::min<std::size_t>(mine.size(), 511), fixed.begin());
  std::vector<char> all(512 * static_cast<std::size_t>(world_size()));
  MPI_Allgather(fixed.data(), 512, MPI_CHAR, all.data(), 512, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> result;
  for (int r = 0; r < world_size(); ++r) result.emplace_back(all.data() + 512 * r);
  return result;
}

std::string expected(const step& s, int size, offset_t rank) {
  if (s.collective == 1) return "summed";
  if (s.collective == 2) return "gathered";
  if (s.collective == 3) return "split";
  if (refused(s, size)) return "refused: ";
  if (s.what == fault::other_call) return "split";
  const int brings = s.brings[static_cast<std::size_t>(rank)];
  if (s.what == fault::type && brings == 1 && hit(s, rank)) return "a double";
  const bool allocates = brings != 2;
  if (s.what == fault::no_memory && hit(s, rank) && allocates) return "no memory";
  return "received";
}

void run_program(unsigned seed, int steps) {
  std::mt19937 random(seed);
  auto group = world();
  int refusals = 0;
  for (int index = 0; index < steps; ++index) {
    const step s = draw(random, world_size());
    const std::string mine =
        s.collective == 0 ? run_broadcast(group, s, index) : run_other(group, s);
    const auto all = outcomes_of_all(mine);
    for (offset_t r = 0; r < world_size(); ++r) {
      const std::string& outcome = all[static_cast<std::size_t>(r)];
      const std::string wanted = expected(s, world_size(), r);
      const bool right = wanted == "refused: " ? outcome.starts_with(wanted) && outcome == all[0]
                                               : outcome == wanted;
      BOOST_TEST(right, "seed " << seed << ", step " << index << ", fault "
                                << static_cast<int>(s.what) << ": rank " << r << " has \""
                                << outcome << "\", expected \"" << wanted << "\"; rank 0 has \""
                                << all[0] << "\"");
    }
    refusals += refused(s, world_size());
  }
  BOOST_TEST(refusals > steps / 20);
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_ranks_end_alike) {
  for (unsigned seed = 1; seed <= 8; ++seed) run_program(seed, 150);
}
