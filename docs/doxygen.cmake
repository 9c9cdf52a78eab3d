# cmake -DDOXYGEN=... -DDOXYFILE=... -DLOG=... [-DNAMES=...] [-DXML=... -DPAGE=...] -P doxygen.cmake
#
# With NAMES, scripts/public-names, it also fails where PAGE does not list the public names that there are.
#
# Runs Doxygen and fails on every warning but three kinds, which it only counts: members of a type
# (the type, or the concept that it models, says what they do), specialisations and deduction guides
# (their primary template does). Doxygen has no setting between all of these and none.
execute_process(COMMAND "${DOXYGEN}" "${DOXYFILE}" RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "doxygen failed: ${result}")
endif()

file(STRINGS "${LOG}" warnings)
list(REMOVE_DUPLICATES warnings)  # Doxygen repeats what is on two pages
set(refused "")
set(counted 0)
foreach(warning IN LISTS warnings)
  if(warning MATCHES "Member .* of (class|struct) .* is not documented"
      OR warning MATCHES "(Compound|Member) [a-z_:]+ ?< .* is not documented"
      OR warning MATCHES "Member [^ ]+\\(.*\\) -> .* is not documented")
    math(EXPR counted "${counted} + 1")
  else()
    string(APPEND refused "${warning}\n")
  endif()
endforeach()
message(STATUS "${counted} members, specialisations and deduction guides without a comment: ${LOG}")
if(refused)
  message("${refused}")
  message(FATAL_ERROR "the reference is not complete: see above")
endif()

if(NAMES)
  execute_process(COMMAND "${NAMES}" "${XML}" --check "${PAGE}" RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the public names have changed, see above; if they are right: "
      "${NAMES} ${XML} > ${PAGE}")
  endif()
endif()
