#include "oracle/plan/pipeline/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "models/training/training.h"
#include "oracle/plan/offload.h"

namespace sibyl {
namespace {

constexpr double near_best = 1.02;

double flops(const Stage& stage, const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  if (!compute) return 0;
  const TrainingRule rule = training_rule(signature(stage, *compute), compute->gradients, Backend::cpu);
  return rule.forward.flops.value() + (compute->gradients != 0 ? rule.backward.flops.value() : 0.0);
}

bool trains(const Stage& whole, const Step& step) {
  bool any = false;
  each_gradient(whole, step, [&](LocalTensorId) { any = true; });
  return any;
}

// f32 tensors of a parameter's size: itself, its gradient, the optimizer's unless they lie elsewhere.
int copies_of_weights(const Strategy& strategy) {
  return 2 + (strategy.optimizer_tier == Tier::device ? optimizer_states(strategy.optimizer) : 0);
}

}  // namespace

MemoryEstimate::MemoryEstimate(const Stage& whole, const Strategy& strategy, const std::vector<std::size_t>& like)
    : fixed_(1), kept_(1) {
  const double copies = copies_of_weights(strategy);
  std::vector<std::vector<Saved>> saved_by(whole.steps.size());
  std::vector<bool> counted(whole.tensors.size(), false), kept(whole.tensors.size(), false);
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    const Step& step = whole.steps[i];
    const std::size_t same = like.empty() ? i : like[i];
    Bytes fixed = fixed_.back(), saved = kept_.back();
    for (const LocalTensorId in : inputs_of(step)) {
      if (!in.valid() || whole[in].kind != TensorKind::parameter || counted[in.index()]) continue;
      counted[in.index()] = true;
      fixed += tensor_bytes(whole[in]) * copies;
    }
    const auto keep = [&](LocalTensorId id) {
      if (!id.valid() || whole[id].kind != TensorKind::activation || kept[id.index()]) return;
      kept[id.index()] = true;
      saved += tensor_bytes(whole[id]);
    };
    if (const auto* compute = std::get_if<Compute>(&step); compute && compute->gradients != 0) {
      if (same == i) saved_by[i] = training_rule(signature(whole, *compute), compute->gradients, Backend::cpu).saved;
      for (const Saved& s : saved_by[same]) {
        if (s.what == Saved::What::extra) saved += s.bytes;
        if (s.what == Saved::What::input && s.index < compute->inputs.size()) keep(compute->inputs[s.index]);
        if (s.what == Saved::What::output && s.index < compute->outputs.size()) keep(compute->outputs[s.index]);
      }
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

CutTable::CutTable(const Stage& whole, const Crossing& crossing, const Strategy& strategy, const CutCosts& costs,
                   const std::vector<std::size_t>& like)
    : steps_(whole.steps.size()), memory_(whole, strategy, like), time_(1, 0.0), trains_(1, 0) {
  for (const OperationId id : beginnings(whole)) begins_.push_back(id.valid());
  for (std::size_t p = 0; p <= steps_; ++p) sent_.push_back(crossing.bytes(p));
  std::vector<double> times;
  for (std::size_t i = 0; i < steps_; ++i) {
    const Step& step = whole.steps[i];
    const bool known = !like.empty() && like[i] != i;
    times.push_back(known ? times[like[i]] : costs.time ? costs.time(whole, step) : flops(whole, step));
    time_.push_back(time_.back() + times.back());
    trains_.push_back(trains_.back() + (trains(whole, step) ? 1 : 0));
  }
  std::unordered_map<double, double> links;  // by bytes: at most positions the same
  const auto link = [&](Bytes bytes) {
    const auto [known, added] = links.try_emplace(bytes.value(), 0.0);
    if (added) known->second = costs.link(bytes);
    return known->second;
  };
  for (std::size_t p = 0; p <= steps_; ++p) link_.push_back(costs.link && p > 0 && p < steps_ ? link(sent_[p]) : 0.0);
}

// One cut. Stages are laid one after the other: a table over the positions where the stages so far may end leads to
// that of one stage more.
class CutTable::Search {
 public:
  Search(const CutTable& table, const std::vector<int>& in_flight, Bytes capacity)
      : table_(table),
        in_flight_(in_flight),
        capacity_(capacity),
        stages_(in_flight.size()),
        positions_(table.steps_ + 1) {}

  [[nodiscard]] std::vector<std::size_t> run() const {
    if (static_cast<int>(stages_) > table_.trained_steps()) return {};
    const double best = slowest();
    return best < infinite ? narrowest(best * near_best) : std::vector<std::size_t>{};
  }

 private:
  static constexpr double infinite = std::numeric_limits<double>::infinity();

  // Could stages hold the program if they might begin anywhere, and took however long? Each holds as much as it can.
  [[nodiscard]] bool can_hold() const {
    if (capacity_.value() <= 0) return true;
    const Bytes capacity = capacity_ * (1 + 1e-9);  // sums of bytes are rounded
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      std::size_t end = begin, beyond = positions_;
      while (end + 1 < beyond) {
        const std::size_t middle = (end + beyond) / 2;
        (table_.memory_.of(begin, middle, in_flight_[s]) <= capacity ? end : beyond) = middle;
      }
      begin = end;
    }
    return begin == table_.steps_;
  }

  // The slowest stage where each ends as soon as its even share is done: what the best cut is at least as good as.
  [[nodiscard]] double of_even_shares() const {
    double slowest = 0;
    std::size_t begin = 0;
    for (std::size_t s = 0; s < stages_; ++s) {
      const double share = table_.time_.back() * static_cast<double>(s + 1) / static_cast<double>(stages_);
      const auto after = std::upper_bound(table_.time_.begin(), table_.time_.end(), share);
      auto end = static_cast<std::size_t>(after - table_.time_.begin()) - 1;
      while (end > begin && !table_.begins_[end]) --end;
      if (s + 1 == stages_) end = table_.steps_;
      const bool stands = end > begin && table_.trains_[begin] < table_.trains_[end] && within(s, begin, end, infinite);
      if (!stands) return infinite;
      slowest = std::max(slowest, table_.cost(begin, end));
      begin = end;
    }
    return slowest;
  }

  [[nodiscard]] bool within(std::size_t stage, std::size_t begin, std::size_t end, double limit) const {
    return table_.cost(begin, end) <= limit &&
           (capacity_.value() <= 0 || table_.memory_.of(begin, end, in_flight_[stage]) <= capacity_);
  }

  // Positions [first, last) where stage s may end: so that those up to it, and those after it, are done in so much time
  // each.
  struct Ends {
    std::size_t first, last;
  };
  [[nodiscard]] Ends ends_of(std::size_t s, double limit) const {
    const std::vector<double>& time = table_.time_;
    const double least = time.back() * (1 - 1e-12) - static_cast<double>(stages_ - s - 1) * limit;
    const double most = static_cast<double>(s + 1) * limit * (1 + 1e-12);
    const auto first = static_cast<std::size_t>(std::lower_bound(time.begin(), time.end(), least) - time.begin());
    const auto last = static_cast<std::size_t>(std::upper_bound(time.begin(), time.end(), most) - time.begin());
    return {std::max(s + 1 == stages_ ? table_.steps_ : first, s + 1), last};
  }

  // Can every stage be done in so much time? Of the places where a stage may begin the last is the best.
  [[nodiscard]] bool possible(double limit) const {
    std::vector<char> before(positions_, 0), now(positions_, 0);  // where stages may end; good where they were reached
    before[0] = 1;
    Ends reached{0, 1};
    for (std::size_t s = 0; s < stages_; ++s) {
      const Ends ends = ends_of(s, limit);
      bool any = false;
      std::size_t begin = positions_;  // the last that may be one, with something to train between
      for (std::size_t end = ends.first, scanned = reached.first; end < ends.last; ++end) {
        const std::size_t most = std::min(end, reached.last);
        for (; scanned < most && table_.trains_[scanned] < table_.trains_[end]; ++scanned)
          if (before[scanned] != 0 && table_.begins_[scanned]) begin = scanned;
        now[end] = begin < end && within(s, begin, end, limit) ? 1 : 0;
        any = any || now[end] != 0;
      }
      if (!any) return false;
      reached = ends;
      std::swap(before, now);
    }
    return true;
  }

  // The least time of the slowest stage.
  [[nodiscard]] double slowest() const {
    constexpr double precision = 1e-3;
    double low = table_.time_.back() / static_cast<double>(stages_);
    double high = table_.time_.back() + *std::max_element(table_.link_.begin(), table_.link_.end());
    if (!can_hold()) return infinite;
    const double enough = of_even_shares();
    if (high < enough && !possible(high)) return infinite;
    while (high - low > precision * low) {
      const double middle = high > 2 * low ? low * std::sqrt(high / low) : (low + high) / 2;
      (middle >= enough || possible(middle) ? high : low) = middle;
    }
    return high;
  }

  // The first position from which a stage to `end` is within limits.
  [[nodiscard]] std::size_t earliest_begin(std::size_t stage, std::size_t end, double limit) const {
    const std::vector<double>& time = table_.time_;
    const auto found = std::lower_bound(time.begin(), time.end(), time[end] + table_.link_[end] - limit);
    auto begin = static_cast<std::size_t>(found - time.begin());
    while (begin > 0 && table_.cost(begin - 1, end) <= limit) --begin;  // rounding
    while (begin < end && table_.cost(begin, end) > limit) ++begin;
    if (capacity_.value() <= 0) return begin;
    std::size_t last = end;
    while (begin < last) {
      const std::size_t middle = (begin + last) / 2;
      if (within(stage, middle, end, limit))
        last = middle;
      else
        begin = middle + 1;
    }
    return begin;
  }

  // The cut that sends least where no stage takes longer than `limit`; of equal ones that of the latest begins.
  [[nodiscard]] std::vector<std::size_t> narrowest(double limit) const {
    std::vector<std::vector<std::size_t>> from(stages_);      // by stage, and end from the first that is reached on
    std::vector<std::size_t> first(stages_);                  // that
    std::vector<double> before(positions_), now(positions_);  // good where they were reached
    before[0] = 0;
    Ends reached{0, 1};
    std::vector<std::size_t> best;  // of the positions before, those that send less than all later ones
    for (std::size_t s = 0; s < stages_; ++s) {
      const Ends ends = ends_of(s, limit);
      first[s] = ends.first;
      from[s].assign(std::max(ends.first, ends.last) - ends.first, 0);
      best.clear();
      std::size_t scanned = reached.first;
      for (std::size_t end = ends.first; end < ends.last; ++end) {
        for (; scanned < std::min(end, reached.last) && table_.trains_[scanned] < table_.trains_[end]; ++scanned) {
          if (before[scanned] == infinite || !table_.begins_[scanned]) continue;
          while (!best.empty() && before[best.back()] >= before[scanned]) best.pop_back();
          best.push_back(scanned);
        }
        const auto begin = std::lower_bound(best.begin(), best.end(), earliest_begin(s, end, limit));
        now[end] = begin == best.end() ? infinite : before[*begin] + table_.sent_[end].value();
        if (begin != best.end()) from[s][end - ends.first] = *begin;
      }
      reached = ends;
      std::swap(before, now);
    }
    std::vector<std::size_t> begins(stages_ - 1);
    std::size_t end = table_.steps_;
    for (std::size_t s = stages_; s-- > 1;) begins[s - 1] = end = from[s][end - first[s]];
    return begins;
  }

  const CutTable& table_;
  const std::vector<int>& in_flight_;
  Bytes capacity_;
  std::size_t stages_, positions_;
};

std::vector<std::size_t> CutTable::cut(const std::vector<int>& in_flight, Bytes capacity) {
  const auto [unlimited, added] = unlimited_.try_emplace(in_flight.size());
  if (added) unlimited->second = Search(*this, in_flight, Bytes{}).run();
  if (capacity.value() <= 0 || unlimited->second.empty() || fits(unlimited->second, in_flight, capacity))
    return unlimited->second;
  return Search(*this, in_flight, capacity).run();
}

bool CutTable::fits(const std::vector<std::size_t>& begins, const std::vector<int>& in_flight, Bytes capacity) const {
  for (std::size_t s = 0; s < in_flight.size(); ++s) {
    const std::size_t begin = s == 0 ? 0 : begins[s - 1], end = s + 1 == in_flight.size() ? steps_ : begins[s];
    if (memory_.of(begin, end, in_flight[s]) > capacity) return false;
  }
  return true;
}

namespace {

Failure too_few(int trained, const Strategy& strategy) {
  return fail(
      ErrorCode::infeasible,
      fmt::format("the model has {} operations that train, too few for {} pipeline stages", trained, strategy.stages()),
      "--parallel",
      strategy.chunks > 1 ? fmt::format("at most {} stages, over all devices", trained)
                          : fmt::format("at most pipeline={}", trained));
}

}  // namespace

Result<void> check_stages(const Stage& whole, const Strategy& strategy) {
  const auto trained = std::ranges::count_if(whole.steps, [&](const Step& step) { return trains(whole, step); });
  if (strategy.stages() > trained) return too_few(static_cast<int>(trained), strategy);
  return {};
}

Result<std::vector<std::size_t>> balanced(CutTable& table, const Strategy& strategy, const std::vector<int>& in_flight,
                                          Bytes memory) {
  std::vector<std::size_t> begins = table.cut(in_flight, memory / static_cast<double>(strategy.chunks));
  // What does not fit however it is cut is still priced, and reported as such.
  if (begins.empty() && memory.value() > 0) begins = table.cut(in_flight, Bytes{});
  if (!begins.empty()) return begins;
  return too_few(table.trained_steps(), strategy);
}

Result<std::vector<std::size_t>> balanced(const Stage& whole, const Strategy& strategy, const Turns& turns,
                                          const CutCosts& costs) {
  CutTable table(whole, Crossing(whole), strategy, costs);
  return balanced(table, strategy, in_flight(turns, strategy.stages()), costs.memory);
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
      return fail(ErrorCode::usage,
                  fmt::format("no stage can begin at '{}': it does not come after the one before", name), "--stages",
                  "name operations in the order in which they run");
    begins.push_back(at);
  }
  return begins;
}

}  // namespace sibyl
