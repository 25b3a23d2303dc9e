#include "aten/weightless.h"

#include <c10/core/Allocator.h>

#include <cstring>

#include "aten/memory.h"

namespace sibyl::aten {
namespace {

std::size_t granularity = 64;
bool apart = false;

void give_up(void* bytes) {
  const auto* counted = static_cast<std::int64_t*>(bytes);
  MemoryMeter::give(*counted);
  delete counted;
}

// Where gradients are summed where one of them lies, and those of the meta device in a third tensor, the peak must not
// see all three.
c10::DataPtr counted(std::size_t size) {
  const auto bytes = static_cast<std::int64_t>((size + granularity - 1) / granularity * granularity);
  if (apart)
    MemoryMeter::take(bytes);
  else
    MemoryMeter::replace(bytes);
  return {nullptr, new std::int64_t(bytes), &give_up, c10::Device(c10::DeviceType::Meta)};
}

// As in aten/memory.cpp: each form overrides what the installed libtorch declares.
class WeightlessAllocator final : public c10::Allocator {
 public:
  // NOLINTBEGIN(modernize-use-override)
  c10::DataPtr allocate(std::size_t size) const { return counted(size); }
  c10::DataPtr allocate(std::size_t size) { return counted(size); }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  // NOLINTEND(modernize-use-override)
};

}  // namespace

void count_weightless(std::size_t to, bool sums_apart) {
  static WeightlessAllocator allocator;
  granularity = to;
  apart = sums_apart;
  c10::SetAllocator(c10::DeviceType::Meta, &allocator, 1);
}

at::Tensor weightless(const Shape& shape, c10::ScalarType type) {
  at::Tensor tensor = at::empty(shape, at::TensorOptions(at::kMeta).dtype(type));
  MemoryMeter::take(0);
  return tensor;
}

at::Tensor weightless_view(const at::Tensor& of, const Shape& shape) {
  return weightless_view(of, shape, of.scalar_type());
}

at::Tensor weightless_view(const at::Tensor& of, const Shape& shape, c10::ScalarType type) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(of.storage()), c10::DispatchKeySet(c10::DispatchKey::Meta), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(shape);
  return tensor;
}

void resize_weightless(const at::Tensor& of, std::size_t bytes) {
  of.storage().set_data_ptr(counted(bytes));
  MemoryMeter::take(0);
}

}  // namespace sibyl::aten
