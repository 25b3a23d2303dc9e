// Which runs may add to a file, and which are refused.
#include "calibration/program/session.h"

#include "program_folder.h"

namespace sibyl {
namespace {

class SessionFile : public CalibratorFolder {
 protected:
  // A file that a run of this set-up has written; with a kernel, if asked.
  void measured_with(const sibyl::Setup& setup, bool kernels) const {
    auto session = open(setup);
    ASSERT_TRUE(session) << to_string(session.error());
    describe(session->calibration().device);
    if (kernels) {
      KernelSample sample;
      sample.key = *parse_kernel_key("forward unary[64]->[64]:f32");
      sample.time = Seconds{1e-6};
      ASSERT_TRUE(session->add(sample));
    }
    ASSERT_TRUE(session->save());
  }
  // Why the next run is refused; empty where it is not.
  [[nodiscard]] std::string refusal(const sibyl::Setup& setup) const {
    const auto session = open(setup);
    return session ? std::string() : session.error().message;
  }
};

TEST_F(SessionFile, TheSameSetUpGoesOn) {
  measured_with(of_cudnn(), true);
  EXPECT_EQ(refusal(of_cudnn()), "");
}

TEST_F(SessionFile, KernelsOfAProcessorAndOfAGpuAreNotMixed) {
  measured_with(of_processor(), true);
  EXPECT_EQ(refusal(of_cudnn()), "was measured with backend cpu, this run has cuda");
  EXPECT_EQ(refusal(of_torch()), "was measured with backend cpu, this run has cuda");
}

// Nor is a device known by its processor given a GPU's kernels, or the other way round.
TEST_F(SessionFile, NorIsADeviceWithoutKernelsAnothers) {
  measured_with(of_cudnn(), false);
  EXPECT_EQ(refusal(of_processor()), "was measured with backend cuda, this run has cpu");
}

TEST_F(SessionFile, KernelsOfTwoLibrariesAreNotMixed) {
  measured_with(of_torch(), true);
  EXPECT_EQ(refusal(of_cudnn()), "was measured with engines none, this run has heuristic");
}

TEST_F(SessionFile, NorAreTheyTheOtherWayRound) {
  measured_with(of_cudnn(), true);
  EXPECT_EQ(refusal(of_torch()), "was measured with engines heuristic, this run has none");
}

// What files take has nothing to do with how kernels were timed: neither with the library, nor with the ranks and
// threads beside them, nor with the pages of the host's memory.
TEST_F(SessionFile, AGpusFileTakesItsMachinesStorage) {
  for (const sibyl::Setup& gpu : {of_cudnn(), of_torch()}) {
    std::filesystem::remove(file());
    std::filesystem::remove(journal_path(file()));
    measured_with(gpu, true);
    {
      auto session = open(of_storage());
      ASSERT_TRUE(session) << to_string(session.error());
      session->calibration().io.push_back({false, Bytes{1e6}, Seconds{1e-3}});
      ASSERT_TRUE(session->save());
    }
    const auto stored = load_calibration(file());
    ASSERT_TRUE(stored) << to_string(stored.error());
    EXPECT_EQ(stored->io.size(), 1U);
    EXPECT_EQ(stored->kernels.size(), 1U);
    EXPECT_EQ(stored->device.backend, Backend::cuda);
    EXPECT_EQ(stored->threads, 1) << "of those that timed kernels";
    EXPECT_FALSE(stored->machine.contains("pages")) << "of a host's memory, in which no kernel ran";
    EXPECT_EQ(refusal(gpu), "") << "and goes on with kernels";
  }
}

TEST_F(SessionFile, NotOfAnotherMachine) {
  measured_with(of_cudnn(), true);
  sibyl::Setup elsewhere = of_storage();
  elsewhere.machine["cpu"] = "Another";
  EXPECT_EQ(refusal(elsewhere), "was measured with cpu Example, this run has Another");
}

// Nor how a processor's kernels are slowed, nor what its messages take, which are no more the GPU's than its kernels.
TEST_F(SessionFile, AGpusFileTakesNothingElseOfAProcessor) {
  measured_with(of_cudnn(), true);
  sibyl::Setup network = of_storage();
  network.storage_alone = false;
  const auto session = open(network);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message, "was measured with backend cuda, this run has cpu");
  EXPECT_NE(session.error().hint.find("`io`"), std::string::npos) << session.error().hint;
}

// Kernels that a run which was killed left in the journal are for the next one that times some.
TEST_F(SessionFile, StorageLeavesTheJournalOfKernels) {
  measured_with(of_cudnn(), false);
  KernelSample sample;
  sample.key = *parse_kernel_key("forward unary[64]->[64]:f32");
  sample.time = Seconds{1e-6};
  ASSERT_TRUE(open(of_cudnn())->add(sample));
  {
    auto session = open(of_storage());
    ASSERT_TRUE(session) << to_string(session.error());
    ASSERT_TRUE(session->save());
  }
  const auto session = open(of_cudnn());
  ASSERT_TRUE(session) << to_string(session.error());
  EXPECT_EQ(session->times_of(sample.key).size(), 1U);
}

// A file of a network alone, which tells nothing of kernels: the first to add some says how they are timed, and from
// then on another way is refused.
TEST_F(SessionFile, WithoutKernelsAFileIsAnybodysOfItsBackend) {
  measured_with(of_torch(), false);
  EXPECT_EQ(refusal(of_cudnn()), "");
  measured_with(of_cudnn(), true);
  EXPECT_EQ(refusal(of_cudnn()), "");
  EXPECT_EQ(refusal(of_torch()), "was measured with engines heuristic, this run has none");
}

TEST_F(SessionFile, AProcessorsFileWithoutKernelsTakesThemOn) {
  measured_with(of_processor(), false);
  EXPECT_EQ(refusal(of_processor()), "");
}

// Another machine of the same kind may have a later patch of it.
TEST_F(SessionFile, ADriverMayChange) {
  measured_with(of_cudnn(), true);
  sibyl::Setup later = of_cudnn();
  later.machine["gpu_driver"] = "580.2";
  EXPECT_EQ(refusal(later), "");
  later.machine["gpu"] = "NVIDIA H100";
  EXPECT_EQ(refusal(later), "was measured with gpu NVIDIA H200, this run has NVIDIA H100");
}

// Also while its samples stand in the journal alone, as after a kill.
TEST_F(SessionFile, ADriverMayChangeBeforeTheJournalIsSaved) {
  {
    auto session = open(of_cudnn());
    ASSERT_TRUE(session);
    KernelSample sample;
    sample.key = *parse_kernel_key("forward unary[64]->[64]:f32");
    sample.time = Seconds{1e-6};
    ASSERT_TRUE(session->add(sample));
  }
  sibyl::Setup later = of_cudnn();
  later.machine["gpu_driver"] = "580.2";
  const auto session = open(later);
  ASSERT_TRUE(session) << to_string(session.error());
  EXPECT_EQ(session->times_of(*parse_kernel_key("forward unary[64]->[64]:f32")).size(), 1U);
}

TEST_F(SessionFile, WhatIsLeftOutIsOfOneSetUp) {
  const KernelKey key = *parse_kernel_key("forward unary[64]->[64]:f32");
  ASSERT_TRUE(open(of_cudnn())->leave_out(key));
  EXPECT_TRUE(open(of_cudnn())->is_left_out(key));
  sibyl::Setup newer = of_cudnn();
  newer.libraries["cudnn"] = "9.20.0";
  std::filesystem::remove(journal_path(file()));
  EXPECT_FALSE(open(newer)->is_left_out(key));
}

}  // namespace
}  // namespace sibyl
