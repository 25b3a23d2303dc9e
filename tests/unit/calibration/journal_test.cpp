#include "calibration/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/files.h"
#include "example.h"

namespace sibyl {
namespace {

namespace fs = std::filesystem;

class JournalFile : public testing::Test {
 protected:
  void SetUp() override { fs::remove(path_); }
  void TearDown() override { fs::remove(path_); }

  void write_two() const {
    auto journal = Journal::open(path_, "machine A");
    ASSERT_TRUE(journal);
    for (const KernelSample& sample : samples_) ASSERT_TRUE(journal->append(sample));
  }
  void add(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  fs::path path_ = fs::temp_directory_path() / ("sibyl_journal_" + std::to_string(::getpid()));
  std::vector<KernelSample> samples_ = example_calibration().kernels;
};

TEST_F(JournalFile, GivesBackWhatWasAppended) {
  write_two();
  const auto again = Journal::open(path_, "machine A");
  ASSERT_TRUE(again) << to_string(again.error());
  ASSERT_EQ(again->recovered().size(), 2U);
  EXPECT_EQ(again->recovered()[0].key, samples_[0].key);
  EXPECT_EQ(again->recovered()[0].time, samples_[0].time);
  EXPECT_EQ(again->recovered()[1].source, "a paper");
}

TEST_F(JournalFile, DropsATornLineAndGoesOn) {
  write_two();
  add("{\"key\":\"forward unary[6");
  {
    auto again = Journal::open(path_, "machine A");
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_EQ(again->recovered().size(), 2U);
    ASSERT_TRUE(again->append(samples_[0]));
  }
  EXPECT_EQ(Journal::open(path_, "machine A")->recovered().size(), 3U);
}

TEST_F(JournalFile, StartsAnewWhenEvenItsFirstLineIsTorn) {
  add("{\"schema\":\"sib");
  const auto journal = Journal::open(path_, "machine A");
  ASSERT_TRUE(journal);
  EXPECT_TRUE(journal->recovered().empty());
  EXPECT_TRUE(Journal::open(path_, "machine A"));
}

TEST_F(JournalFile, RefusesDamageBeforeItsLastLine) {
  write_two();
  add("rubbish\n");
  const auto again = Journal::open(path_, "machine A");
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().where.find(path_.string() + ":4"), std::string::npos) << again.error().where;
}

TEST_F(JournalFile, RefusesAnotherMachinesSamples) {
  write_two();
  const auto other = Journal::open(path_, "machine B");
  ASSERT_FALSE(other);
  EXPECT_FALSE(other.error().hint.empty());
  EXPECT_EQ(Journal::open(path_, "machine A")->recovered().size(), 2U);  // nothing was lost by asking
}

TEST_F(JournalFile, CanBeRemoved) {
  auto journal = Journal::open(path_, "machine A");
  ASSERT_TRUE(journal->remove());
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace sibyl
