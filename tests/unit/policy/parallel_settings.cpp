#define BOOST_TEST_MODULE parallel_settings
#include "seqpack/policy/parallel_settings.hpp"

#include <boost/test/unit_test.hpp>
#include <string>

#include "support/golden.hpp"

using namespace seqpack;

namespace {

fp8_recipe recipe_of(const std::string& name) {
  if (name == "tensorwise") return fp8_recipe::tensorwise;
  if (name == "mxfp8") return fp8_recipe::mxfp8;
  if (name == "blockwise") return fp8_recipe::blockwise;
  BOOST_REQUIRE_EQUAL(name, "");
  return fp8_recipe::none;
}

parallel_settings settings_of(const golden::params_case& c) {
  return {.tensor_parallel = c.tp_size,
          .sequence_parallel = c.sequence_parallel,
          .context_parallel = c.cp_size,
          .pipeline_parallel = c.pp_size,
          .fp8 = recipe_of(c.fp8_recipe),
          .hybrid_expert_parallel = c.hybrid_ep,
          .sequence_multiple = c.make_sequence_length_divisible_by,
          .longest_packed = c.max_seq_len_in_batch};
}

std::string refusal(const parallel_settings& s) {
  try {
    derive_padding(s);
  } catch (const invalid_input& error) {
    return error.what();
  }
  return "accepted";
}

void check_reference(const golden::params_case& c) {
  const parallel_settings s = settings_of(c);
  if (!c.expected) {
    const std::string entry = "sequence_multiple is " + std::to_string(s.sequence_multiple);
    const std::string limit = "a multiple of " + std::to_string(least_factor(s));
    BOOST_TEST(refusal(s).starts_with(entry + ": "));
    BOOST_TEST(refusal(s).find(limit) != std::string::npos);
    return;
  }
  const padding_numbers numbers = derive_padding(s);
  BOOST_TEST(numbers.each == c.expected->pad_each);
  BOOST_TEST(numbers.total_multiple == c.expected->pad_total_multiple);
  BOOST_TEST((numbers.fixed_total == c.expected->pad_total_to));
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_reference_derives_the_same) {
  const auto cases = golden::params_cases();
  BOOST_TEST(cases.size() == 200U);
  std::size_t errors = 0;
  for (std::size_t k = 0; k < cases.size(); ++k) {
    BOOST_TEST_CONTEXT("row " << k) {
      check_reference(cases[k]);
    }
    if (!cases[k].expected) ++errors;
  }
  BOOST_TEST(errors == 40U);
}

// Usable in constant expressions; and the least factor by hand.
static_assert(derive_padding({}) == padding_numbers{});
static_assert(least_factor({}) == 1);
static_assert(least_factor({.tensor_parallel = 4}) == 1);
static_assert(least_factor({.tensor_parallel = 4, .sequence_parallel = true}) == 4);
static_assert(least_factor({.context_parallel = 3}) == 6);
static_assert(
    least_factor({.tensor_parallel = 2, .sequence_parallel = true, .context_parallel = 2}) == 8);
static_assert(token_multiple(fp8_recipe::none) == 1);

BOOST_AUTO_TEST_CASE(case_22_fixed_length_with_pipelines) {
  const padding_numbers numbers = derive_padding({.tensor_parallel = 2,
                                                  .sequence_parallel = true,
                                                  .context_parallel = 2,
                                                  .pipeline_parallel = 2,
                                                  .fp8 = fp8_recipe::tensorwise,
                                                  .sequence_multiple = 8,
                                                  .longest_packed = 1000});
  BOOST_TEST(numbers.total_multiple == 128);
  BOOST_TEST((numbers.fixed_total == 1024));
}

BOOST_AUTO_TEST_CASE(case_24_common_multiple_with_three_ranks) {
  const parallel_settings s{.context_parallel = 3, .fp8 = fp8_recipe::tensorwise};
  const auto with_multiple = [&](offset_t multiple) {
    parallel_settings changed = s;
    changed.sequence_multiple = multiple;
    return changed;
  };
  BOOST_TEST(derive_padding(with_multiple(48)).each == 48);
  BOOST_TEST(derive_padding(with_multiple(48)).total_multiple == 96);
  BOOST_TEST(refusal(with_multiple(32)) ==
             "sequence_multiple is 32: it must be a multiple of 6, what context and sequence "
             "parallelism cut a sequence into");
}

BOOST_AUTO_TEST_CASE(case_25_every_recipe_has_its_own_block) {
  const auto total = [](fp8_recipe recipe) {
    const padding_numbers numbers = derive_padding({.fp8 = recipe});
    return total_for(padding{total_multiple_of<>{numbers.total_multiple}}, 33);
  };
  BOOST_TEST(total(fp8_recipe::none) == 33);
  BOOST_TEST(total(fp8_recipe::tensorwise) == 48);
  BOOST_TEST(total(fp8_recipe::mxfp8) == 64);
  BOOST_TEST(total(fp8_recipe::blockwise) == 128);
}

BOOST_AUTO_TEST_CASE(case_26_the_block_divides_every_shard) {
  const padding_numbers numbers = derive_padding({.tensor_parallel = 4,
                                                  .sequence_parallel = true,
                                                  .fp8 = fp8_recipe::mxfp8,
                                                  .sequence_multiple = 4});
  BOOST_TEST(total_for(padding{total_multiple_of<>{numbers.total_multiple}}, 31936) == 32000);
}

BOOST_AUTO_TEST_CASE(case_57_the_shape_follows_from_the_settings_alone) {
  const parallel_settings s{.pipeline_parallel = 2, .longest_packed = 1000};
  const padding_numbers numbers = derive_padding(s);
  BOOST_TEST((numbers.fixed_total == 1000));
  with_padding(numbers, [](const auto& p) {
    for (const offset_t content : {0, 1, 999, 1000}) BOOST_TEST(total_for(p, content) == 1000);
  });
}

BOOST_AUTO_TEST_CASE(settings_that_make_no_sense_are_refused) {
  const std::string range = " it must be from 1 to 1048576";
  BOOST_TEST(refusal({.tensor_parallel = 0}) == "tensor_parallel is 0:" + range);
  BOOST_TEST(refusal({.context_parallel = -1}) == "context_parallel is -1:" + range);
  BOOST_TEST(refusal({.pipeline_parallel = 0}) == "pipeline_parallel is 0:" + range);
  BOOST_TEST(refusal({.sequence_multiple = 0}) == "sequence_multiple is 0:" + range);
  BOOST_TEST(refusal({.tensor_parallel = 1048577}) == "tensor_parallel is 1048577:" + range);
  BOOST_TEST(refusal({.pipeline_parallel = 2}) ==
             "longest_packed is 0: it must be from 1 to 281474976710656 with more than one stage");
  BOOST_TEST(refusal({.longest_packed = 0}) == "accepted");
  BOOST_TEST(
      refusal({.pipeline_parallel = 2, .longest_packed = max_tokens + 1}) ==
      "longest_packed is 281474976710657: it must be from 1 to 281474976710656 with more than "
      "one stage");
}

BOOST_AUTO_TEST_CASE(the_largest_settings_are_accepted) {
  BOOST_TEST(refusal({.tensor_parallel = 1048576}) == "accepted");
  BOOST_TEST(refusal({.context_parallel = 1048576, .sequence_multiple = 1048576}) ==
             "sequence_multiple is 1048576: it must be a multiple of 2097152, what context and "
             "sequence parallelism cut a sequence into");
  BOOST_TEST(refusal({.pipeline_parallel = 1048576, .longest_packed = max_tokens}) == "accepted");
}

BOOST_AUTO_TEST_CASE(the_fixed_total_can_be_cut_also_where_no_total_multiple_is_asked_for) {
  const padding_numbers numbers = derive_padding({.context_parallel = 2,
                                                  .pipeline_parallel = 2,
                                                  .sequence_multiple = 4,
                                                  .longest_packed = 1001});
  BOOST_TEST((numbers == padding_numbers{.each = 4, .total_multiple = 1, .fixed_total = 1004}));
}

BOOST_AUTO_TEST_CASE(numbers_become_a_policy) {
  // The callback is compiled for both types of policy; only the matching one is called.
  const auto describe = [](const auto& p) {
    using P = std::remove_cvref_t<decltype(p)>;
    return std::to_string(p.each()) + " " + std::to_string(p.total_multiple()) + " " +
           (P::has_fixed_total ? std::to_string(p.fixed_total()) : "open") +
           (P::tail_goes_to == tail::ghost ? " ghost" : " absorb");
  };
  const padding_numbers open{.each = 8, .total_multiple = 64, .fixed_total = std::nullopt};
  BOOST_TEST(with_padding(open, describe) == "8 64 open absorb");
  BOOST_TEST(with_padding<ghost_tail>(open, describe) == "8 64 open ghost");
  const padding_numbers fixed{.each = 4, .total_multiple = 8, .fixed_total = 64};
  BOOST_TEST(with_padding(fixed, describe) == "4 8 64 absorb");
  BOOST_TEST(with_padding<ghost_tail>(fixed, describe) == "4 8 64 ghost");
}
