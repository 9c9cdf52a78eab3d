# Finds CCCL (Thrust, CUB, libcu++): from the CUDA toolkit, else from anywhere find_package looks, else
# a pinned release. Defines CCCL::CCCL.
include_guard(DIRECTORY)

find_package(CUDAToolkit QUIET)
find_package(CCCL CONFIG QUIET
  HINTS
    "${CUDAToolkit_LIBRARY_ROOT}/lib/cmake/cccl"
    "${CUDAToolkit_TARGET_DIR}/lib/cmake/cccl"
    "${CUDAToolkit_LIBRARY_DIR}/cmake/cccl"
  PATHS
    /usr/local/cuda/lib/cmake/cccl
    /usr/local/cuda/lib64/cmake/cccl)
if(NOT CCCL_FOUND)
  include(FetchContent)
  FetchContent_Declare(CCCL
    GIT_REPOSITORY https://github.com/NVIDIA/cccl.git
    GIT_TAG v3.0.1
    GIT_SHALLOW ON)
  FetchContent_MakeAvailable(CCCL)
endif()
