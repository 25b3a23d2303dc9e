// KernelTable: how long a kernel takes on one device.
//
// An exact sample answers as measured. Otherwise the samples of the same family (operation, pass, type, and what the
// family says must not be mixed: kernel size, depthwise or not, …) are interpolated in log space over work, bytes and
// the family's own features. Outside their hull, or without any, the answer is estimated: from related families, from
// another element type, from the same kernel on donor devices, or from the datasheet, whichever is surest. Immutable
// after construction; safe to read from many threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "profiler/device.h"
#include "profiler/kernel_key.h"

namespace sibyl {

namespace interpolation {
class Question;
}

struct KernelSample {
  KernelKey key;
  Seconds time;         // median of one run
  double spread = 0.0;  // relative: 1.4826 MAD / median
  int runs = 0;         // timings the median is taken from
  Bytes workspace;      // most memory held during the run beyond operands and results
  Bytes kept;           // memory autograd keeps after forward beyond operands and results
  std::string source;   // "measured here" is empty; else the citation
  // Of one rank while the others rest, at most `time`, which is with all ranks at this kernel; 0: not known.
  Seconds alone = {};
  // With all that it touches still in the cache, at most `time`, which is with most of it in memory; 0: not known, or
  // it does not fit.
  Seconds cached = {};
};

struct KernelEstimate {
  Estimate time;
  Bytes workspace;
  Bytes kept;
  double spread = 0.0;  // of one run from the next, relative: the sample's, or the median of all samples that state one
  double alone = 1.0;   // the share of `time` that it takes while other ranks rest; `time` is with all at this kernel
  double cached = 1.0;  // the share that it takes with all it touches in the cache; `time` is with most of it in memory
};

// What a table holds of one family, and how well the samples there predict each other (leave-one-out, of up to 300).
struct FamilyCoverage {
  std::string name;  // "forward convolution 3x3", as far as families are told apart
  DType dtype = DType::f32;
  std::size_t samples = 0;
  Seconds fastest, slowest;
  double median_error = 0.0, p90_error = 0.0;  // relative; 0 where there are fewer than three samples
};

class KernelTable {
 public:
  // Other devices' tables, asked for when a kernel is first needed that the samples do not answer. They are used in the
  // order given where they are equally sure.
  using Donors = std::function<std::vector<KernelTable>()>;

  KernelTable(Device device, std::vector<KernelSample> samples, Donors donors = {});
  ~KernelTable();
  KernelTable(const KernelTable&) = default;
  KernelTable(KernelTable&&) noexcept = default;
  KernelTable& operator=(const KernelTable&) = default;
  KernelTable& operator=(KernelTable&&) noexcept = default;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] KernelEstimate estimate(const KernelKey& key) const;
  [[nodiscard]] std::vector<FamilyCoverage> coverage() const;
  // Was it measured what kernels hold beyond operands and results? Where it was not, it counts as nothing. Whoever
  // times kernels here measures it; published times come without.
  [[nodiscard]] bool knows_workspace() const { return knows_workspace_; }
  // Of any kernel, that ranks slow each other?
  [[nodiscard]] bool knows_alone() const { return knows_alone_; }
  // Of any kernel, that a cache saves it time?
  [[nodiscard]] bool knows_cached() const { return knows_cached_; }

  // The same kernels on a device that is not there: each takes its time here times the ratio of what the two devices
  // could do at best (interpolation/ideal.h), so a kernel gains from what binds it. No such time is called measured;
  // its error grows with the ratio.
  [[nodiscard]] KernelTable on(Device device) const;
  // The same, whatever other ranks do and whatever lies in a cache: as with all of them at the kernel, out of memory.
  [[nodiscard]] KernelTable as_timed() const;

 private:
  struct Index;
  // Nothing where all that can be said is a guess, and `guesses` are not wanted: they take by far the longest.
  [[nodiscard]] std::optional<KernelEstimate> answer(const interpolation::Question& asked, bool guesses) const;

  Device device_;           // the index keeps the one that was measured
  bool elsewhere_ = false;  // on(): this is perhaps another
  bool knows_workspace_ = false, knows_alone_ = false, knows_cached_ = false;
  std::shared_ptr<const Index> index_;
};

}  // namespace sibyl
