// Reductions, normalisation of rows, and updates in one kernel.
#include <cfloat>

#include "profiler/cudnn/kernels_device.cuh"

namespace sibyl::cudnn {
namespace {

using namespace device;

__device__ float start_of(Sum sum) {
  return sum == Sum::maximum ? -FLT_MAX : sum == Sum::minimum ? FLT_MAX : sum == Sum::product ? 1.f : 0.f;
}
__device__ float term(Sum sum, float x) { return sum == Sum::squares ? x * x : sum == Sum::absolute ? fabsf(x) : x; }
__device__ float join(Sum sum, float a, float b) {
  switch (sum) {
    case Sum::maximum: return fmaxf(a, b);
    case Sum::minimum: return fminf(a, b);
    case Sum::product: return a * b;
    default: return a + b;
  }
}

// Over a block of `threads`; every thread has the result.
__device__ float join_block(Sum sum, float x) {
  __shared__ float parts[32];
  for (int offset = 16; offset > 0; offset /= 2) x = join(sum, x, __shfl_xor_sync(0xffffffff, x, offset));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = parts[0];
  for (unsigned i = 1; i < blockDim.x / 32; ++i) x = join(sum, x, parts[i]);
  __syncthreads();
  return x;
}

template <class To>
__device__ void put(To* y, std::int64_t at, float x) {
  y[at] = from_float<To>(x);
}

// Along the contiguous dimension: a block takes one split of one row.
template <class T, class To>
__global__ void reduce_rows_kernel(Sum sum, const T* x, To* y, std::int64_t length, std::int64_t split, float scale) {
  const std::int64_t row = blockIdx.x, begin = std::int64_t{blockIdx.y} * split;
  const std::int64_t end = begin + split < length ? begin + split : length;
  float total = start_of(sum);
  for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
    total = join(sum, total, term(sum, to_float(x[row * length + i])));
  total = join_block(sum, total);
  if (threadIdx.x == 0) put(y, std::int64_t{blockIdx.y} * gridDim.x + row, total * scale);
}

// Across it: 32 columns by 8 rows of threads take one split of the length of 32 columns.
template <class T, class To>
__global__ void reduce_columns_kernel(Sum sum, const T* x, To* y, std::int64_t outer, std::int64_t length,
                                      std::int64_t inner, std::int64_t split, float scale) {
  __shared__ float parts[8][33];
  const std::int64_t blocks = (inner + 31) / 32, o = blockIdx.x / blocks;
  const std::int64_t column = blockIdx.x % blocks * 32 + threadIdx.x, begin = std::int64_t{blockIdx.y} * split;
  const std::int64_t end = begin + split < length ? begin + split : length;
  float total = start_of(sum);
  if (column < inner)
    for (std::int64_t l = begin + threadIdx.y; l < end; l += 8)
      total = join(sum, total, term(sum, to_float(x[(o * length + l) * inner + column])));
  parts[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  if (threadIdx.y != 0 || column >= inner) return;
  for (int i = 1; i < 8; ++i) total = join(sum, total, parts[i][threadIdx.x]);
  put(y, (std::int64_t{blockIdx.y} * outer + o) * inner + column, total * scale);
}

// Enough blocks to fill a device, at least 1,024 elements a split.
std::int64_t splits_of(std::int64_t outer, std::int64_t length, std::int64_t inner) {
  const std::int64_t blocks = outer * ((inner + 31) / 32);
  const std::int64_t wanted = std::max<std::int64_t>(1, 512 / std::max<std::int64_t>(1, blocks));
  return std::clamp<std::int64_t>(std::min(wanted, length / 1024), 1, 256);
}

template <class T, class To>
void reduce_once(Sum sum, const T* x, To* y, std::int64_t outer, std::int64_t length, std::int64_t inner,
                 std::int64_t splits, float scale, cudaStream_t stream) {
  const std::int64_t split = (length + splits - 1) / splits;
  const auto rows = static_cast<unsigned>(inner == 1 ? outer : outer * ((inner + 31) / 32));
  const dim3 grid(rows, static_cast<unsigned>(splits));
  if (inner == 1)
    reduce_rows_kernel<<<grid, threads, 0, stream>>>(sum, x, y, length, split, scale);
  else
    reduce_columns_kernel<<<grid, dim3(32, 8), 0, stream>>>(sum, x, y, outer, length, inner, split, scale);
  check_launch();
}

template <class T>
__global__ void normalize_kernel(bool centred, const T* x, const T* scale, const T* shift, T* y, float* statistics,
                                 std::int64_t length, std::int64_t repeat) {
  const T* row = x + std::int64_t{blockIdx.x} * length;
  T* out = y + std::int64_t{blockIdx.x} * length;
  float sum = 0.f, squares = 0.f;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float value = to_float(row[i]);
    sum += value, squares += value * value;
  }
  sum = join_block(Sum::plain, sum), squares = join_block(Sum::plain, squares);
  const float n = static_cast<float>(length), mean = centred ? sum / n : 0.f;
  const float inverse = rsqrtf(squares / n - mean * mean + 1e-5f);
  if (threadIdx.x == 0) statistics[2 * blockIdx.x] = mean, statistics[2 * blockIdx.x + 1] = inverse;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float s = scale ? to_float(scale[i / repeat]) : 1.f, t = shift ? to_float(shift[i / repeat]) : 0.f;
    out[i] = from_float<T>((to_float(row[i]) - mean) * inverse * s + t);
  }
}

template <class T>
__global__ void normalize_backward_kernel(bool centred, const T* x, const T* dy, const T* scale,
                                          const float* statistics, T* dx, std::int64_t length, std::int64_t repeat) {
  const std::int64_t at = std::int64_t{blockIdx.x} * length;
  const float mean = statistics[2 * blockIdx.x], inverse = statistics[2 * blockIdx.x + 1];
  float sum = 0.f, along = 0.f;
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float g = to_float(dy[at + i]) * (scale ? to_float(scale[i / repeat]) : 1.f);
    sum += g, along += g * (to_float(x[at + i]) - mean) * inverse;
  }
  sum = centred ? join_block(Sum::plain, sum) : 0.f, along = join_block(Sum::plain, along);
  const float n = static_cast<float>(length);
  for (std::int64_t i = threadIdx.x; i < length; i += blockDim.x) {
    const float g = to_float(dy[at + i]) * (scale ? to_float(scale[i / repeat]) : 1.f);
    const float normal = (to_float(x[at + i]) - mean) * inverse;
    dx[at + i] = from_float<T>(inverse * (g - sum / n - normal * along / n));
  }
}

