#include "oracle/plan/blocks.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "oracle/plan/pipeline/cut.h"

namespace sibyl {
namespace {

constexpr std::size_t longest_period = 32;    // regions of one repetition
constexpr std::size_t least_of_a_branch = 3;  // steps

// Tensors made of parameters and constants alone: they do not carry the sample.
std::vector<bool> carried(const Stage& stage) {
  std::vector<bool> result(stage.tensors.size(), false);
  for (std::size_t i = 0; i < stage.tensors.size(); ++i) result[i] = stage.tensors[i].kind == TensorKind::input;
  for (const Link& link : stage.receives) result[link.tensor.index()] = true;
  for (const Step& step : stage.steps) {
    const std::span<const LocalTensorId> inputs = inputs_of(step);
    const bool carries =
        std::any_of(inputs.begin(), inputs.end(), [&](LocalTensorId id) { return id.valid() && result[id.index()]; });
    for (const LocalTensorId out : outputs_of(step))
      if (out.valid() && carries) result[out.index()] = true;
  }
  return result;
}

std::size_t first_step_of(const Stage& stage, OperationId operation) {
  const auto first = std::find_if(stage.steps.begin(), stage.steps.end(), [&](const Step& step) {
    const auto* compute = std::get_if<Compute>(&step);
    return compute && compute->operation == operation;
  });
  return static_cast<std::size_t>(first - stage.steps.begin());
}

// The step that makes the loss, which no step reads; of a loss that ranks share the first of its steps.
std::size_t loss_step(const Stage& stage) {
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    if (!compute) continue;
    if (std::holds_alternative<CrossEntropy>(compute->attributes) ||
        std::holds_alternative<MeanSquaredError>(compute->attributes))
      return i;
    if (std::holds_alternative<ClassStatistics>(compute->attributes)) return first_step_of(stage, compute->operation);
  }
  return stage.steps.size();
}

// What only later stages read goes there as soon as it is made, and is not alive in this one.
std::vector<Blocks::Narrow> narrow_positions(const Stage& stage) {
  const std::vector<bool> carries = carried(stage);
  const auto counts = [&](LocalTensorId id) {
    return id.valid() && stage[id].kind == TensorKind::activation && stage[id].requires_gradient && carries[id.index()];
  };
  struct Alive {
    LocalTensorId tensor;
    std::size_t read = 0;  // next by this step
  };
  std::vector<Alive> alive;  // the one that is read next comes last
  const auto forget = [&](LocalTensorId id) {
    if (counts(id)) std::erase_if(alive, [&](const Alive& a) { return a.tensor == id; });
  };
  std::vector<Blocks::Narrow> result;
  for (std::size_t at = stage.steps.size(); at-- > 1;) {
    const Step& step = stage.steps[at];
    for (const LocalTensorId out : outputs_of(step)) forget(out);
    for (const LocalTensorId in : inputs_of(step)) {
      forget(in);
      if (counts(in)) alive.push_back({in, at});
    }
    // What an exchange sums may be summed where it lies: it must not be what a block keeps.
    if (std::holds_alternative<Exchange>(step)) continue;
    const std::size_t until = alive.size() > 1 ? alive[alive.size() - 2].read : stage.steps.size();
    if (until > at) result.push_back({at, until});
  }
  std::ranges::reverse(result);
  return result;
}

std::uint64_t kind_of(const Stage& stage, const Step& step) {
  Hash kind;
  if (const auto* compute = std::get_if<Compute>(&step))
    return kind.add(hash_value(signature(stage, *compute))).add(compute->gradients).value();
  const auto& exchange = std::get<Exchange>(step);
  kind.add(static_cast<std::uint64_t>(exchange.axis));
  kind.add(static_cast<std::uint64_t>(exchange.forward.motion))
      .add(static_cast<std::uint64_t>(exchange.backward.motion));
  for (const std::int64_t extent : stage[exchange.input].shape) kind.add(static_cast<std::uint64_t>(extent));
  return kind.value();
}

struct Region {
  Segment steps;
  std::uint64_t kind = 0;  // equal ones run the same
  std::size_t size = 0;    // steps that count
  std::size_t first = 0;   // of these
};

struct Repetition {
  std::size_t period = 1, times = 1;
};

// The longest run of equal groups of regions that begins at `from`; of equally long ones that of the shortest groups.
Repetition repetition(const std::vector<Region>& all, std::size_t from) {
  Repetition best;
  const auto same = [&](std::size_t a, std::size_t b) { return all[a].kind == all[b].kind; };
  for (std::size_t k = 1; k <= longest_period && from + 2 * k <= all.size(); ++k) {
    std::size_t equal = 0;
    while (from + k + equal < all.size() && same(from + equal, from + k + equal)) ++equal;
    const std::size_t times = 1 + equal / k;
    if (times > 1 && times * k > (best.times > 1 ? best.times * best.period : 0)) best = {k, times};
  }
  return best;
}

bool belongs_to_the_block_before(const Stage& stage, const Region& region) {
  const auto* compute = std::get_if<Compute>(&stage.steps[region.first]);
  return region.size == 1 && compute &&
         (std::holds_alternative<Unary>(compute->attributes) ||
          std::holds_alternative<Normalization>(compute->attributes));
}

std::vector<Segment> chain(const std::vector<Region>& all) {
  if (all.empty()) return {};
  const std::size_t begin = all.front().steps.begin, end = all.back().steps.end;
  std::size_t steps = 0;
  for (const Region& region : all) steps += region.size;
  const auto length = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(steps))));
  std::vector<Segment> result;
  Segment open{begin, begin};
  std::size_t size = 0;
  for (const Region& region : all) {
    open.end = region.steps.end;
    size += region.size;
    if (size < length && open.end != end) continue;
    result.push_back(open);
    open.begin = open.end;
    size = 0;
  }
  return result;
}

}  // namespace

