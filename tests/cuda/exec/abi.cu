// Types that travel to the device must be laid out alike on both sides. nvcc 13.0 breaks that for
// [[no_unique_address]] members, silently: everything behind one is read from the wrong place.
#include <array>
#include <boost/test/unit_test.hpp>

#include "seqpack/seqpack.cuh"
#include "support/device.cuh"

BOOST_AUTO_TEST_SUITE(exec_abi)

using namespace seqpack;
using testing::needs_device;
BOOST_TEST_GLOBAL_FIXTURE(needs_device);

namespace {

using offsets = std::array<std::ptrdiff_t, 16>;

template <class T, class M>
SEQPACK_HD std::ptrdiff_t distance(const T& object, const M& member) {
  return reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&object);
}

template <class View>
struct view_offsets {
  View view;
  SEQPACK_HD void operator()(std::ptrdiff_t* out) const {
    out[0] = sizeof(View);
    out[1] = distance(view, view.cu_padded);
    out[2] = distance(view, view.total);
    out[3] = distance(view, view.padded);
    out[4] = distance(view, view.cp);
    out[5] = distance(view, view.status);
    out[6] = view.cp.size();
    out[7] = view.cp.divisor();
    out[8] = view.total;
  }
};

template <class Rules>
struct rules_offsets {
  Rules rules;
  SEQPACK_HD void operator()(std::ptrdiff_t* out) const {
    out[0] = sizeof(Rules);
    out[1] = distance(rules, rules.divisor);
    out[2] = distance(rules, rules.width);
    out[3] = distance(rules, rules.ghost);
    out[4] = rules.padded(100);
    out[5] = rules.divisor.value();
    out[6] = rules.width;
    out[7] = rules.each;
    out[8] = rules.total_for(100);
    out[9] = rules.ghost;
  }
};

template <class F>
__global__ void run(F f, std::ptrdiff_t* out) {
  f(out);
}

template <class F>
void check_both_sides(const F& f) {
  offsets on_host{};
  f(on_host.data());
  testing::device_array<std::ptrdiff_t> out(std::vector<std::ptrdiff_t>(16));
  run<<<1, 1>>>(f, out.data());
  check_cuda(cudaDeviceSynchronize());
  const auto on_device = out.values();
  BOOST_TEST(on_device == std::vector<std::ptrdiff_t>(on_host.begin(), on_host.end()),
             boost::test_tools::per_element());
}

/// A user's own policy, of no size, and of one that is not the library's.
struct slots_of_ten {
  static constexpr offset_t static_each = 10;
  static constexpr offset_t static_total_multiple = 1;
  static constexpr offset_t static_fixed_total = 0;
  static constexpr bool has_total = false;
  static constexpr bool has_fixed_total = false;
  static constexpr tail tail_goes_to = tail::absorb;

  SEQPACK_HD constexpr offset_t each() const { return 10; }
  SEQPACK_HD constexpr offset_t total_multiple() const { return 1; }
  SEQPACK_HD constexpr offset_t fixed_total() const { return 0; }
  SEQPACK_HD constexpr offset_t padded_length(offset_t n) const { return (n + 9) / 10 * 10; }
};
struct with_a_number : slots_of_ten {
  std::int16_t number = 7;
};

template <class P, class C>
void check_policies(const P& padding, const C& cp) {
  layout_view<C> view;
  view.total = 4711;
  view.cp = cp;
  check_both_sides(view_offsets<layout_view<C>>{view});
  const auto rules =
      detail::rules_of<std::int32_t>(detail::rounding_on_device(padding), padding, cp, 1234);
  check_both_sides(rules_offsets<std::remove_const_t<decltype(rules)>>{rules});
}

}  // namespace

BOOST_AUTO_TEST_CASE(static_and_dynamic_policies_are_laid_out_alike) {
  check_policies(no_padding{}, no_context_parallel{});
  check_policies(padding{each_multiple_of<16>{}}, context_parallel<2, striped>{});
  check_policies(padding{each_multiple_of<>{16}}, context_parallel<>{2});
  check_policies(
      padding{each_multiple_of<16>{}, total_multiple_of<16>{}, fixed_total<>{64}, ghost_tail{}},
      context_parallel<dynamic, contiguous>{4});
  check_policies(padding{each_multiple_of<>{16}, total_multiple_of<>{32}, fixed_total<>{64}},
                 context_parallel<4>{});
  check_policies(
      any_padding(padding{each_multiple_of<12>{}, total_multiple_of<24>{}, ghost_tail{}}),
      context_parallel{2, any_sharding{striped{}}});
  check_policies(slots_of_ten{}, context_parallel<2, any_sharding>{any_sharding{contiguous{}}});
  check_policies(with_a_number{}, context_parallel<dynamic, striped>{5});
}

BOOST_AUTO_TEST_SUITE_END()
