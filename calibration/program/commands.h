// What sibyl-calibrate can be asked, and the answer as values.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/program/cluster.h"
#include "calibration/program/wanted.h"
#include "calibration/repetition.h"
#include "oracle/cli/arguments.h"

namespace sibyl {

struct Request {
  bool compute = false, network = false, overlap = false, io = false;
  Wanted wanted;  // with models: theirs; else the sweep
  SweepSize sweep_size = SweepSize::quick;
  std::optional<Seconds> limit;  // of the time spent on kernels
  Seconds kernel_budget{0.1};
  Bytes cache;      // 0: the file's, else what is found
  Repetition repeated;  // of kernels
  NetworkRequest of_network;
  int threads = 1;
  bool cuda = false;       // libtorch computes on a GPU: each process of a node on its own…
  std::optional<int> gpu;  // …unless it is named
  std::filesystem::path output;
  bool json = false;  // what was measured, in place of the file's name
  std::filesystem::path io_folder;
  Bytes io_size;
  std::optional<std::string> help;  // asked for: the text to print, and nothing to do
};

// What every program that times kernels is asked alike: --for, --batches, --optimizer, --sweep, --budget,
// --kernel-budget, --samples, --known-to, how the model will be split, and what its dimensions are.
std::vector<cli::Option> kernel_options();
cli::Option json_option();
Result<void> read_kernel_options(const cli::Arguments& arguments, int ranks, Request& request);

// `ranks`: of this job, the data-parallel degree where --parallel does not say.
Result<Request> read_request(const std::vector<std::string>& words, int ranks);

}  // namespace sibyl
