// How libraries of kernels differ in what they do to images: which operations share a kernel, and in which order the
// numbers of an image lie.
//
// Fused norms (cuDNN's NHWC batch-norm in MXNet, OneFlow and others; what a compiler such as XLA makes of the
// elementwise tail): behind a batch-norm, an addition of the shortcut and a ReLU run in the norm's kernel. The ReLU
// then costs nothing in either pass; the addition reads the shortcut forward and writes its gradient backward, and no
// more.
//
// Converted images: "convolutions implemented for Tensor Cores require NHWC layout" (channels last; "Convolutional
// layers user's guide", NVIDIA). Where a framework keeps images channels first (NCHW), cuDNN transposes what a
// convolution on tensor cores reads, and back what it writes: forward x and y, for the gradient of x dy and dx, for
// that of the weight x and dy. For tf32 too: profiles of PyTorch show nchwToNhwcKernel<float, float, float…> around its
// …tf32…nhwc kernels, and winograd and sgemm kernels in f32 among them, which a framework that times its choices takes
// where they are quicker. Depthwise convolutions have kernels of their own.
//
// Converted norms: of batch-norms cuDNN has a kernel for channels last that is quick, in f16 and by its persistent mode
// alone. Where a framework keeps images channels last and is not asked for that mode, it transposes what a batch-norm
// reads and writes: forward x and y, backward x, dy and dx (TensorFlow, core/kernels/fused_batch_norm_op.cc:
// fast_nhwc_batch_norm; PaddlePaddle, batch_norm_op.cu, the same).
//
// Padded channels: tensor cores are fed 8 channels of 16 bits at a time. Where an image has another number of them (the
// three colours), cuDNN 7.3 and later pad to the next multiple ("Deep learning performance documentation", NVIDIA).
#pragma once

#include <optional>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

// The program with every Compute marked `fused` that the strategy's kernels run with the batch-norm before it.
Stage with_fused_norms(const Stage& stage);

// The shapes of the images that are transposed for one pass of a convolution, each read and written once; empty where
// the operation is none, or does not run on tensor cores.
std::vector<Shape> converted_images(const Signature& signature, Pass pass, std::uint32_t gradients);

// Those that are transposed for one pass of a batch-norm; empty where the operation is none.
std::vector<Shape> converted_for_norm(const Signature& signature, Pass pass);

// The convolution with its channels padded; none where it needs no padding, or does not run on tensor cores.
std::optional<Signature> with_padded_channels(const Signature& signature);

}  // namespace sibyl
