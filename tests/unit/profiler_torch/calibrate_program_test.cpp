// sibyl-calibrate as a user runs it: killed and run again, under mpirun, and with bad input.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "calibration/calibration.h"
#include "calibration/journal.h"
#include "profiler/torch/timing.h"

namespace sibyl {
namespace {

namespace fs = std::filesystem;
const std::string program = std::string(SIBYL_BINARY_DIR) + "/bin/sibyl-calibrate";

class Calibrate : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("sibyl-calibrate-" + std::to_string(::getpid()) + "-" + test->name());
    fs::create_directories(folder_);
    file_ = folder_ / "machine.json";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // A small model and the least time for each kernel.
  [[nodiscard]] std::vector<std::string> small(const std::string& verb = "compute",
                                               const std::string& cache = "1MB") const {
    return {program,           verb,  "--for",   "zoo:lenet", "--batches", "2",
            "--kernel-budget", "1ms", "--cache", cache,       "-o",        file_.string()};
  }

  // Kernels of more than one turn.
  [[nodiscard]] std::vector<std::string> several() const {
    std::vector<std::string> words = small();
    *std::ranges::find(words, "2") = "2,4,8,16";
    return words;
  }

  [[nodiscard]] pid_t start(const std::vector<std::string>& words) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    ::setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    std::freopen((folder_ / "stdout").c_str(), "w", stdout);
    std::freopen((folder_ / "stderr").c_str(), "w", stderr);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments.front(), arguments.data());
    ::_exit(127);
  }
  static int status_of(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] int run(const std::vector<std::string>& words) const { return status_of(start(words)); }

  [[nodiscard]] std::string said(const char* stream = "stderr") const {
    std::ifstream in(folder_ / stream);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::vector<std::string> journal_lines() const {
    std::ifstream in(journal_path(file_));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  // Waits until the journal has so many lines, or the process has ended.
  void wait_for_lines(std::size_t count, pid_t child) const {
    while (journal_lines().size() < count &&
           ::waitid(P_PID, static_cast<id_t>(child), &info_, WEXITED | WNOHANG | WNOWAIT) == 0 && info_.si_pid == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  static std::map<std::string, double> times(const Calibration& calibration) {
    std::map<std::string, double> result;
    for (const KernelSample& sample : calibration.kernels) result[to_string(sample.key)] = sample.time.value();
    return result;
  }

  fs::path folder_, file_;
  mutable siginfo_t info_{};
};

// Memory lies in huge pages where the kernel gives them to who asks, unless whoever starts the program says otherwise;
// what was timed in one kind is not added to in the other.
TEST_F(Calibrate, SaysInWhichPagesMemoryLies) {
  std::ifstream kernels("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string choices;
  std::getline(kernels, choices);
  const bool always = choices.find("[always]") != std::string::npos;
  const bool who_asks = choices.find("[madvise]") != std::string::npos;
  ::unsetenv("GLIBC_TUNABLES");
  ASSERT_EQ(run(small()), 0) << said();
  EXPECT_EQ(load_calibration(file_)->machine["pages"], always || who_asks ? "huge" : "small");

  ::setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0", 1);
  const int other_kind = run(small());
  if (who_asks) {
    EXPECT_EQ(other_kind, 3);
    EXPECT_NE(said().find("was measured with pages huge, this run has small"), std::string::npos) << said();
    fs::remove(file_);
    EXPECT_EQ(run(small()), 0) << said();
    EXPECT_EQ(load_calibration(file_)->machine["pages"], "small");
  } else {
    EXPECT_EQ(other_kind, 0) << said();
  }
  ::unsetenv("GLIBC_TUNABLES");
}

// The first run adds all that the file then holds, a second one nothing.
TEST_F(Calibrate, TellsAsJsonWhatItMeasured) {
  std::vector<std::string> words = small();
  words.emplace_back("--json");
  ASSERT_EQ(run(words), 0) << said();
  const auto told = [&](std::size_t added, std::size_t held) {
    const std::string text = said("stdout"), kernels = "\"kernels\": ";
    EXPECT_EQ(text.find('{'), 0U) << text;
    EXPECT_NE(text.find("\"schema\": \"sibyl-calibrated\""), std::string::npos) << text;
    EXPECT_NE(text.find("\"added\": {\n    " + kernels + std::to_string(added) + ","), std::string::npos) << text;
    EXPECT_NE(text.find("\"samples\": {\n    " + kernels + std::to_string(held) + ","), std::string::npos) << text;
  };
  const std::size_t held = load_calibration(file_)->kernels.size();
  EXPECT_GT(held, 0U);
  told(held, held);
  ASSERT_EQ(run(words), 0) << said();
  told(0, held);
}

TEST_F(Calibrate, times_the_kernels_of_a_model_and_writes_a_file_that_loads) {
  ASSERT_EQ(run(small()), 0) << said();
  const auto calibration = load_calibration(file_);
  ASSERT_TRUE(calibration) << to_string(calibration.error());
  EXPECT_GT(calibration->kernels.size(), 10U);
  EXPECT_EQ(times(*calibration).size(), calibration->kernels.size()) << "no key twice";
  for (const KernelSample& sample : calibration->kernels) {
    EXPECT_GT(sample.time.value(), 0) << to_string(sample.key);
    EXPECT_EQ(sample.alone.value(), 0) << "it is alone anyway";
  }
  EXPECT_GT(calibration->device.peak.at(DType::f32).value(), 0);
  EXPECT_GT(calibration->device.memory_bandwidth.value(), 0);
  EXPECT_GT(calibration->device.memory.value(), 0);
  EXPECT_FALSE(calibration->machine.at("cpu").empty());
  EXPECT_FALSE(calibration->libraries.at("libtorch").empty());
  EXPECT_EQ(calibration->ranks_per_node, 1);
  EXPECT_FALSE(fs::exists(journal_path(file_))) << "its samples are in the file";
  EXPECT_EQ(said("stdout"), file_.string() + "\n");
}

TEST_F(Calibrate, a_second_run_measures_nothing_again) {
  ASSERT_EQ(run(small()), 0) << said();
  const auto before = load_calibration(file_);
  ASSERT_EQ(run(small()), 0) << said();
  const auto after = load_calibration(file_);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(times(*before), times(*after));
}

TEST_F(Calibrate, asked_for_more_samples_it_times_once_more_until_they_are_there) {
  ASSERT_EQ(run(small()), 0) << said();
  const auto before = load_calibration(file_);
  std::vector<std::string> again = small();
  again.insert(again.end(), {"--samples", "2"});
  ASSERT_EQ(run(again), 0) << said();
  const auto twice = load_calibration(file_);
  ASSERT_TRUE(before && twice);
  EXPECT_EQ(twice->kernels.size(), 2 * before->kernels.size());
  for (std::size_t i = 0; i < before->kernels.size(); ++i)
    EXPECT_EQ(twice->kernels[i].time, before->kernels[i].time) << "what was there is still there";
  ASSERT_EQ(run(again), 0) << said();
  EXPECT_EQ(load_calibration(file_)->kernels.size(), twice->kernels.size());
}

TEST_F(Calibrate, killed_in_the_middle_it_loses_nothing_and_goes_on) {
  const pid_t child = start(several());
  wait_for_lines(6, child);  // the header and five samples
  ::kill(child, SIGKILL);
  ASSERT_EQ(status_of(child), 128 + SIGKILL) << "it was too fast to be killed, or failed: " << said();
  const std::vector<std::string> left = journal_lines();
  ASSERT_GE(left.size(), 6U);

  ASSERT_EQ(run(several()), 0) << said();
  const auto calibration = load_calibration(file_);
  ASSERT_TRUE(calibration);
  const std::map<std::string, double> final_times = times(*calibration);
  EXPECT_GT(final_times.size(), 10U);
  EXPECT_EQ(final_times.size(), calibration->kernels.size());
  // The samples taken before the kill stand as they were, in the order they were taken.
  EXPECT_NE(said().find("are in " + file_.string() + " already"), std::string::npos) << said();
  for (std::size_t i = 1; i < left.size(); ++i)
    EXPECT_NE(left[i].find(to_string(calibration->kernels[i - 1].key)), std::string::npos) << left[i];
}

TEST_F(Calibrate, interrupted_it_saves_and_exits_130) {
  const pid_t child = start(several());
  wait_for_lines(3, child);
  ::kill(child, SIGINT);
  ASSERT_EQ(status_of(child), 130) << said();
  const auto calibration = load_calibration(file_);
  ASSERT_TRUE(calibration);
  EXPECT_GE(calibration->kernels.size(), 2U);
}

TEST_F(Calibrate, two_ranks_measure_together_and_one_writes) {
  std::vector<std::string> words{"mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2"};
  for (const std::string& word : small()) words.push_back(word);
  ASSERT_EQ(run(words), 0) << said();
  const auto calibration = load_calibration(file_);
  ASSERT_TRUE(calibration) << to_string(calibration.error());
  EXPECT_EQ(calibration->ranks_per_node, 2);
  // Data-parallel training copies gradients into buckets: kernels that one rank does not run.
  const auto found = times(*calibration);
  EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                          [](const auto& entry) { return entry.first.starts_with("forward copy"); }));
  for (const auto& [key, time] : found) EXPECT_GT(time, 0) << key;
  // They share a memory, and kernels that move more than they compute are timed on one of them alone, too.
  EXPECT_TRUE(std::ranges::any_of(calibration->kernels, [](const KernelSample& s) { return s.alone.value() > 0; }));
  // They fit into the cache, and are timed out of it, too.
  EXPECT_TRUE(std::ranges::any_of(calibration->kernels, [](const KernelSample& s) { return s.cached.value() > 0; }));
  for (const KernelSample& sample : calibration->kernels) {
    EXPECT_LE(sample.alone, sample.time) << to_string(sample.key);
    EXPECT_LE(sample.cached, sample.time) << to_string(sample.key);
  }
}

// Processes that a process started.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "stat");
    std::string line;
    if (!std::getline(in, line) || line.rfind(") ") == std::string::npos) continue;
    std::istringstream rest(line.substr(line.rfind(") ") + 2));  // a name may hold anything
    char state = 0;
    pid_t own = 0;
    if (rest >> state >> own && own == parent) children.push_back(std::stoi(entry.path().filename()));
  }
  return children;
}

