/// \file
/// What the audits of pack and unpack have in common: tensors, ragged and left-padded batches, and
/// room for them on both sides.
#pragma once

#include <cstdint>
#include <vector>

#include "seqpack/move/field.hpp"
#include "support/audit.cuh"

namespace seqpack::testing {

/// Tensors of three types and widths, in a batch and packed in any place.
struct audited_tensors {
  changing_layout layout;
  device_array<std::int64_t> ids;
  device_array<float> hidden;         ///< 5 elements a token
  device_array<std::int16_t> routes;  ///< 3 elements a token
  device_array<std::int64_t> packed_ids;
  device_array<float> packed_hidden;
  device_array<std::int16_t> packed_routes;

  audited_tensors(int batch, offset_t cp)
      : layout(batch, cp),
        ids(layout.positions()),
        hidden(layout.positions(5)),
        routes(layout.positions(3)),
        packed_ids(layout.rows()),
        packed_hidden(layout.rows(5)),
        packed_routes(layout.rows(3)) {
    set_batch(0);
    set_packed(0);
  }
  /// Other lengths, and other elements of the batch.
  void set_batch(int round) {
    layout.set(round);
    set_values(ids, round);
    set_values(hidden, round);
    set_values(routes, round);
  }
  /// Other lengths, and other packed elements.
  void set_packed(int round) {
    layout.set(round);
    set_values(packed_ids, round);
    set_values(packed_hidden, round);
    set_values(packed_routes, round);
  }

  template <class T>
  batch_view<T> in_batch(const device_array<T>& tensor, offset_t payload = 1) const {
    return {tensor.data(), layout.batch(), changing_layout::longest, payload};
  }
  template <class T, class Place>
  row_view<T> in_row(const device_array<T>& tensor, Place at, offset_t payload = 1) const {
    return {tensor.data(), layout.view().rows(at), payload};
  }
};

/// Calls f(stream, tensors, ranks) for every number of sequences and ranks of the audit.
template <class F>
void with_audited_tensors(const F& f) {
  for (const int batch : audited_batches) {
    for (const offset_t cp : audited_ranks) {
      const test_stream stream;
      const audited_tensors tensors(batch, cp);
      f(stream, tensors, cp);
      stream.wait();
    }
  }
}

/// Where the sequences of a ragged and of a left-padded batch begin, for a layout of 2 ranks.
struct audited_tables {
  changing_layout layout;
  device_array<std::int32_t> bounds;
  device_array<int> starts;

  explicit audited_tables(int batch)
      : layout(batch, 2),
        bounds(static_cast<std::size_t>(batch) + 1),
        starts(static_cast<std::size_t>(batch)) {
    set(0);
  }
  /// Other lengths.
  void set(int round) {
    layout.set(round);
    const auto on_host = layout.on_host(round);
    const auto cu = on_host.cu_seqlens();
    bounds.upload({cu.begin(), cu.end()});
    std::vector<int> leads;
    for (const int length :
         audit_lengths(static_cast<int>(layout.batch()), changing_layout::longest, round)) {
      leads.push_back(changing_layout::longest - length);
    }
    starts.upload(leads);
  }
  auto ragged(const device_array<int>& values) const {
    return ragged_view(row_view(values.data(), layout.batch() * changing_layout::longest),
                       bounds.data(), layout.batch());
  }
  auto left_padded(const device_array<int>& values) const {
    return left_padded_view(batch_view(values.data(), layout.batch(), changing_layout::longest),
                            starts.data());
  }
  row_view<int> in_row(const device_array<int>& rows) const {
    return {rows.data(), layout.total()};
  }
};

}  // namespace seqpack::testing
