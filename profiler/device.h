// A device as its datasheet and its calibration describe it. SI units.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "models/dtype.h"
#include "models/training/training.h"
#include "profiler/attention_library.h"

namespace sibyl {

struct Device {
  std::string name;
  Backend backend = Backend::cuda;
  std::string architecture;              // devices of one generation: "ampere"; empty where it is not known
  int multiprocessors = 0;               // streaming multiprocessors, compute units or cores; 0 where it is not known
  std::map<DType, FlopsPerSecond> peak;  // dense, by the type computed in
  std::map<DType, double> unit_share;    // peak over what the units could do, where the board slows them; else 1
  BytesPerSecond memory_bandwidth;
  Bytes memory;
  Bytes cache;           // last-level cache
  Watts board_power;     // what the board may take, one device's share of it; 0 where it is not known
  Watts boost_power;     // what products take at the clock that the peaks are stated at; 0 where it is not known
  Bytes framework_base;  // what a process holds before the model: context, libraries
  bool framework_assumed = false;  // framework_base was not measured
  bool sums_apart = false;  // autograd adds two gradients of one tensor up in a third, as PyTorch before 2.0 does
  Seconds dispatch;      // host time to launch one operation; 0 where kernels run on the host itself
  double dispatch_error = 0.0;  // of it: one standard deviation is a factor of 1 + this; 0: measured here
  double spread = 0.0;  // between devices of one name, of what the same kernels take: one standard deviation, relative
  BytesPerSecond host_link = {};  // to its host's memory or back, the slower way; 0 where it was not measured
  std::vector<AttentionSpeed> attention_speeds;  // of libraries other than the one that was timed; empty: only that
};

}  // namespace sibyl
