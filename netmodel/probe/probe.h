// Measures the network that an MPI job runs on: messages between pairs, one way and both, and collectives of all ranks,
// of those of each node and of those with one place on their nodes, through the very Communicator that trains; and of
// some pairs by themselves, so that a slow one is seen. However many ranks there are, kinds and pairs stay few.
//
// Call on every rank of MPI_COMM_WORLD with equal options. Samples are handed out on rank 0 as they come, so a killed
// run loses none. Each is a median, and `spread` 1.4826 times the median absolute deviation, over the median. Short
// messages are timed in batches of back-to-back repetitions, by the slowest rank. Others are sent by themselves from
// `apart_from` bytes on, after `between` has run, from memory that no cache holds, as training sends them: repeated
// from the same buffers they come out of the caches, 1.1 to 2.5 times as fast (docs/models/network.md).
//
// Placement is found by asking MPI which ranks share memory; every node must hold the same number of ranks,
// consecutive in rank order (mpirun --map-by slot or node:PE does that), else an Error says so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "comm/communicator.h"
#include "netmodel/network.h"

namespace sibyl {

// Where a rank's processors are in its machine: in one socket, near one memory (NUMA node), by number; -1: in several,
// or nobody knows.
struct RankPlace {
  int socket = -1, memory = -1;
};
Nearness nearness(const RankPlace& a, const RankPlace& b);  // of two in one machine

struct NetworkProbeOptions {
  Seconds budget{120.0};  // what would go beyond is left out: what takes longest, and sizes between others
  Seconds more{};         // beyond it, for what long exchanges are foretold by: of each kind every fourth size
  // Close to one another where a token bucket may be empty (a quarter of a millisecond of 1 Gb/s is 31 KB).
  std::vector<std::int64_t> message_bytes{1,       64,      1024,    2048,    4096,     8192,     16384,
                                          24576,   32768,   49152,   65536,   98304,    131072,   1 << 18,
                                          1 << 19, 1 << 20, 2 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20};
  std::vector<std::int64_t> collective_bytes{4,        1024,     2048,     4096,      8192,     16384,   32768,
                                             65536,    131072,   1 << 18,  1 << 19,   1 << 20,  2 << 20, 4 << 20,
                                             10 << 20, 25 << 20, 64 << 20, 128 << 20, 256 << 20};
  // What a rank's buffers may take, the least of all ranks' counts: longer exchanges are left out. Half of what is
  // free, unless given.
  std::optional<Bytes> memory;
  std::int64_t pair_bytes = 1 << 20;  // of a message between each of some pairs; 0: none is sent
  RankPlace place;                    // of this rank: pairs of a node are taken of each kind that there is
  int batches = 15;             // at most, of each sample; at least 3
  bool every_algorithm = true;  // beside the one that Communicator chooses by itself
  std::int64_t apart_from = 16384;
  std::function<void()> between;  // what ranks do between two messages, in training compute; may be empty
  // How a rank lets time pass between exchanges that are timed in turn; empty: it keeps its processor.
  std::function<void(Seconds)> rest;
  // Asked by every rank between exchanges; true of any ends the probe for all, with what was handed out so far. May be
  // empty.
  std::function<bool()> stop;
};

struct NetworkProbeSink {
  std::function<void(const PointToPointSample&)> point_to_point;
  std::function<void(const CollectiveSample&)> collective;
  std::function<void(const PairSample&)> pair;
  std::function<void(int done, int total, std::string_view what)> progress;  // may be empty
  std::function<void(std::string_view)> remark;                              // for the user; may be empty
  // True where a sample of this kind, placement and size is there already (`time` is not set); may be empty.
  std::function<bool(const PointToPointSample&)> have_point_to_point;
  std::function<bool(const CollectiveSample&)> have_collective;
  std::function<bool(const PairSample&)> have_pair;
};

// How many ranks on how many nodes; the Error where nodes differ or ranks are scattered.
Result<GroupPlacement> world_placement();

Result<void> probe_network(Communicator& world, const NetworkProbeOptions& options, const NetworkProbeSink& sink);

// How much computing and communicating slow each other when they run at once; 1 = not at all.
struct OverlapMeasurement {
  double compute_slowdown = 1.0;
  double communication_slowdown = 1.0;
  double spread = 0.0;  // of the compute times taken together
  Seconds compute_alone, communication_alone;
};

// `compute` runs on the calling thread, `communicate` (one collective that all ranks take part in, over a
// communicator of its own) on another. Needs MPI_THREAD_MULTIPLE.
OverlapMeasurement probe_overlap(Communicator& world, const std::function<void()>& compute,
                                 const std::function<void()>& communicate, Seconds budget = Seconds{9.0});

}  // namespace sibyl
