#define BOOST_TEST_MODULE plan_piece_view
#include "seqpack/plan/piece_view.hpp"

#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "seqpack/exec/executor.hpp"
#include "seqpack/move/pack.hpp"
#include "seqpack/move/unpack.hpp"
#include "seqpack/plan/plan_rows.hpp"
#include "support/refused.hpp"

using namespace seqpack;
using seqpack::testing::refusal;

namespace {

using numbers = std::vector<offset_t>;
const no_context_parallel alone;

static_assert(token_table<piece_view<batch_view<const int>>>);
static_assert(token_table<piece_view<ragged_view<int, int>>>);
static_assert(token_table<piece_view<left_padded_view<float, int>>>);

/// Token t of sequence s is 1000 s + t.
int value(offset_t s, offset_t t) {
  return static_cast<int>(1000 * s + t);
}

std::vector<int> batch_of(const numbers& lengths, offset_t width, const numbers& starts = {}) {
  std::vector<int> batch(lengths.size() * static_cast<std::size_t>(width), -1);
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    const offset_t start = starts.empty() ? 0 : starts[s];
    for (offset_t t = 0; t < lengths[s]; ++t) {
      batch[s * static_cast<std::size_t>(width) + static_cast<std::size_t>(start + t)] =
          value(static_cast<offset_t>(s), t);
    }
  }
  return batch;
}

/// What the packed row of a plan must hold, without padding.
std::vector<int> row_of(const row_plan& plan, offset_t k) {
  std::vector<int> row;
  for (const offset_t p : plan.row(k)) {
    const sequence_piece& piece = plan.pieces()[static_cast<std::size_t>(p)];
    for (offset_t t = 0; t < piece.length; ++t)
      row.push_back(value(piece.sequence, piece.first + t));
  }
  return row;
}

/// Packs every row of a plan from one batch and unpacks it into another one.
template <class From, class To>
void check(const row_plan& plan, const From& from, const To& to, std::vector<int>& target,
           std::vector<int> wanted) {
  std::vector<int> together(target.size(), 0);
  for (offset_t k = 0; k < plan.rows(); ++k) {
    const auto layout =
        make_layout(plan.piece_lengths(), no_padding{}, alone, {.order = plan.row(k)});
    std::vector<int> row(static_cast<std::size_t>(layout.total_tokens()), -7);
    pack(host, layout, full_row, field(piece_view(from, plan.pieces()), row));
    BOOST_TEST(row == row_of(plan, k), boost::test_tools::per_element());
    target.assign(target.size(), -5);
    unpack(host, layout, full_row, field(row, piece_view(to, plan.pieces())));
    for (std::size_t i = 0; i < target.size(); ++i) together[i] += target[i];
  }
  for (int& w : wanted) w = w < 0 ? 0 : w;
  BOOST_TEST(together == wanted, boost::test_tools::per_element());
}

const plan_options splitting{.too_long = too_long::split};

}  // namespace

BOOST_AUTO_TEST_CASE(rows_are_the_pieces_of_a_batch) {
  const std::vector<int> ids = batch_of({5, 0, 7}, 8);
  const std::vector<sequence_piece> pieces{{0, 0, 3}, {0, 3, 2}, {1, 0, 0},
                                           {2, 0, 3}, {2, 3, 3}, {2, 6, 1}};
  const piece_view view(batch_view<const int>(ids.data(), 3, 8), pieces);
  BOOST_TEST(view.batch() == 6);
  BOOST_TEST(view.positions() == 24);
  const numbers columns{3, 5, 8, 3, 3, 2};  // the last of a sequence has the rest of its row
  const numbers first{0, 3, 8, 16, 19, 22};
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const auto n = static_cast<offset_t>(p);
    BOOST_TEST(view.columns(n) == columns[p]);
    BOOST_TEST(view.first_position(n) == first[p]);
    if (pieces[p].length > 0)
      BOOST_TEST(*view.at(n, 0) == value(pieces[p].sequence, pieces[p].first));
    for (offset_t column = 0; column < columns[p]; ++column) {
      BOOST_TEST(view.locate(first[p] + column).row == n);
      BOOST_TEST(view.locate(first[p] + column).column == column);
    }
  }
  BOOST_TEST(view.first_position(6) == 24);
}

