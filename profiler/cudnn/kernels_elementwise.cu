// Operands, the timing loop's helpers, and elementwise kernels.
#include "profiler/cudnn/kernels_device.cuh"
#include "profiler/cudnn/offsets.h"

namespace sibyl::cudnn {
namespace {

using namespace device;

__global__ void byte_fill_kernel(std::uint8_t* x, std::int64_t n, std::uint8_t base, std::uint8_t mask,
                                 std::uint32_t seed) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads())
    x[i] = static_cast<std::uint8_t>(base + (scramble(i, seed) & mask));
}
__global__ void id_fill_kernel(std::int64_t* x, std::int64_t n, std::int64_t bound, std::uint32_t seed) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) x[i] = scramble(i, seed) % bound;
}
__global__ void write_again_kernel(volatile int* x, std::int64_t n) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) x[i] = x[i];
}
__global__ void wait_kernel(const volatile int* flag) {
  constexpr unsigned long long most = 20'000'000;  // ns
  unsigned long long start = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (*flag == 0 && now - start < most);
}
__global__ void empty_kernel() {}

struct PointOp {
  Point op;
  float s;
  __device__ float operator()(std::int64_t, float a, float b, float c) const {
    switch (op) {
      case Point::scale: return s * a;
      case Point::add_scaled: return a + s * b;
      case Point::multiply: return a * b;
      case Point::divide: return a / b;
      case Point::add_product: return a + s * b * c;
      case Point::add_quotient: return a + s * b / c;
      case Point::root: return sqrtf(a);
      case Point::add_constant: return a + s;
      case Point::reciprocal: return 1.f / a;
      case Point::squared_difference: return (a - b) * (a - b);
      case Point::scaled_difference: return s * (a - b);
    }
    return 0.f;
  }
};

// In the order of UnaryKind.
struct UnaryOp {
  int kind;
  float alpha, beta;
  __device__ float operator()(std::int64_t, float x, float, float) const {
    switch (kind) {
      case 0: return fmaxf(x, 0.f);
      case 1:
      case 2: return x > 0.f ? x : alpha * x;
      case 3: return x > 0.f ? x : alpha * expm1f(x);
      case 4: return 0.5f * x * (1.f + erff(x * 0.70710678f));
      case 5: return 0.5f * x * (1.f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
      case 6: return x / (1.f + expf(-x));
      case 7: return x * fminf(fmaxf(x + 3.f, 0.f), 6.f) / 6.f;
      case 8: return fminf(fmaxf(x / 6.f + 0.5f, 0.f), 1.f);
      case 9: return 1.f / (1.f + expf(-x));
      case 10: return tanhf(x);
      case 11: return log1pf(expf(x));
      case 12: return x * tanhf(log1pf(expf(x)));
      case 13: return fminf(fmaxf(x, alpha), beta);
      case 14: return erff(x);
      case 15: return expf(x);
      case 16: return logf(x);
      case 17: return sqrtf(x);
      case 18: return rsqrtf(x);
      case 19: return 1.f / x;
      case 20: return powf(x, alpha);
      case 21: return fabsf(x);
      case 22: return -x;
      case 23: return sinf(x);
      case 24: return cosf(x);
      case 25: return floorf(x);
      case 26: return ceilf(x);
      case 27: return rintf(x);
      case 28: return x > 0.f ? 1.f : x < 0.f ? -1.f : 0.f;
      case 29: return x == 0.f ? 1.f : 0.f;
      default: return alpha * x + beta;
    }
  }
};

// dy times the derivative. A kind without a line of its own does the forward's arithmetic in its place: the same
// traffic and much the same work, so the time is right where the value is not.
struct UnaryBackwardOp {
  int kind;
  float alpha, beta;
  __device__ float operator()(std::int64_t i, float x, float dy, float) const {
    switch (kind) {
      case 0: return x > 0.f ? dy : 0.f;
      case 1:
      case 2: return x > 0.f ? dy : alpha * dy;
      case 3: return x > 0.f ? dy : alpha * expf(x) * dy;
      case 4: return dy * (0.5f * (1.f + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x));
      case 9: {
        const float s = 1.f / (1.f + expf(-x));
        return dy * s * (1.f - s);
      }
      case 6: {
        const float s = 1.f / (1.f + expf(-x));
        return dy * (s + x * s * (1.f - s));
      }
      case 10: {
        const float t = tanhf(x);
        return dy * (1.f - t * t);
      }
      case 13: return x > alpha && x < beta ? dy : 0.f;
      case 20: return dy * alpha * powf(x, alpha - 1.f);
      case 22: return -dy;
      case 30: return dy * alpha;
      default: return dy * UnaryOp{kind, alpha, beta}(i, x, 0.f, 0.f);
    }
  }
};

struct BinaryOp {
  int kind;
  __device__ float operator()(std::int64_t, float a, float b, float) const {
    switch (kind) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return a * b;
      case 3: return a / b;
      case 4: return powf(a, b);
      case 5: return fminf(a, b);
      case 6: return fmaxf(a, b);
      case 7: return fmodf(a, b);
      case 8: return a == b ? 1.f : 0.f;
      case 9: return a < b ? 1.f : 0.f;
      case 10: return a <= b ? 1.f : 0.f;
      case 11: return a > b ? 1.f : 0.f;
      case 12: return a >= b ? 1.f : 0.f;
      case 13: return a != 0.f && b != 0.f ? 1.f : 0.f;
      default: return a != 0.f || b != 0.f ? 1.f : 0.f;
    }
  }
};

