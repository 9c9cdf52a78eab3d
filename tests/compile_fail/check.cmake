# Compiles one section of SOURCE and compares what the compiler says with what the section expects.
# Several lines "// expect N: regex" are alternatives, since compilers differ in their words. With a line
# "// one error N" that error must be the only one.
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C
    "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE}" "-DSEQPACK_FAIL=${SECTION}" "${SOURCE}"
  RESULT_VARIABLE result
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)

if(SECTION EQUAL 0)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "section 0 must compile:\n${output}")
  endif()
  return()
endif()

file(STRINGS "${SOURCE}" lines REGEX "^// expect ${SECTION}: .")
if(NOT lines)
  message(FATAL_ERROR "section ${SECTION} does not say what to expect")
endif()
if(result EQUAL 0)
  message(FATAL_ERROR "section ${SECTION} compiles; expected was: ${lines}")
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^// expect ${SECTION}: " "" expected "${line}")
  if(output MATCHES "${expected}")
    file(STRINGS "${SOURCE}" alone REGEX "^// one error ${SECTION}$")
    string(REGEX MATCHALL "error: " errors "${output}")
    list(LENGTH errors count)
    if(alone AND NOT count EQUAL 1)
      message(FATAL_ERROR "section ${SECTION} fails with ${count} errors instead of one:\n${output}")
    endif()
    return()
  endif()
endforeach()
message(FATAL_ERROR "section ${SECTION} fails, but not with: ${lines}\n${output}")
