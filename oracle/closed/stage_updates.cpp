#include "oracle/closed/stage_updates.h"

#include <algorithm>

#include "base/hash.h"
#include "oracle/cost/kernels.h"
#include "oracle/plan/norms.h"
#include "oracle/plan/offload.h"
#include "oracle/plan/precision.h"
#include "oracle/simulate/offload.h"

namespace sibyl::closed {
namespace {

std::uint64_t hash_of(const Shape& shape, bool casts) {
  Hash hash;
  hash.add(casts ? 1U : 0U);
  for (const std::int64_t extent : shape) hash.add(static_cast<std::uint64_t>(extent));
  return hash.value();
}

}  // namespace

const UpdatePrices::Preparation& UpdatePrices::preparation(const Shape& shape, bool casts) {
  const auto [entry, added] = prepared_.try_emplace(hash_of(shape, casts));
  Preparation& price = entry->second;
  if (!added) return price;
  const double factor = kernels_.cluster().composition.factor;
  const auto run = [&](Signature signature) {
    const KernelKey key{std::move(signature), sibyl::Pass::forward, 0};
    const double time = kernels_.of(key, strategy_).estimate.time.time.value() * factor;
    price.seconds += time;
    ++price.launches;
    return time;
  };
  if (casts) {
    const DType half = compute_type(strategy_.precision) == DType::f16 ? DType::f16 : DType::bf16;
    if (!strategy_.fp32_gradients) run({Cast{DType::f32}, {shape}, {shape}, half});
    run({Cast{half}, {shape}, {shape}, DType::f32});
  }
  const auto scale = [&] { return run({Binary{BinaryKind::mul}, {shape, {}}, {shape}, DType::f32}); };
  if (strategy_.precision == Precision::fp16) price.norm += scale();
  if (strategy_.clip > 0) {
    price.norm += run(gradient_norm(shape));
    scale();
  }
  return price;
}

double UpdatePrices::update(const Shape& shape) {
  const auto [entry, added] = updates_.try_emplace(hash_of(shape, false));
  if (added)
    entry->second = kernels_.of({{update_of(strategy_), {shape}, {}, DType::f32}, sibyl::Pass::forward, 0}, strategy_)
                        .estimate.time.time.value();
  return entry->second;
}

StageUpdates::StageUpdates(UpdatePrices& prices, const Strategy& strategy, const Cluster& cluster)
    : prices_(prices),
      copies_(strategy, cluster),
      bucket_(strategy.bucket),
      factor_(cluster.composition.factor),
      beside_copies_(copies_slowdown(strategy, cluster.kernels.device())),
      together_(cluster.kernels.device().backend == Backend::cuda),
      norms_(takes_norms(strategy.optimizer)),
      directions_(strategy.optimizer == OptimizerKind::lamb),
      blocks_(strategy.optimizer_tier != Tier::device || strategy.parameter_tier != Tier::device),
      states_(4.0 * (optimizer_states(strategy.optimizer) + (has_half_weights(strategy) ? 1 : 0))),
      here_(strategy.optimizer_tier == Tier::device ? states_ : 0.0) {}

void StageUpdates::clear() {
  updated_.clear();
  pieces_.clear();
  elements_ = 0;
  state_ = bytes_ = 0;
  casts_ = false;
}

void StageUpdates::add_whole(const LocalTensor& parameter, const Order& order) {
  const std::int64_t elements = element_count(parameter.shape);
  elements_ += elements;
  state_ += state_bytes(elements);
  bytes_ += static_cast<double>(elements) * size_in_bytes(parameter.dtype);
  if (blocks_ || !together_) updated_.push_back({order, parameter.shape, elements, 0});
}

void StageUpdates::add_part(std::int64_t elements, DType dtype, const std::vector<std::int64_t>& of_each,
                            std::int64_t outside) {
  elements_ += elements;
  state_ += state_bytes(elements);
  bytes_ += static_cast<double>(elements) * size_in_bytes(dtype);
  if (blocks_ || !together_) updated_.push_back({part, {elements}, elements, outside});
  if (!norms_ || together_) return;
  for (const std::int64_t parameter : of_each) {
    const std::int64_t own = std::min(parameter, elements);
    if (own > 0) pieces_.push_back(own);
    elements -= own;
  }
}

void StageUpdates::update(const Shape& shape, Form& form, double& seconds) {
  const double alone = prices_.update(shape);
  form.alone += alone;
  seconds += alone * factor_;
  ++form.launches;
}

StageUpdates::Form StageUpdates::form(bool summed) {
  Form form;
  const auto prepare = [&](const Shape& shape) {
    const UpdatePrices::Preparation& price = prices_.preparation(shape, casts_);
    form.kernels += price.seconds;
    form.launches += price.launches;
    form.norm += price.norm;
  };
  if (together_ && elements_ > 0) prepare({elements_});
  if (!together_)
    for (const Updated& one : updated_) prepare(one.shape);
  if (directions_ && summed) form.memory = bytes_;
  if (blocks_) {
    in_blocks(form);
    return form;
  }
  if (together_ && elements_ > 0) update({elements_}, form, form.kernels);
  if (together_) return form;
  for (const Updated& one : updated_)
    if (!norms_ || one.order != part) update(one.shape, form, form.kernels);
  for (const std::int64_t elements : pieces_) update({elements}, form, form.kernels);
  return form;
}

// As offload_state() has the blocks, and StepWalk what is here of them.
void StageUpdates::in_blocks(Form& form) {
  std::ranges::stable_sort(updated_, {}, &Updated::order);
  const double outside = states_ - here_;
  std::vector<std::int64_t> bytes;
  for (const Updated& one : updated_)
    bytes.push_back(static_cast<std::int64_t>(outside * static_cast<double>(one.elements)) + one.outside);
  std::vector<Seconds> updates;
  std::vector<BlockBytes> blocks;
  std::size_t next = 0;
  for (const std::size_t end : block_ends(bytes, bucket_)) {
    double seconds = 0;
    std::int64_t elements = 0;
    BlockBytes& block = blocks.emplace_back();
    for (; next < end; ++next) {
      const Updated& one = updated_[next];
      elements += one.elements;
      block.parameters += one.outside;
      block.state += bytes[next] - one.outside;
      if (!together_) update(one.shape, form, seconds);
    }
    if (together_) update({elements}, form, seconds);
    updates.emplace_back(seconds);
    form.kernels += seconds;
  }
  const std::vector<OffloadCopy> order = copies_of_blocks(blocks.size());
  std::vector<Seconds> taken;
  for (const OffloadCopy& copy : order) taken.push_back(copies_.block(blocks[copy.block], copy.way).estimate.time);
  form.waited = updated_in_blocks(updates, order, taken, beside_copies_).waited.value();
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    double here = 0;
    for (std::size_t near = b > 0 ? b - 1 : 0; near < std::min(b + 2, blocks.size()); ++near)
      here += static_cast<double>(blocks[near].total());
    form.memory = std::max(form.memory, here);
  }
}

}  // namespace sibyl::closed