struct ValueOp {
  std::uint32_t seed;
  __device__ float operator()(std::int64_t i, float, float, float) const {
    return 0.5f + static_cast<float>(scramble(i, seed) >> 8) * 0x1p-24f;
  }
};

template <class T, class Offsets>
__global__ void binary_kernel(BinaryOp op, const T* a, const T* b, T* y, std::int64_t n, Offsets offsets) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) {
    const auto at = offsets.at(i);
    y[i] = from_float<T>(op(i, to_float(a[at.a]), to_float(b[at.b]), 0.f));
  }
}

template <class T>
__global__ void where_kernel(const std::uint8_t* condition, const T* a, const T* b, T* y, std::int64_t n) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads()) y[i] = condition[i] ? a[i] : b[i];
}
template <class From, class To>
__global__ void cast_kernel(const From* x, To* y, std::int64_t n) {
  constexpr int size = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
  const std::int64_t whole = n / size * size;
  for (std::int64_t i = thread_number() * size; i < whole; i += all_threads() * size)
#pragma unroll
    for (int k = 0; k < size; ++k) y[i + k] = from_float<To>(to_float(x[i + k]));
  for (std::int64_t i = whole + thread_number(); i < n; i += all_threads()) y[i] = from_float<To>(to_float(x[i]));
}
template <class T>
__global__ void dropout_kernel(float keep, const T* x, T* y, std::uint8_t* mask, std::int64_t n, std::uint32_t seed) {
  using P = Pack<T>;
  struct alignas(P::size) Flags {
    std::uint8_t v[P::size];
  };
  const std::int64_t packs = n / P::size;
  const float scale = 1.f / keep;
  for (std::int64_t p = thread_number(); p < packs; p += all_threads()) {
    const P in = reinterpret_cast<const P*>(x)[p];
    P out;
    Flags flags;
#pragma unroll
    for (int k = 0; k < P::size; ++k) {
      flags.v[k] = static_cast<float>(scramble(p * P::size + k, seed)) * 0x1p-32f < keep;
      out.v[k] = from_float<T>(flags.v[k] ? to_float(in.v[k]) * scale : 0.f);
    }
    reinterpret_cast<P*>(y)[p] = out;
    reinterpret_cast<Flags*>(mask)[p] = flags;
  }
  for (std::int64_t i = packs * P::size + thread_number(); i < n; i += all_threads()) {
    mask[i] = static_cast<float>(scramble(i, seed)) * 0x1p-32f < keep;
    y[i] = from_float<T>(mask[i] ? to_float(x[i]) * scale : 0.f);
  }
}
template <class T>
__global__ void mask_kernel(float scale, const T* x, const std::uint8_t* mask, T* y, std::int64_t n) {
  for (std::int64_t i = thread_number(); i < n; i += all_threads())
    y[i] = from_float<T>(mask[i] ? to_float(x[i]) * scale : 0.f);
}

}  // namespace

