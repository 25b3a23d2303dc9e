// A folder for a calibration, and the one process that measures into it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "calibration/program/session.h"

namespace sibyl {

class CalibratorFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::temp_directory_path() / ("sibyl-session-" + std::to_string(::getpid()) + "-" + test->name());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path file() const { return folder_ / "machine.json"; }
  [[nodiscard]] Result<Session> open(const sibyl::Setup& setup) const { return Session::open(ranks_, file(), setup); }

  // As calibrators of processors, of libtorch on a GPU, and of cuDNN describe what they measure.
  static sibyl::Setup of_processor() { return {{{"cpu", "Example"}}, {{"libtorch", "2.9.0"}}, 1, Backend::cpu}; }
  static sibyl::Setup of_torch() {
    return {{{"cpu", "Example"}, {"gpu", "NVIDIA H200"}}, {{"libtorch", "2.9.0"}}, 1, Backend::cuda};
  }
  static sibyl::Setup of_cudnn() {
    return {{{"cpu", "Example"},
             {"engines", "heuristic"},
             {"gpu", "NVIDIA H200"},
             {"gpu_driver", "580.1"},
             {"layout", "nchw"}},
            {{"cudnn", "9.19.0"}},
            1,
            Backend::cuda};
  }
  // As a calibrator of processors does that times files alone.
  static sibyl::Setup of_storage() {
    return {{{"cpu", "Example"}, {"hardware_threads", "2"}, {"pages", "huge"}},
            {{"libtorch", "2.10.0"}, {"mpi", "Open MPI 4.1.4"}},
            2,
            Backend::cpu,
            true};
  }
  // What any device has, so that the file can be read again.
  static void describe(Device& device) {
    device.name = "NVIDIA H200";
    device.memory = Bytes{1.4e11};
    device.memory_bandwidth = BytesPerSecond{4e12};
  }

  std::filesystem::path folder_;
  int none_ = 0;
  char** words_ = nullptr;
  Ranks ranks_{none_, words_};
};

}  // namespace sibyl
