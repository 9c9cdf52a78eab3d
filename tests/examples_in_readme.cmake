# cmake -DROOT=... -P: the pages show these examples word for word.
foreach(shown
    README.md:examples/quickstart/main.cpp
    docs/groups.md:examples/broadcast/main.cpp
    docs/training.md:examples/own_loss/focal_loss.hpp
    docs/training.md:examples/own_loss/main.cpp
    docs/extending.md:examples/extending/sharding.hpp
    docs/extending.md:examples/extending/sharding.cpp
    docs/extending.md:examples/extending/executor.hpp
    docs/extending.md:examples/extending/executor.cpp
    docs/extending.md:examples/extending/communicator.hpp
    docs/extending.md:examples/extending/communicator.cpp
    docs/extending.md:examples/extending/model.hpp
    docs/extending.md:examples/extending/model.cpp
    docs/extending.md:examples/extending/loss.hpp
    docs/extending.md:examples/extending/loss.cpp
    docs/extending.md:examples/extending/memory_resource.hpp
    docs/extending.md:examples/extending/memory_resource.cu)
  string(REPLACE ":" ";" shown "${shown}")
  list(GET shown 0 page)
  list(GET shown 1 path)
  file(READ "${ROOT}/${page}" text)
  file(READ "${ROOT}/${path}" example)
  string(FIND "${text}" "```cpp\n${example}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${page} does not show ${path} word for word")
  endif()
endforeach()
