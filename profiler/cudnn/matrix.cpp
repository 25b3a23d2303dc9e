// Matrix products through cuBLASLt: linear layers with their bias in the epilogue, and products of activations,
// batched.
#include <algorithm>
#include <array>

#include "profiler/cudnn/program.h"

namespace sibyl::cudnn {
namespace {

// Row-major c[m, n] = a b, where a is [m, k] or, transposed, stored [k, m]; b is [k, n] or, transposed, stored [n, k].
struct Product {
  std::int64_t m = 1, n = 1, k = 1;
  bool a_transposed = false, b_transposed = false;
  std::int64_t batch = 1;
  bool a_shared = false, b_shared = false;  // one matrix for the whole batch
};

// cuBLASLt's descriptors, with owners.
template <class T, cublasStatus_t (*destroy)(T)>
struct Owned {
  T handle{};
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle) destroy(handle);
  }
};
using Multiplication = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using Matrix = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

cudaDataType_t cuda_type(Type type) {
  switch (type) {
    case Type::f32: return CUDA_R_32F;
    case Type::f16: return CUDA_R_16F;
    case Type::bf16: return CUDA_R_16BF;
#if CUDART_VERSION >= 11080
    case Type::f8e4m3: return CUDA_R_8F_E4M3;
    case Type::f8e5m2: return CUDA_R_8F_E5M2;
#endif
    default: throw Refusal("cuBLASLt has no matrix product of this element type");
  }
}

bool is_fp8(Type type) { return type == Type::f8e4m3 || type == Type::f8e5m2; }

template <class T>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name, const T& value) {
  check(cublasLtMatmulDescSetAttribute(d, name, &value, sizeof value), "an attribute");
}

