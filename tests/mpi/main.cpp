// Runs GoogleTest on every rank; a failure on any rank fails the run, and ranks above 0 print only failures. What a
// rank throws ends all of them, as the others would wait for it; and where they wait, each says in which test.
#include <gtest/gtest.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

constexpr unsigned patience = 270;  // seconds, below the tests' TIMEOUT

std::array<char, 256> place{};  // rank and test, for a signal handler to write

void write_down(int rank, std::string_view test) {
  const std::string text = "rank " + std::to_string(rank) + " is still in " + std::string(test);
  std::fill(std::copy_n(text.begin(), std::min(text.size(), place.size() - 2), place.begin()), place.end(), '\n');
}

void give_up(int) {
  std::size_t length = 0;
  while (length + 1 < place.size() && place[length] != '\n') ++length;
  if (write(STDERR_FILENO, place.data(), length + 1) < 0) _exit(2);
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
