#include "netmodel/fabric/contention/flow_set.h"

#include <algorithm>
#include <unordered_map>

namespace sibyl::fabric {
namespace {

// Each channel once, with all of its shares.
void merge(std::vector<FlowSet::Use>& uses) {
  std::ranges::sort(uses, {}, &FlowSet::Use::channel);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (kept > 0 && uses[kept - 1].channel == uses[i].channel)
      uses[kept - 1].share += uses[i].share;
    else
      uses[kept++] = uses[i];
  uses.resize(kept);
}

}  // namespace

FlowSet::FlowSet(const Fabric& fabric, std::span<const double> capacities, std::span<const Flow> flows) {
  std::unordered_map<ChannelId, std::uint32_t> number;
  std::vector<Step> steps;
  std::vector<Use> uses;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    steps.clear();
    uses.clear();
    fabric.route(flows[i].from, flows[i].to, i, steps);
    for (const Step& step : steps) {
      const ChannelId channel = fabric.graph().edges()[step.edge].channel;
      const auto [known, is_new] = number.try_emplace(channel, static_cast<std::uint32_t>(channels_.size()));
      if (is_new) {
        channels_.push_back(channel);
        capacities_.push_back(capacities[channel]);
      }
      uses.push_back({known->second, step.share});
    }
    merge(uses);
    uses_.insert(uses_.end(), uses.begin(), uses.end());
    first_.push_back(uses_.size());
    latencies_.push_back(fabric.latency(steps));
  }
  index_members();
}

FlowSet::FlowSet(std::vector<double> capacities, const std::vector<std::vector<Use>>& uses,
                 std::vector<double> latencies)
    : capacities_(std::move(capacities)), latencies_(std::move(latencies)) {
  for (std::size_t i = 0; i < capacities_.size(); ++i) channels_.push_back(static_cast<ChannelId>(i));
  for (const auto& of_flow : uses) {
    uses_.insert(uses_.end(), of_flow.begin(), of_flow.end());
    first_.push_back(uses_.size());
  }
  index_members();
}

void FlowSet::index_members() {
  first_member_.assign(capacities_.size() + 1, 0);
  for (const Use& use : uses_) ++first_member_[use.channel + 1];
  for (std::size_t c = 0; c < capacities_.size(); ++c) first_member_[c + 1] += first_member_[c];
  members_.resize(uses_.size());
  std::vector<std::size_t> next(first_member_.begin(), first_member_.end() - 1);
  for (std::size_t flow = 0; flow < size(); ++flow)
    for (const Use& use : uses(flow)) members_[next[use.channel]++] = static_cast<std::uint32_t>(flow);
}

FlowSet FlowSet::without_latency() const {
  FlowSet result = *this;
  result.latencies_.assign(size(), 0.0);
  return result;
}

std::vector<double> FlowSet::loads(std::span<const Flow> flows) const {
  std::vector<double> result(capacities_.size(), 0.0);
  for (std::size_t flow = 0; flow < size(); ++flow)
    for (const Use& use : uses(flow)) result[use.channel] += use.share * flows[flow].bytes;
  return result;
}

}  // namespace sibyl::fabric
