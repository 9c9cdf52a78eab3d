# cmake -DROOT=... -P: the example in README.md must be examples/quickstart/main.cpp, word for word.
file(READ "${ROOT}/README.md" readme)
file(READ "${ROOT}/examples/quickstart/main.cpp" example)
string(FIND "${readme}" "```cpp\n${example}```" at)
if(at EQUAL -1)
  message(FATAL_ERROR "README.md does not show examples/quickstart/main.cpp word for word")
endif()
