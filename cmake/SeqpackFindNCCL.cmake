# Finds NCCL: in NCCL_ROOT, beside the CUDA toolkit, or where the system has it. Defines NCCL::NCCL, or
# nothing where NCCL or the toolkit is missing.
include_guard(DIRECTORY)

find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND AND NOT TARGET NCCL::NCCL)
  get_filename_component(seqpack_toolkit_root "${CUDAToolkit_BIN_DIR}" DIRECTORY)
  find_path(SEQPACK_NCCL_INCLUDE_DIR nccl.h
    HINTS "${NCCL_ROOT}" "$ENV{NCCL_ROOT}" ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES include)
  find_library(SEQPACK_NCCL_LIBRARY nccl
    HINTS "${NCCL_ROOT}" "$ENV{NCCL_ROOT}" "${seqpack_toolkit_root}" "${CUDAToolkit_LIBRARY_DIR}"
    PATH_SUFFIXES lib lib64)
  mark_as_advanced(SEQPACK_NCCL_INCLUDE_DIR SEQPACK_NCCL_LIBRARY)
  if(SEQPACK_NCCL_INCLUDE_DIR AND SEQPACK_NCCL_LIBRARY)
    add_library(NCCL::NCCL UNKNOWN IMPORTED)
    set_target_properties(NCCL::NCCL PROPERTIES
      IMPORTED_LOCATION "${SEQPACK_NCCL_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${SEQPACK_NCCL_INCLUDE_DIR}")
  endif()
endif()
