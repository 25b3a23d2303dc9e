// One function per pattern; each goes over the whole graph once. Their order is canonical.cpp's.
#pragma once

#include "models/canonical/editor.h"

namespace sibyl::rewrites {

// Convolutions (and Linears) into which an export for inference folded a batch-norm -> the same without bias, and the
// batch-norm. They are known by the names that exporters give what they fold, so this goes first.
void folded_batch_norms(Editor& editor);

// x + c, x * c, x / c, c - x, x ** c, max(x, c)… with a scalar constant c -> Unary. Floating point only.
void scalar_operands(Editor& editor);

// Relu of Clip and the like -> one Clip: ReLU6 as max(0, x), then min(6, x).
void limits(Editor& editor);

// Parameters that only comparisons and conditions read (masks: files do not tell them from weights) -> buffers.
void constants(Editor& editor);

// Tables of cosines and sines stored for rotary position embeddings -> buffers.
void rotary_tables(Editor& editor);

// Identities, casts to the same type, expansions and transposes that change nothing; Transpose of Transpose; Reshape of
// Reshape; transposes that only move axes of one element -> Reshape.
void views(Editor& editor);

// Transposes whose operand a reshape gave axes of one element (einsum taken apart) -> transposes of the other axes.
void unit_axes(Editor& editor);

// The transpose of a reshape that folds heads into the batch, of a transpose: before the reshape, where it joins the
// other.
void folded_transposes(Editor& editor);

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

// How many heads of [B*H, S, D], or of keys [B*H, D, S], were folded into the batch; 1: none, or it is not certain.
std::int64_t heads_in_batch(const Editor& editor, TensorId t);

// Attention whose operands and result are views of [S, B*H, D] -> views of [S, B, H, D].
void folded_heads(Editor& editor);

// Channels last -> channels first between two transpositions around convolutions, which go.
void layouts(Editor& editor);

// Parameters that are only read reshaped or transposed -> stored as they are read.
void stored_views(Editor& editor);

// MatMul with a two-dimensional parameter -> Linear.
void linears(Editor& editor);

// Linear between reshapes of [B, S, K] to rows and of rows to [B, S, N] -> Linear without them.
void kept_rows(Editor& editor);

// Linear or Convolution without bias, then Add of a parameter over its channels -> the same with that bias; also where
// a Linear's channels are reshaped in between, to heads for instance. A Linear's may stay apart.
void biases(Editor& editor, bool of_linear_apart = false);

// The reverse for convolutions: one with a bias -> one without, then Add.
void split_biases(Editor& editor);

}  // namespace sibyl::rewrites
