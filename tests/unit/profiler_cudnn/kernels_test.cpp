// Our own CUDA kernels compute what they say, where there is a device to compute on.
#include "profiler/cudnn/kernels.h"

#include <cuda_runtime_api.h>

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/unit/profiler_cudnn/device.h"

namespace sibyl::cudnn {
namespace {

template <class T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  ~OnDevice() { cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  [[nodiscard]] T* data() const { return static_cast<T*>(data_); }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> result(count_);
    EXPECT_EQ(cudaMemcpy(result.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return result;
  }

 private:
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  void* data_ = nullptr;
  std::size_t count_;
};

std::vector<float> counted(std::size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

TEST(Kernels, AddInPlaceWhateverIsLeftOfSixteenBytes) {
  SIBYL_NEEDS_A_GPU();
  const OnDevice<float> a(counted(1027)), b(counted(1027));
  point(Point::add_scaled, Type::f32, 2.f, a.data(), b.data(), nullptr, a.data(), 1027, nullptr);
  const auto result = a.values();
  for (std::size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], 3.f * static_cast<float>(i));
}

TEST(Kernels, BroadcastAVectorAlongRows) {
  SIBYL_NEEDS_A_GPU();
  // [2, 3] + [3]
  const OnDevice<float> a({0, 1, 2, 3, 4, 5}), b({10, 20, 30}), y(std::vector<float>(6));
  Strides s;
  s.rank = 2, s.extent[0] = 2, s.extent[1] = 3, s.a[0] = 3, s.a[1] = 1, s.b[1] = 1;
  binary(0, Type::f32, a.data(), b.data(), y.data(), 6, s, false, nullptr);
  EXPECT_EQ(y.values(), (std::vector<float>{10, 21, 32, 13, 24, 35}));
}

TEST(Kernels, SumRowsColumnsAndLongVectors) {
  SIBYL_NEEDS_A_GPU();
  const OnDevice<float> x(counted(24)), rows(std::vector<float>(6)), columns(std::vector<float>(8));
  const OnDevice<float> scratch(std::vector<float>(4096));
  reduce(Sum::plain, Type::f32, x.data(), rows.data(), 6, 4, 1, scratch.data(), nullptr);
  EXPECT_EQ(rows.values(), (std::vector<float>{6, 22, 38, 54, 70, 86}));  // 0+1+2+3, 4+5+6+7, …
  // [2, 3, 4] over the middle: 0+4+8, 1+5+9, …, 12+16+20, …
  reduce(Sum::plain, Type::f32, x.data(), columns.data(), 2, 3, 4, scratch.data(), nullptr);
  EXPECT_EQ(columns.values(), (std::vector<float>{12, 15, 18, 21, 48, 51, 54, 57}));
  // A million ones by parts: their mean.
  const OnDevice<float> ones(std::vector<float>(1 << 20, 1.f)), mean({0.f});
  ASSERT_LE(reduce_workspace(1, 1 << 20, 1), 4096 * sizeof(float));
  reduce(Sum::mean, Type::f32, ones.data(), mean.data(), 1, 1 << 20, 1, scratch.data(), nullptr);
  EXPECT_FLOAT_EQ(mean.values()[0], 1.f);
}

TEST(Kernels, NormaliseRows) {
  SIBYL_NEEDS_A_GPU();
  // Of 1 3: mean 2, deviation 1.
  const OnDevice<float> x({1, 3}), scale({1, 1}), shift({0, 0}), y({0, 0}), statistics({0, 0});
  normalize_rows(true, Type::f32, x.data(), scale.data(), shift.data(), y.data(), statistics.data(), 1, 2, 1, nullptr);
  EXPECT_NEAR(y.values()[0], -1.f, 1e-4);
  EXPECT_NEAR(y.values()[1], 1.f, 1e-4);
  EXPECT_NEAR(statistics.values()[0], 2.f, 1e-6);
}

TEST(Kernels, TransposeMatricesThatAreNoMultipleOfATile) {
  SIBYL_NEEDS_A_GPU();
  constexpr std::size_t rows = 37, columns = 41;
  const OnDevice<float> x(counted(2 * rows * columns)), y(std::vector<float>(2 * rows * columns, 0.f));
  transpose_matrices(Type::f32, x.data(), y.data(), 2, rows, columns, nullptr);
  const auto result = y.values();
  for (std::size_t m = 0; m < 2; ++m)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c)
        ASSERT_EQ(result[m * rows * columns + c * rows + r], static_cast<float>(m * rows * columns + r * columns + c));
}

TEST(Kernels, TakeRowsAndAddThemBack) {
  SIBYL_NEEDS_A_GPU();
  const OnDevice<float> table({0, 1, 10, 11, 20, 21}), y(std::vector<float>(6)), gradient(std::vector<float>(6));
  const OnDevice<std::int64_t> ids({2, 0, 2});
  take(Type::f32, table.data(), ids.data(), y.data(), 1, 3, 3, 2, nullptr);
  EXPECT_EQ(y.values(), (std::vector<float>{20, 21, 0, 1, 20, 21}));
  take_backward(Type::f32, y.data(), ids.data(), gradient.data(), 1, 3, 3, 2, nullptr);
  EXPECT_EQ(gradient.values(), (std::vector<float>{0, 1, 0, 0, 40, 42}));  // row 2 was taken twice
}

TEST(Kernels, TakeRowsOfAPartAndZeroWhatIsElsewhere) {
  SIBYL_NEEDS_A_GPU();
  const OnDevice<std::int64_t> ids({1, -1, 0}), rows({7, 7, 7});
  const OnDevice<std::uint8_t> elsewhere({7, 7, 7});
  not_below_zero(ids.data(), rows.data(), 3, nullptr);
  EXPECT_EQ(rows.values(), (std::vector<std::int64_t>{1, 0, 0}));
  below_zero(ids.data(), elsewhere.data(), 3, nullptr);
  EXPECT_EQ(elsewhere.values(), (std::vector<std::uint8_t>{0, 1, 0}));
  const OnDevice<float> y({10, 11, 20, 21, 30, 31});
  zero_rows(Type::f32, elsewhere.data(), y.data(), 3, 2, nullptr);
  EXPECT_EQ(y.values(), (std::vector<float>{10, 11, 0, 0, 30, 31}));
}

// Element i j k of [2, 3, 4] to place k i j of [4, 2, 3].
TEST(Kernels, CopyByStrides) {
  SIBYL_NEEDS_A_GPU();
  const OnDevice<float> x(counted(24)), y(std::vector<float>(24));
  Strides s;
  s.rank = 3;
  for (const auto& [d, extent, a, b] : {std::array{0, 4, 1, 6}, {1, 2, 12, 3}, {2, 3, 4, 1}})
    s.extent[d] = extent, s.a[d] = a, s.b[d] = b;
  strided_copy(Type::f32, x.data(), y.data(), 24, s, nullptr);
  const auto result = y.values();
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k) ASSERT_EQ(result[k * 6 + i * 3 + j], static_cast<float>(i * 12 + j * 4 + k));
}

TEST(Kernels, DropAboutAsManyAsTheyAreAskedTo) {
  SIBYL_NEEDS_A_GPU();
  constexpr std::size_t n = 100'000;
  const OnDevice<float> x(std::vector<float>(n, 1.f)), y(std::vector<float>(n, 0.f));
  const OnDevice<std::uint8_t> mask(std::vector<std::uint8_t>(n, 7));
  dropout(Type::f32, 0.75f, x.data(), y.data(), mask.data(), n, 3, nullptr);
  const auto values = y.values();
  const auto flags = mask.values();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(values[i], flags[i] ? 1.f / 0.75f : 0.f);
    kept += flags[i];
  }
  // 75,000 of 100,000, with a deviation of sqrt(100,000 * 0.75 * 0.25) = 137; seeded, so always the same.
  EXPECT_NEAR(static_cast<double>(kept), 75'000.0, 5 * 137.0);
}

TEST(Kernels, TheGateHoldsTheStreamAndOpens) {
  SIBYL_NEEDS_A_GPU();
  int* flag = nullptr;
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&flag), sizeof *flag, cudaHostAllocMapped), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  *flag = 0;
  wait_for(flag, stream);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  *const_cast<volatile int*>(flag) = 1;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  cudaStreamDestroy(stream);
  cudaFreeHost(flag);
}

}  // namespace
}  // namespace sibyl::cudnn
