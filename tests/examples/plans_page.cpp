// The code of docs/plans.md, as it stands there.
#define BOOST_TEST_MODULE examples_plans_page
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <seqpack/parallel/agree_plan.hpp>
#include <seqpack/plan/plan.hpp>
#include <seqpack/seqpack.hpp>
#include <string>
#include <vector>

using namespace seqpack;

namespace {

const std::vector<int> lengths = {44, 33, 29, 27, 24, 16, 13, 6, 6};

/// [9, 44] ids, sequence b's token s as 100 b + s + 1.
std::vector<std::int64_t> make_ids() {
  std::vector<std::int64_t> ids(9 * 44);
  for (std::size_t b = 0; b < 9; ++b) {
    for (std::size_t s = 0; s < static_cast<std::size_t>(lengths[b]); ++s) {
      ids[b * 44 + s] = static_cast<std::int64_t>(100 * b + s + 1);
    }
  }
  return ids;
}

struct text {
  std::vector<int> lengths;
  std::vector<std::int64_t> ids;
  offset_t width;

  auto fields() const {
    return field_list(token_field(
        input_ids, batch_view(ids.data(), static_cast<offset_t>(lengths.size()), width)));
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(rows) {
  const row_plan plan = plan_rows(lengths, 100);
  BOOST_TEST(plan.rows() == 2);
  const plan_summary s = summary_of(plan, lengths, 100);
  BOOST_TEST(s.rows == 2);
  BOOST_TEST(s.lower_bound == 2);
  BOOST_TEST(s.fill == 0.99);
  BOOST_TEST(plan_rows(lengths, 100, no_padding{}, {}, {.method = plan_method::in_order}).rows() ==
             3);
}

BOOST_AUTO_TEST_CASE(a_row_is_packed_by_its_order) {
  const std::vector<std::int64_t> ids = make_ids();
  std::vector<std::int64_t> back(ids.size());
  const padding pad{each_multiple_of<8>{}};
  const context_parallel<2> cp;
  const row_plan plan = plan_rows(lengths, 128, pad, cp);
  for (offset_t k = 0; k < plan.rows(); ++k) {
    const auto layout = make_layout(lengths, pad, cp, {.order = plan.row(k)});
    std::vector<std::int64_t> row(static_cast<std::size_t>(layout.total_tokens()));
    pack(host, layout, full_row, field(batch_view(ids.data(), 9, 44), row));
    BOOST_TEST(layout.total_tokens() <= 128);

    std::vector<std::int64_t> own(ids.size());
    unpack(host, layout, full_row, field(row, batch_view(own.data(), 9, 44)));
    for (std::size_t at = 0; at < own.size(); ++at) back[at] += own[at];
  }
  BOOST_TEST(back == ids, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(long_sequences_in_pieces) {
  const std::vector<std::int64_t> ids = make_ids();
  const row_plan plan = plan_rows(lengths, 40, no_padding{}, {}, {.too_long = too_long::split});
  const std::vector<offset_t> pieces = plan.piece_lengths();
  for (offset_t k = 0; k < plan.rows(); ++k) {
    const auto layout = make_layout(pieces, no_padding{}, {}, {.order = plan.row(k)});
    std::vector<std::int64_t> row(static_cast<std::size_t>(layout.total_tokens()));
    pack(host, layout, full_row,
         field(piece_view(batch_view(ids.data(), 9, 44), plan.pieces()), row));
    BOOST_TEST(std::count(row.begin(), row.end(), 0) == 0);
  }
  BOOST_TEST(pieces.size() == 10u);
}

BOOST_AUTO_TEST_CASE(steps_and_micro_batches) {
  const text all{lengths, make_ids(), 44};
  self_communicator group;
  const offset_t ranks = 2;
  const step_plan plan = plan_steps(lengths, 60, ranks);
  agree(group, plan);
  BOOST_TEST(plan.steps() == 2);
  double tokens = 0;
  for (offset_t rank = 0; rank < ranks; ++rank) {
    const micro_batches mine(all, plan, rank);
    tokens += count_valid(host, mine.all(), &text::lengths).tokens;
    BOOST_TEST(mine.size() == 2);
    for (const auto& m : mine) BOOST_TEST(m.order().size() > 0u);
  }
  BOOST_TEST(tokens == 198 - 9);  // the first token of a sequence is no target
  const step_summary s = summary_of(plan, lengths, 60);
  BOOST_TEST(s.steps == 2);
  BOOST_TEST(s.empty == 0);
}

BOOST_AUTO_TEST_CASE(a_stream) {
  std::vector<offset_t> state;
  offset_t rows = 0;
  {
    row_packer packer(100, no_padding{}, no_context_parallel{}, {.look_ahead = 4});
    for (const int length : lengths) {
      packer.push(length);
      while (auto row = packer.take()) ++rows;
    }
    state = packer.save();
  }
  row_packer packer(100, no_padding{}, no_context_parallel{}, {.look_ahead = 4});
  packer.load(state);
  packer.finish();
  while (auto row = packer.take()) {
    const auto layout = make_layout(piece_lengths(*row));
    BOOST_TEST(layout.total_tokens() <= 100);
    ++rows;
  }
  BOOST_TEST(rows == 3);
}

BOOST_AUTO_TEST_CASE(plans_made_elsewhere) {
  const std::vector<std::int64_t> sequences = {0, 1, 5, 7, 2, 3, 4, 6, 8};
  const std::vector<std::int32_t> bounds = {0, 4, 9};
  const row_plan plan(sequences, bounds);
  require_plan(plan, lengths, 100);
  BOOST_TEST(plan.rows() == 2);
  BOOST_CHECK_THROW(require_plan(plan, lengths, 98), invalid_input);
  std::string told;
  try {
    require_plan(plan, lengths, 98);
  } catch (const invalid_input& error) {
    told = error.what();
  }
  BOOST_TEST_MESSAGE(told);
  BOOST_TEST(told.find("it must be at most 98") != std::string::npos);
}
