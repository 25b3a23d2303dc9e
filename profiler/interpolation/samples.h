// The samples of one device, ready to be asked: what was measured of a very kernel, and what its family says between
// samples. Nothing is borrowed here from relatives, other types or other devices (kernel_table.h does).
//
// Loading is quick: the samples of an operation are sorted into families, and those fitted, when the operation is first
// asked for. Answers do not depend on when that was, nor on how many threads ask.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "profiler/interpolation/family.h"
#include "profiler/interpolation/family_fit.h"
#include "profiler/interpolation/question.h"
#include "profiler/kernel_table.h"

namespace sibyl::interpolation {

class Samples {
 public:
  Samples(Device device, std::vector<KernelSample> samples);
  ~Samples();

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] std::size_t size() const { return samples_.size(); }

  [[nodiscard]] std::optional<KernelEstimate> measured(const Question& asked) const;
  // A backward pass of several gradients from samples of single ones, or one gradient from several less the others.
  [[nodiscard]] std::optional<KernelEstimate> measured_in_parts(const Question& asked) const;
  // What the samples of the family at `place` say of `key`, a cost_key; nothing where there are none.
  [[nodiscard]] std::optional<KernelEstimate> within(const Place& place, const KernelKey& key) const;
  // Of one run from the next, relative: the sample's own, or the median of all samples that state one.
  [[nodiscard]] double spread(const Question& asked) const;
  // Every family that has samples, in a fixed order.
  [[nodiscard]] std::vector<FamilyCoverage> coverage() const;

 private:
  struct Bucket;  // the samples of one operation (of linear and matmul together)
  [[nodiscard]] const Bucket& bucket(std::size_t number) const;

  Device device_;
  std::vector<KernelSample> samples_;
  double typical_spread_ = 0.0;
  std::unique_ptr<Bucket[]> buckets_;
};

// By more than timings differ anyway.
bool faster_alone(const KernelSample& sample);
bool faster_cached(const KernelSample& sample);

// The better founded first; then the smaller error.
bool better(const KernelEstimate& a, const KernelEstimate& b);

// Parts that run one after another. Their errors are taken as fully correlated; the whole is as well founded as the
// worst founded part that matters.
KernelEstimate sum(const std::vector<KernelEstimate>& parts);

// The masks of one gradient each that make up `mask`.
std::vector<std::uint32_t> single_gradients(std::uint32_t mask);

}  // namespace sibyl::interpolation
