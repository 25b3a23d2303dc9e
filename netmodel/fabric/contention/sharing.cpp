#include "netmodel/fabric/contention/sharing.h"

#include <functional>
#include <limits>
#include <queue>
#include <utility>

namespace sibyl::fabric {
namespace {

struct Filling {
  double left = 0.0;    // capacity that flows which stay have not taken
  double weight = 0.0;  // shares of those whose rates still rise
  int rising = 0;

  [[nodiscard]] double full_at() const { return left > 0 ? left / weight : 0.0; }
};

}  // namespace

std::vector<double> fair_rates(const FlowSet& flows, const std::vector<bool>& active) {
  std::vector<double> rates(flows.size(), 0.0);
  std::vector<bool> rising = active;
  std::vector<Filling> channels(flows.capacities().size());
  for (std::size_t c = 0; c < channels.size(); ++c) channels[c].left = flows.capacities()[c];
  for (std::size_t flow = 0; flow < flows.size(); ++flow) {
    if (!active[flow]) continue;
    if (flows.uses(flow).empty()) rates[flow] = std::numeric_limits<double>::infinity();
    for (const FlowSet::Use& use : flows.uses(flow)) {
      channels[use.channel].weight += use.share;
      ++channels[use.channel].rising;
    }
  }
  // What a channel is full at only grows as others' flows stay behind, so an entry may be late, never early.
  using Entry = std::pair<double, std::size_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
  for (std::size_t c = 0; c < channels.size(); ++c)
    if (channels[c].rising > 0) next.emplace(channels[c].full_at(), c);
  while (!next.empty()) {
    const auto [then, full] = next.top();
    next.pop();
    if (channels[full].rising == 0) continue;
    const double level = channels[full].full_at();
    if (level > then * (1 + 1e-12)) {
      next.emplace(level, full);
      continue;
    }
    for (const std::uint32_t flow : flows.flows_over(full)) {
      if (!rising[flow]) continue;
      rising[flow] = false;
      rates[flow] = level;
      for (const FlowSet::Use& use : flows.uses(flow)) {
        Filling& channel = channels[use.channel];
        channel.left -= use.share * level;
        channel.weight -= use.share;
        --channel.rising;
      }
    }
  }
  return rates;
}

std::vector<double> fair_rates(const FlowSet& flows) {
  return fair_rates(flows, std::vector<bool>(flows.size(), true));
}

}  // namespace sibyl::fabric