BOOST_AUTO_TEST_CASE(split_sequences_come_back_whole) {
  const numbers lengths{5, 0, 17, 8, 40, 3};
  std::vector<int> ids = batch_of(lengths, 41);
  std::vector<int> target(ids.size());
  const row_plan plan = plan_rows(lengths, 8, no_padding{}, alone, splitting);
  check(plan, batch_view<const int>(ids.data(), 6, 41), batch_view<int>(target.data(), 6, 41),
        target, ids);
}

BOOST_AUTO_TEST_CASE(tokens_that_were_truncated_get_the_fill) {
  const numbers lengths{5, 17};
  std::vector<int> ids = batch_of(lengths, 20);
  std::vector<int> target(ids.size());
  const row_plan plan =
      plan_rows(lengths, 8, no_padding{}, alone, {.too_long = too_long::truncate});
  check(plan, batch_view<const int>(ids.data(), 2, 20), batch_view<int>(target.data(), 2, 20),
        target, batch_of({5, 8}, 20));
}

BOOST_AUTO_TEST_CASE(left_padded_and_ragged_batches_have_pieces_too) {
  const numbers lengths{5, 0, 17, 8};
  const row_plan plan = plan_rows(lengths, 8, no_padding{}, alone, splitting);
  const numbers starts{15, 20, 3, 12};
  const std::vector<int> ids = batch_of(lengths, 20, starts);
  std::vector<int> target(ids.size());
  check(plan, left_padded_view(batch_view<const int>(ids.data(), 4, 20), starts.data()),
        left_padded_view(batch_view<int>(target.data(), 4, 20), starts.data()), target, ids);

  const numbers offsets{0, 5, 5, 22, 30};
  std::vector<int> values;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    for (offset_t t = 0; t < lengths[s]; ++t) values.push_back(value(static_cast<offset_t>(s), t));
  }
  std::vector<int> written(values.size());
  const row_view<const int> source(values.data(), 30);
  const row_view<int> sink(written.data(), 30);
  check(plan, ragged_view(source, offsets.data(), 4), ragged_view(sink, offsets.data(), 4), written,
        values);
}

BOOST_AUTO_TEST_CASE(random_pieces_are_packed_and_unpacked) {
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    const auto number = [&](offset_t least, offset_t most) {
      return std::uniform_int_distribution<offset_t>(least, most)(random);
    };
    numbers lengths(static_cast<std::size_t>(number(1, 9)));
    for (offset_t& n : lengths) n = number(0, 60);
    const std::vector<int> ids = batch_of(lengths, 61);
    std::vector<int> target(ids.size());
    const row_plan plan = plan_rows(lengths, number(1, 30), no_padding{}, alone, splitting);
    const auto batch = static_cast<offset_t>(lengths.size());
    check(plan, batch_view<const int>(ids.data(), batch, 61),
          batch_view<int>(target.data(), batch, 61), target, ids);
  }
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_too_narrow_is_refused) {
  const numbers lengths{17};
  const row_plan plan = plan_rows(lengths, 8, no_padding{}, alone, splitting);
  const std::vector<int> ids(16);
  const auto layout =
      make_layout(plan.piece_lengths(), no_padding{}, alone, {.order = plan.row(2)});
  std::vector<int> row(1);
  BOOST_TEST(refusal([&] {
               pack(
                   host, layout, full_row,
                   field(piece_view(batch_view<const int>(ids.data(), 1, 16), plan.pieces()), row));
             }) ==
             "field 0's source row 2 size is 0: it must be at least 1, the real length of the "
             "sequence");
}

BOOST_AUTO_TEST_CASE(a_target_in_the_memory_of_the_pieces_is_refused) {
  const numbers lengths{3};
  const row_plan plan = plan_rows(lengths, 8, no_padding{}, alone, splitting);
  const std::vector<offset_t> ids(3);
  const auto layout = make_layout(plan.piece_lengths());
  auto* const memory = const_cast<offset_t*>(&plan.pieces()[0].sequence);
  BOOST_TEST(refusal([&] {
               pack(host, layout, full_row,
                    field(piece_view(batch_view<const offset_t>(ids.data(), 1, 3), plan.pieces()),
                          row_view<offset_t>(memory, 3)));
             }).starts_with("field 0's target"));
}
