#include "oracle/plan/pipeline/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "models/training/training.h"
#include "oracle/plan/pipeline/cut.h"

namespace sibyl {
namespace {

constexpr double near_best = 1.02;

double flops(const Stage& stage, const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  if (!compute) return 0;
  const TrainingRule rule = training_rule(signature(stage, *compute), compute->gradients, Backend::cpu);
  return rule.forward.flops.value() + (compute->gradients != 0 ? rule.backward.flops.value() : 0.0);
}

Bytes bytes_of(const LocalTensor& tensor) {
  return Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
}

// f32 tensors of a parameter's size: itself, its gradient, the optimizer's.
double copies_of_weights(OptimizerKind optimizer) {
  switch (optimizer) {
    case OptimizerKind::sgd: return 2;
    case OptimizerKind::momentum: return 3;
    default: return 4;
  }
}

}  // namespace

MemoryEstimate::MemoryEstimate(const Stage& whole, OptimizerKind optimizer) : fixed_(1), kept_(1) {
  const double copies = copies_of_weights(optimizer);
  std::vector<bool> counted(whole.tensors.size(), false), kept(whole.tensors.size(), false);
  for (const Step& step : whole.steps) {
    Bytes fixed = fixed_.back(), saved = kept_.back();
    for (const LocalTensorId in : inputs_of(step)) {
      if (!in.valid() || whole[in].kind != TensorKind::parameter || counted[in.index()]) continue;
      counted[in.index()] = true;
      fixed += bytes_of(whole[in]) * copies;
    }
    const auto keep = [&](LocalTensorId id) {
      if (!id.valid() || whole[id].kind != TensorKind::activation || kept[id.index()]) return;
      kept[id.index()] = true;
      saved += bytes_of(whole[id]);
    };
    if (const auto* compute = std::get_if<Compute>(&step); compute && compute->gradients != 0)
      for (const Saved& s : training_rule(signature(whole, *compute), compute->gradients, Backend::cpu).saved) {
        if (s.what == Saved::What::extra) saved += s.bytes;
        if (s.what == Saved::What::input && s.index < compute->inputs.size()) keep(compute->inputs[s.index]);
        if (s.what == Saved::What::output && s.index < compute->outputs.size()) keep(compute->outputs[s.index]);
      }
    fixed_.push_back(fixed);
    kept_.push_back(saved);
  }
}

std::vector<int> in_flight(const Turns& turns, int stages) {
  std::vector<int> now(static_cast<std::size_t>(stages), 0), most = now;
  for (const std::vector<Turn>& own : turns)
    for (const Turn& turn : own) {
      const auto stage = static_cast<std::size_t>(turn.stage);
      if (turn.kind == Turn::Kind::forward) most[stage] = std::max(most[stage], ++now[stage]);
      if (turn.kind == Turn::Kind::backward || turn.kind == Turn::Kind::backward_weight) --now[stage];
    }
  return most;
}

namespace {

// One stage from `begin` to `end` for each entry of a table over (stage, end); the least by some measure.
class Balancer {
 public:
  Balancer(const Stage& whole, const Strategy& strategy, const Turns& turns, const CutCosts& costs)
      : steps_(whole.steps.size()),
        stages_(static_cast<std::size_t>(strategy.stages())),
        begins_(beginnings(whole)),
        crossing_(whole),
        memory_(whole, strategy.optimizer),
        in_flight_(in_flight(turns, strategy.stages())),
        capacity_(costs.memory / static_cast<double>(strategy.chunks)),
        time_(1, 0.0),
        trains_(1, 0) {
    for (const Step& step : whole.steps) {
      time_.push_back(time_.back() + (costs.time ? costs.time(whole, step) : flops(whole, step)));
      bool trains = false;
      each_gradient(whole, step, [&](LocalTensorId) { trains = true; });
      trains_.push_back(trains_.back() + (trains ? 1 : 0));
    }
    for (std::size_t p = 0; p <= steps_; ++p)
      link_.push_back(costs.link && p > 0 && p < steps_ ? costs.link(crossing_.bytes(p)) : 0.0);
  }

  [[nodiscard]] int trained_steps() const { return trains_.back(); }

