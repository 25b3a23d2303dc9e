// CUDA kernels for what neither cuDNN nor cuBLASLt has: elementwise, reductions, layout, look-ups, layer normalisation
// and optimizer updates. Written plainly, as frameworks write theirs: 16-byte accesses, one pass over memory; they
// stand for a framework's kernels, whose times differ from theirs by as much as its authors were better or worse.
//
// Each call enqueues and returns; pointers are the device's, aligned to 16 bytes; counts are elements. Arithmetic is in
// f32 whatever the type. An element type without such a kernel is std::invalid_argument.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace sibyl::cudnn {

enum class Type { f32, f16, bf16, f8e4m3, f8e5m2, i64, u8 };

// ---- operands and the timing loop

void fill_values(Type type, void* x, std::int64_t n, std::uint32_t seed, cudaStream_t stream);  // within [0.5, 1.5)
void fill_ids(std::int64_t* x, std::int64_t n, std::int64_t bound, std::uint32_t seed, cudaStream_t stream);
void fill_flags(std::uint8_t* x, std::int64_t n, std::uint32_t seed, cudaStream_t stream);  // 0 or 1
// Reads and writes all of x without changing it: afterwards the cache holds it, modified.
void write_again(void* x, std::size_t bytes, cudaStream_t stream);
// Holds the stream until *flag is not 0, but 20 ms at most: so all of a run is enqueued before its clock starts.
void wait_for(const volatile int* flag, cudaStream_t stream);
void do_nothing(cudaStream_t stream);

// ---- elementwise: y may be an operand

enum class Point {
  scale,
  add_scaled,
  multiply,
  divide,
  add_product,
  add_quotient,
  root,
  add_constant,
  reciprocal,
  squared_difference,
  scaled_difference
};
// Operands that an operation does not have are not read. scale: s a; add_scaled: a + s b; add_product: a + s b c;
// add_quotient: a + s b / c; add_constant: a + s; scaled_difference: s (a - b)
void point(Point op, Type type, float s, const void* a, const void* b, const void* c, void* y, std::int64_t n,
           cudaStream_t stream);

// `kind` as UnaryKind and BinaryKind number them.
void unary(int kind, float alpha, float beta, Type type, const void* x, void* y, std::int64_t n, cudaStream_t stream);
void unary_backward(int kind, float alpha, float beta, Type type, const void* x, const void* dy, void* dx,
                    std::int64_t n, cudaStream_t stream);

// Extents of the result, and how far apart an operand's elements lie along each (0: broadcast).
constexpr int most_dimensions = 8;
struct Strides {
  int rank = 0;
  std::int64_t extent[most_dimensions] = {};
  std::int64_t a[most_dimensions] = {}, b[most_dimensions] = {};
};
void binary(int kind, Type type, const void* a, const void* b, void* y, std::int64_t n, const Strides& strides,
            bool plain, cudaStream_t stream);
void where(Type type, const std::uint8_t* condition, const void* a, const void* b, void* y, std::int64_t n,
           cudaStream_t stream);
void cast(Type from, Type to, const void* x, void* y, std::int64_t n, cudaStream_t stream);
void dropout(Type type, float keep, const void* x, void* y, std::uint8_t* mask, std::int64_t n, std::uint32_t seed,
             cudaStream_t stream);
void dropout_backward(Type type, float keep, const void* dy, const std::uint8_t* mask, void* dx, std::int64_t n,
                      cudaStream_t stream);

// ---- reductions: x[outer, length, inner] -> y[outer, inner]

enum class Sum { plain, mean, squares, absolute, maximum, minimum, product };
// Bytes of `workspace`: reduce_workspace().
void reduce(Sum sum, Type type, const void* x, void* y, std::int64_t outer, std::int64_t length, std::int64_t inner,
            float* workspace, cudaStream_t stream);
std::size_t reduce_workspace(std::int64_t outer, std::int64_t length, std::int64_t inner);

// ---- rows: x[rows, length]; statistics are two f32 a row

void normalize_rows(bool centred, Type type, const void* x, const void* scale, const void* shift, void* y,
                    float* statistics, std::int64_t rows, std::int64_t length, std::int64_t repeat,
                    cudaStream_t stream);
void normalize_rows_backward(bool centred, Type type, const void* x, const void* dy, const void* scale,
                             const float* statistics, void* dx, std::int64_t rows, std::int64_t length,
                             std::int64_t repeat, cudaStream_t stream);
// The gradients of scale and shift, summed over the rows.
void normalize_rows_parameters(Type type, const void* x, const void* dy, const float* statistics, void* dscale,
                               void* dshift, std::int64_t rows, std::int64_t length, float* workspace,
                               cudaStream_t stream);
std::size_t parameters_workspace(std::int64_t rows, std::int64_t length);

// ---- layout and look-up

void strided_copy(Type type, const void* x, void* y, std::int64_t n, const Strides& strides, cudaStream_t stream);
void transpose_matrices(Type type, const void* x, void* y, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                        cudaStream_t stream);
// x[outer, axis, inner], ids[count] -> y[outer, count, inner]; and the gradient added by atomics into a zeroed dx.
void take(Type type, const void* x, const std::int64_t* ids, void* y, std::int64_t outer, std::int64_t axis,
          std::int64_t count, std::int64_t inner, cudaStream_t stream);
void take_backward(Type type, const void* dy, const std::int64_t* ids, void* dx, std::int64_t outer, std::int64_t axis,
                   std::int64_t count, std::int64_t inner, cudaStream_t stream);
// Around a look-up in a part of a table: ids as they are, but 0 for those below it; which those are; and y[rows, inner]
// with zeros in the rows that are marked.
void not_below_zero(const std::int64_t* ids, std::int64_t* y, std::int64_t n, cudaStream_t stream);
void below_zero(const std::int64_t* ids, std::uint8_t* y, std::int64_t n, cudaStream_t stream);
void zero_rows(Type type, const std::uint8_t* marked, void* y, std::int64_t rows, std::int64_t inner,
               cudaStream_t stream);
// x[planes, h, w] -> y[planes, p, q]
void resize(bool linear, Type type, const void* x, void* y, std::int64_t planes, std::int64_t h, std::int64_t w,
            std::int64_t p, std::int64_t q, cudaStream_t stream);
// z[outer, classes, inner] log-probabilities -> minus those of the targets, one a place; and its gradient, into a
// zeroed dz
void pick(Type type, const void* z, const std::int64_t* targets, void* y, std::int64_t outer, std::int64_t classes,
          std::int64_t inner, cudaStream_t stream);
void pick_backward(Type type, const std::int64_t* targets, void* dz, std::int64_t outer, std::int64_t classes,
                   std::int64_t inner, cudaStream_t stream);

// ---- updates in one kernel, as fused optimizers do them

void fused_momentum(Type type, void* w, const void* g, void* m, std::int64_t n, cudaStream_t stream);
void fused_adam(Type type, void* w, const void* g, void* m, void* v, std::int64_t n, cudaStream_t stream);

}  // namespace sibyl::cudnn
