// Memory: what is there, and what is too much.
#pragma once

#include <string>

namespace text_tools {

/// Refuses what takes more memory than there is, before the system ends the program for it.
/// \param what as "memory for a batch"
/// \throws seqpack::invalid_input
void require_memory(const std::string& what, double bytes);

}  // namespace text_tools
