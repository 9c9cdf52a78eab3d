set(ranks_of_mpi.large 2)
set(ranks_of_mpi.train_cases 1 2 4)
# CP 4 and TP 3 together need 12.
set(ranks_of_mpi.golden_nll 1 2 3 4 8 12)
set(ranks_of_mpi.golden_dpo 1 2 4 8)
set(ranks_of_mpi.golden_policy_gradient 1 2 4 8)
set(ranks_of_mpi.grid 4 8)
set(ranks_of_mpi.micro_batches 1 2 4)
set(ranks_of_mpi.dead_rank 2 3 4)
set(ranks_of_mpi.end_without_a_rank 3)

file(GLOB sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" mpi/*.cpp)
if(SEQPACK_SANITIZE)
  list(REMOVE_ITEM sources ${not_sanitized})
endif()
foreach(source IN LISTS sources)
  seqpack_test_name(name "${source}")
  if(NOT TARGET seqpack_mpi)
    seqpack_add_skipped_test(${name} "no MPI" mpi)
    continue()
  endif()
  seqpack_add_test_program(${name} "${source}" LIBRARIES seqpack::mpi)
  if(DEFINED ranks_of_${name})
    seqpack_register_ranks(${name} ${ranks_of_${name}})
  else()
    seqpack_register_ranks(${name} 1 2 3 4 8)
  endif()
endforeach()
if(NOT TARGET seqpack_mpi)
  return()
endif()

set_tests_properties(mpi.large.2 PROPERTIES LABELS "mpi;large")

# The same facts with more ranks, or more bytes.
seqpack_leave_to_all(mpi.large.2 mpi.attention_model.8 mpi.conformance.8 mpi.context_gather.8
  mpi.deadlines.3 mpi.deadlines.8 mpi.golden_dpo.8 mpi.random_program.8)
if(NOT SEQPACK_SANITIZE)
  seqpack_leave_to_all(mpi.golden_nll.8 mpi.golden_nll.12 mpi.golden_policy_gradient.8)
endif()

foreach(ranks 1 2 3 4 8)
  seqpack_let_wait(mpi.deadlines.${ranks})
endforeach()
seqpack_let_wait(mpi.end_without_a_rank.3)

# mpirun is told to let the others live; their exit statuses say nothing then, the output does.
foreach(ranks 2 3 4)
  seqpack_let_wait(mpi.dead_rank.${ranks})
  set_tests_properties(mpi.dead_rank.${ranks} PROPERTIES
    PASS_REGULAR_EXPRESSION "all ranks that live have got an error, and go on"
    ENVIRONMENT "${ranks_environment};OMPI_MCA_orte_enable_recovery=1")
endforeach()

# Two errors of one program, the second of which ends it.
set_tests_properties(mpi.end_without_a_rank.3 PROPERTIES TIMEOUT 120
  PASS_REGULAR_EXPRESSION
  "do not meet at the end of MPI, so it is aborted: broadcast_tensor .MPI_Iallgather. on rank [01] of the group {0, 1, 2} has waited 1000 ms for another rank, the deadline of the communicator; rank 2 has not come")
