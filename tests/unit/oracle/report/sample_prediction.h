// A prediction made by hand, with round numbers that are easy to follow into every spelling.
#pragma once

#include "oracle/report/report.h"

namespace sibyl {

inline PredictionReport sample_prediction() {
  constexpr double gib = 1024.0 * 1024 * 1024;
  Prediction p;
  p.step_time = Seconds{0.4};
  p.interval_low = Seconds{0.38};
  p.interval_high = Seconds{0.42};
  p.throughput = 10240;  // 4096 samples / 0.4 s
  p.memory = {Bytes{8 * gib}, Bytes{1 * gib}, Bytes{1 * gib}, Bytes{0},
              Bytes{4 * gib}, Bytes{0},       Bytes{1 * gib}, Bytes{1 * gib}};
  p.memory_capacity = Bytes{16 * gib};
  p.fits = true;
  p.breakdown.forward = Seconds{0.1};
  p.breakdown.backward = Seconds{0.2};
  p.breakdown.optimizer = Seconds{0.02};
  p.breakdown.communication_exposed = Seconds{0.08};
  p.breakdown.communication_total = Seconds{0.18};
  p.bottleneck = {"compute: convolution", 0.71, 0.342, "fewer bits; faster devices; a smaller batch"};
  p.provenance = {0.82, 0.15, 0.03};
  p.bytes_sent = 201326592;
  p.limits = {{"batch", "data", 4096, "samples", 0.0156, "a larger batch"},
              {"gradient exchange", "data", 0.08, "s", 0.2, "a faster network"},
              {"weight update", "", 0.002, "s", 0.005, "split weights"}};
  p.operations = {
      {"conv1",
       "convolution",
       {Seconds{0.03}, 0.02, Provenance::measured},
       {Seconds{0.06}, 0.02, Provenance::estimated}},
      {"fc", "linear", {Seconds{0.01}, 0.1, Provenance::interpolated}, {Seconds{0.02}, 0.1, Provenance::measured}}};
  p.devices = 64;
  p.nodes = 16;
  p.global_batch = 4096;
  p.micro_batch = 64;
  p.micro_batches = 1;
  p.buckets = 5;
  p.parallel = "data=64";
  p.precision = "fp32";
  p.optimizer = "sgd";
  p.algorithm = "ring";
  return {"resnet50.onnx", "abci-v100", p};
}

}  // namespace sibyl
