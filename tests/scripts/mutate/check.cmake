# Runs scripts/mutate on a toy: a mistake that is caught, one that survives, one that a static_assert
# finds, one that is no C++, and entries that nothing can be said about.
#
# cmake -DMUTATE=... -DTOY=... -P
function(expect list result_expected output_expected)
  execute_process(COMMAND "${MUTATE}" --root "${TOY}" --list "${TOY}/${list}" ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL result_expected OR NOT output STREQUAL output_expected)
    message(FATAL_ERROR "${list}: exit status ${result}, and\n${output}\ninstead of ${result_expected}, "
      "and\n${output_expected}")
  endif()
endfunction()

file(READ "${TOY}/include/seqpack/toy/limit.hpp" before)
set(survivor "toy/limit.hpp: constexpr int most = 5; constexpr bool small -> \
constexpr int most = 6; constexpr bool small")
expect(mutations.txt 1 "caught by unit.limit: toy/limit.hpp: value <= most -> value < most
survived: ${survivor}
caught by a static_assert of unit.limit: toy/limit.hpp: value > 0 -> value > 1
did not compile: toy/limit.hpp: return value > 0; -> return;

survivors:
  mutations.txt:6: ${survivor} (unit.limit)
4 mutations, 2 caught, 1 survived, 1 did not compile
")
expect(mutations.txt 0 "caught by unit.limit: toy/limit.hpp: value <= most -> value < most
1 mutations, 1 caught, 0 survived, 0 did not compile
" "value <")
expect(stale.txt 2
  "stale.txt:1: toy/limit.hpp has the old text 0 times instead of once: value <= 5
stale.txt:4: toy/limit.hpp has the old text 2 times instead of once: constexpr bool
stale.txt:7: there is no test unit.no_such_test
")
file(READ "${TOY}/include/seqpack/toy/limit.hpp" after)
if(NOT after STREQUAL before)
  message(FATAL_ERROR "the header of the toy has changed")
endif()
