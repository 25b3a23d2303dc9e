// KernelTable: how long a kernel takes on one device.
//
// An exact sample answers as measured. Otherwise the samples of the same family (operation, pass, type, and what the family
// says must not be mixed: kernel size, depthwise or not, …) are interpolated in log space over work, bytes and the family's own
// features; outside their hull, or with too few of them, a roofline fitted to the family (or, with no sample at all,
// to the device's datasheet) answers with a wide error. Immutable after construction; safe to read from many threads.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "profiler/device.h"
#include "profiler/kernel_key.h"

namespace sibyl {

struct KernelSample {
  KernelKey key;
  Seconds time;            // median of one run
  double spread = 0.0;     // relative: 1.4826 MAD / median
  int runs = 0;            // timings the median is taken from
  Bytes workspace;         // most memory held during the run beyond operands and results
  Bytes kept;              // memory autograd keeps after forward beyond operands and results
  std::string source;      // "measured here" is empty; else the citation
};

struct KernelEstimate {
  Estimate time;
  Bytes workspace;
  Bytes kept;
  double spread = 0.0;  // of one run from the next, relative: the sample's, or the median of all samples that state one
};

class KernelTable {
 public:
  KernelTable(Device device, std::vector<KernelSample> samples);
  ~KernelTable();
  KernelTable(const KernelTable&) = default;
  KernelTable(KernelTable&&) noexcept = default;
  KernelTable& operator=(const KernelTable&) = default;
  KernelTable& operator=(KernelTable&&) noexcept = default;

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] KernelEstimate estimate(const KernelKey& key) const;

  // The same kernels on a device that is not there: each takes its time here times the ratio of the two devices'
  // rooflines, so a kernel gains from what binds it. No such time is called measured; its error grows with the ratio.
  [[nodiscard]] KernelTable on(Device device) const;

 private:
  struct Index;
  Device device_;  // the index keeps the one that was measured
  std::shared_ptr<const Index> index_;
};

}  // namespace sibyl
