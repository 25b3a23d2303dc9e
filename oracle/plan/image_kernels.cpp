#include "oracle/plan/image_kernels.h"

namespace sibyl {
namespace {

class Fuser {
 public:
  explicit Fuser(const Stage& stage) : result_(stage), uses_(stage.tensors.size()) {
    for (std::size_t i = 0; i < stage.steps.size(); ++i)
      for (const LocalTensorId in : inputs_of(stage.steps[i]))
        if (in.valid()) uses_[in.index()].push_back(i);
    for (const Link& link : stage.sends) uses_[link.tensor.index()].push_back(stage.steps.size());
  }

  Stage run() {
    for (const Step& step : result_.steps)
      if (const auto* compute = std::get_if<Compute>(&step); compute && is_batch_norm(compute->attributes))
        fuse_behind(compute->outputs.front());
    return std::move(result_);
  }

 private:
  static bool is_batch_norm(const Attributes& attributes) {
    const auto* norm = std::get_if<Normalization>(&attributes);
    return norm != nullptr && norm->kind == NormalizationKind::batch;
  }
  static bool is_relu(const Compute& compute) {
    const auto* unary = std::get_if<Unary>(&compute.attributes);
    return unary != nullptr && unary->kind == UnaryKind::relu;
  }
  bool is_addition(const Compute& compute) const {
    const auto* binary = std::get_if<Binary>(&compute.attributes);
    return binary != nullptr && binary->kind == BinaryKind::add &&
           result_[compute.inputs[0]].shape == result_[compute.inputs[1]].shape;
  }

  // The one operation that uses the tensor.
  Compute* sole_user(LocalTensorId id) {
    const std::vector<std::size_t>& users = uses_[id.index()];
    if (users.size() != 1 || users.front() >= result_.steps.size()) return nullptr;
    return std::get_if<Compute>(&result_.steps[users.front()]);
  }

  void fuse_behind(LocalTensorId norm) {
    Compute* next = sole_user(norm);
    if (next == nullptr || next->fused) return;
    if (is_relu(*next)) {
      next->fused = true;
      return;
    }
    if (!is_addition(*next)) return;
    Compute* relu = sole_user(next->outputs.front());
    if (relu == nullptr || !is_relu(*relu)) return;
    next->fused = relu->fused = true;
    const LocalTensor& sum =
        result_[next->outputs.front()];  // beside the norm's kernel the shortcut is read, its gradient written
    const double shortcut = static_cast<double>(element_count(sum.shape)) * size_in_bytes(sum.dtype);
    next->moved = {shortcut, next->gradients != 0 ? shortcut : 0.0};
  }

  Stage result_;
  std::vector<std::vector<std::size_t>> uses_;  // steps, by tensor
};

bool on_tensor_cores(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::tf32; }

std::int64_t padded(std::int64_t channels) {
  constexpr std::int64_t together = 8;
  return (channels + together - 1) / together * together;
}

}  // namespace

Stage with_fused_norms(const Stage& stage) { return Fuser(stage).run(); }

std::vector<Shape> converted_images(const Signature& signature, Pass pass, std::uint32_t gradients) {
  const auto* convolution = std::get_if<Convolution>(&signature.attributes);
  if (convolution == nullptr || !on_tensor_cores(signature.dtype)) return {};
  const Shape &x = signature.inputs.front(), &y = signature.outputs.front();
  if (convolution->groups > 1 && convolution->groups == x[1]) return {};
  if (pass == Pass::forward) return {x, y};
  std::vector<Shape> images;
  if ((gradients & 1U) != 0) images.insert(images.end(), {y, x});
  if ((gradients & 2U) != 0) images.insert(images.end(), {x, y});
  return images;
}

std::vector<Shape> converted_for_norm(const Signature& signature, Pass pass) {
  const auto* norm = std::get_if<Normalization>(&signature.attributes);
  if (norm == nullptr || norm->kind != NormalizationKind::batch) return {};
  const std::size_t images = pass == Pass::forward ? 2 : 3;
  return std::vector<Shape>(images, signature.inputs.front());
}

std::optional<Signature> with_padded_channels(const Signature& signature) {
  const auto* convolution = std::get_if<Convolution>(&signature.attributes);
  if (convolution == nullptr || convolution->groups > 1 || !on_tensor_cores(signature.dtype)) return std::nullopt;
  Signature result = signature;
  for (Shape* shape : {&result.inputs[0], &result.outputs[0]}) (*shape)[1] = padded((*shape)[1]);
  for (const std::size_t axis : {0U, 1U}) result.inputs[1][axis] = padded(result.inputs[1][axis]);
  if (result.inputs.size() > 2) result.inputs[2] = {result.outputs[0][1]};
  if (result == signature) return std::nullopt;
  return result;
}

}  // namespace sibyl
