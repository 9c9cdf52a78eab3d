/// \file
/// A header for the test of scripts/mutate.
#pragma once

constexpr int most = 5;

constexpr bool small(int value) {
  return value <= most;
}

constexpr bool positive(int value) {
  return value > 0;
}