void create(Matrix& matrix, Type type, std::int64_t rows, std::int64_t columns, std::int64_t batch,
            std::int64_t stride) {
  check(cublasLtMatrixLayoutCreate(&matrix.handle, cuda_type(type), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "a matrix");
  if (batch == 1) return;
  const auto count = static_cast<std::int32_t>(batch);
  check(cublasLtMatrixLayoutSetAttribute(matrix.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
        "a batch");
  check(cublasLtMatrixLayoutSetAttribute(matrix.handle, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof stride),
        "a batch");
}

// All that a product needs but its pointers. Column-major libraries see the transposed product: c' = b' a'.
struct Gemm {
  Multiplication operation;
  Matrix a, b, c;
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;

  Gemm(const Maker& m, const Product& p, bool bias) {
    // fp8 runs as one transposed by one plain operand only; frameworks keep operands so.
    const bool fp8 = is_fp8(m.type), a_transposed = !fp8 && p.a_transposed, b_transposed = fp8 || p.b_transposed;
    const bool tf32 = computes_in_tf32(m.key);
    check(cublasLtMatmulDescCreate(&operation.handle, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                   CUDA_R_32F),
          "a product");
    set(operation.handle, CUBLASLT_MATMUL_DESC_TRANSA, b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(operation.handle, CUBLASLT_MATMUL_DESC_TRANSB, a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (bias) set(operation.handle, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    const Type result = fp8 ? Type::bf16 : m.type;
    // e5m2 is for gradients: cuBLASLt multiplies it by e4m3 only.
    const Type other = m.type == Type::f8e5m2 ? Type::f8e4m3 : m.type;
    create(b, other, b_transposed ? p.k : p.n, b_transposed ? p.n : p.k, p.batch, p.b_shared ? 0 : p.n * p.k);
    create(a, m.type, a_transposed ? p.m : p.k, a_transposed ? p.k : p.m, p.batch, p.a_shared ? 0 : p.m * p.k);
    create(c, result, p.n, p.m, p.batch, p.m * p.n);
    choose(m);
  }

 private:
  void choose(const Maker& m) {
    if (!m.libraries) throw Refusal("cuBLASLt chooses for a device that is there");
    Preference preference;
    check(cublasLtMatmulPreferenceCreate(&preference.handle), "a preference");
    // As much as PyTorch gives it: 32 MiB since Hopper, 8,519,680 bytes before.
    const std::size_t workspace = m.libraries->properties().major >= 9 ? std::size_t{32} << 20 : std::size_t{8'519'680};
    check(cublasLtMatmulPreferenceSetAttribute(preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                               sizeof workspace),
          "a preference");
    int found = 0;
    algorithms.resize(m.settings.best ? 32 : 1);
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        m.libraries->cublas(), operation.handle, b.handle, a.handle, c.handle, c.handle, preference.handle,
        static_cast<int>(algorithms.size()), algorithms.data(), &found);
    algorithms.resize(static_cast<std::size_t>(std::max(0, found)));
    if (status != CUBLAS_STATUS_SUCCESS || algorithms.empty())
      throw Refusal("cuBLASLt has no algorithm for this product");
  }
};

struct Places {
  std::size_t a, b, c;
  std::optional<std::size_t> bias;
};

Step step(const Maker& m, const Product& product, const Places& at) {
  const auto gemm = std::make_shared<Gemm>(m, product, at.bias.has_value());
  Step result;
  for (std::size_t i = 0; i < gemm->algorithms.size(); ++i) {
    const auto run = [gemm, at, i](const Run& r) {
      const auto& algorithm = gemm->algorithms[i];
      const float one = 1.f, zero = 0.f;
      if (at.bias) set(gemm->operation.handle, CUBLASLT_MATMUL_DESC_BIAS_POINTER, r.at(*at.bias));
      check(cublasLtMatmul(r.libraries.cublas(), gemm->operation.handle, &one, r.at(at.b), gemm->b.handle, r.at(at.a),
                           gemm->a.handle, &zero, r.at(at.c), gemm->c.handle, r.at(at.c), gemm->c.handle,
                           &algorithm.algo, r.workspace, algorithm.workspaceSize, r.stream()),
            "a matrix product");
    };
    result.choices.push_back({run, gemm->algorithms[i].workspaceSize, "algorithm " + std::to_string(i)});
  }
  return result;
}

// Results of fp8 products are bf16.
Buffer product_result(const Maker& m, const Shape& shape) {
  Buffer buffer = m.result(shape);
  if (is_fp8(m.type)) buffer.type = Type::bf16;
  return buffer;
}

std::int64_t rows_of(const Shape& shape) {
  return shape.empty() || shape.back() == 0 ? 1 : element_count(shape) / shape.back();
}

// The extents before the last two, from the back, aligned: how many matrices, and whether one serves all.
std::int64_t matrices(const Shape& shape) {
  return shape.size() < 2
             ? 1
             : element_count(shape) / std::max<std::int64_t>(1, shape[shape.size() - 1] * shape[shape.size() - 2]);
}

}  // namespace

Program program(const Linear& op, const Maker& m) {
  const std::int64_t rows = rows_of(m.output()), n = m.output().back(), k = m.input(0).back();
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), w = p.add(m.values(m.input(1)));
  if (!m.backward()) {
    const std::size_t y = p.add(product_result(m, m.output()));
    std::optional<std::size_t> bias;
    if (m.has(2)) {
      Buffer values = m.values(m.input(2));
      if (is_fp8(m.type)) values.type = Type::bf16;
      bias = p.add(values);
    }
    p.steps.push_back(step(m, {rows, n, k, false, !op.weight_kn}, {x, w, y, bias}));
    p.warm = x;
    return p;
  }
  const std::size_t dy = p.add(m.values(m.output()));
  p.warm = dy;
  if (m.wants(0))
    p.steps.push_back(step(m, {rows, k, n, false, op.weight_kn}, {dy, w, p.add(product_result(m, m.input(0))), {}}));
  if (m.wants(1)) {
    const std::size_t dw = p.add(product_result(m, m.input(1)));
    if (op.weight_kn)
      p.steps.push_back(step(m, {k, n, rows, true, false}, {x, dy, dw, {}}));
    else
      p.steps.push_back(step(m, {n, k, rows, true, false}, {dy, x, dw, {}}));
  }
  if (m.wants(2)) add_sum(p, Sum::plain, m.type, dy, p.add(m.result({n})), 1, rows, n);
  return p;
}

// A batch of products.
Program program(const GroupedLinear& op, const Maker& m) {
  if (m.has(2)) throw Refusal("the cudnn backend has no bias of each expert's own");
  const std::int64_t experts = m.output().at(0), rows = m.output().at(1), n = m.output().back(), k = m.input(0).back();
  Program p;
  const std::size_t x = p.add(m.values(m.input(0))), w = p.add(m.values(m.input(1)));
  if (!m.backward()) {
    p.steps.push_back(
        step(m, {rows, n, k, false, !op.weight_kn, experts}, {x, w, p.add(product_result(m, m.output())), {}}));
    p.warm = x;
    return p;
  }
  const std::size_t dy = p.add(m.values(m.output()));
  p.warm = dy;
  if (m.wants(0))
    p.steps.push_back(
        step(m, {rows, k, n, false, op.weight_kn, experts}, {dy, w, p.add(product_result(m, m.input(0))), {}}));
  if (m.wants(1)) {
    const std::size_t dw = p.add(product_result(m, m.input(1)));
    if (op.weight_kn)
      p.steps.push_back(step(m, {k, n, rows, true, false, experts}, {x, dy, dw, {}}));
    else
      p.steps.push_back(step(m, {n, k, rows, true, false, experts}, {dy, x, dw, {}}));
  }
  return p;
}

Program program(const MatMul&, const Maker& m) {
  const Shape &a_shape = m.input(0), &b_shape = m.input(1), &y_shape = m.output();
  if (a_shape.size() < 2 || b_shape.size() < 2) throw Refusal("the cudnn backend multiplies matrices, not vectors");
  Product product;
  product.m = a_shape[a_shape.size() - 2], product.k = a_shape.back(), product.n = b_shape.back();
  product.batch = matrices(y_shape);
  product.a_shared = product.batch > 1 && matrices(a_shape) == 1;
  product.b_shared = product.batch > 1 && matrices(b_shape) == 1;
  if ((!product.a_shared && matrices(a_shape) != product.batch) ||
      (!product.b_shared && matrices(b_shape) != product.batch))
    throw Refusal("the cudnn backend broadcasts one matrix to a whole batch, not parts of a batch");
  Program p;
  const std::size_t a = p.add(m.values(a_shape)), b = p.add(m.values(b_shape));
  if (!m.backward()) {
    p.steps.push_back(step(m, product, {a, b, p.add(product_result(m, y_shape)), {}}));
    p.warm = a;
    return p;
  }
  const std::size_t dy = p.add(m.values(y_shape));
  p.warm = dy;
  // A shared matrix's gradient is first that of each of the batch, then their sum.
  const auto gradient = [&](const Product& of, std::size_t left, std::size_t right, const Shape& shape, bool shared) {
    Shape whole = shape;
    if (shared) whole = {product.batch, shape[shape.size() - 2], shape.back()};
    const std::size_t result = p.add(product_result(m, whole));
    p.steps.push_back(step(m, of, {left, right, result, {}}));
    if (shared) add_sum(p, Sum::plain, m.type, result, p.add(m.result(shape)), 1, product.batch, element_count(shape));
  };
  if (m.wants(0)) {
    const Product of{product.m, product.k, product.n, false, true, product.batch, false, product.b_shared};
    gradient(of, dy, b, a_shape, product.a_shared);
  }
  if (m.wants(1)) {
    const Product of{product.k, product.n, product.m, true, false, product.batch, product.a_shared, false};
    gradient(of, a, dy, b_shape, product.b_shared);
  }
  return p;
}

}  // namespace sibyl::cudnn
