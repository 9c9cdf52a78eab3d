/// \file
/// The input of a loss, and the count that it is divided by.
#pragma once

namespace seqpack {

/// The input of a loss.
enum class loss_input {
  next_token_logprobs,  ///< the log-probability of each token, given those before it
  logits                ///< whole rows of the model's output, which may be values too
};

/// The global count that the library divides a loss by; a loss itself divides by no count.
enum class loss_level {
  token,    ///< N_tok, the global number of valid targets
  sequence  ///< N_seq, the global number of valid sequences, or of tuples of them
};

}  // namespace seqpack
