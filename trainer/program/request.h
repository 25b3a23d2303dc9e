// What the command line of `sibyl-train` asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/cli/options.h"
#include "oracle/strategy.h"
#include "trainer/settings.h"

namespace sibyl::trainer {

// A device that is emulated.
struct Emulation {
  std::string calibration;  // whose times it takes
  bool varies = false;      // as they did when they were measured
};

struct Request {
  std::optional<std::string> help;  // to be printed, and nothing else to be done
  std::string model;
  ImportOptions import;
  Strategy strategy;
  TrainSettings settings;
  std::optional<Emulation> emulated;
  bool cuda = false;        // compute on a GPU: each process of a node on its own…
  std::optional<int> gpu;   // …unless it is named
  int threads = 1;
  bool json = false;
};

// `processes`: how many were started; --devices must agree with it.
Result<Request> read_request(const std::vector<std::string>& words, int processes);

}  // namespace sibyl::trainer
