// What lies outside the device while nothing uses it.
#include "trainer/offload.h"

#include <gmock/gmock.h>
#include <torch/types.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "aten/memory.h"
#include "tests/support/graphs.h"
#include "trainer/copy_thread.h"
#include "trainer/outside.h"

namespace sibyl::trainer {
namespace {

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "sibyl_offload_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~Folder() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

using OutsideTest = Folder;

TEST_F(OutsideTest, gives_back_what_it_was_given) {
  for (const Tier tier : {Tier::host, Tier::nvme}) {
    Outside outside = Outside::make(tier, 8192, folder_).value();
    EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "a file without a name cannot be left behind";
    const std::array<float, 3> given = {1.0F, -2.5F, 3e-9F};
    std::array<float, 3> taken = {9, 9, 9};
    outside.read(4096, std::as_writable_bytes(std::span(taken)));
    EXPECT_THAT(taken, testing::Each(0.0F)) << "it begins as zeros";
    outside.write(4096, std::as_bytes(std::span(given)));
    outside.settle(4096, sizeof given);
    outside.read(4096, std::as_writable_bytes(std::span(taken)));
    EXPECT_EQ(taken, given);
    outside.read(0, std::as_writable_bytes(std::span(taken)));
    EXPECT_THAT(taken, testing::Each(0.0F)) << "nothing else was written";
  }
}

TEST_F(OutsideTest, of_a_folder_that_is_not_there_says_so) {
  const auto outside = Outside::make(Tier::nvme, 4096, folder_ / "none");
  ASSERT_FALSE(outside);
  EXPECT_EQ(outside.error().where, "--offload-folder");
  EXPECT_THAT(outside.error().message, testing::HasSubstr((folder_ / "none").string()));
}

TEST_F(OutsideTest, that_storage_has_no_room_for_is_said_at_once) {
  EXPECT_FALSE(Outside::make(Tier::nvme, std::int64_t{1} << 60, folder_));
}

TEST_F(OutsideTest, is_no_memory_of_the_device) {
  aten::MemoryMeter::install();
  const std::int64_t before = aten::MemoryMeter::live();
  const Outside outside = Outside::make(Tier::host, 1 << 20, {}).value();
  EXPECT_EQ(aten::MemoryMeter::live(), before);
}

TEST(CopyThreads, keep_the_order) {
  CopyThread thread;
  std::vector<int> made;
  for (int i = 0; i < 100; ++i) thread.begin([&, i] { made.push_back(i); });
  thread.wait(100);
  EXPECT_EQ(made.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(made));
}

TEST(CopyThreads, hand_on_what_went_wrong_and_stop) {
  CopyThread thread;
  bool later = false;
  thread.wait(thread.begin([] {}));
  const std::size_t broken = thread.begin([] { throw std::runtime_error("the disk is full"); });
  const std::size_t after = thread.begin([&] { later = true; });
  EXPECT_THROW(thread.wait(broken), std::runtime_error);
  EXPECT_THROW(thread.wait(after), std::runtime_error);
  EXPECT_FALSE(later);
}

// Three blocks (tests/unit/oracle/offload_test.cpp): of 256, 64 + 192 and 24 bytes, in tensors that count as whole
// lines of 64.
class Moved : public Folder {
 protected:
  Moved() {
    aten::MemoryMeter::install();
    Strategy strategy;
    strategy.global_batch = 2;
    strategy.optimizer = OptimizerKind::adam;
    strategy.optimizer_tier = Tier::nvme;
    strategy.bucket = Bytes{200};
    plan_ = *make_plan(test::mlp({4, 8, 3}, 2), strategy);
    before_ = aten::MemoryMeter::live();
    const std::vector<std::vector<std::int64_t>> sizes = {{32}, {8, 24}, {3}};
    std::vector<OffloadedState::Guests> blocks;
    for (const auto& block : sizes) {
      OffloadedState::Guests own;
      for (const std::int64_t size : block)
        for (int i = 0; i < 2; ++i) own.push_back({&tensors_.emplace_back(at::zeros({size}, at::kFloat)), {size}});
      blocks.push_back(std::move(own));
    }
    state_ = OffloadedState::create(plan_.stages[0], std::move(blocks), folder_).value();
  }
  [[nodiscard]] std::int64_t live() const { return aten::MemoryMeter::live() - before_; }

  Plan plan_;
  std::int64_t before_ = 0;
  std::deque<at::Tensor> tensors_;
  std::unique_ptr<OffloadedState> state_;
};

TEST_F(Moved, is_here_while_it_is_updated) {
  constexpr std::int64_t first = 2 * 128, second = 2 * (64 + 128), third = 2 * 64;
  EXPECT_EQ(live(), 0) << "it lies outside from the beginning";
  for (int step = 1; step <= 3; ++step) {
    state_->bring(0);
    EXPECT_EQ(live(), first + second) << "and the next one is on its way";
    for (const std::size_t i : {0U, 1U}) tensors_[i].add_(1);
    state_->bring(1);
    EXPECT_EQ(live(), first + second + third);
    for (std::size_t i = 2; i < 6; ++i) tensors_[i].add_(10);
    state_->bring(2);
    EXPECT_EQ(live(), second + third);
    EXPECT_TRUE(tensors_[2].eq(10 * step).all().item<bool>());
    for (std::size_t i = 6; i < 8; ++i) tensors_[i].add_(100);
    EXPECT_TRUE(tensors_[6].eq(100 * step).all().item<bool>()) << "what was written is read again";
    state_->finish();
    EXPECT_EQ(live(), 0);
    EXPECT_EQ(state_->moved().in, step * 67 * 8);
    EXPECT_EQ(state_->moved().out, step * 67 * 8);
  }
}

TEST_F(Moved, is_recorded_copy_by_copy) {
  Recorder recorder;
  state_->record(&recorder);
  recorder.start();
  for (const std::size_t block : {0U, 1U, 2U}) state_->bring(block);
  state_->finish();
  const TraceProcess process = recorder.process(0);
  ASSERT_EQ(process.tracks.size(), 1U);
  EXPECT_EQ(process.tracks[0].name, "copies");
  EXPECT_EQ(process.tracks[0].spans.size(), 6U);
}

}  // namespace
}  // namespace sibyl::trainer