// One of two ranks is interrupted while short messages are timed: both end before they come to long ones, and what was
// measured is in the file.
TEST_F(Calibrate, interrupted_in_the_network_it_keeps_what_it_has_and_exits_130) {
  const pid_t mpirun = start({"mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", program, "network",
                              "--cache", "1MB", "-o", file_.string()});
  const auto messages = [&] {
    const auto calibration = load_calibration(file_);
    return calibration ? calibration->point_to_point : std::vector<PointToPointSample>{};
  };
  while (messages().empty() && ::waitid(P_PID, static_cast<id_t>(mpirun), &info_, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info_.si_pid == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::vector<pid_t> ranks = children_of(mpirun);
  ASSERT_EQ(ranks.size(), 2U) << said();
  ::kill(ranks.back(), SIGINT);
  EXPECT_EQ(status_of(mpirun), 130) << said();
  ASSERT_FALSE(messages().empty());
  for (const PointToPointSample& sample : messages()) EXPECT_LT(sample.bytes, Bytes{1 << 20});
}

TEST_F(Calibrate, bad_input_on_two_ranks_is_one_line_and_no_hang) {
  const std::vector<std::string> words{
      "mpirun", "--oversubscribe", "--bind-to", "none",  "-np",
      "2",      program,           "compute",   "--for", (folder_ / "absent.onnx").string(),
      "-o",     file_.string()};
  EXPECT_EQ(run(words), 3) << said();
  const std::string text = said();
  const std::size_t first = text.find("absent.onnx");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("sibyl: "), text.rfind("sibyl: ")) << text;
}

TEST_F(Calibrate, a_file_of_another_set_up_is_refused_and_left_alone) {
  ASSERT_EQ(run(small()), 0) << said();
  std::vector<std::string> words = small();
  words.insert(words.end(), {"--threads", "2"});
  EXPECT_EQ(run(words), 3);
  EXPECT_NE(said().find("threads"), std::string::npos) << said();
}

// The text of the file, which a refused run must leave as it was.
std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(Calibrate, another_cache_than_the_files_kernels_were_timed_outside_of_is_refused) {
  ASSERT_EQ(run(small()), 0) << said();
  const std::string before = text_of(file_);
  EXPECT_EQ(run(small("compute", "2MB")), 3) << said();
  EXPECT_NE(said().find("--cache 1000000"), std::string::npos) << said();
  EXPECT_NE(said().find(file_.string()), std::string::npos) << said();
  EXPECT_EQ(text_of(file_), before);
}

// Its kernels are in the journal alone; they count, and stay.
TEST_F(Calibrate, another_cache_is_refused_after_a_kill_and_loses_nothing) {
  const pid_t child = start(several());
  wait_for_lines(6, child);
  ::kill(child, SIGKILL);
  ASSERT_EQ(status_of(child), 128 + SIGKILL) << "it was too fast to be killed, or failed: " << said();
  const std::size_t left = journal_lines().size();
  EXPECT_EQ(run(small("compute", "2MB")), 3) << said();
  EXPECT_EQ(journal_lines().size(), left);
}

TEST_F(Calibrate, without_a_cache_the_files_own_is_kept) {
  ASSERT_EQ(run(small()), 0) << said();
  std::vector<std::string> words = small();
  words.erase(std::find(words.begin(), words.end(), "--cache"), std::find(words.begin(), words.end(), "-o"));
  words.insert(words.end(), {"--samples", "2"});
  ASSERT_EQ(run(words), 0) << said();
  const auto calibration = load_calibration(file_);
  ASSERT_TRUE(calibration);
  EXPECT_EQ(calibration->device.cache, Bytes{1e6});
  EXPECT_TRUE(calibration->reads.empty()) << "nothing was looked for";
  EXPECT_EQ(calibration->kernels.size(), 2 * times(*calibration).size());
}

// No kernel was timed outside of what the first run found, so another cache does no harm.
TEST_F(Calibrate, a_file_without_kernels_takes_another_cache) {
  ASSERT_EQ(run({program, "io", "--size", "1MiB", "--directory", folder_.string(), "-o", file_.string()}), 0) << said();
  const auto before = load_calibration(file_);
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->reads.empty());
  EXPECT_EQ(before->lasting.size(), 10U) << "what comes from memory, and nine ages";
  EXPECT_EQ(before->device.cache, effective_cache(before->reads, last_level_cache()));
  EXPECT_NE(said().find("cache: "), std::string::npos) << said();
  ASSERT_EQ(run(small()), 0) << said();
  const auto after = load_calibration(file_);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->device.cache, Bytes{1e6});
  EXPECT_GT(after->device.memory_bandwidth.value(), 0);
  EXPECT_EQ(after->io.size(), before->io.size()) << "what was measured is still there";
  EXPECT_EQ(after->reads.size(), before->reads.size());
  EXPECT_EQ(after->lasting.size(), before->lasting.size());
}

