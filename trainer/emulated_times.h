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
  Seconds issue;      // host time to launch its kernels
  Bytes workspace;    // while it runs
  double spread = 0;  // of the duration from run to run, relative
};

struct EmulatedStage {
  struct OfStep {
    EmulatedWork forward;
    EmulatedWork backward;         // the sums of gradients that follow it, too
    EmulatedWork backward_weight;  // where backward is taken in two parts, the second
    EmulatedWork parameter_casts;  // of its parameters' gradients to the type that they are summed in
    EmulatedWork parameter_sums;   // added from the second micro-batch on
    EmulatedWork bucket_copies;    // added where the micro-batch's gradients are reduced
  };
  std::vector<OfStep> steps;  // parallel to Stage::steps
  EmulatedWork part_sums;     // of two micro-batches' parts, where each one's gradients are reduced
  EmulatedWork copies_back;   // from buckets
  std::vector<EmulatedWork> unit_copies;  // parallel to Stage::units: the rank's part, before each is gathered
  EmulatedWork unscale;       // of gradients of a loss that was scaled
  EmulatedWork norms, clips;  // of gradients that are clipped
  EmulatedWork masters;       // casts to masters of parameters of two bytes, and from them
  EmulatedWork updates;
  // Of what lies outside the device: updates by block, and copies.
  std::vector<EmulatedWork> block_updates;  // by Stage::blocks
  std::vector<Seconds> copies;              // parallel to Stage::copies
  std::vector<Seconds> kept_out, kept_in;   // parallel to Stage::kept_outside
  std::vector<Seconds> brought;             // parallel to Stage::units
  double beside_copies = 1.0;               // kernels and copies take so much longer beside each other
};

struct EmulatedTimes {
  std::string name;  // of the device or the file that the times are from
  Backend backend = Backend::cpu;
  bool sums_apart = false;  // of Device
  Bytes framework;  // what the framework itself takes of the device's memory
  // Times vary from run to run, each work's by its spread, and all of one step's by `step_spread`; else they are the same
  // in every step and on every rank.
  bool vary = false;
  double step_spread = 0;
  std::vector<EmulatedStage> stages;
};

}  // namespace sibyl::trainer