  // Empty: there is none.
  std::vector<std::size_t> run() {
    const double best = slowest();
    return best < infinite ? narrowest(best * near_best) : std::vector<std::size_t>{};
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  [[nodiscard]] double cost(std::size_t begin, std::size_t end) const {
    return time_[end] - time_[begin] + link_[end];
  }
  [[nodiscard]] bool may_be(std::size_t begin, std::size_t end) const {
    return begins_[begin].valid() && trains_[end] > trains_[begin];
  }
  [[nodiscard]] bool fits(std::size_t stage, std::size_t begin, std::size_t end) const {
    return capacity_.value() <= 0 || memory_.of(begin, end, in_flight_[stage]) <= capacity_;
  }

  // The least time of the slowest stage. A stage that is too long or too large does not get better by beginning earlier.
  double slowest() const {
    std::vector<double> before(steps_ + 1, infinite), now;
    before[0] = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      now.assign(steps_ + 1, infinite);
      for (std::size_t end = s + 1; end <= steps_; ++end)
        for (std::size_t begin = end; begin-- > 0 && cost(begin, end) < now[end] && fits(s, begin, end);)
          if (may_be(begin, end)) now[end] = std::min(now[end], std::max(before[begin], cost(begin, end)));
      std::swap(before, now);
    }
    return before[steps_];
  }

  // The cut that sends least where no stage takes longer than `limit`.
  std::vector<std::size_t> narrowest(double limit) const {
    std::vector<std::vector<std::size_t>> from(stages_, std::vector<std::size_t>(steps_ + 1, 0));
    std::vector<double> before(steps_ + 1, infinite), now;
    before[0] = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      now.assign(steps_ + 1, infinite);
      for (std::size_t end = s + 1; end <= steps_; ++end)
        for (std::size_t begin = end; begin-- > 0 && cost(begin, end) <= limit && fits(s, begin, end);) {
          const double sent = before[begin] + crossing_.bytes(end).value();
          if (!may_be(begin, end) || !(sent < now[end])) continue;
          now[end] = sent;
          from[s][end] = begin;
        }
      std::swap(before, now);
    }
    std::vector<std::size_t> begins(stages_ - 1);
    std::size_t end = steps_;
    for (std::size_t s = stages_; s-- > 1;) begins[s - 1] = end = from[s][end];
    return begins;
  }

  std::size_t steps_, stages_;
  std::vector<OperationId> begins_;
  Crossing crossing_;
  MemoryEstimate memory_;
  std::vector<int> in_flight_;
  Bytes capacity_;
  std::vector<double> time_;  // sums over the steps before a position
  std::vector<int> trains_;   // the same of steps with a backward
  std::vector<double> link_;  // by position
};

}  // namespace

Result<std::vector<std::size_t>> balanced(const Stage& whole, const Strategy& strategy, const Turns& turns,
                                          const CutCosts& costs) {
  const auto attempt = [&](const CutCosts& with) { return Balancer(whole, strategy, turns, with).run(); };
  std::vector<std::size_t> begins = attempt(costs);
  if (begins.empty() && costs.memory.value() > 0) {
    // What does not fit however it is cut is still priced, and reported as such.
    CutCosts unlimited = costs;
    unlimited.memory = Bytes{};
    begins = attempt(unlimited);
  }
  if (!begins.empty()) return begins;
  const int most = Balancer(whole, strategy, turns, costs).trained_steps();
  return fail(ErrorCode::infeasible,
              fmt::format("the model has {} operations that train, too few for {} pipeline stages", most,
                          strategy.stages()),
              "--parallel",
              strategy.chunks > 1 ? fmt::format("at most {} stages, over all devices", most)
                                  : fmt::format("at most pipeline={}", most));
}

Result<std::vector<std::size_t>> by_name(const Graph& graph, const Stage& whole, const Strategy& strategy) {
  const auto means = [](std::string_view operation, std::string_view name) {
    constexpr std::string_view separators = "/._:";
    return operation.size() > name.size() && operation.starts_with(name) &&
           separators.find(operation[name.size()]) != std::string_view::npos;
  };
  const std::vector<OperationId> operations = beginnings(whole);
  const auto find = [&](const auto& fits) {
    const auto found = std::find_if(operations.begin(), operations.end(),
                                    [&](OperationId id) { return id.valid() && fits(graph[id].name); });
    return static_cast<std::size_t>(found - operations.begin());
  };
  std::vector<std::size_t> begins;
  for (const std::string& name : strategy.stage_starts) {
    std::size_t at = find([&](const std::string& operation) { return operation == name; });
    if (at == operations.size()) at = find([&](const std::string& operation) { return means(operation, name); });
    if (at == operations.size())
      return fail(ErrorCode::usage, fmt::format("the model has no operation '{}'", name), "--stages",
                  "`sibyl inspect` lists them");
    if (at == 0 || (!begins.empty() && at <= begins.back()))
      return fail(ErrorCode::usage, fmt::format("no stage can begin at '{}': it does not come after the one before", name),
                  "--stages", "name operations in the order in which they run");
    begins.push_back(at);
  }
  return begins;
}

}  // namespace sibyl
