// Gates on a GPU: measured, limit, met or missed. Every input is random; every output is poisoned
// before the call that is checked, and compared with what the host makes of the same input.
//
//   seqpack-cuda-gates [--quick] [--json=FILE] [--only=NAME] [--SIZE=N...]
//
// --quick: tiny sizes, to see that all of it works; times are printed and not judged.
// --only: rows, logits, ids, log_probs, layout or capture. Sizes: bytes (of a batch of rows), rows
// (of logits), vocabulary, id_width, sequences (of the largest layout), turns.
// Status: 0 if all is met, 1 if not, 77 without a device.
#include <cub/device/device_scan.cuh>

#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "device.cuh"
#include "report.hpp"
#include "timing.cuh"

namespace {

using namespace seqpack;
using bench::as_size;
using bench::device_array;
using bench::effort;
using bench::gate;
using bench::limit;
using bench::limit_kind;
using bf16 = __nv_bfloat16;

constexpr limit bandwidth{limit_kind::at_least, 0.85};

struct settings {
  bool quick = false;
  std::string json;
  std::string only;
  std::map<std::string, offset_t, std::less<>> sizes{
      {"bytes", offset_t{512} << 20}, {"rows", 4096}, {"vocabulary", 131072}, {"id_width", 4096},
      {"sequences", 1000000},         {"turns", 9}};

