// Layout and look-up.
#include "profiler/cudnn/kernels_device.cuh"
#include "profiler/cudnn/offsets.h"

namespace sibyl::cudnn {
namespace {

using namespace device;

// y at strides b, x at strides a.
template <class T, class Offsets>
__global__ void strided_kernel(const T* x, T* y, std::int64_t n, Offsets offsets) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const auto at = offsets.at(i);
    y[at.b] = x[at.a];
  }
}

constexpr int tile = 32;

template <class T>
__global__ void transpose_kernel(const T* x, T* y, std::int64_t rows, std::int64_t columns, std::int64_t row_tiles,
                                 std::int64_t column_tiles) {
  __shared__ T part[tile][tile + 1];
  const std::int64_t matrix = blockIdx.x / (row_tiles * column_tiles) * rows * columns;
  const std::int64_t row = blockIdx.x % row_tiles * tile, column = blockIdx.x / row_tiles % column_tiles * tile;
  for (int k = threadIdx.y; k < tile; k += blockDim.y)
    if (row + k < rows && column + threadIdx.x < columns)
      part[k][threadIdx.x] = x[matrix + (row + k) * columns + column + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < tile; k += blockDim.y)
    if (column + k < columns && row + threadIdx.x < rows)
      y[matrix + (column + k) * rows + row + threadIdx.x] = part[threadIdx.x][k];
}

struct Taken {
  std::int64_t from, to;  // places in x and y
};
__device__ Taken taken(std::int64_t i, const std::int64_t* ids, std::int64_t axis, std::int64_t count,
                       std::int64_t inner) {
  const std::int64_t in = i % inner, place = i / inner % count, out = i / inner / count;
  return {(out * axis + ids[place]) * inner + in, i};
}
template <class T>
__global__ void take_kernel(const T* x, const std::int64_t* ids, T* y, std::int64_t n, std::int64_t axis,
                            std::int64_t count, std::int64_t inner) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const Taken t = taken(i, ids, axis, count, inner);
    y[t.to] = x[t.from];
  }
}
template <class T>
__device__ void add_to(T* place, T value) {
  atomicAdd(place, value);
}
__device__ void add_to(__nv_bfloat16* place, __nv_bfloat16 value) {
#if __CUDA_ARCH__ >= 800
  atomicAdd(place, value);
#else
  __trap();  // such devices do not compute in bf16, and are not asked to
#endif
}
template <class T>
__global__ void take_backward_kernel(const T* dy, const std::int64_t* ids, T* dx, std::int64_t n, std::int64_t axis,
                                     std::int64_t count, std::int64_t inner) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const Taken t = taken(i, ids, axis, count, inner);
    add_to(dx + t.from, dy[t.to]);
  }
}

__global__ void not_below_zero_kernel(const std::int64_t* ids, std::int64_t* y, std::int64_t n) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) y[i] = ids[i] < 0 ? 0 : ids[i];
}
__global__ void below_zero_kernel(const std::int64_t* ids, std::uint8_t* y, std::int64_t n) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) y[i] = ids[i] < 0;
}
// y at strides a, marks at strides b.
template <class T, class Offsets>
__global__ void zero_rows_kernel(const std::uint8_t* marked, T* y, std::int64_t n, Offsets offsets) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const auto at = offsets.at(i);
    y[at.a] = marked[at.b] ? from_float<T>(0.f) : y[at.a];
  }
}

template <class T>
__global__ void resize_kernel(bool linear, const T* x, T* y, std::int64_t n, std::int64_t h, std::int64_t w,
                              std::int64_t p, std::int64_t q) {
  const float down = static_cast<float>(h) / p, right = static_cast<float>(w) / q;
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const std::int64_t column = i % q, row = i / q % p;
    const T* plane = x + i / q / p * h * w;
    if (!linear) {
      y[i] = plane[static_cast<std::int64_t>(row * down) * w + static_cast<std::int64_t>(column * right)];
      continue;
    }
    const float fy = fmaxf((row + 0.5f) * down - 0.5f, 0.f), fx = fmaxf((column + 0.5f) * right - 0.5f, 0.f);
    const std::int64_t y0 = static_cast<std::int64_t>(fy), x0 = static_cast<std::int64_t>(fx);
    const std::int64_t y1 = y0 + 1 < h ? y0 + 1 : y0, x1 = x0 + 1 < w ? x0 + 1 : x0;
    const float dy = fy - y0, dx = fx - x0;
    y[i] = from_float<T>((1 - dy) * ((1 - dx) * to_float(plane[y0 * w + x0]) + dx * to_float(plane[y0 * w + x1])) +
                         dy * ((1 - dx) * to_float(plane[y1 * w + x0]) + dx * to_float(plane[y1 * w + x1])));
  }
}

