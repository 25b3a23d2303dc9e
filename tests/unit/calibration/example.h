// A calibration that uses every field once.
#pragma once

#include "calibration/calibration.h"

namespace sibyl {

inline Calibration example_calibration() {
  Calibration c;
  c.machine = {{"cpu", "Example 9000"}, {"cores", "2"}, {"nodes", "2"}};
  c.libraries = {{"torch", "1.13.0"}};
  c.date = "2026-01-02T03:04:05Z";
  c.source = "an \"example\"";
  c.ranks_per_node = 2;
  c.threads = 3;
  c.one_machine = true;
  c.device.name = "Example CPU";
  c.device.backend = Backend::cpu;
  c.device.peak = {{DType::f32, FlopsPerSecond{1.5e11}}, {DType::f64, FlopsPerSecond{7e10}}};
  c.device.memory_bandwidth = BytesPerSecond{2e10};
  c.device.memory = Bytes{8e9};
  c.device.cache = Bytes{3.3e7};
  c.device.board_power = Watts{250};
  c.device.boost_power = Watts{355};
  c.device.unit_share = {{DType::f16, 0.5}};
  c.device.framework_base = Bytes{1e8};
  c.device.dispatch = Seconds{1e-6};
  c.device.dispatch_error = 0.5;
  c.device.spread = 0.015;
  c.device.host_link = BytesPerSecond{2.4e10};
  for (const std::int64_t length : {1024, 2048})
    c.device.attention_speeds.push_back({AttentionLibrary::flash2, Pass::backward, true, 64, length,
                                         FlopsPerSecond{1e9 * static_cast<double>(length)}});
  c.step_overhead_per_operation = Seconds{2.5e-6};
  c.reads = {{Bytes{1048576}, Seconds{2e-5}}, {Bytes{6.6e7}, Seconds{5e-3}}};
  c.reuses = {{Bytes{4e6}, Bytes{1e6}, BytesPerSecond{4e10}}, {Bytes{8e6}, Bytes{1e6}, BytesPerSecond{3e10}}};
  c.lasting = {{1, Seconds{}, BytesPerSecond{1e10}}, {2, Seconds{0.004}, BytesPerSecond{2e10}}};
  KernelSample kernel;
  kernel.key = *parse_kernel_key("backward:11 linear[8x16,32x16]->[8x32]:f32");
  kernel.time = Seconds{1.0 / 3};  // must come back to the last bit
  kernel.spread = 0.02;
  kernel.runs = 11;
  kernel.workspace = Bytes{1024};
  kernel.kept = Bytes{512};
  kernel.alone = Seconds{0.25};
  kernel.cached = Seconds{0.125};
  c.kernels.push_back(kernel);
  kernel.alone = kernel.cached = {};
  kernel.key = *parse_kernel_key("forward unary[64]->[64]:f32");
  kernel.source = "a paper";
  c.kernels.push_back(kernel);
  c.point_to_point = {{true, 1, Bytes{8}, Seconds{1e-6}, 0.1},
                      {true, 1, Bytes{1e6}, Seconds{2e-4}, 0.1},
                      {false, 1, Bytes{8}, Seconds{2e-5}, 0.1},
                      {false, 2, Bytes{1e6}, Seconds{1e-2}, 0.1},
                      {false, 1, Bytes{1e6}, Seconds{2e-2}, 0.1, true}};
  c.pairs = {{4, 0, false, Bytes{1e6}, Seconds{3e-2}, 0.2},
             {0, 1, true, Bytes{1e6}, Seconds{2e-4}, 0.1, Nearness::socket}};
  c.collectives = {
      {Collective::all_gather, Algorithm::ring, {2, 2, 1}, Bytes{4096}, Seconds{1e-4}, 0.05, "another paper", 0.9}};
  c.overlap = {{1.1, 1.2, 0.01}, {1.3, 1.4, 0.02}, {1.2, 1.5, 0.03}};
  c.meetings = {{4, Seconds{1e-4}, {{Seconds{2e-3}, Seconds{3e-4}}, {Seconds{4e-3}, Seconds{5e-4}}}}};
  c.io = {{true, Bytes{1e8}, Seconds{0.5}}, {false, Bytes{1e8}, Seconds{0.25}}};
  return c;
}

}  // namespace sibyl
