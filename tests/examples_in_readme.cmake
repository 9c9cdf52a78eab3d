# cmake -DROOT=... -P: the pages show these examples word for word.
foreach(shown
    README.md:examples/quickstart/main.cpp
    docs/groups.md:examples/broadcast/main.cpp
    docs/training.md:examples/own_loss/focal_loss.hpp
    docs/training.md:examples/own_loss/main.cpp)
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
