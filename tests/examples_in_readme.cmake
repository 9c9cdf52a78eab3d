# cmake -DROOT=... -P: README.md shows these examples word for word.
file(READ "${ROOT}/README.md" readme)
foreach(path examples/quickstart/main.cpp examples/broadcast/main.cpp)
  file(READ "${ROOT}/${path}" example)
  string(FIND "${readme}" "```cpp\n${example}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md does not show ${path} word for word")
  endif()
endforeach()