TEST_F(Calibrate, storage_is_measured_and_cleaned_up) {
  ASSERT_EQ(run({program, "io", "--size", "1MiB", "--directory", folder_.string(), "-o", file_.string()}), 0) << said();
  const auto calibration = load_calibration(file_);
  ASSERT_TRUE(calibration);
  ASSERT_EQ(calibration->io.size(), 6U) << "three sizes, written and read";
  EXPECT_EQ(calibration->io.back().bytes.value(), 1024 * 1024);
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_EQ(entry.path().filename().string().find(".sibyl-storage"), std::string::npos);
}

// What another calibrator timed of a GPU is one file with the storage and the network of its machine; a processor's
// kernels, and how messages slow them, are not.
TEST_F(Calibrate, storage_is_added_to_a_gpus_file) {
  Calibration gpu;
  gpu.machine = {{"gpu", "Example"}, {"engines", "heuristic"}, {"hardware_threads", "100000"}};
  gpu.libraries = {{"cudnn", "9.19.0"}};
  gpu.device.name = "Example";
  gpu.device.memory = Bytes{8e10};
  gpu.device.memory_bandwidth = BytesPerSecond{2e12};
  KernelSample kernel;
  kernel.key = *parse_kernel_key("forward unary[64]->[64]:f32");
  kernel.time = Seconds{1e-6};
  gpu.kernels.push_back(kernel);
  ASSERT_TRUE(save_calibration(gpu, file_));
  ASSERT_EQ(
      run({program, "io", "--size", "1MiB", "--directory", folder_.string(), "--threads", "2", "-o", file_.string()}),
      0)
      << said();
  const auto after = load_calibration(file_);
  ASSERT_TRUE(after) << to_string(after.error());
  EXPECT_EQ(after->io.size(), 6U);
  EXPECT_EQ(after->kernels.size(), 1U);
  EXPECT_EQ(after->device.name, "Example");
  EXPECT_EQ(after->device.backend, Backend::cuda);
  EXPECT_EQ(after->device.memory_bandwidth, gpu.device.memory_bandwidth);
  EXPECT_EQ(after->device.cache, Bytes{}) << "the processor's is not the GPU's";
  EXPECT_TRUE(after->reads.empty());
  for (const char* verb : {"overlap", "compute"}) {
    EXPECT_EQ(run({program, verb, "-o", file_.string()}), 3) << said();
    EXPECT_NE(said().find("was measured with backend cuda, this run has cpu"), std::string::npos) << said();
  }
}

TEST_F(Calibrate, unknown_words_are_usage_errors) {
  EXPECT_EQ(run({program, "everything"}), 2);
  EXPECT_EQ(run({program, "compute", "--bathces", "1"}), 2);
  EXPECT_EQ(run({program, "compute", "--batches", "0"}), 2);
  EXPECT_EQ(run({program, "compute", "--known-to", "0"}), 2);
  EXPECT_EQ(run({program, "compute", "--known-to", "well"}), 2);
}

// --budget is the time of what is measured; where kernels are, too, the network has its own.
TEST_F(Calibrate, the_budget_is_that_of_what_is_measured) {
  EXPECT_EQ(run({program, "network", "--budget", "soon"}), 2);
  EXPECT_EQ(run({program, "network", "--network-budget", "1s"}), 2);
  EXPECT_EQ(run({program, "all", "--network-budget", "soon"}), 2);
  EXPECT_EQ(run({program, "network", "--budget", "1s", "--cache", "1MB", "-o", file_.string()}), 0) << said();
}

}  // namespace
}  // namespace sibyl