  offset_t size(std::string_view name) const { return sizes.find(name)->second; }
  offset_t batch() const { return quick ? 4 : 256; }
  /// For work that is long beside a launch, and for work that is not.
  effort large() const { return {static_cast<int>(size("turns")), quick ? 1 : 4}; }
  effort small() const { return {static_cast<int>(size("turns")), quick ? 2 : 50}; }
};

/// Sets what one argument says, --NAME=VALUE.
/// \throws std::invalid_argument for what is no setting
void set(settings& s, std::string_view argument) {
  const std::size_t equals = argument.find('=');
  const bool named = argument.starts_with("--") && equals != argument.npos;
  const std::string_view name = named ? argument.substr(2, equals - 2) : "";
  const std::string_view value = named ? argument.substr(equals + 1) : "";
  if (name == "json" || name == "only") {
    (name == "json" ? s.json : s.only) = value;
    return;
  }
  const auto size = s.sizes.find(name);
  if (size != s.sizes.end()) {
    const char* const end = value.data() + value.size();
    const auto [read, error] = std::from_chars(value.data(), end, size->second);
    if (error == std::errc{} && read == end && size->second > 0) return;
  }
  throw std::invalid_argument("not a setting: " + std::string(argument));
}

settings parse(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  settings result;
  if (std::count(arguments.begin(), arguments.end(), "--quick") > 0) {
    result.quick = true;
    result.sizes = {{"bytes", 1 << 15}, {"rows", 5},         {"vocabulary", 1037},
                    {"id_width", 32},   {"sequences", 1024}, {"turns", 1}};
  }
  for (const std::string_view argument : arguments) {
    if (argument != "--quick") set(result, argument);
  }
  return result;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// For results of the host: other bytes than those that poison a device array.
template <class T>
std::vector<T> poisoned(offset_t size) {
  std::vector<T> result(as_size(size));
  std::memset(static_cast<void*>(result.data()), 0x5A, result.size() * sizeof(T));
  return result;
}

template <class T>
std::vector<T> download(std::span<const T> from, cudaStream_t stream) {
  std::vector<T> result(from.size());
  check_cuda(cudaMemcpyAsync(result.data(), from.data(), from.size_bytes(), cudaMemcpyDeviceToHost,
                             stream));
  bench::wait(stream);
  return result;
}

bench::quantity milliseconds(const char* name, double seconds) {
  return {name, seconds * 1e3, "ms"};
}
bench::quantity microseconds(const char* name, double seconds) {
  return {name, seconds * 1e6, "us"};
}

/// A copy that moves `bytes` in all, read and written: half as many are copied.
class copy_floor {
 public:
  copy_floor(offset_t bytes, cudaStream_t stream)
      : from_(bytes / 2), to_(bytes / 2), stream_(stream) {
    bench::randomise(from_, 99, stream);
  }
  void operator()() const {
    check_cuda(cudaMemcpyAsync(to_.data(), from_.data(), from_.bytes(), cudaMemcpyDeviceToDevice,
                               stream_));
  }

 private:
  device_array<char> from_;
  device_array<char> to_;
  cudaStream_t stream_;
};

/// The share of a copy's bandwidth that a call reaches which moves as many bytes.
template <class F>
gate against_copy(const std::string& what, cudaStream_t stream, const effort& how, offset_t bytes,
                  bool right, const F& call) {
  const copy_floor floor(bytes, stream);
  const auto times = bench::gpu_seconds_in_turn(stream, how, call, floor);
  return {what,
          {"share of a copy", times.second / times.first, ""},
          bandwidth,
          {milliseconds("seqpack", times.first),
           milliseconds("copy", times.second),
           {"moved", static_cast<double>(bytes) / times.first * 1e-12, "TB/s"}},
          right};
}

/// A batch of rows [B, S, D] of bfloat16, packed over two ranks.
class rows_problem {
 public:
  rows_problem(const settings& s, offset_t batch, offset_t width, offset_t payload,
               cudaStream_t stream)
      : how_(s.large()),
        stream_(stream),
        batch_(batch),
        width_(width),
        payload_(payload),
        layout_(bench::random_layout(batch, width, 16, 2)),
        on_device_(to_device(cuda_stream<>(stream), layout_)),
        table_(batch * width * payload),
        rows_(layout_.total_tokens() * payload) {}

  template <class Place>
  gate pack_to(const std::string& what, Place at, offset_t real) const {
    const offset_t count = layout_.view().rows(at);
    bench::randomise(table_, 1, stream_);
    rows_.poison(stream_);
    const auto call = [&] {
      pack(cuda_stream<>(stream_), on_device_, at,
           field(batch_view<const bf16>(table_.data(), batch_, width_, payload_),
                 row_view<bf16>(rows_.data(), count, payload_)));
    };
    call();
    const std::vector<bf16> table = table_.download(stream_);
    auto expected = poisoned<bf16>(count * payload_);
    pack(host, layout_, at,
         field(batch_view<const bf16>(table.data(), batch_, width_, payload_),
               row_view<bf16>(expected.data(), count, payload_)));
    const bool right =
        same(download(std::span<const bf16>(rows_.data(), expected.size()), stream_), expected);
    return against_copy(what, stream_, how_, (real + count) * row_bytes(), right, call);
  }

  gate unpack_all_shards(const std::string& what) const {
    const offset_t count = layout_.total_tokens();
    bench::randomise(rows_, 2, stream_);
    table_.poison(stream_);
    const auto call = [&] {
      unpack(cuda_stream<>(stream_), on_device_, all_shards,
             field(row_view<const bf16>(rows_.data(), count, payload_),
                   batch_view<bf16>(table_.data(), batch_, width_, payload_)));
    };
    call();
    const std::vector<bf16> rows = rows_.download(stream_);
    auto expected = poisoned<bf16>(table_.size());
    unpack(host, layout_, all_shards,
           field(row_view<const bf16>(rows.data(), count, payload_),
                 batch_view<bf16>(expected.data(), batch_, width_, payload_)));
    const bool right = same(table_.download(stream_), expected);
    return against_copy(what, stream_, how_,
                        (layout_.real_tokens() + batch_ * width_) * row_bytes(), right, call);
  }

  const auto& layout() const { return layout_; }

 private:
  offset_t row_bytes() const { return payload_ * offset_t{sizeof(bf16)}; }

  using host_layout = decltype(bench::random_layout(0, 0, 0, 0));
  using device_side =
      decltype(to_device(std::declval<const cuda_stream<>&>(), std::declval<const host_layout&>()));

  effort how_;
  cudaStream_t stream_;
  offset_t batch_;
  offset_t width_;
  offset_t payload_;
  host_layout layout_;
  device_side on_device_;
  device_array<bf16> table_;
  device_array<bf16> rows_;
};

/// Rows of 128 bytes and more; those of 130 bytes are aligned to no more than an element.
void rows_gates(const settings& s, cudaStream_t stream, bench::report& report) {
  for (const offset_t payload : {64, 65, 512, 4096}) {
    const offset_t width =
        std::max<offset_t>(s.size("bytes") / (s.batch() * payload * offset_t{sizeof(bf16)}), 8);
    const rows_problem p(s, s.batch(), width, payload, stream);
    const std::string rows = "rows of " + std::to_string(payload * 2) + " bytes";
    report.add(p.pack_to("pack " + rows + ", full row", full_row, p.layout().real_tokens()));
    report.add(p.pack_to("pack " + rows + ", one shard of CP 2", shard{1},
                         real_tokens(p.layout(), shard{1})));
    report.add(p.unpack_all_shards("unpack " + rows + ", all shards of CP 2"));
  }
}

void logits_gate(const settings& s, cudaStream_t stream, bench::report& report) {
  const offset_t batch = 8;
  const offset_t width = std::max<offset_t>(s.size("rows") * 3 / 2 / batch, 4);
  const rows_problem p(s, batch, width, s.size("vocabulary"), stream);
  report.add(p.unpack_all_shards("unpack bfloat16 logits, V=" +
                                 std::to_string(s.size("vocabulary")) + ", all shards of CP 2"));
}

/// What a training step does before its model: too few bytes for bandwidth to matter.
void id_gates(const settings& s, cudaStream_t stream, bench::report& report) {
  constexpr offset_t batch = 64;
  constexpr shard mine{1};
  const offset_t width = s.size("id_width");
  const auto layout = bench::random_layout(batch, width, 16, 2);
  const auto on_device = to_device(cuda_stream<>(stream), layout);
  const offset_t rows = layout.shard_tokens();
  const device_array<std::int64_t> ids(batch * width);
  const device_array<std::int64_t> packed(rows);
  bench::randomise(ids, 1, stream);
  packed.poison(stream);
  const auto call = [&] {
    pack(cuda_stream<>(stream), on_device, mine,
         field(batch_view<const std::int64_t>(ids.data(), batch, width),
               row_view<std::int64_t>(packed.data(), rows)));
  };
  call();
  const auto table = ids.download(stream);
  auto expected = poisoned<std::int64_t>(rows);
  pack(host, layout, mine,
       field(batch_view<const std::int64_t>(table.data(), batch, width), expected));
  const bool right = same(packed.download(stream), expected);

  const copy_floor floor((real_tokens(layout, mine) + rows) * offset_t{sizeof(std::int64_t)},
                         stream);
  const std::string what = "pack int64 ids, B=64, S=" + std::to_string(width) + ", CP=2";
  const double gpu = bench::gpu_seconds(stream, s.small(), call);
  const double copy = bench::gpu_seconds(stream, s.small(), floor);
  report.add({.what = what + ": GPU time",
              .measured = microseconds("GPU", gpu),
              .beside = {microseconds("copy", copy)},
              .right = right});
  report.add({.what = what + ": host time of a call",
              .measured = microseconds("host", bench::host_seconds(stream, s.small(), call)),
              .beside = {microseconds("copy", bench::host_seconds(stream, s.small(), floor))},
              .right = right});
}

/// f(first, count) for all rows, shared among the cores.
template <class F>
void in_threads(offset_t rows, const F& f) {
  const auto cores = static_cast<offset_t>(std::max(1U, std::thread::hardware_concurrency()));
  const offset_t share = (rows + cores - 1) / cores;
  std::vector<std::thread> threads;
  for (offset_t first = 0; first < rows; first += share) {
    threads.emplace_back(f, first, std::min(share, rows - first));
  }
  for (std::thread& t : threads) t.join();
}

/// Log-probabilities of bfloat16 logits; no label for one row in 64.
class log_prob_problem {
 public:
  log_prob_problem(offset_t rows, offset_t vocabulary, cudaStream_t stream)
      : rows_(rows),
        vocabulary_(vocabulary),
        stream_(stream),
        labels_(random_labels()),
        derivatives_(random_derivatives()),
        logits_(rows * vocabulary),
        gradient_(rows * vocabulary),
        device_labels_(labels_, stream),
        device_derivatives_(derivatives_, stream),
        log_probs_(rows),
        max_(rows),
        sum_(rows) {
    bench::randomise_logits(logits_, 1, stream);
  }

  void forward() const {
    self_communicator tp;
    label_log_probs(cuda_stream<>(stream_), tp, matrix_view<const bf16>(view(logits_)),
                    column_range(vocabulary_), label_rows(device_labels_.data()), out());
  }
  void backward(const device_array<bf16>& to) const {
    label_log_probs_backward(cuda_stream<>(stream_), matrix_view<const bf16>(view(logits_)),
                             column_range(vocabulary_), label_rows(device_labels_.data()), out(),
                             row_view<const float>(device_derivatives_.data(), rows_), view(to));
  }
  /// To memory of its own, so that every call has the same logits; the bytes are those of a
  /// gradient in place.
  void backward() const { backward(gradient_); }

  /// Also in place, so it comes last: the logits are lost.
  bool right() const {
    const std::vector<bf16> logits = logits_.download(stream_);
    for (const auto* array : {&log_probs_, &max_, &sum_}) array->poison(stream_);
    gradient_.poison(stream_);
    forward();
    backward();
    const auto gradient = gradient_.download(stream_);
    if (!near_host(logits, log_probs_.download(stream_), gradient)) return false;
    backward(logits_);
    return same(logits_.download(stream_), gradient);
  }

  offset_t rows_with_label() const {
    return rows_ - std::count(labels_.begin(), labels_.end(), ignored_label);
  }
  offset_t row_bytes() const { return vocabulary_ * offset_t{sizeof(bf16)}; }

 private:
  std::vector<std::int64_t> random_labels() const {
    const bench::random_word random{2};
    std::vector<std::int64_t> result;
    for (offset_t t = 0; t < rows_; ++t) {
      const auto word =
          random(static_cast<std::uint64_t>(t)) % static_cast<std::uint64_t>(vocabulary_);
      result.push_back(t % 64 == 3 ? ignored_label : static_cast<std::int64_t>(word));
    }
    return result;
  }
  std::vector<float> random_derivatives() const {
    const bench::random_logit<float> random{{3}};
    std::vector<float> result;
    for (offset_t t = 0; t < rows_; ++t) result.push_back(random(static_cast<std::uint64_t>(t)));
    return result;
  }
  matrix_view<bf16> view(const device_array<bf16>& array) const {
    return {array.data(), rows_, vocabulary_};
  }
  row_view<const std::int64_t> label_rows(const std::int64_t* labels) const {
    return {labels, rows_};
  }
  label_log_prob_rows<float> out() const {
    return {{log_probs_.data(), rows_}, {max_.data(), rows_}, {sum_.data(), rows_}};
  }

  /// The host adds in another order, and both round a gradient to 8 bits.
  bool near_host(const std::vector<bf16>& logits, const std::vector<float>& log_probs,
                 const std::vector<bf16>& gradient) const {
    std::vector<char> right(as_size(rows_), 0);
    in_threads(rows_, [&](offset_t first, offset_t count) {
      const matrix_view<const bf16> mine(logits.data() + first * vocabulary_, count, vocabulary_);
      const row_view<const std::int64_t> labels(labels_.data() + first, count);
      const log_prob_state<float> state(host, count);
      self_communicator tp;
      label_log_probs(host, tp, mine, column_range(vocabulary_), labels, state.rows());
      auto expected = poisoned<bf16>(count * vocabulary_);
      label_log_probs_backward(host, mine, column_range(vocabulary_), labels, state.rows(),
                               row_view<const float>(derivatives_.data() + first, count),
                               matrix_view<bf16>(expected.data(), count, vocabulary_));
      for (offset_t t = 0; t < count; ++t) {
        const float wanted = *state.rows().log_probs.at(t);
        bool good =
            std::abs(log_probs[as_size(first + t)] - wanted) <= 2e-5F * (1 + std::abs(wanted));
        for (offset_t v = 0; v < vocabulary_; ++v) {
          const auto found = static_cast<float>(gradient[as_size((first + t) * vocabulary_ + v)]);
          const auto value = static_cast<float>(expected[as_size(t * vocabulary_ + v)]);
          good = good && std::abs(found - value) <= 1e-2F * std::abs(value) + 1e-30F;
        }
        right[as_size(first + t)] = good;
      }
    });
    return std::count(right.begin(), right.end(), 1) == rows_;
  }

  offset_t rows_;
  offset_t vocabulary_;
  cudaStream_t stream_;
  std::vector<std::int64_t> labels_;
  std::vector<float> derivatives_;
  device_array<bf16> logits_;
  device_array<bf16> gradient_;
  device_array<std::int64_t> device_labels_;
  device_array<float> device_derivatives_;
  device_array<float> log_probs_;
  device_array<float> max_;
  device_array<float> sum_;
};

/// Against as much of a copy as moves the same bytes: logits without a label are not read.
void log_prob_gates(const settings& s, cudaStream_t stream, bench::report& report) {
  const log_prob_problem p(s.size("rows"), s.size("vocabulary"), stream);
  const std::string what = "log-probabilities, bfloat16, V=" + std::to_string(s.size("vocabulary"));
  const offset_t reads = p.rows_with_label() * p.row_bytes();
  const offset_t writes = s.size("rows") * p.row_bytes();
  gate forward = against_copy(what + ", forward, against one read", stream, s.large(), reads, true,
                              [&] { p.forward(); });
  gate both = against_copy(what + ", forward + backward, against two reads and one write", stream,
                           s.large(), 2 * reads + writes, true, [&] {
                             p.forward();
                             p.backward();
                           });
  forward.bound.reset();
  forward.right = both.right = p.right();
  report.add(std::move(forward));
  report.add(std::move(both));
}

/// What the layouts and the capture are made of: each 16, CP 2, the total that always suffices.
struct capacity_problem {
  offset_t sequences;
  offset_t width;  // a multiple of 16
  padding<each_multiple_of<16>, fixed_total<>, ghost_tail> how{
      each_multiple_of<16>{}, fixed_total<>{sequences * width}, ghost_tail{}};
  context_parallel<2> cp{};

  auto on_host(const std::vector<int>& lengths) const { return make_layout(lengths, how, cp); }
  auto on_device(cudaStream_t stream) const {
    return capacity_layout(cuda_stream<>(stream), {.sequences = sequences, .width = width}, how,
                           cp);
  }
};

void layout_gates(const settings& s, cudaStream_t stream, bench::report& report) {
  for (const offset_t sequences : {1, 64, 1024, 65536, 1000000}) {
    if (sequences > s.size("sequences")) continue;
    const capacity_problem p{sequences, 64};
    const auto lengths = bench::random_lengths(sequences, p.width);
    const device_array<int> on_device(lengths, stream);
    const device_array<int> others(bench::random_lengths(sequences, p.width, 8), stream);
    const device_array<int> count(std::vector<int>{static_cast<int>(sequences)}, stream);
    auto layout = p.on_device(stream);
    const auto build = [&](const device_array<int>& from) {
      layout.build(stream, from.data(), count.data());
    };
    // The arrays are the layout's own; what stands in them first is the layout of other lengths.
    build(others);
    build(on_device);
    const auto expected = p.on_host(lengths);
    const auto equals = [&](auto found, auto wanted) {
      return download(found, stream) == std::vector<int>(wanted.begin(), wanted.end());
    };
    layout.check(stream);
    const bool right = equals(layout.cu_seqlens(), expected.cu_seqlens()) &&
                       equals(layout.cu_seqlens_padded(), expected.cu_seqlens_padded());

    const device_array<int> sums(sequences);
    std::size_t bytes = 0;
    const auto scan = [&](void* temporary) {
      check_cuda(cub::DeviceScan::InclusiveSum(temporary, bytes, on_device.data(), sums.data(),
                                               sequences, stream));
    };
    scan(nullptr);
    const device_array<char> temporary(static_cast<offset_t>(bytes));
    const auto run = [&] { build(on_device); };
    const std::span<const int> span(on_device.data(), lengths.size());
    const double exact = bench::host_seconds(
        stream, s.small(), [&] { make_layout(cuda_stream<>(stream), span, p.how, p.cp); }, true);
    report.add(
        {.what = "layout of " + std::to_string(sequences) + " lengths in a capacity: GPU time",
         .measured = microseconds("GPU", bench::gpu_seconds(stream, s.small(), run)),
         .beside = {microseconds("host", bench::host_seconds(stream, s.small(), run)),
                    microseconds("one scan", bench::gpu_seconds(stream, s.small(),
                                                                [&] { scan(temporary.data()); })),
                    microseconds("exact sizes, read back", exact)},
         .right = right});
  }
}

/// A layout in a capacity and a pack over it: replayed with other lengths, and against eager calls.
void capture_gate(const settings& s, cudaStream_t stream, bench::report& report) {
  const capacity_problem p{64, round_up(s.size("id_width"), 16)};
  const offset_t total = p.sequences * p.width;
  auto layout = p.on_device(stream);
  const device_array<int> lengths(p.sequences);
  const device_array<int> count(std::vector<int>{static_cast<int>(p.sequences)}, stream);
  const device_array<std::int64_t> ids(total);
  const device_array<std::int64_t> packed(total);
  bench::randomise(ids, 1, stream);
  const auto table = ids.download(stream);
  const auto eager = [&] {
    layout.build(stream, lengths.data(), count.data());
    pack(cuda_stream<>(stream), layout, all_shards,
         field(batch_view<const std::int64_t>(ids.data(), p.sequences, p.width),
               row_view<std::int64_t>(packed.data(), total)));
  };
  const bench::graph graph(stream, eager);
  const auto replay = [&] { graph.launch(stream); };
  const auto right = [&](unsigned seed, const auto& call) {
    const auto values = bench::random_lengths(p.sequences, p.width, seed);
    lengths.upload(values, stream);
    packed.poison(stream);
    call();
    auto expected = poisoned<std::int64_t>(total);
    pack(host, p.on_host(values), all_shards,
         field(batch_view<const std::int64_t>(table.data(), p.sequences, p.width), expected));
    return same(packed.download(stream), expected);
  };
  bool all_right = true;
  for (const unsigned seed : {21, 22, 23}) {
    all_right = right(seed, replay) && all_right;
    all_right = right(seed + 10, eager) && all_right;
  }
  const double replayed = bench::host_seconds(stream, s.small(), replay, true);
  const double called = bench::host_seconds(stream, s.small(), eager, true);
  report.add({.what = "layout in a capacity + pack, B=64: replay of a graph against eager calls",
              .measured = {"ratio", replayed / called, ""},
              .bound = limit{limit_kind::at_most, 1},
              .beside = {microseconds("replay", replayed), microseconds("eager", called)},
              .right = all_right});
}

nlohmann::json about(const settings& s) {
  cudaDeviceProp device{};
  int driver = 0;
  int runtime = 0;
  check_cuda(cudaGetDeviceProperties(&device, 0));
  check_cuda(cudaDriverGetVersion(&driver));
  check_cuda(cudaRuntimeGetVersion(&runtime));
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%F", std::gmtime(&now));
  return {{"device", device.name}, {"driver", driver}, {"runtime", runtime},
          {"date", date},          {"quick", s.quick}, {"sizes", s.sizes}};
}

int run(const settings& s) {
  const nlohmann::json facts = about(s);
  bench::keep_pool_memory();
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  bench::report report(!s.quick);
  bool found = false;
  using gates = void (*)(const settings&, cudaStream_t, bench::report&);
  for (const auto& [name, measure] : {std::pair<const char*, gates>{"rows", rows_gates},
                                      {"logits", logits_gate},
                                      {"ids", id_gates},
                                      {"log_probs", log_prob_gates},
                                      {"layout", layout_gates},
                                      {"capture", capture_gate}}) {
    if (!s.only.empty() && s.only != name) continue;
    found = true;
    try {
      measure(s, stream, report);
    } catch (const std::exception& e) {
      report.add({.what = name, .error = e.what()});
    }
    if (!s.json.empty()) report.write(s.json, facts);  // what there is, should the next one not end
  }
  if (!found) throw std::invalid_argument("no gates of this name: " + s.only);
  std::printf("%s, %s%s\n\n", facts["device"].get<std::string>().c_str(),
              facts["date"].get<std::string>().c_str(),
              s.quick ? ", tiny sizes: times say nothing" : "");
  report.print();
  cudaStreamDestroy(stream);
  return report.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device");
    return 77;
  }
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
