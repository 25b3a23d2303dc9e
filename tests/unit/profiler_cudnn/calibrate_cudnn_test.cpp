// sibyl-calibrate-cudnn as a user runs it: what it says without a device, and that it resumes where there is one.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "calibration/calibration.h"
#include "calibration/unmeasured.h"

namespace sibyl {
namespace {

namespace fs = std::filesystem;

class CalibrateCudnn : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("sibyl-cudnn-" + std::to_string(::getpid()) + "-" + test->name());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  int run(const std::string& program, const std::string& words) const {
    const std::string command = std::string(SIBYL_BINARY_DIR) + "/bin/" + program + " " + words + " >" +
                                (folder_ / "out").string() + " 2>" + (folder_ / "err").string();
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] std::string said(const char* stream) const {
    std::ifstream in(folder_ / stream);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::string file() const { return (folder_ / "gpu.json").string(); }
  [[nodiscard]] bool no_device() const {
    return run("sibyl-calibrate-cudnn", "compute --facts -o " + (folder_ / "probe.json").string()) == 3 &&
           said("err").find("there is no CUDA device") != std::string::npos;
  }

  fs::path folder_;
};

TEST_F(CalibrateCudnn, HelpNamesItsOptions) {
  EXPECT_EQ(run("sibyl-calibrate-cudnn", "compute --help"), 0);
  for (const char* option : {"--layout", "--engines", "--dtypes", "--tolerance", "--for", "--sweep"})
    EXPECT_NE(said("out").find(option), std::string::npos) << option;
}

TEST_F(CalibrateCudnn, SibylStartsItForThisBackend) {
  EXPECT_EQ(run("sibyl", "calibrate compute --backend cudnn --help"), 0);
  EXPECT_NE(said("out").find("sibyl-calibrate-cudnn compute"), std::string::npos);
  EXPECT_EQ(run("sibyl", "calibrate compute --backend=cudnn --help"), 0);
  EXPECT_NE(said("out").find("sibyl-calibrate-cudnn compute"), std::string::npos);
}

TEST_F(CalibrateCudnn, UsageErrorsComeBeforeTheDevice) {
  EXPECT_EQ(run("sibyl-calibrate-cudnn", "network"), 2);
  EXPECT_EQ(run("sibyl-calibrate-cudnn", "compute --dtypes f99"), 2);
  EXPECT_NE(said("err").find("f99"), std::string::npos);
  EXPECT_EQ(run("sibyl-calibrate-cudnn", "compute --tolerance 0"), 2);
  EXPECT_EQ(run("sibyl-calibrate-cudnn", "compute --for zoo:no-such-model"), 3);
  EXPECT_NE(said("err").find("no-such-model"), std::string::npos);
}

TEST_F(CalibrateCudnn, SaysThatThereIsNoDeviceAndWritesNothing) {
  if (!no_device()) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_EQ(run("sibyl-calibrate-cudnn", "compute --sweep quick -o " + file()), 3);
  EXPECT_NE(said("err").find("there is no CUDA device here"), std::string::npos) << said("err");
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(CalibrateCudnn, TimesAModelOnceAndGoesOn) {
  if (no_device()) GTEST_SKIP() << said("err");
  const std::string words = "compute --for zoo:lenet --batches 4 --kernel-budget 5ms -o " + file();
  ASSERT_EQ(run("sibyl-calibrate-cudnn", words), 0) << said("err");
  const auto first = load_calibration(file());
  ASSERT_TRUE(first) << to_string(first.error());
  EXPECT_EQ(first->device.backend, Backend::cuda);
  EXPECT_GT(first->kernels.size(), 10u);
  EXPECT_TRUE(fs::exists(file() + ".conditions.csv"));
  EXPECT_TRUE(fs::exists(file() + ".launches.csv"));
  EXPECT_EQ(first->device.dispatch, usual_dispatch);  // an operation's, of a framework that is not here
  EXPECT_EQ(first->device.dispatch_error, usual_dispatch_error);
  ASSERT_EQ(run("sibyl-calibrate-cudnn", words), 0) << said("err");
  const auto second = load_calibration(file());
  ASSERT_TRUE(second);
  ASSERT_EQ(second->kernels.size(), first->kernels.size());  // nothing was timed again
  for (std::size_t i = 0; i < first->kernels.size(); ++i) EXPECT_EQ(second->kernels[i].time, first->kernels[i].time);
}

}  // namespace
}  // namespace sibyl