void fill_values(Type type, void* x, std::int64_t n, std::uint32_t seed, cudaStream_t stream) {
  if (type == Type::f8e4m3 || type == Type::f8e5m2) {  // 0x38 to 0x3f: 1 to 1.9 in e4m3, 0.5 to 1.75 in e5m2
    byte_fill_kernel<<<blocks_for(n), threads, 0, stream>>>(static_cast<std::uint8_t*>(x), n, 0x38, 7, seed);
    return check_launch();
  }
  with_type(type, [&](auto t) { map<decltype(t)>(ValueOp{seed}, nullptr, nullptr, nullptr, x, n, stream); });
}
void fill_ids(std::int64_t* x, std::int64_t n, std::int64_t bound, std::uint32_t seed, cudaStream_t stream) {
  id_fill_kernel<<<blocks_for(n), threads, 0, stream>>>(x, n, bound, seed);
  check_launch();
}
void fill_flags(std::uint8_t* x, std::int64_t n, std::uint32_t seed, cudaStream_t stream) {
  byte_fill_kernel<<<blocks_for(n), threads, 0, stream>>>(x, n, 0, 1, seed);
  check_launch();
}
void write_again(void* x, std::size_t bytes, cudaStream_t stream) {
  const auto words = static_cast<std::int64_t>(bytes / sizeof(int));
  write_again_kernel<<<blocks_for(words), threads, 0, stream>>>(static_cast<int*>(x), words);
  check_launch();
}
void wait_for(const volatile int* flag, cudaStream_t stream) {
  wait_kernel<<<1, 1, 0, stream>>>(flag);
  check_launch();
}
void do_nothing(cudaStream_t stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  check_launch();
}

void point(Point op, Type type, float s, const void* a, const void* b, const void* c, void* y, std::int64_t n,
           cudaStream_t stream) {
  const bool one = op == Point::scale || op == Point::root || op == Point::add_constant || op == Point::reciprocal;
  const bool three = op == Point::add_product || op == Point::add_quotient;
  with_type(type, [&](auto t) {
    map<decltype(t)>(PointOp{op, s}, a, one ? nullptr : b, three ? c : nullptr, y, n, stream);
  });
}
void unary(int kind, float alpha, float beta, Type type, const void* x, void* y, std::int64_t n, cudaStream_t stream) {
  with_type(type, [&](auto t) { map<decltype(t)>(UnaryOp{kind, alpha, beta}, x, nullptr, nullptr, y, n, stream); });
}
void unary_backward(int kind, float alpha, float beta, Type type, const void* x, const void* dy, void* dx,
                    std::int64_t n, cudaStream_t stream) {
  with_type(type, [&](auto t) { map<decltype(t)>(UnaryBackwardOp{kind, alpha, beta}, x, dy, nullptr, dx, n, stream); });
}
void binary(int kind, Type type, const void* a, const void* b, void* y, std::int64_t n, const Strides& strides,
            bool plain, cudaStream_t stream) {
  if (n == 0) return;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    if (plain) return map<T>(BinaryOp{kind}, a, b, nullptr, y, n, stream);
    with_offsets(strides, [&](const auto& offsets) {
      binary_kernel<<<blocks_for(n), threads, 0, stream>>>(BinaryOp{kind}, static_cast<const T*>(a),
                                                           static_cast<const T*>(b), static_cast<T*>(y), n, offsets);
      check_launch();
    });
  });
}
void where(Type type, const std::uint8_t* condition, const void* a, const void* b, void* y, std::int64_t n,
           cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    where_kernel<T><<<blocks_for(n), threads, 0, stream>>>(condition, static_cast<const T*>(a),
                                                           static_cast<const T*>(b), static_cast<T*>(y), n);
    check_launch();
  });
}
void cast(Type from, Type to, const void* x, void* y, std::int64_t n, cudaStream_t stream) {
  with_type(from, [&](auto f) {
    with_type(to, [&](auto t) {
      using From = decltype(f);
      using To = decltype(t);
      cast_kernel<<<blocks_for(n / 4 + 1), threads, 0, stream>>>(static_cast<const From*>(x), static_cast<To*>(y), n);
      check_launch();
    });
  });
}
void dropout(Type type, float keep, const void* x, void* y, std::uint8_t* mask, std::int64_t n, std::uint32_t seed,
             cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    dropout_kernel<<<blocks_for(n / Pack<T>::size + 1), threads, 0, stream>>>(keep, static_cast<const T*>(x),
                                                                              static_cast<T*>(y), mask, n, seed);
    check_launch();
  });
}
void dropout_backward(Type type, float keep, const void* dy, const std::uint8_t* mask, void* dx, std::int64_t n,
                      cudaStream_t stream) {
  with_type(type, [&](auto t) {
    using T = decltype(t);
    mask_kernel<<<blocks_for(n), threads, 0, stream>>>(1.f / keep, static_cast<const T*>(dy), mask, static_cast<T*>(dx),
                                                       n);
    check_launch();
  });
}

}  // namespace sibyl::cudnn
