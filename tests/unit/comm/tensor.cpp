#define BOOST_TEST_MODULE comm_tensor
#include "seqpack/comm/tensor.hpp"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "support/refused.hpp"
#include "support/strided_span.hpp"

using namespace seqpack;
using seqpack::testing::refused;

namespace {

std::vector<offset_t> list(std::span<const offset_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(shapes_hold_their_extents) {
  constexpr tensor_shape shape{2, 3, 4};
  static_assert(shape.dims() == 3 && shape[1] == 3 && shape.elements() == 24);
  BOOST_TEST(shape.to_string() == "[2, 3, 4]");
  BOOST_TEST(tensor_shape().dims() == 0);
  BOOST_TEST(tensor_shape().elements() == 1);
  BOOST_TEST(tensor_shape().to_string() == "[]");
  BOOST_TEST(tensor_shape({5, 0}).elements() == 0);
  BOOST_TEST(dense_strides({0, max_tokens, 1})[0] == max_tokens);
  BOOST_TEST(tensor_shape({1, 2, 3, 4, 5, 6, 7, 8}).elements() == 40320);
  BOOST_TEST((tensor_shape{2, 3} == tensor_shape{2, 3}));
  BOOST_TEST((tensor_shape{2, 3} != tensor_shape{3, 2}));
  BOOST_TEST((tensor_shape{6} != tensor_shape{6, 1}));
}

BOOST_AUTO_TEST_CASE(bad_shapes_are_refused) {
  BOOST_CHECK_EXCEPTION((tensor_shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), invalid_input,
                        refused("number of dimensions", "9", "at most 8"));
  BOOST_CHECK_EXCEPTION((tensor_shape{2, -3}), invalid_input,
                        refused("shape[1]", "-3", "at least 0"));
  BOOST_CHECK_EXCEPTION((tensor_shape{offset_t{1} << 62}), invalid_input,
                        refused("shape[0]", "4611686018427387904", "281474976710656"));
  BOOST_CHECK_EXCEPTION((tensor_shape{offset_t{1} << 40, offset_t{1} << 40}), invalid_input,
                        refused("shape[1]", "1099511627776", "281474976710656"));
  // A 0 makes it empty, but not its strides small.
  BOOST_CHECK_EXCEPTION((tensor_shape{0, max_tokens, max_tokens}), invalid_input,
                        refused("shape[2]", "281474976710656", "281474976710656"));
}

BOOST_AUTO_TEST_CASE(dense_or_not) {
  const tensor_shape shape{2, 3, 4};
  BOOST_TEST((dense_strides(shape) == tensor_strides{12, 4, 1}));
  BOOST_TEST(is_dense(shape, {12, 4, 1}));
  BOOST_TEST(!is_dense(shape, {12, 4, 2}));
  BOOST_TEST(!is_dense(shape, {4, 12, 1}));
  BOOST_TEST(!is_dense(shape, {24, 4, 1}));
  BOOST_TEST(is_dense({2, 1, 4}, {4, 99, 1}));
  BOOST_TEST(is_dense({1}, {7}));
  BOOST_TEST(is_dense({2, 0}, {7, 7}));
  BOOST_TEST(is_dense({}, {}));
}

BOOST_AUTO_TEST_CASE(views_of_ranges_and_mdspans) {
  std::vector<float> numbers(12);
  const tensor_view from_range(numbers);
  BOOST_TEST(list(from_range.shape.extents()) == std::vector<offset_t>{12},
             boost::test_tools::per_element());
  BOOST_TEST(from_range.bytes() == 48);

  const tensor_view<float> dense(numbers.data(), {3, 4});
  BOOST_TEST((dense.strides == tensor_strides{4, 1}));

  const seqpack::testing::strided_span<float, 2> transposed(numbers.data(), {4, 3}, {1, 4});
  const tensor_view from_mdspan(transposed);
  BOOST_TEST((from_mdspan.shape == tensor_shape{4, 3}));
  BOOST_TEST(from_mdspan.strides[0] == 1);
  BOOST_TEST(from_mdspan.strides[1] == 4);
  BOOST_TEST(!is_dense(from_mdspan.shape, from_mdspan.strides));

  const any_tensor_view any = dense;
  BOOST_TEST((any.type == element_type::of<float>()));
  BOOST_TEST((any.shape == tensor_shape{3, 4}));
  BOOST_TEST(any.data == numbers.data());
  BOOST_TEST(any.bytes() == 48);
}

BOOST_AUTO_TEST_CASE(a_tensor_gives_its_static_type_only) {
  std::vector<float> numbers(12, 2.0f);
  const any_tensor some(any_tensor_view(numbers.data(), element_type::of<float>(), {3, 4}));
  BOOST_TEST(!some.owns_memory());
  BOOST_TEST((some.as<float>().shape == tensor_shape{3, 4}));
  BOOST_TEST(some.as<float>().data == numbers.data());
  BOOST_CHECK_EXCEPTION(some.as<int>(), invalid_input, refused("element type", "float32", "int32"));
}

BOOST_AUTO_TEST_CASE(const_stays_const) {
  const std::vector<float> numbers(4, 1.5f);
  const tensor_view view(numbers);
  static_assert(std::is_same_v<decltype(view), const tensor_view<const float>>);
  const any_tensor_view any = view;
  BOOST_TEST(any.read_only);
  BOOST_TEST((any.type == element_type::of<float>()));
  BOOST_TEST(any_tensor(any).as<const float>().elements()[3] == 1.5f);
  BOOST_CHECK_EXCEPTION(any_tensor(any).as<float>(), invalid_input,
                        refused("tensor", "read-only", "as const"));
  std::vector<float> writable(4);
  const tensor_view<const float> reads = tensor_view(writable);
  BOOST_TEST(reads.data == writable.data());
}

BOOST_AUTO_TEST_CASE(memory_goes_with_the_tensor) {
  const auto memory = std::make_shared<std::vector<float>>(4, 1.5f);
  tensor<float> first(tensor_view<float>(memory->data(), {4}), memory);
  BOOST_TEST(memory.use_count() == 2);
  const tensor<float> second = std::move(first);
  BOOST_TEST(second.owns_memory());
  BOOST_TEST(second.elements()[3] == 1.5f);
  BOOST_TEST(memory.use_count() == 2);
}
