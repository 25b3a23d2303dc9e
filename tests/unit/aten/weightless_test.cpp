#include "aten/weightless.h"

#include <gtest/gtest.h>

#include "aten/memory.h"

namespace sibyl::aten {
namespace {

class Weightless : public testing::Test {
 protected:
  void SetUp() override {
    MemoryMeter::install();
    count_weightless(512, false);
    before_ = MemoryMeter::live();
  }
  std::int64_t counted() const { return MemoryMeter::live() - before_; }
  std::int64_t peak() const { return MemoryMeter::peak() - before_; }

 private:
  std::int64_t before_ = 0;
};

TEST_F(Weightless, counts_as_if_it_had_memory) {
  {
    const at::Tensor a = weightless({100}, at::kFloat);  // 400 -> 512
    EXPECT_EQ(counted(), 512);
    const at::Tensor view = weightless_view(a, {10, 10}), part = a.narrow(0, 10, 20);  // nothing
    EXPECT_EQ(counted(), 512);
    const at::Tensor zeros = at::zeros_like(a);  // 512
    const at::Tensor sum = a + zeros;            // 512
    EXPECT_EQ(counted(), 3 * 512);
    EXPECT_TRUE(sum.is_meta());
  }
  EXPECT_EQ(counted(), 0);
}

// A bucket of parameters is given up and gathered again under its views.
TEST_F(Weightless, a_storage_is_resized_under_its_views) {
  at::Tensor flat = weightless({300}, at::kFloat);  // 1200 -> 1536
  const at::Tensor view = flat.narrow(0, 0, 100).view({10, 10});
  EXPECT_EQ(counted(), 1536);
  resize_weightless(flat, 0);
  EXPECT_EQ(counted(), 0);
  EXPECT_EQ(view.numel(), 100);
  resize_weightless(view, 1200);
  EXPECT_EQ(counted(), 1536);
  flat.reset();
  EXPECT_EQ(counted(), 1536);  // the view holds it
}

// A sum takes the place of a summand: of three tensors of 512 bytes two count at the peak.
TEST_F(Weightless, the_peak_does_not_see_a_sum_beside_its_summands) {
  at::Tensor a = weightless({128}, at::kFloat), b = weightless({128}, at::kFloat);
  MemoryMeter::reset_peak();
  a = a + b;
  b.reset();
  MemoryMeter::take(0);
  EXPECT_EQ(counted(), 512);
  EXPECT_EQ(peak(), 2 * 512);
}

// Of a device that sums apart it sees all three.
TEST_F(Weightless, the_peak_sees_a_sum_that_is_made_apart) {
  count_weightless(512, true);
  at::Tensor a = weightless({128}, at::kFloat), b = weightless({128}, at::kFloat);
  MemoryMeter::reset_peak();
  a = a + b;
  b.reset();
  EXPECT_EQ(counted(), 512);
  EXPECT_EQ(peak(), 3 * 512);
}

// What autograd adds up for a tensor that is used twice.
TEST_F(Weightless, gradients_are_summed_and_counted) {
  const at::Tensor x = weightless({128}, at::kFloat).requires_grad_();
  x.mutable_grad() = weightless({128}, at::kFloat);
  x.mutable_grad().add_(weightless({128}, at::kFloat));
  EXPECT_EQ(counted(), 2 * 512);
}

}  // namespace
}  // namespace sibyl::aten
