/// \file
/// Element types and reductions in the terms of MPI. CMake component: seqpack::mpi.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <climits>
#include <concepts>
#include <type_traits>
#include <utility>

#include "seqpack/comm/communicator.hpp"
#include "seqpack/comm/mpi_environment.hpp"
#include "seqpack/core/config.hpp"
#include "seqpack/core/view.hpp"

namespace seqpack::detail::mpi {

/// MPI's own type for those that it knows; for all others, as for 128-bit integers and the floating
/// point types of newer standards, MPI_DATATYPE_NULL.
template <class T>
MPI_Datatype native_type() {
  if constexpr (std::is_same_v<T, float>) {
    return MPI_FLOAT;
  } else if constexpr (std::is_same_v<T, double>) {
    return MPI_DOUBLE;
  } else if constexpr (std::is_same_v<T, long double>) {
    return MPI_LONG_DOUBLE;
  } else if constexpr (std::is_integral_v<T> && sizeof(T) <= 8 && !std::is_same_v<T, bool>) {
    constexpr bool is_signed = std::is_signed_v<T>;
    switch (sizeof(T)) {
      case 1: return is_signed ? MPI_INT8_T : MPI_UINT8_T;
      case 2: return is_signed ? MPI_INT16_T : MPI_UINT16_T;
      case 4: return is_signed ? MPI_INT32_T : MPI_UINT32_T;
      default: return is_signed ? MPI_INT64_T : MPI_UINT64_T;
    }
  } else {
    return MPI_DATATYPE_NULL;
  }
}

/// What an all-reduce can combine: everything with + and <, half and bfloat16 as well.
template <class T>
concept reducible = element<T> && !std::same_as<T, bool> && requires(const T& a, const T& b) {
  { a + b } -> std::convertible_to<T>;
  { a < b } -> std::convertible_to<bool>;
};

template <reducible T, reduction How>
T combined(const T& a, const T& b) {
  if constexpr (How == reduction::sum) {
    return static_cast<T>(a + b);
  } else if constexpr (How == reduction::max) {
    return a < b ? b : a;
  } else {
    return b < a ? b : a;
  }
}

/// MPI calls it for types of its own making; `in` comes from lower ranks.
template <reducible T, reduction How>
void combine(void* in, void* in_out, int* count, MPI_Datatype*) {
  const T* const a = static_cast<const T*>(in);
  T* const b = static_cast<T*>(in_out);
  for (int k = 0; k < *count; ++k) b[k] = combined<T, How>(a[k], b[k]);
}

/// A datatype that is freed with the object, unless it is MPI's own.
class datatype {
 public:
  explicit datatype(MPI_Datatype native) : type_(native) {}
  /// So many bytes.
  static datatype bytes(offset_t count, offset_t largest_count);
  template <class T>
  static datatype of() {
    if (native_type<T>() != MPI_DATATYPE_NULL) return datatype(native_type<T>());
    return bytes(sizeof(T), INT_MAX);
  }
  datatype(datatype&& other) noexcept
      : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)),
        made_(std::exchange(other.made_, false)) {}
  datatype& operator=(datatype&&) = delete;
  ~datatype() {
    if (made_) MPI_Type_free(&type_);
  }
  MPI_Datatype get() const noexcept { return type_; }

 private:
  MPI_Datatype type_;
  bool made_ = false;
};

inline datatype datatype::bytes(offset_t count, offset_t largest_count) {
  datatype result(MPI_DATATYPE_NULL);
  const auto block = static_cast<int>(std::min(count, largest_count));
  if (count <= largest_count) {
    check_mpi(MPI_Type_contiguous(block, MPI_BYTE, &result.type_), "MPI_Type_contiguous");
  } else {
    // Whole blocks, then the rest: counts fit an int up to 2^62 bytes.
    MPI_Datatype whole = MPI_DATATYPE_NULL;
    check_mpi(MPI_Type_contiguous(block, MPI_BYTE, &whole), "MPI_Type_contiguous");
    const offset_t blocks = count / block;
    const std::array<int, 2> lengths{static_cast<int>(blocks), static_cast<int>(count % block)};
    const std::array<MPI_Aint, 2> places{0, blocks * block};
    const std::array<MPI_Datatype, 2> types{whole, MPI_BYTE};
    const int code =
        MPI_Type_create_struct(2, lengths.data(), places.data(), types.data(), &result.type_);
    MPI_Type_free(&whole);
    check_mpi(code, "MPI_Type_create_struct");
  }
  result.made_ = true;
  check_mpi(MPI_Type_commit(&result.type_), "MPI_Type_commit");
  return result;
}

/// MPI's own reductions for its own types, else ours; freed with the object.
template <reducible T>
class operation {
 public:
  explicit operation(reduction how) {
    if (native_type<T>() != MPI_DATATYPE_NULL) {
      op_ = how == reduction::sum ? MPI_SUM : how == reduction::max ? MPI_MAX : MPI_MIN;
    } else {
      made_ = true;
      check_mpi(MPI_Op_create(how == reduction::sum   ? &combine<T, reduction::sum>
                              : how == reduction::max ? &combine<T, reduction::max>
                                                      : &combine<T, reduction::min>,
                              1, &op_),
                "MPI_Op_create");
    }
  }
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  ~operation() {
    if (made_) MPI_Op_free(&op_);
  }
  MPI_Op get() const noexcept { return op_; }

 private:
  MPI_Op op_ = MPI_OP_NULL;
  bool made_ = false;
};

}  // namespace seqpack::detail::mpi
