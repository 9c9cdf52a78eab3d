# cmake -DMODE=build|install|subdirectory -DSOURCE=... -DBUILD=... -DWORK=... -DTHREADS=... -DCUDA=...
#   -DMPI=... -DNCCL=... -DALL=... -P
#
# Configures, builds and runs the consumer project against seqpack in one of three ways, without
# optimisation and with one job: the subject is what is found, compiles and links.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${result}\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
set(options -DWITH_THREADS=${THREADS} -DWITH_CUDA=${CUDA} -DWITH_MPI=${MPI}
  -DWITH_NCCL=${NCCL})
if(MODE STREQUAL "build")
  list(APPEND options "-Dseqpack_DIR=${BUILD}" -DWITH_WARNINGS=ON)
elseif(MODE STREQUAL "install")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/prefix")
  list(APPEND options "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
else()
  list(APPEND options "-DSEQPACK_SOURCE=${SOURCE}")
endif()

run("${CMAKE_COMMAND}" -S "${SOURCE}/tests/consumer" -B "${WORK}/build" -G "${GENERATOR}" ${options})
run("${CMAKE_COMMAND}" --build "${WORK}/build" --parallel 1)
run("${WORK}/build/core")
if(MODE STREQUAL "build")
  run("${WORK}/build/warnings-O2")
  if(ALL)
    run("${CMAKE_COMMAND}" --build "${WORK}/build" --target warnings-O3)
  endif()
endif()
if(THREADS)
  run("${WORK}/build/threads")
endif()
if(CUDA)
  run("${WORK}/build/cuda")
endif()
if(MPI)
  run("${WORK}/build/mpi") # one process, without mpirun
endif()
if(NCCL)
  run("${WORK}/build/nccl")
endif()
