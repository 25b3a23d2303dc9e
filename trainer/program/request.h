// What the command line of `sibyl-train` asks for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "oracle/cli/options.h"
#include "oracle/strategy.h"
#include "trainer/settings.h"

namespace sibyl::trainer {

struct Request {
  std::optional<std::string> help;  // to be printed, and nothing else to be done
  std::string model;
  ImportOptions import;
  Strategy strategy;
  TrainSettings settings;
  std::optional<std::string> emulated;  // the calibration whose device is emulated
  int threads = 1;
  bool json = false;
};

// `processes`: how many were started; --devices must agree with it.
Result<Request> read_request(const std::vector<std::string>& words, int processes);

}  // namespace sibyl::trainer
