// A Calibration is one measured machine, kept in one JSON file: every sample, and what it was taken on. Fits are
// derived when it is read, never stored. Schema: docs/formats/calibration.md, version in `schema`.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "netmodel/network.h"
#include "profiler/device.h"
#include "profiler/kernel_table.h"
#include "profiler/reuse_curve.h"

namespace sibyl {

// How much communication and compute slow each other when they run together; 1 = not at all.
struct OverlapSample {
  double compute_slowdown = 1.0;
  double communication_slowdown = 1.0;
  double spread = 0.0;
  Algorithm algorithm = Algorithm::automatic;  // whose all-reduce ran: gloo's, else the calibration's own library's
  Seconds message = {};                        // what it took alone; 0: not known
};

// How ranks that compute on their own meet, of one series (netmodel/probe/meetings.h; docs/models/step.md).
struct MeetingSample {
  struct Window {
    Seconds computing;  // of each rank
    Seconds late;       // the last rank after the mean of the ranks, in the mean
  };
  int ranks = 2;
  Seconds longer;               // an exchange between computing, in the mean, than the same in the median
  std::vector<Window> windows;  // the shortest first
};

struct IoSample {
  bool write = false;
  Bytes bytes;
  Seconds time;
};

// A whole training step of a reference model, run on the machine: how far a step is from the sum of its parts.
struct StepSample {
  std::string name;     // the case, as `sibyl validate` takes it
  Seconds predicted;    // from this calibration's kernels and messages alone
  Seconds measured;     // median; the mean of those of rounds
  double spread = 0.0;  // relative, over steps
  int rounds = 1;
};

struct Calibration {
  std::map<std::string, std::string> machine;    // fingerprint: hostname-free (cpu, cores, caches, memory, os, gpu)
  std::map<std::string, std::string> libraries;  // name -> version
  std::string date;                              // ISO 8601
  std::string source;                            // citation, for shipped calibrations
  int ranks_per_node = 1;                        // ranks that were busy at once while kernels were timed
  int threads = 1;                               // compute threads of each
  bool one_machine = false;  // its nodes are namespaces or containers of one: all ranks share its memory
  Device device;
  std::vector<std::string> donors;  // shipped calibrations whose kernels stand in for those that are not here
  // Host time per operation that no kernel sample contains: interpreter and autograd bookkeeping of a real step.
  Seconds step_overhead_per_operation;
  std::vector<ReadSample> reads;  // by working set: what the device's cache was found by, where nobody told it
  std::vector<ReuseSample> reuses;  // how much of what a step touches the cache holds until it is wanted again
  std::vector<LastingSample> lasting;  // and how long
  std::vector<KernelSample> kernels;
  std::vector<PointToPointSample> point_to_point;
  std::vector<PairSample> pairs;
  std::vector<CollectiveSample> collectives;
  std::vector<OverlapSample> overlap;
  std::vector<MeetingSample> meetings;
  std::vector<IoSample> io;
  std::vector<StepSample> steps;
};

Result<Calibration> load_calibration(const std::filesystem::path& path);
Result<void> save_calibration(const Calibration& calibration, const std::filesystem::path& path);  // atomic replace

// Its kernels, and behind them those of its donors.
KernelTable kernel_table(Calibration calibration);

// A calibration shipped with Sibyl, by its own name ("h100-sxm") or another of the device's (device_names.h); its own
// names.
std::vector<std::string> shipped_calibrations();
Result<Calibration> shipped_calibration(const std::string& name);

}  // namespace sibyl