template <class T>
__global__ void parameters_kernel(const T* x, const T* dy, const float* statistics, float* parts, std::int64_t rows,
                                  std::int64_t length, std::int64_t split) {
  __shared__ float scales[8][33], shifts[8][33];
  const std::int64_t column = std::int64_t{blockIdx.x} * 32 + threadIdx.x, begin = std::int64_t{blockIdx.y} * split;
  const std::int64_t end = begin + split < rows ? begin + split : rows;
  float scale = 0.f, shift = 0.f;
  if (column < length)
    for (std::int64_t row = begin + threadIdx.y; row < end; row += 8) {
      const float g = to_float(dy[row * length + column]);
      shift += g;
      scale += g * (to_float(x[row * length + column]) - statistics[2 * row]) * statistics[2 * row + 1];
    }
  scales[threadIdx.y][threadIdx.x] = scale, shifts[threadIdx.y][threadIdx.x] = shift;
  __syncthreads();
  if (threadIdx.y != 0 || column >= length) return;
  for (int i = 1; i < 8; ++i) scale += scales[i][threadIdx.x], shift += shifts[i][threadIdx.x];
  parts[(std::int64_t{blockIdx.y} * 2) * length + column] = scale;
  parts[(std::int64_t{blockIdx.y} * 2 + 1) * length + column] = shift;
}
template <class T>
__global__ void join_parameters_kernel(const float* parts, T* dscale, T* dshift, std::int64_t length,
                                       std::int64_t splits) {
  for (std::int64_t i = thread_number(); i < length; i += all_threads()) {
    float scale = 0.f, shift = 0.f;
    for (std::int64_t s = 0; s < splits; ++s)
      scale += parts[2 * s * length + i], shift += parts[(2 * s + 1) * length + i];
    dscale[i] = from_float<T>(scale);
    if (dshift) dshift[i] = from_float<T>(shift);
  }
}

