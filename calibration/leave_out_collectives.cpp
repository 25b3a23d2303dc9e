#include "calibration/leave_out_collectives.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/statistics.h"
#include "calibration/measured_cluster.h"

namespace sibyl {
namespace {

using Samples = std::vector<CollectiveSample>;

using Line = std::tuple<Collective, Algorithm, GroupPlacement>;
Line line_of(const CollectiveSample& s) { return {s.collective, s.algorithm, s.placement}; }

// Of several times of one exchange the median.
Samples merged(const Samples& samples) {
  std::map<std::pair<Line, double>, std::vector<double>> times;
  for (const CollectiveSample& s : samples) times[{line_of(s), s.bytes.value()}].push_back(s.time.value());
  Samples result;
  for (const CollectiveSample& s : samples) {
    const auto found = times.find({line_of(s), s.bytes.value()});
    if (found == times.end()) continue;  // seen already
    result.push_back(s);
    result.back().time = Seconds{median(found->second)};
    times.erase(found);
  }
  return result;
}

class Judge {
 public:
  explicit Judge(const Network& network) : network_(network), all_(merged(network.collectives())) {}

  [[nodiscard]] const Samples& all() const { return all_; }

  // Those that are `hidden` from the others, which are not hidden.
  void predict(LeftOut what, const std::function<bool(const CollectiveSample&)>& hidden) {
    Samples seen;
    std::ranges::copy_if(network_.collectives(), std::back_inserter(seen),
                         [&](const CollectiveSample& s) { return !hidden(s); });
    const Network network = network_.knowing(std::move(seen));
    for (const CollectiveSample& sample : all())
      if (hidden(sample))
        predicted_.push_back(
            {what, sample, network.collective(sample.collective, sample.bytes, sample.placement, sample.algorithm)});
  }

  std::vector<LeftOutCollective> predicted() { return std::move(predicted_); }

 private:
  const Network& network_;
  Samples all_;
  std::vector<LeftOutCollective> predicted_;
};

// The sizes of each line in their order: which of them a sample is.
class Order {
 public:
  explicit Order(const Samples& samples) {
    for (const CollectiveSample& s : samples) sizes_[line_of(s)].insert(s.bytes.value());
  }
  [[nodiscard]] std::ptrdiff_t of(const CollectiveSample& s) const {
    const std::set<double>& sizes = sizes_.at(line_of(s));
    return std::distance(sizes.begin(), sizes.find(s.bytes.value()));
  }
  // Of a line that has shorter ones.
  [[nodiscard]] bool longest(const CollectiveSample& s) const {
    const std::set<double>& sizes = sizes_.at(line_of(s));
    const double least = *sizes.rbegin() / 16;
    return *sizes.begin() <= least && s.bytes.value() > least;
  }

 private:
  std::map<Line, std::set<double>> sizes_;
};

}  // namespace

std::string_view to_string(LeftOut left_out) {
  switch (left_out) {
    case LeftOut::sizes: return "every other size";
    case LeftOut::longest: return "the longest";
    case LeftOut::count_between: return "a count between others";
    case LeftOut::most_ranks: return "the most ranks";
    case LeftOut::all: return "all but messages";
  }
  return "unknown";
}

std::vector<LeftOutCollective> left_out_collectives(const Network& network) {
  Judge judge(network);
  const Order order(judge.all());
  for (const int half : {0, 1})
    judge.predict(LeftOut::sizes, [&](const CollectiveSample& s) { return order.of(s) % 2 == half; });
  judge.predict(LeftOut::longest, [&](const CollectiveSample& s) { return order.longest(s); });
  std::set<int> counts;
  for (const CollectiveSample& s : judge.all())
    if (s.placement.nodes == 1 && s.placement.groups_per_node == 1) counts.insert(s.placement.ranks_per_node);
  for (const int count : counts) {
    if (count == *counts.begin()) continue;
    const auto of_count = [count](const CollectiveSample& s) { return s.placement == GroupPlacement{count, 1, 1}; };
    judge.predict(count == *counts.rbegin() ? LeftOut::most_ranks : LeftOut::count_between, of_count);
  }
  if (!network.messages().empty()) judge.predict(LeftOut::all, [](const CollectiveSample&) { return true; });
  return judge.predicted();
}

std::vector<LeftOutCollective> left_out_collectives(const Calibration& calibration) {
  Result<Topology> topology = Topology::make(measured_topology(calibration));
  if (!topology) return {};
  return left_out_collectives(Network(std::move(*topology), calibration.point_to_point, calibration.collectives));
}

std::vector<CollectiveErrors> errors_of(const std::vector<LeftOutCollective>& predicted) {
  std::map<std::pair<LeftOut, Collective>, std::vector<Outcome>> outcomes;
  for (const auto& [left_out, sample, estimate] : predicted)
    outcomes[{left_out, sample.collective}].push_back({estimate.time.time / sample.time, estimate.time.relative_error});
  std::vector<CollectiveErrors> result;
  for (const auto& [which, all] : outcomes) result.push_back({summary_of(all), which.second, which.first});
  return result;
}

}  // namespace sibyl
