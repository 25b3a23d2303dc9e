#include "aten/memory.h"

#include "tests/unit/aten/values.h"

namespace sibyl::aten {
namespace {

TEST(MemoryMeter, counts_live_and_peak_bytes_rounded_to_64) {
  MemoryMeter::install();
  MemoryMeter::install();
  const std::int64_t before = MemoryMeter::live();
  at::Tensor a = at::empty({100}, at::kFloat);  // 400 -> 448
  EXPECT_EQ(MemoryMeter::live() - before, 448);
  MemoryMeter::reset_peak();
  {
    const at::Tensor b = at::empty({16}, at::kFloat);  // 64
    const at::Tensor view = b.view({4, 4});            // nothing
    EXPECT_EQ(MemoryMeter::live() - before, 512);
  }
  EXPECT_EQ(MemoryMeter::live() - before, 448);
  EXPECT_EQ(MemoryMeter::peak() - before, 512);
  a.reset();
  EXPECT_EQ(MemoryMeter::live(), before);
  MemoryMeter::reset_peak();
  EXPECT_EQ(MemoryMeter::peak(), before);
}

TEST(MemoryMeter, sees_what_autograd_keeps) {
  MemoryMeter::install();
  const at::Tensor x = at::ones({16, 16}).requires_grad_();
  const std::int64_t before = MemoryMeter::live();
  at::Tensor y = at::exp(x).sum();  // exp keeps its 1024-byte result; the sum takes 64
  EXPECT_EQ(MemoryMeter::live() - before, 1024 + 64);
  y.reset();
  EXPECT_EQ(MemoryMeter::live(), before);
}

}  // namespace
}  // namespace sibyl::aten
