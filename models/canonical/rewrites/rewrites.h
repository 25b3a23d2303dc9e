// One function per pattern; each goes over the whole graph once. Their order is canonical.cpp's.
#pragma once

#include "models/canonical/editor.h"

namespace sibyl::rewrites {

// Convolutions (and Linears) into which an export for inference folded a batch-norm -> the same without bias, and the
// batch-norm. They are known by the names that exporters give what they fold, so this goes first.
void folded_batch_norms(Editor& editor);

// x + c, x * c, x / c, c - x, x ** c, max(x, c)… with a scalar constant c -> Unary. Floating point only.
void scalar_operands(Editor& editor);

// Parameters that only comparisons and conditions read (masks: files do not tell them from weights) -> buffers.
void constants(Editor& editor);

// Tables of cosines and sines stored for rotary position embeddings -> buffers.
void rotary_tables(Editor& editor);

// Identities, casts to the same type, expansions and transposes that change nothing; Transpose of Transpose; Reshape of
// Reshape.
void views(Editor& editor);

// Gather at one constant position (x[:, 0]) -> Slice and Reshape, as indexing runs.
void selects(Editor& editor);

// A draw compared, cast and scaled, as exporters spell Bernoulli's -> Dropout of ones.
void spelled_dropouts(Editor& editor);

// GELU (erf and, unless it stays apart, tanh), SiLU, HardSwish, Mish from the arithmetic that spells them.
void gated_activations(Editor& editor, bool gelu_tanh_apart = false);

// LayerNorm and RMSNorm from means, squares and roots.
void norms(Editor& editor);

// InstanceNorm over reshaped channels with its own scale and shift -> GroupNorm.
void group_norms(Editor& editor);

// softmax(scale q k^T + mask) v -> Attention.
void attentions(Editor& editor);

// MatMul with a two-dimensional parameter -> Linear.
void linears(Editor& editor);

// Linear or Convolution without bias, then Add of a parameter over its channels -> the same with that bias.
void biases(Editor& editor);

}  // namespace sibyl::rewrites
