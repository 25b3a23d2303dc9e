// What a rank of a stage updates once gradients are summed, by formula: its kernels, the copies beside them where
// something lies outside the device (plan/offload.h), and the memory that these take.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "oracle/cost/kernel_prices.h"
#include "oracle/cost/offload.h"
#include "oracle/plan/plan.h"

namespace sibyl::closed {

// What the optimizer's kernels take for gradients of one shape; each worked out once.
class UpdatePrices {
 public:
  UpdatePrices(KernelPrices& kernels, const Strategy& strategy) : kernels_(kernels), strategy_(strategy) {}
  struct Preparation {
    double seconds = 0;  // of all kernels before the update
    int launches = 0;
    double norm = 0;  // of that: until the gradients' norm can be summed, where they are clipped
  };
  const Preparation& preparation(const Shape& shape, bool casts);  // parameters of two bytes to their masters and back
  double update(const Shape& shape);                               // by itself, as measured

 private:
  KernelPrices& kernels_;
  Strategy strategy_;
  std::unordered_map<std::uint64_t, Preparation> prepared_;  // by the hash of what is asked for
  std::unordered_map<std::uint64_t, double> updates_;        // likewise
};

class StageUpdates {
 public:
  // Prices and cluster must outlive it.
  StageUpdates(UpdatePrices& prices, const Strategy& strategy, const Cluster& cluster);

  // Of what is updated whole; parts follow, as they are added.
  using Order = std::pair<std::size_t, std::size_t>;
  static constexpr Order part = {static_cast<std::size_t>(-1), 0};

  void clear();
  void add_whole(const LocalTensor& parameter, const Order& order);
  // The rank's part of a bucket, its first `elements`. `of_each`: of the bucket's parameters, where these are told
  // apart (has_norms()). `outside`: bytes of it as parameters that lie outside the device.
  void add_part(std::int64_t elements, DType dtype, const std::vector<std::int64_t>& of_each, std::int64_t outside);
  void cast_to_masters() { casts_ = true; }
  [[nodiscard]] bool has_norms() const { return norms_; }  // of each parameter by itself
  // Of one parameter's elements in the optimizer, if it lies on the device.
  [[nodiscard]] double state_bytes(std::int64_t elements) const { return here_ * static_cast<double>(elements); }

  // Seconds; bytes.
  struct Form {
    double kernels = 0;
    double launches = 0;
    double norm = 0;    // of kernels: until the gradients' norm can be summed
    double waited = 0;  // for copies
    double alone = 0;   // updates by themselves, as measured
    double memory = 0;  // at most while it updates, beside state and gradients
  };
  // `summed`: ranks sum the norms of each parameter.
  Form form(bool summed);
  [[nodiscard]] double state() const { return state_; }  // bytes, between steps

 private:
  struct Updated {
    Order order;
    Shape shape;  // of the whole or the part
    std::int64_t elements = 0, outside = 0;
  };
  void update(const Shape& shape, Form& form, double& seconds);
  void in_blocks(Form& form);

  UpdatePrices& prices_;
  CopyPrices copies_;
  Bytes bucket_;
  double factor_, beside_copies_;
  bool together_;    // one kernel updates all gradients: where PyTorch has it, on GPUs
  bool norms_;       // LAMB, LARS
  bool directions_;  // of these LAMB: where norms are summed it knows all directions before it updates any
  bool blocks_;
  double states_, here_;  // bytes of an element in the optimizer; of these on the device
  bool casts_ = false;
  std::vector<Updated> updated_;      // as gradients are found
  std::vector<std::int64_t> pieces_;  // of parts, cut at parameters
  std::int64_t elements_ = 0;         // of all
  double state_ = 0, bytes_ = 0;      // bytes_: of all as parameters
};

}  // namespace sibyl::closed
