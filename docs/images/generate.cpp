// Draws the pictures of the documentation into a folder: a batch, packed in different ways, and plans.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <seqpack/draw/draw.hpp>
#include <seqpack/plan/plan.hpp>
#include <seqpack/seqpack.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace seqpack;

const std::vector<int> lengths = {5, 3, 8};
constexpr padding<each_multiple_of<4>> each4;

void write(const std::filesystem::path& folder, const std::string& name, const std::string& svg) {
  std::ofstream file(folder / (name + ".svg"), std::ios::binary);
  file << svg;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + name + ".svg");
}

template <layout L>
void draw(const std::filesystem::path& folder, const std::string& name, const L& layout,
          const std::string& title) {
  write(folder, name, draw_svg(layout, {.title = title}));
}

/// The same nine sequences, planned in different ways.
void draw_plans(const std::filesystem::path& folder) {
  const std::vector<int> documents = {44, 33, 29, 27, 24, 16, 13, 6, 6};
  const auto rows = [&](const std::string& name, plan_method method, const std::string& title) {
    const row_plan plan = plan_rows(documents, 100, no_padding{}, {}, {.method = method});
    write(folder, name, draw_plan_svg(plan, documents, 100, no_padding{}, {.title = title}));
  };
  rows("plan_in_order", plan_method::in_order, "in_order: rows of neighbours");
  rows("plan_decreasing", plan_method::decreasing, "decreasing: as few rows as possible");
  const step_plan steps = plan_steps(documents, 60, 2);
  write(folder, "plan_steps",
        draw_plan_svg(steps, documents, 60, no_padding{},
                      {.title = "steps of 2 ranks, at most 60 tokens"}));
}

void draw_all(const std::filesystem::path& folder) {
  draw(folder, "zigzag", make_layout(lengths, each4, context_parallel<2>{}), "zigzag over 2 ranks");
  draw(folder, "contiguous", make_layout(lengths, each4, context_parallel<2, contiguous>{}),
       "contiguous over 2 ranks");
  draw(folder, "striped", make_layout(lengths, each4, context_parallel<2, striped>{}),
       "striped over 2 ranks");
  draw(folder, "row_contiguous",
       make_layout(std::vector{6, 5, 3}, no_padding{}, context_parallel<2, row_contiguous>{}),
       "row_contiguous over 2 ranks: lengths that nothing divides");

  const each_multiple_of<4> each;
  const fixed_total<28> total;
  draw(folder, "absorb", make_layout(lengths, padding{each, total}),
       "28 tokens: the last sequence absorbs the tail");
  draw(folder, "ghost", make_layout(lengths, padding{each, total, ghost_tail{}}),
       "28 tokens: the tail is a ghost sequence");
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 2) {
    std::fputs("usage: seqpack-doc-images FOLDER\n", stderr);
    return 2;
  }
  draw_all(arguments[1]);
  draw_plans(arguments[1]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "seqpack-doc-images: %s\n", e.what());
  return 1;
}
