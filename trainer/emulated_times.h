// How long each part of a step takes on an emulated device (emulated_device.h), and the scratch memory its kernels
// take.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/units.h"
#include "models/training/training.h"

namespace sibyl::trainer {

struct EmulatedWork {
  Seconds duration;
  Seconds issue;    // host time to launch its kernels
  Bytes workspace;  // while it runs
};

struct EmulatedStage {
  struct OfStep {
    EmulatedWork forward;
    EmulatedWork backward;         // the sums of gradients that follow it, too
    EmulatedWork backward_weight;  // where backward is taken in two parts, the second
    EmulatedWork parameter_sums;   // added from the second micro-batch on
    EmulatedWork bucket_copies;    // added on the last micro-batch
  };
  std::vector<OfStep> steps;  // parallel to Stage::steps
  EmulatedWork copies_back;   // from buckets
  EmulatedWork updates;
};

struct EmulatedTimes {
  std::string name;  // of the device or the file that the times are from
  Backend backend = Backend::cpu;
  Bytes framework;  // what the framework itself takes of the device's memory
  std::vector<EmulatedStage> stages;
};

}  // namespace sibyl::trainer
