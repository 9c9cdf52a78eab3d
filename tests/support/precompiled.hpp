/// \file
/// What nearly every test includes, parsed once for all of them: Boost.Test and the standard library.
/// No header of the library is among them: that would save another 0.1 s of a test, and a change of
/// any header would compile all tests again.
#pragma once

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <charconv>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <ranges>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <variant>
#include <vector>
