// What the kernels share: loads and stores that convert, 16 bytes at a time; launches; the choice of an element type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <stdexcept>

#include "profiler/cudnn/kernels.h"

namespace sibyl::cudnn::device {

constexpr int threads = 256;

template <class T>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(T);
  T v[size];
};

template <class T>
__device__ float to_float(T x) {
  return static_cast<float>(x);
}
template <class T>
__device__ T from_float(float x) {
  return static_cast<T>(x);
}

__device__ inline std::int64_t thread_number() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline std::int64_t all_threads() { return std::int64_t{gridDim.x} * blockDim.x; }

__device__ inline std::uint32_t scramble(std::uint64_t n, std::uint32_t seed) {
  std::uint64_t z = n + 0x9e3779b97f4a7c15ULL * (seed + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<std::uint32_t>(z >> 32);
}

// y[i] = f(i, operands' i-th elements…), packs first, then what is left.
template <class T, class F>
__global__ void map_kernel(F f, const T* a, const T* b, const T* c, T* y, std::int64_t n) {
  using P = Pack<T>;
  const std::int64_t packs = n / P::size;
  for (std::int64_t p = thread_number(); p < packs; p += all_threads()) {
    P pa{}, pb{}, pc{}, py;
    if (a) pa = reinterpret_cast<const P*>(a)[p];
    if (b) pb = reinterpret_cast<const P*>(b)[p];
    if (c) pc = reinterpret_cast<const P*>(c)[p];
#pragma unroll
    for (int k = 0; k < P::size; ++k)
      py.v[k] = from_float<T>(f(p * P::size + k, to_float(pa.v[k]), to_float(pb.v[k]), to_float(pc.v[k])));
    reinterpret_cast<P*>(y)[p] = py;
  }
  for (std::int64_t i = packs * P::size + thread_number(); i < n; i += all_threads())
    y[i] = from_float<T>(f(i, a ? to_float(a[i]) : 0.f, b ? to_float(b[i]) : 0.f, c ? to_float(c[i]) : 0.f));
}

inline unsigned blocks_for(std::int64_t items) {
  constexpr std::int64_t most = 1 << 20;
  return static_cast<unsigned>(std::clamp<std::int64_t>((items + threads - 1) / threads, 1, most));
}

inline void check_launch() {
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(error));
}

template <class T, class F>
void map(F f, const void* a, const void* b, const void* c, void* y, std::int64_t n, cudaStream_t stream) {
  if (n == 0) return;
  map_kernel<T><<<blocks_for(n / Pack<T>::size + 1), threads, 0, stream>>>(
      f, static_cast<const T*>(a), static_cast<const T*>(b), static_cast<const T*>(c), static_cast<T*>(y), n);
  check_launch();
}

// Calls `f` with a value of the C++ type that `type` names.
template <class F>
void with_type(Type type, F&& f) {
  switch (type) {
    case Type::f32: return f(float{});
    case Type::f16: return f(__half{});
    case Type::bf16: return f(__nv_bfloat16{});
    default: throw std::invalid_argument("there is no CUDA kernel for this element type");
  }
}

}  // namespace sibyl::cudnn::device