template <class T>
__global__ void pick_kernel(const T* z, const std::int64_t* targets, T* y, std::int64_t n, std::int64_t classes,
                            std::int64_t inner) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads())
    y[i] = from_float<T>(-to_float(z[(i / inner * classes + targets[i]) * inner + i % inner]));
}
template <class T>
__global__ void pick_backward_kernel(const std::int64_t* targets, T* dz, std::int64_t n, std::int64_t classes,
                                     std::int64_t inner) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads())
    dz[(i / inner * classes + targets[i]) * inner + i % inner] = from_float<T>(-1.f / static_cast<float>(n));
}

}  // namespace

void strided_copy(Type type, const void* x, void* y, std::int64_t n, const Strides& strides, cudaStream_t stream) {
  if (n == 0) return;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    with_offsets(strides, [&](const auto& offsets) {
      strided_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<const T*>(x), static_cast<T*>(y), n, offsets);
      check_launch();
    });
  });
}
void transpose_matrices(Type type, const void* x, void* y, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                        cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    const std::int64_t down = (rows + tile - 1) / tile, right = (columns + tile - 1) / tile;
    transpose_kernel<<<static_cast<unsigned>(down * right * batch), dim3(tile, 8), 0, stream>>>(
        static_cast<const T*>(x), static_cast<T*>(y), rows, columns, down, right);
    check_launch();
  });
}
void take(Type type, const void* x, const std::int64_t* ids, void* y, std::int64_t outer, std::int64_t axis,
          std::int64_t count, std::int64_t inner, cudaStream_t stream) {
  const std::int64_t n = outer * count * inner;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    take_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<const T*>(x), ids, static_cast<T*>(y), n, axis,
                                                       count, inner);
    check_launch();
  });
}
void take_backward(Type type, const void* dy, const std::int64_t* ids, void* dx, std::int64_t outer, std::int64_t axis,
                   std::int64_t count, std::int64_t inner, cudaStream_t stream) {
  const std::int64_t n = outer * count * inner;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    take_backward_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<const T*>(dy), ids, static_cast<T*>(dx), n,
                                                                axis, count, inner);
    check_launch();
  });
}
void not_below_zero(const std::int64_t* ids, std::int64_t* y, std::int64_t n, cudaStream_t stream) {
  not_below_zero_kernel<<<blocks_for(n), threads, 0, stream>>>(ids, y, n);
  check_launch();
}
void below_zero(const std::int64_t* ids, std::uint8_t* y, std::int64_t n, cudaStream_t stream) {
  below_zero_kernel<<<blocks_for(n), threads, 0, stream>>>(ids, y, n);
  check_launch();
}
void zero_rows(Type type, const std::uint8_t* marked, void* y, std::int64_t rows, std::int64_t inner,
               cudaStream_t stream) {
  const std::int64_t n = rows * inner;
  if (n == 0) return;
  Strides strides;
  strides.rank = 2, strides.extent[0] = rows, strides.extent[1] = inner;
  strides.a[0] = inner, strides.a[1] = 1, strides.b[0] = 1;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    with_offsets(strides, [&](const auto& offsets) {
      zero_rows_kernel<<<blocks_for(n), threads, 0, stream>>>(marked, static_cast<T*>(y), n, offsets);
      check_launch();
    });
  });
}
void resize(bool linear, Type type, const void* x, void* y, std::int64_t planes, std::int64_t h, std::int64_t w,
            std::int64_t p, std::int64_t q, cudaStream_t stream) {
  const std::int64_t n = planes * p * q;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    resize_kernel<<<blocks_for(n), threads, 0, stream>>>(linear, static_cast<const T*>(x), static_cast<T*>(y), n, h, w,
                                                         p, q);
    check_launch();
  });
}
void pick(Type type, const void* z, const std::int64_t* targets, void* y, std::int64_t outer, std::int64_t classes,
          std::int64_t inner, cudaStream_t stream) {
  const std::int64_t n = outer * inner;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    pick_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<const T*>(z), targets, static_cast<T*>(y), n,
                                                       classes, inner);
    check_launch();
  });
}
void pick_backward(Type type, const std::int64_t* targets, void* dz, std::int64_t outer, std::int64_t classes,
                   std::int64_t inner, cudaStream_t stream) {
  const std::int64_t n = outer * inner;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    pick_backward_kernel<<<blocks_for(n), threads, 0, stream>>>(targets, static_cast<T*>(dz), n, classes, inner);
    check_launch();
  });
}

}  // namespace sibyl::cudnn
