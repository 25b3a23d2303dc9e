// Descriptors of cuDNN's older interface (normalisation, pooling, softmax), with owners. Of this folder alone.
#pragma once

#include "profiler/cudnn/graph.h"
#include "profiler/cudnn/images.h"

namespace sibyl::cudnn {

template <class T, cudnnStatus_t (*create)(T*), cudnnStatus_t (*destroy)(T)>
struct OwnedDescriptor {
  T handle{};
  OwnedDescriptor() { check(create(&handle), "a descriptor"); }
  ~OwnedDescriptor() { destroy(handle); }
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;
};

using PoolingDescriptor =
    OwnedDescriptor<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor>;
using LrnDescriptor = OwnedDescriptor<cudnnLRNDescriptor_t, cudnnCreateLRNDescriptor, cudnnDestroyLRNDescriptor>;

struct TensorDescriptor
    : OwnedDescriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor> {
  TensorDescriptor(Type type, const Shape& shape, Layout layout) {
    std::vector<int> extents, strides;
    for (const auto v : shape) extents.push_back(static_cast<int>(v));
    for (const auto v : strides_of(shape, layout)) strides.push_back(static_cast<int>(v));
    check(cudnnSetTensorNdDescriptor(handle, data_type(type), static_cast<int>(extents.size()), extents.data(),
                                     strides.data()),
          "a tensor");
  }
};

}  // namespace sibyl::cudnn
