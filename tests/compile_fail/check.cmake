# Compiles one section of SOURCE and compares what the compiler says with what the section expects.
# Several lines "// expect N: regex" are alternatives, since compilers differ in their words. With a line
# "// errors N: count" the compiler must say so many errors, and no other.
set(prefix)
if(PREFIX)
  set(prefix -include "${PREFIX}")
endif()
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env LC_ALL=C
    "${COMPILER}" -std=c++20 -fsyntax-only "-I${INCLUDE}" ${prefix} "-DSEQPACK_FAIL=${SECTION}"
    "${SOURCE}"
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
file(STRINGS "${SOURCE}" count REGEX "^// errors ${SECTION}: [0-9]+$")
if(count)
  string(REGEX REPLACE "^// errors ${SECTION}: " "" count "${count}")
  string(REGEX MATCHALL " error: " errors "${output}")
  list(LENGTH errors found)
  if(NOT found EQUAL count)
    message(FATAL_ERROR "section ${SECTION} has ${found} errors, not ${count}:\n${output}")
  endif()
endif()
foreach(line IN LISTS lines)
  string(REGEX REPLACE "^// expect ${SECTION}: " "" expected "${line}")
  if(output MATCHES "${expected}")
    return()
  endif()
endforeach()
message(FATAL_ERROR "section ${SECTION} fails, but not with: ${lines}\n${output}")
