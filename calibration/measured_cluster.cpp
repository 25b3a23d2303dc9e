#include "calibration/measured_cluster.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "base/statistics.h"

namespace sibyl {
namespace {

struct LinkLine {
  Seconds latency;
  BytesPerSecond bandwidth;
};

using OneWay = std::vector<const PointToPointSample*>;

// Bytes/s that messages gain as they grow, all of their pairs together: the median over each two of different lengths,
// so that neither latency, nor a burst that the wire does not keep up, nor one disturbed sample counts. Of one length
// alone the median quotient.
double rate_of(const OneWay& messages) {
  std::vector<double> slopes, quotients;
  for (const PointToPointSample* a : messages) {
    quotients.push_back(a->bytes.value() * a->pairs / a->time.value());
    for (const PointToPointSample* b : messages)
      if (b->bytes > a->bytes && b->time > a->time)
        slopes.push_back((b->bytes - a->bytes).value() * a->pairs / (b->time - a->time).value());
  }
  return median(slopes.empty() ? quotients : slopes);
}

// What messages one way of one link class showed: the least time; and the rate of the longest ones, within three
// octaves, of as many pairs at once as got most through.
std::optional<LinkLine> link_line(const std::vector<PointToPointSample>& samples, bool same_node) {
  constexpr double long_enough = 1.0 / 8;
  OneWay all;
  for (const PointToPointSample& s : samples)
    if (s.same_node == same_node && !s.both_ways && s.time.value() > 0) all.push_back(&s);
  if (all.empty()) return std::nullopt;
  const auto by_bytes = [](const PointToPointSample* a, const PointToPointSample* b) { return a->bytes < b->bytes; };
  const auto by_time = [](const PointToPointSample* a, const PointToPointSample* b) { return a->time < b->time; };
  const Bytes longest = (*std::ranges::max_element(all, by_bytes))->bytes;
  std::map<int, OneWay> by_pairs;
  for (const PointToPointSample* s : all)
    if (s->bytes >= longest * long_enough) by_pairs[s->pairs].push_back(s);
  double rate = 0.0;
  for (const auto& [pairs, messages] : by_pairs) rate = std::max(rate, rate_of(messages));
  if (!(rate > 0)) return std::nullopt;
  return LinkLine{(*std::ranges::min_element(all, by_time))->time, BytesPerSecond{rate}};
}

int stated(const Calibration& c, const std::string& key) {
  const auto found = c.machine.find(key);
  int value = 0;
  if (found != c.machine.end())
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

}  // namespace

TopologySpec measured_topology(const Calibration& c) {
  TopologySpec spec;
  spec.nodes = std::max(1, stated(c, "nodes"));
  spec.devices_per_node = std::max(1, c.ranks_per_node);
  for (const CollectiveSample& s : c.collectives) {
    spec.nodes = std::max(spec.nodes, s.placement.nodes);
    spec.devices_per_node = std::max(spec.devices_per_node, s.placement.ranks_per_node * s.placement.groups_per_node);
  }
  spec.device_link.kind = c.device.backend == Backend::cpu ? LinkKind::shared_memory : LinkKind::pcie;
  if (const auto line = link_line(c.point_to_point, true)) {
    spec.device_link.latency = line->latency;
    spec.device_link.bandwidth = line->bandwidth;
  }
  if (const auto line = link_line(c.point_to_point, false)) {
    spec.nodes = std::max(spec.nodes, 2);
    spec.nic_latency = line->latency / 2;  // a message crosses two
    spec.nic_bandwidth = line->bandwidth;
    spec.switch_latency = Seconds{0};
  }
  return spec;
}

OverlapSample typical_overlap(const Calibration& c, Algorithm library) {
  std::vector<double> compute, communication;
  double spread = 0.0;
  for (const OverlapSample& s : c.overlap) {
    if (s.algorithm != library) continue;
    compute.push_back(s.compute_slowdown);
    communication.push_back(s.communication_slowdown);
    spread = std::max(spread, s.spread);
  }
  if (compute.empty()) return library == Algorithm::automatic ? OverlapSample{} : typical_overlap(c);
  return {median(compute), median(communication), spread, library};
}

std::vector<OverlapSample> overlap_by_message(const Calibration& c) {
  std::vector<OverlapSample> samples;
  std::ranges::copy_if(c.overlap, std::back_inserter(samples), [](const OverlapSample& s) {
    return s.algorithm == Algorithm::automatic && s.message.value() > 0;
  });
  std::ranges::sort(samples, {}, &OverlapSample::message);
  return samples;
}

namespace {

BytesPerSecond storage_rate(const Calibration& c, bool write) {
  const IoSample* largest = nullptr;
  for (const IoSample& s : c.io)
    if (s.write == write && s.time.value() > 0 && (largest == nullptr || s.bytes > largest->bytes)) largest = &s;
  return largest == nullptr ? BytesPerSecond{} : largest->bytes / largest->time;
}

}  // namespace

BytesPerSecond reading_rate(const Calibration& c) { return storage_rate(c, false); }
BytesPerSecond writing_rate(const Calibration& c) { return storage_rate(c, true); }

}  // namespace sibyl
