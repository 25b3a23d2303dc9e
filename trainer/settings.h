// What a user says about a training run beside the model and the Strategy.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "trainer/emulated_times.h"

namespace sibyl::trainer {

struct TrainSettings {
  std::int64_t steps = 20;  // measured
  std::int64_t warmup = 3;  // before them
  double learning_rate = 0.01;
  std::uint64_t seed = 1;                             // of weights, synthetic data, shuffling and dropout
  std::int64_t log_every = 1;                         // steps between lines of loss on stderr; 0: none
  std::filesystem::path offload_folder;               // for what is offloaded to storage; empty: a temporary one
  std::optional<std::filesystem::path> data;          // folder of npy files; synthetic without
  std::optional<std::filesystem::path> evaluate;      // folder of npy files to classify after training
  std::optional<std::filesystem::path> save_weights;  // safetensors, written by rank 0
  std::optional<EmulatedTimes> emulated;              // compute nothing, but take these times
  std::string device;                                 // the GPU's name where one computes; else empty
  std::optional<std::filesystem::path> trace;         // the timeline of one step more, written by rank 0
};

}  // namespace sibyl::trainer
