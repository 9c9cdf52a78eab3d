# How tests are made. A test is named by the path of its source: unit/draw/draw.cpp is unit.draw.draw.
function(seqpack_test_name variable source)
  string(REGEX REPLACE "\\.(cpp|cu)$" "" name "${source}")
  string(REPLACE "/" "." name "${name}")
  set(${variable} "${name}" PARENT_SCOPE)
endfunction()

# seqpack_add_test_program(<name> <source>... [LIBRARIES <library>...])
function(seqpack_add_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE seqpack_test_main ${arg_LIBRARIES})
  # It holds for the flags that it was made with; OpenMP's is another.
  if(NOT "OpenMP::OpenMP_CXX" IN_LIST arg_LIBRARIES)
    target_precompile_headers(${name} REUSE_FROM seqpack_test_main)
  endif()
endfunction()

# seqpack_register_test(<name> <command>...)
function(seqpack_register_test name)
  add_test(NAME ${name} COMMAND ${ARGN} --log_level=message)
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 SKIP_RETURN_CODE 77)
endfunction()

# seqpack_register_ranks(<target> <number of ranks>...): the program under mpirun, once for each number.
# A test that hangs fails. Ranks share the cores of small machines, so nothing runs beside them
# under ./tests/run, which has three jobs.
function(seqpack_register_ranks target)
  foreach(ranks IN LISTS ARGN)
    seqpack_register_test(${target}.${ranks} "${MPIEXEC_EXECUTABLE}" ${MPIEXEC_NUMPROC_FLAG} ${ranks}
      ${MPIEXEC_PREFLAGS} $<TARGET_FILE:${target}> ${MPIEXEC_POSTFLAGS})
    set_tests_properties(${target}.${ranks} PROPERTIES TIMEOUT 300 LABELS mpi PROCESSORS 3
      ENVIRONMENT "${ranks_environment}")
  endforeach()
endfunction()
# More ranks than cores, also as root. Leaks are looked for where no MPI leaks beside us.
set(ranks_environment
  OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  ASAN_OPTIONS=detect_leaks=0)

# seqpack_add_skipped_test(<name> <why> [<label>...]): counted as skipped.
function(seqpack_add_skipped_test name why)
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: ${why}")
  set_tests_properties(${name} PROPERTIES LABELS "${ARGN}" SKIP_REGULAR_EXPRESSION "^skipped:")
endfunction()

# seqpack_leave_to_all(<name>...): tests that take long, for ./tests/run --all; otherwise CTest names them
# as disabled.
function(seqpack_leave_to_all)
  if(NOT SEQPACK_TEST_ALL)
    set_tests_properties(${ARGN} PROPERTIES DISABLED ON)
  endif()
endfunction()

# seqpack_let_wait(<name>...): tests that mostly wait, for deadlines or for programs that end. They run
# beside others, one at a time, and from the beginning: CTest sorts by COST.
function(seqpack_let_wait)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 1 RESOURCE_LOCK waiting COST 1000)
endfunction()

# seqpack_use_cuda_runtime(<name>...): the runtime that these tests run with, instead of the toolkit's.
function(seqpack_use_cuda_runtime)
  if(SEQPACK_CUDA_RUNTIME_DIR)
    set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT_MODIFICATION
      "LD_LIBRARY_PATH=path_list_prepend:${SEQPACK_CUDA_RUNTIME_DIR}")
  endif()
endfunction()

# seqpack_one_source(<variable> <name> <source>...): a file that includes others, <name>.cu. What nvcc does
# for each file, the headers of CUB and Thrust above all, takes longer than most tests.
function(seqpack_one_source variable name)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"${CMAKE_CURRENT_SOURCE_DIR}/\\1\"" OUTPUT_VARIABLE lines)
  list(JOIN lines "\n" lines)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/${name}.cu")
  file(CONFIGURE OUTPUT "${file}" CONTENT "${lines}\n" @ONLY)
  set(${variable} "${file}" PARENT_SCOPE)
endfunction()

# seqpack_add_cuda_tests(<labels> <source>... [LIBRARIES <library>...]): the files of one folder are one
# program, and a test each, which runs the suite <folder>_<file>. A file that lies in no folder of its own
# is a program. Programs named audit count what they ask of the runtime: they define its functions, and
# call the runtime's own.
function(seqpack_add_cuda_tests labels)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES")
  set(programs)
  foreach(source IN LISTS arg_UNPARSED_ARGUMENTS)
    seqpack_test_name(name "${source}")
    if(name MATCHES "^([^.]+\\.[^.]+)\\.[^.]+$")
      set(program ${CMAKE_MATCH_1})
    else()
      set(program ${name})
    endif()
    list(APPEND programs ${program})
    list(APPEND sources_of_${program} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES programs)
  foreach(program IN LISTS programs)
    set(source ${sources_of_${program}})
    if(source MATCHES ";")
      seqpack_one_source(source ${program} ${source})
    endif()
    seqpack_add_test_program(${program} "${source}" LIBRARIES seqpack::cuda ${arg_LIBRARIES})
    if(program MATCHES "\\.audit")
      seqpack_audit_cuda_runtime(${program})
    endif()
    foreach(source IN LISTS sources_of_${program})
      seqpack_test_name(name "${source}")
      string(REGEX REPLACE "^[^.]+\\.([^.]+)\\.([^.]+)$" "\\1_\\2" suite "${name}")
      set(filter)
      if(NOT name STREQUAL program)
        set(filter --run_test=${suite})
      endif()
      seqpack_register_test(${name} ${program} ${filter})
      set_tests_properties(${name} PROPERTIES LABELS "${labels}")
      seqpack_use_cuda_runtime(${name})
    endforeach()
  endforeach()
endfunction()
function(seqpack_audit_cuda_runtime target)
  if(NOT TARGET seqpack_runtime_audit)
    find_package(CUDAToolkit REQUIRED)
    add_library(seqpack_runtime_audit OBJECT "${PROJECT_SOURCE_DIR}/tests/support/runtime_audit.cpp")
    target_link_libraries(seqpack_runtime_audit PRIVATE seqpack_test_settings CUDA::cudart)
  endif()
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:seqpack_runtime_audit>)
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
endfunction()
