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
    out[4] = distance(view, view.padding);
    out[5] = distance(view, view.cp);
    out[6] = view.padding.each();
    out[7] = view.padding.total_multiple();
    out[8] = view.padding.fixed_total();
    out[9] = view.cp.size();
    out[10] = view.total;
  }
};

template <class Rules>
struct rules_offsets {
  Rules rules;
  SEQPACK_HD void operator()(std::ptrdiff_t* out) const {
    out[0] = sizeof(Rules);
    out[1] = distance(rules, rules.cp);
    out[2] = distance(rules, rules.width);
    out[3] = rules.padding.each();
    out[4] = rules.cp.size();
    out[5] = rules.width;
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

template <class P, class C>
void check_policies(const P& padding, const C& cp) {
  layout_view<C> view;
  view.total = 4711;
  view.padding = padding;
  view.cp = cp;
  check_both_sides(view_offsets<layout_view<C>>{view});
  check_both_sides(rules_offsets<bounds_rules<std::int32_t, P, C>>{{padding, cp, 1234}});
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
}

BOOST_AUTO_TEST_SUITE_END()
