// Runs GoogleTest on every rank; a failure on any rank fails the run, and ranks above 0 print only failures. What a
// rank throws ends all of them, as the others would wait for it; and where they wait, each says in which test it is,
// since when, and what each of its threads does.
#include <dirent.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr unsigned patience = 270;  // seconds, below the tests' TIMEOUT

const auto begin = std::chrono::steady_clock::now();
std::array<char, 256> place{};  // rank, test and when it began, for a signal handler to write

void write_down(int rank, std::string_view test) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  const std::string text = "rank " + std::to_string(rank) + " is since second " + std::to_string(seconds.count()) +
                           " in " + std::string(test);
  std::fill(std::copy_n(text.begin(), std::min(text.size(), place.size() - 2), place.begin()), place.end(), '\n');
}

void write_stack(int) {
  constexpr int deepest = 24, own = 2;  // the handler and what called it
  std::array<void*, deepest> frames{};
  const int count = backtrace(frames.data(), deepest);
  if (write(STDERR_FILENO, "stack:\n", 7) > 0 && count > own)
    backtrace_symbols_fd(frames.data() + own, count - own, STDERR_FILENO);
}

// Nothing but an end comes after this; so it may ask for what a signal handler should not.
void give_up(int) {
  std::size_t length = 0;
  while (length + 1 < place.size() && place[length] != '\n') ++length;
  if (write(STDERR_FILENO, place.data(), length + 1) < 0) _exit(2);
  std::signal(SIGUSR2, write_stack);
  if (DIR* threads = opendir("/proc/self/task"))
    while (const dirent* thread = readdir(threads))
      if (const int id = std::atoi(thread->d_name); id > 0) {
        syscall(SYS_tgkill, getpid(), id, SIGUSR2);
        usleep(50'000);
      }
  _exit(1);
}

class EveryRank : public testing::EmptyTestEventListener {
 public:
  explicit EveryRank(int rank) : rank_(rank) {}

 private:
  void OnTestStart(const testing::TestInfo& test) override {
    test_ = std::string(test.test_suite_name()) + "." + test.name();
    write_down(rank_, test_);
  }
  // Called under GoogleTest's lock: it cannot be asked anything.
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (rank_ == 0 || !result.failed()) return;
    std::fprintf(stderr, "rank %d, %s: %s:%d: %s\n", rank_, test_.c_str(),
                 result.file_name() ? result.file_name() : "", result.line_number(), result.message());
  }
  int rank_;
  std::string test_;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  GTEST_FLAG_SET(catch_exceptions, false);
  testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new EveryRank(rank));
  write_down(rank, "no test");
  std::signal(SIGALRM, give_up);
  alarm(patience);
  int failed = RUN_ALL_TESTS();
  int failed_anywhere = 0;
  MPI_Allreduce(&failed, &failed_anywhere, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  alarm(0);
  MPI_Finalize();
  return failed_anywhere;
}
