// Jobs for Slurm, read by the shell that will run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/oracle/report/sample_prediction.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Job : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("sibyl-sbatch-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    // Stands in for srun: writes the words it got, one a line, where the test finds them.
    write("srun", "#!/bin/sh\nprintf '%s\\n' \"$@\" > words\n");
    std::filesystem::permissions(folder_ / "srun", std::filesystem::perms::owner_all);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  [[nodiscard]] int shell(const std::string& command) const {
    return std::system(("cd '" + folder_.string() + "' && PATH=.:$PATH " + command).c_str());
  }
  // The words that srun gets when the script is run.
  std::vector<std::string> words_of(const PredictionReport& report) const {
    write("job.sh", to_sbatch(report, 20).value());
    EXPECT_EQ(shell("bash -n job.sh"), 0);
    EXPECT_EQ(shell("bash job.sh > said"), 0);
    std::ifstream file(folder_ / "words");
    std::vector<std::string> words;
    for (std::string line; std::getline(file, line);) words.push_back(line);
    return words;
  }

  std::filesystem::path folder_;
};

TEST_F(Job, RunsThePlan) {
  PredictionReport report = sample_prediction();
  report.options = {"--batch=64/device", "--bucket=10MiB", "--no-overlap", "--dim=seq=128", "--dim=image=224"};
  EXPECT_THAT(words_of(report),
              ElementsAre("--mpi=pmix", "sibyl-train", "resnet50.onnx", "--parallel=data=64", "--batch=4096",
                          "--micro-batches=1", "--precision=fp32", "--optimizer=sgd", "--bucket=10MiB", "--no-overlap",
                          "--dim=seq=128", "--dim=image=224", "--steps=20", "--threads=1", "--json"));
}

// A pipeline with the stages that were predicted, whoever chose them.
TEST_F(Job, RunsThePredictedStages) {
  PredictionReport report = sample_prediction();
  for (const char* first : {"conv1", "layer2.0.conv1", "fc"}) report.prediction.stages.emplace_back().first = first;
  report.options = {"--schedule=1f1b", "--stages=somewhere,else"};
  const std::vector<std::string> words = words_of(report);
  EXPECT_THAT(words, testing::Contains("--stages=layer2.0.conv1,fc").Times(1));
  EXPECT_THAT(words, testing::Contains("--schedule=1f1b").Times(1));
  EXPECT_THAT(words, testing::Not(testing::Contains("--stages=somewhere,else")));
}

// 64 devices on 16 nodes: 4 on each. Twice 23 steps of 0.4 s is 18.4 s; with ten minutes, 11 minutes begun.
TEST_F(Job, AsksForTheRightMachine) {
  const std::string script = to_sbatch(sample_prediction(), 20).value();
  EXPECT_TRUE(script.starts_with("#!/bin/bash\n"));
  for (const char* line : {"#SBATCH --job-name=sibyl-resnet50\n", "#SBATCH --nodes=16\n", "#SBATCH --ntasks=64\n",
                           "#SBATCH --ntasks-per-node=4\n", "#SBATCH --time=00:11:00\n"})
    EXPECT_THAT(script, HasSubstr(line));
  // 2 * 100,003 * 0.4 s + 600 s = 80,602.4 s = 1,343.4 min.
  EXPECT_THAT(to_sbatch(sample_prediction(), 100000).value(), HasSubstr("#SBATCH --time=22:24:00\n"));
}

// 10 devices on 3 nodes of 4.
TEST_F(Job, LastNodeMayHaveFewerRanks) {
  PredictionReport report = sample_prediction();
  report.prediction.devices = 10;
  report.prediction.nodes = 3;
  EXPECT_THAT(to_sbatch(report, 20).value(), HasSubstr("#SBATCH --ntasks=10\n#SBATCH --ntasks-per-node=4\n"));
}

TEST_F(Job, NamesAreWordsWhateverTheyHold) {
  PredictionReport report = sample_prediction();
  report.model = "my nets/it's $(touch evil).onnx";
  report.cluster = "a\nrm -rf everything";
  report.options = {"--dim=`touch evil`=3"};
  const auto words = words_of(report);
  EXPECT_EQ(words.at(2), report.model);
  EXPECT_THAT(words, testing::Contains(report.options[0]));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "evil"));
  EXPECT_THAT(to_sbatch(report, 20).value(), HasSubstr("#SBATCH --job-name=sibyl-it-s---touch-evil-\n"));
}

TEST_F(Job, NeedsAModelThatCanBeReadAgain) {
  PredictionReport report = sample_prediction();
  report.model = "standard input";
  ASSERT_FALSE(to_sbatch(report, 20).has_value());
  EXPECT_EQ(to_sbatch(report, 20).error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace sibyl
