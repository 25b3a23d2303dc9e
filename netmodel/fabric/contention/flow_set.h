// A set of flows and the channels that they cross: what sharing and simulation work on, apart from any fabric.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "netmodel/fabric/fabric.h"

namespace sibyl::fabric {

struct Flow {
  int from = 0, to = 0;  // devices
  double bytes = 0.0;
  double start = 0.0;  // seconds
};

class FlowSet {
 public:
  struct Use {
    std::uint32_t channel = 0;  // of those that are used: channels()
    double share = 1.0;         // of the flow
  };

  // Capacities are by channel of the fabric (Fabric::capacities). The flow's place in the list is its key for
  // Ecmp::hash.
  FlowSet(const Fabric& fabric, std::span<const double> capacities, std::span<const Flow> flows);
  // Of any channels: each flow's uses, no channel twice.
  FlowSet(std::vector<double> capacities, const std::vector<std::vector<Use>>& uses, std::vector<double> latencies);

  [[nodiscard]] std::size_t size() const { return latencies_.size(); }
  [[nodiscard]] std::span<const Use> uses(std::size_t flow) const {
    return std::span(uses_).subspan(first_[flow], first_[flow + 1] - first_[flow]);
  }
  [[nodiscard]] std::span<const std::uint32_t> flows_over(std::size_t channel) const {
    return std::span(members_).subspan(first_member_[channel], first_member_[channel + 1] - first_member_[channel]);
  }
  [[nodiscard]] const std::vector<double>& capacities() const { return capacities_; }
  [[nodiscard]] const std::vector<ChannelId>& channels() const { return channels_; }  // their numbers in the fabric
  [[nodiscard]] double latency(std::size_t flow) const { return latencies_[flow]; }

  // The same flows, whose bytes move at once.
  [[nodiscard]] FlowSet without_latency() const;
  // Bytes over each used channel; what is sent is found again on every cut between senders and receivers.
  [[nodiscard]] std::vector<double> loads(std::span<const Flow> flows) const;

 private:
  void index_members();

  std::vector<std::size_t> first_{0}, first_member_;
  std::vector<Use> uses_;
  std::vector<std::uint32_t> members_;
  std::vector<ChannelId> channels_;
  std::vector<double> capacities_, latencies_;
};

}  // namespace sibyl::fabric