template <class T>
__global__ void momentum_kernel(T* w, const T* g, T* m, std::int64_t n) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const float first = 0.9f * to_float(m[i]) + to_float(g[i]);
    m[i] = from_float<T>(first);
    w[i] = from_float<T>(to_float(w[i]) - 1e-4f * first);
  }
}
template <class T>
__global__ void adam_kernel(T* w, const T* g, T* m, T* v, std::int64_t n) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const float gradient = to_float(g[i]);
    const float first = 0.9f * to_float(m[i]) + 0.1f * gradient;
    const float second = 0.999f * to_float(v[i]) + 0.001f * gradient * gradient;
    m[i] = from_float<T>(first), v[i] = from_float<T>(second);
    w[i] = from_float<T>(to_float(w[i]) - 1e-4f * first / (sqrtf(second) + 1e-8f));
  }
}

}  // namespace

std::size_t reduce_workspace(std::int64_t outer, std::int64_t length, std::int64_t inner) {
  const std::int64_t splits = splits_of(outer, length, inner);
  return splits > 1 ? sizeof(float) * static_cast<std::size_t>(splits * outer * inner) : 0;
}

void reduce(Sum sum, Type type, const void* x, void* y, std::int64_t outer, std::int64_t length, std::int64_t inner,
            float* workspace, cudaStream_t stream) {
  const std::int64_t splits = splits_of(outer, length, inner);
  const float scale = sum == Sum::mean ? 1.f / static_cast<float>(length) : 1.f;
  // What partial sums are of has been squared already.
  const Sum then = sum == Sum::maximum || sum == Sum::minimum || sum == Sum::product ? sum : Sum::plain;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (splits == 1) return reduce_once(sum, from, to, outer, length, inner, 1, scale, stream);
    reduce_once(sum, from, workspace, outer, length, inner, splits, 1.f, stream);
    const std::int64_t left = outer * inner;  // [splits, left]
    if (left == 1)
      reduce_once(then, static_cast<const float*>(workspace), to, 1, splits, 1, 1, scale, stream);
    else
      reduce_once(then, static_cast<const float*>(workspace), to, 1, splits, left, 1, scale, stream);
  });
}

void normalize_rows(bool centred, Type type, const void* x, const void* scale, const void* shift, void* y,
                    float* statistics, std::int64_t rows, std::int64_t length, std::int64_t repeat,
                    cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    normalize_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(
        centred, static_cast<const T*>(x), static_cast<const T*>(scale), static_cast<const T*>(shift),
        static_cast<T*>(y), statistics, length, repeat);
    check_launch();
  });
}
void normalize_rows_backward(bool centred, Type type, const void* x, const void* dy, const void* scale,
                             const float* statistics, void* dx, std::int64_t rows, std::int64_t length,
                             std::int64_t repeat, cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    normalize_backward_kernel<<<static_cast<unsigned>(rows), threads, 0, stream>>>(
        centred, static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<const T*>(scale), statistics,
        static_cast<T*>(dx), length, repeat);
    check_launch();
  });
}

std::size_t parameters_workspace(std::int64_t rows, std::int64_t length) {
  return sizeof(float) * 2 * static_cast<std::size_t>(splits_of(1, rows, length) * length);
}
void normalize_rows_parameters(Type type, const void* x, const void* dy, const float* statistics, void* dscale,
                               void* dshift, std::int64_t rows, std::int64_t length, float* workspace,
                               cudaStream_t stream) {
  const std::int64_t splits = splits_of(1, rows, length), split = (rows + splits - 1) / splits;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    const dim3 grid(static_cast<unsigned>((length + 31) / 32), static_cast<unsigned>(splits));
    parameters_kernel<<<grid, dim3(32, 8), 0, stream>>>(static_cast<const T*>(x), static_cast<const T*>(dy), statistics,
                                                        workspace, rows, length, split);
    check_launch();
    join_parameters_kernel<<<blocks_for(length), threads, 0, stream>>>(workspace, static_cast<T*>(dscale),
                                                                       static_cast<T*>(dshift), length, splits);
    check_launch();
  });
}

void fused_momentum(Type type, void* w, const void* g, void* m, std::int64_t n, cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    momentum_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<T*>(w), static_cast<const T*>(g),
                                                           static_cast<T*>(m), n);
    check_launch();
  });
}
void fused_adam(Type type, void* w, const void* g, void* m, void* v, std::int64_t n, cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    adam_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<T*>(w), static_cast<const T*>(g), static_cast<T*>(m),
                                                       static_cast<T*>(v), n);
    check_launch();
  });
}

}  // namespace sibyl::cudnn
