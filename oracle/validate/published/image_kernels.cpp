#include "oracle/validate/published/image_kernels.h"

namespace sibyl::published {
namespace {

bool says(const std::string& text, std::string_view word) { return lower_case(text).find(word) != std::string::npos; }

bool in_half(const Row& row) {
  return says(row.precision, "fp16") || says_word(row.precision, "amp") || says(row.precision, "bf16");
}
bool on_tensor_cores(const Row& row) { return in_half(row) || says(row.precision, "tf32"); }

// NVIDIA's PyTorch examples took NHWC with mixed precision from 2020 on (classification, SSD, 3-D nnU-Net); before,
// they kept PyTorch's NCHW.
ImageKernels pytorch_kernels(const Row& row) {
  const bool early = says(row.framework, "20.03");
  const bool flat_unet = says(row.architecture.text("cnn"), "nnunet_2d");
  if (early || flat_unet)
    return {.converted_images = true, .assumed = {"images lie channels first, and are transposed for tensor cores"}};
  return {.assumed = {"images lie channels last"}};
}

// MLPerf's submissions, and the runner of NVIDIA's examples in fp16 (--fuse-bn-relu 1 --fuse-bn-add-relu 1), which
// DLPerf starts, too.
bool norms_of_nvidia_mxnet(const Row& row) {
  return says(row.framework, "mxnet") && (row.source.starts_with("MLPerf") || says(row.framework, "ngc"));
}

// DLPerf's configurations of TensorFlow 2.3 ask for cuDNN's persistent batch-norm on one node, and not on several
// (batchnorm_spatial_persistent: True in gpu_fp16.yaml, False in two_node_gpu_fp16.yaml and multi_node_gpu_fp16.yaml).
bool lacks_persistent_norms(const Row& row) {
  return row.source == "OneFlow-DLPerf" && says(row.framework, "multiworkermirrored") &&
         row.gpus > row.gpus_per_node.value_or(row.gpus);
}

}  // namespace

// In single precision all of them lie channels first. PyTorch's and MXNet's do unless asked. What TensorFlow's models
// spell NHWC its layout optimizer turns (core/grappler/optimizers/generic_layout_optimizer.cc), and XLA takes NHWC for
// f16 alone (xla/service/gpu/gpu_layout_assignment.cc, HeuristicLayoutAssignment: "not Volta or not fp16 ... use
// NCHW").
ImageKernels image_kernels_of(const Row& row) {
  ImageKernels kernels;
  if (says(row.framework, "tensorflow") && says_word(row.notes, "xla")) {
    kernels.fused_norms = true;
    kernels.assumed.emplace_back("XLA runs additions and ReLUs behind a batch-norm with it");
  }
  if (!on_tensor_cores(row)) return kernels;
  if (!in_half(row)) {
    kernels.converted_images = true;
    kernels.assumed.emplace_back(
        "images lie channels first, transposed for tensor cores or convolved in f32, the quicker");
    return kernels;
  }
  if (says(row.framework, "pytorch")) return pytorch_kernels(row);
  kernels.assumed.emplace_back("images lie channels last");
  if (says(row.framework, "oneflow") || norms_of_nvidia_mxnet(row)) {
    kernels.fused_norms = true;
    kernels.assumed.emplace_back("additions and ReLUs behind a batch-norm run in its kernel");
  }
  if (lacks_persistent_norms(row)) {
    kernels.converted_norms = true;
    kernels.assumed.emplace_back("batch-norms that are not persistent, for which TensorFlow transposes images");
  }
  return kernels;
}

}  // namespace sibyl::published
