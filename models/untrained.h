// A model may return more than what is trained: BERT's pooler beside its hidden states, an encoder's memory beside a
// decoder's logits. What only such an output needs is no part of a training step, and is left out with it.
#pragma once

#include <string>
#include <vector>

#include "models/graph.h"

namespace sibyl {

// Parameters of `whole` that `trained`, the same model once a loss was attached, no longer has: by the first output of
// `whole` that they reach. Outputs that no such parameter reaches are left out.
std::vector<UntrainedOutput> untrained_outputs(const Graph& whole, const Graph& trained);

// "2 parameters of 590,592 elements only reach output pooler_output, which no loss is attached to"
std::string untrained_sentence(const UntrainedOutput& left);

}  // namespace sibyl
