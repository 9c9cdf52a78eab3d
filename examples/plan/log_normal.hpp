// Lengths of a log-normal distribution, the same on every machine: from whole numbers alone.
#pragma once

#include <array>
#include <cstdint>
#include <seqpack/core/config.hpp>
#include <vector>

namespace plan_text {

using seqpack::offset_t;

/// splitmix64.
class random_bits {
 public:
  constexpr explicit random_bits(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t operator()() {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

/// The largest whole number whose square is at most x.
constexpr std::uint64_t root_of(std::uint64_t x) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit > 0; bit /= 2) {
    if ((root + bit) * (root + bit) <= x) root += bit;
  }
  return root;
}

/// 2^x, rounded down.
/// \param x in units of 2^-32, from 0 to 30 * 2^32
constexpr offset_t power_of_two(offset_t x) {
  // 2^(1/2), 2^(1/4), ... in units of 2^-30
  constexpr auto roots = [] {
    std::array<std::uint64_t, 16> all{};
    std::uint64_t root = std::uint64_t{2} << 30;
    for (auto& entry : all) entry = root = root_of(root << 30);
    return all;
  }();
  std::uint64_t power = std::uint64_t{1} << 30;
  for (std::size_t k = 0; k < roots.size(); ++k) {
    if (((x >> (31 - k)) & 1) != 0) power = (power * roots[k]) >> 30;
  }
  return static_cast<offset_t>(power >> (30 - (x >> 32)));
}

inline constexpr offset_t log_normal_median = 1024;
inline constexpr offset_t log_normal_longest = 8192;  ///< longer ones are cut

/// Lengths of which the natural logarithm is normal, with a standard deviation of 1.
constexpr std::vector<offset_t> log_normal_lengths(offset_t count, std::uint64_t seed) {
  random_bits random(seed);
  std::vector<offset_t> lengths;
  lengths.reserve(static_cast<std::size_t>(count));
  while (static_cast<offset_t>(lengths.size()) < count) {
    // The sum of twelve uniform numbers is close to normal, with a variance of 1.
    offset_t normal = -(offset_t{6} << 32);
    for (int k = 0; k < 12; ++k) normal += static_cast<offset_t>(random() >> 32);
    constexpr offset_t log2_of_e = 94'548;  // in units of 2^-16
    const offset_t exponent = (offset_t{10} << 32) + normal * log2_of_e / (offset_t{1} << 16);
    const offset_t length = power_of_two(exponent);
    lengths.push_back(length < log_normal_longest ? length : log_normal_longest);
  }
  return lengths;
}

}  // namespace plan_text
