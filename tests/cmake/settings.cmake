# What all tests share: warnings, the sanitizers where asked, Boost.Test as a shared library, the data.
find_package(Boost REQUIRED COMPONENTS unit_test_framework)
add_library(seqpack_test_settings INTERFACE)
target_link_libraries(seqpack_test_settings INTERFACE seqpack::seqpack Boost::unit_test_framework)
target_include_directories(seqpack_test_settings INTERFACE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(seqpack_test_settings INTERFACE
  BOOST_TEST_DYN_LINK
  BOOST_BIND_GLOBAL_PLACEHOLDERS
  SEQPACK_TEST_DATA="${CMAKE_CURRENT_SOURCE_DIR}/data")

# Compiling takes longer than running: many instantiations, little data. -O1 takes twice as long as -O0
# (layout/layout.cpp 20 s and 10 s), and up to a fifth more goes into collecting g++'s garbage, which
# small memory limits make it do. What runs on a device is optimised in full all the same.
set(warnings -Wall -Wextra -Wconversion -Wshadow -Werror)
set(cuda_warnings "$<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings;-Xcompiler=-Wall>")
set(quick_to_compile "$<$<COMPILE_LANGUAGE:CXX>:-O0>"
  "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>")
foreach(type RELEASE RELWITHDEBINFO)
  string(REGEX REPLACE "-O[123]" "-O0" CMAKE_CUDA_FLAGS_${type} "${CMAKE_CUDA_FLAGS_${type}}")
endforeach()
target_compile_options(seqpack_test_settings INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>" ${cuda_warnings} ${quick_to_compile})

# The precompiled header stands beside the main function, which both belong to all tests.
add_library(seqpack_test_main STATIC support/main.cpp)
target_link_libraries(seqpack_test_main PUBLIC seqpack_test_settings)
target_precompile_headers(seqpack_test_main PRIVATE support/precompiled.hpp)

# CUDA tests run on a GPU, or on another runtime that is put before the toolkit's.
set(cuda_tests_run OFF)
file(GLOB devices /dev/nvidia[0-9]* /dev/dxg)
if(SEQPACK_CUDA_RUNTIME_DIR OR devices OR SEQPACK_TEST_ALL)
  set(cuda_tests_run ON)
endif()
