file(GLOB sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" cuda/*.cu cuda/*/*.cu)
set(why)
if(NOT TARGET seqpack_cuda)
  set(why "no CUDA compiler")
elseif(NOT cuda_tests_run)
  set(why "neither a CUDA device nor another runtime")
endif()
if(why)
  foreach(source IN LISTS sources)
    seqpack_test_name(name "${source}")
    seqpack_add_skipped_test(${name} "${why}" cuda)
  endforeach()
else()
  seqpack_add_cuda_tests(cuda ${sources})
endif()

# What ptxas says of the kernels, without running them. It compiles while it is run.
foreach(architecture 80 90)
  set(name cuda.ptxas.${architecture})
  if(NOT TARGET seqpack_cuda)
    seqpack_add_skipped_test(${name} "no CUDA compiler" cuda)
    continue()
  endif()
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}"
    "-DCOMPILER=${CMAKE_CUDA_COMPILER}"
    "-DINCLUDE=${PROJECT_SOURCE_DIR}/include"
    "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/ptxas/kernels.cu"
    "-DWORK=${CMAKE_CURRENT_BINARY_DIR}"
    -DARCHITECTURE=${architecture}
    -P "${CMAKE_CURRENT_SOURCE_DIR}/ptxas/check.cmake")
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 LABELS "cuda;compile")
  if(architecture LESS 90)
    seqpack_leave_to_all(${name})
  endif()
endforeach()
