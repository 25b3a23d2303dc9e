// What a training run measured. Times are wall times of a step's phases on each rank, without barriers; of several
// ranks the slowest counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "oracle/plan/plan.h"
#include "trainer/settings.h"

namespace sibyl::trainer {

struct StepTimes {
  Seconds forward, backward, exchange, optimizer;  // exchange: what backward did not hide
  Seconds total;                                   // from the first operation to the last update
};

// Bytes of live tensors, the largest of all ranks.
struct MeasuredMemory {
  Bytes weights, buffers, optimizer, inputs, communication;  // there throughout a steady step
  Bytes peak;                                                // within a steady step, all of it
  Bytes reserved, framework;  // of a GPU: what its allocator holds at most; context and libraries, which the peak includes
};

struct Measurement {
  std::vector<StepTimes> steps;  // measured ones, the slowest rank of each phase
  // By measured step: some rank took memory that its process did not have. The system hands that out, which costs as
  // much as the kernels that work in it, or many times that on a virtual machine; a steady step takes none. Empty: none
  // did.
  std::vector<bool> grew;
  std::vector<double> losses;    // of every step, warm-up too: the mean over the global batch
  MeasuredMemory memory;
  std::vector<BytesSent> bytes_sent;        // by each rank in the last step
  std::vector<BytesSent> bytes_planned;     // the same by the plan: bytes_by_kind()
  std::vector<OffloadedBytes> offloaded, offloaded_planned;  // by each rank in the last step; bytes_offloaded()
  bool replicas_agree = true;               // all ranks hold the same parameters, bit for bit
  std::vector<Seconds> kernels;             // of an emulated device: what those of the last step were to take, by rank
  std::optional<double> processors_busy;    // while steps were measured: a share of them, on the busiest host
  std::optional<double> accuracy;           // of the evaluation
  std::optional<Error> weights_error;       // why the weights could not be saved; nothing else is lost by it
  std::optional<Error> trace_error;         // the same of the timeline

  // Both of steps that took no new memory, as far as there are any.
  [[nodiscard]] Seconds median(Seconds StepTimes::*phase) const;
  // Of the step times: 1.4826 times the median distance from the median, over the median.
  [[nodiscard]] double spread() const;
};

// What computed, or "emulated: " and whose times were taken.
std::string device_text(const TrainSettings& settings);

// One JSON object, or a few lines for people.
std::string to_json(const Measurement& measurement, const Plan& plan, const TrainSettings& settings,
                    const std::string& model, int threads);
std::string to_text(const Measurement& measurement, const Plan& plan, const TrainSettings& settings);

}  // namespace sibyl::trainer
