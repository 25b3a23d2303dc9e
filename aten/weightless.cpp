#include "aten/weightless.h"

#include <ATen/EmptyTensor.h>

#include "aten/memory.h"

namespace sibyl::aten {
namespace {

void release(void* bytes) {
  const auto* counted = static_cast<std::int64_t*>(bytes);
  MemoryMeter::give(*counted);
  delete counted;
}

at::Tensor tensor_on(c10::Storage storage, const Shape& shape, caffe2::TypeMeta type) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                               c10::DispatchKeySet(c10::DispatchKey::Meta), type);
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

}  // namespace

at::Tensor weightless(const Shape& shape, c10::ScalarType type, std::size_t granularity) {
  const std::size_t size = static_cast<std::size_t>(element_count(shape)) * c10::elementSize(type);
  const std::size_t counted = (size + granularity - 1) / granularity * granularity;
  MemoryMeter::take(static_cast<std::int64_t>(counted));
  c10::DataPtr nothing(nullptr, new std::int64_t(static_cast<std::int64_t>(counted)), &release,
                       c10::Device(c10::DeviceType::Meta));
  c10::Storage storage(c10::Storage::use_byte_size_t{}, size, std::move(nothing), nullptr, false);
  return tensor_on(std::move(storage), shape, caffe2::TypeMeta::fromScalarType(type));
}

at::Tensor weightless_view(const at::Tensor& of, const Shape& shape) {
  return tensor_on(of.storage(), shape, of.dtype());
}

}  // namespace sibyl::aten