Blocks::Blocks(const Stage& stage, const std::vector<std::size_t>& like)
    : stage_(stage), loss_(loss_step(stage)), cuts_(narrow_positions(stage)), apart_(repeatable_steps(stage)) {
  for (std::size_t i = 0; i < stage.steps.size(); ++i)
    kinds_.push_back(like.empty() || like[i] == i ? kind_of(stage, stage.steps[i]) : kinds_[like[i]]);
}

std::vector<Segment> Blocks::within(std::size_t begin, std::size_t stage_end) const {
  const std::size_t end = std::min(stage_end, loss_);
  std::vector<Region> all;
  const auto add = [&](std::size_t to) {
    Hash kind;
    std::size_t size = 0, first = to;
    for (std::size_t i = begin; i < to; ++i) {
      if (apart_[i]) continue;
      kind.add(kinds_[i]);
      first = std::min(first, i);
      ++size;
    }
    if (size == 0) return;
    all.push_back({{begin, to}, kind.value(), size, first});
    begin = to;
  };
  for (auto cut = std::ranges::upper_bound(cuts_, begin, {}, &Narrow::at); cut != cuts_.end() && cut->at < end; ++cut)
    if (cut->until >= stage_end) add(cut->at);
  add(end);
  std::vector<Segment> result;
  for (std::size_t i = 0; i < all.size();) {
    const Repetition found = repetition(all, i);
    const std::size_t first = i;
    if (found.times > 1 && (found.period > 1 || all[i].size > 1)) {
      for (std::size_t n = 0; n < found.times; ++n, i += found.period)
        result.push_back({all[i].steps.begin, all[i + found.period - 1].steps.end});
    } else if (all[i].size >= least_of_a_branch) {
      ++i;
      while (i < all.size() && belongs_to_the_block_before(stage_, all[i])) ++i;
      result.push_back({all[first].steps.begin, all[i - 1].steps.end});
    } else {
      ++i;
    }
  }
  return result.empty() ? chain(all) : result;
}

std::vector<Segment> find_blocks(const Stage& stage, const std::vector<std::size_t>& like) {
  return Blocks(stage, like).within(0, stage.steps.size());
}

}  // namespace sibyl
