#include "calibration/cluster_change.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>

#include "base/quantity.h"
#include "calibration/outside_rates.h"
#include "netmodel/fabric/fabric.h"
#include "netmodel/topology.h"

namespace sibyl {
namespace {

// A rate that is known, or so many times the one that is assumed where it is not (outside_rates.h).
struct Outside {
  BytesPerSecond known;
  double factor;
  BytesPerSecond assumed;  // before any change; 0 where no guess can be made
  bool operator==(const Outside&) const = default;
};

// What the changes build up before the cluster is made from it.
struct Draft {
  TopologySpec links;
  Device device;
  Outside host_link, storage;
  DType computed_in = DType::f32;
  std::optional<double> fabric_background = {};  // none where there is no fabric
};

struct Change {
  std::string_view key, value;

  [[nodiscard]] Failure wrong(const std::string& message, const std::string& hint = {}) const {
    return fail(ErrorCode::usage, message, fmt::format("{}={}", key, value), hint);
  }
};

std::optional<double> finite_number(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Result<double> parse_positive(std::string_view text) {
  const std::optional<double> value = finite_number(text);
  if (!value || *value <= 0) return fail(fmt::format("'{}' is not a number above 0", text));
  return *value;
}

// "2x" -> 2; nothing where the value is no factor.
Result<std::optional<double>> factor_of(const Change& change) {
  if (!change.value.ends_with('x')) return std::optional<double>();
  const auto factor = parse_positive(change.value.substr(0, change.value.size() - 1));
  if (!factor) return change.wrong(factor.error().message + " followed by x", "write it like 2x or 0.5x");
  return std::optional(*factor);
}

double raw(double value) { return value; }
template <class Tag>
double raw(Unit<Tag> value) {
  return value.value();
}

// Sets a quantity to an absolute value, or multiplies what is known of it.
template <class T, class Parse>
Result<void> set(T& target, const Change& change, Parse parse) {
  SIBYL_TRY(const std::optional<double> factor, factor_of(change));
  if (factor) {
    if (raw(target) <= 0)
      return change.wrong("it is 0 or not known here, so it cannot be multiplied", "give a value instead");
    target = T{raw(target) * *factor};
    return {};
  }
  const auto value = parse(change.value);
  if (!value) return change.wrong(value.error().message, value.error().hint);
  if (raw(*value) <= 0) return change.wrong("must be above 0");
  target = T{*value};
  return {};
}

Result<void> set_count(int& target, const Change& change) {
  double value = target;
  SIBYL_CHECK(set(value, change, parse_positive));
  if (value != std::floor(value) || value > 1e6) return change.wrong("is not a count");
  target = static_cast<int>(value);
  return {};
}

// 0 is a value like others.
Result<void> set_share(double& target, const Change& change) {
  SIBYL_TRY(const std::optional<double> factor, factor_of(change));
  if (factor && target == 0) return change.wrong("it is 0 here, so it cannot be multiplied", "give a share instead");
  const std::optional<double> value = factor ? target * *factor : finite_number(change.value);
  if (!value || !(*value >= 0 && *value <= most_share))
    return change.wrong(fmt::format("a background is a share from 0 to {}", most_share), "write it like 0.3");
  target = *value;
  return {};
}

Result<void> set_outside(Outside& target, const Change& change) {
  SIBYL_TRY(const std::optional<double> factor, factor_of(change));
  if (!factor || target.known.value() > 0 || target.assumed.value() <= 0)
    return set(target.known, change, parse_bytes_per_second);
  target.factor *= *factor;
  return {};
}

Result<void> set_fabric_background(Draft& draft, const Change& change) {
  if (!draft.fabric_background)
    return change.wrong("the cluster has no fabric", "nic.background is the share of each NIC that others use");
  return set_share(*draft.fabric_background, change);
}

Result<void> set_flops(Draft& draft, const Change& change) {
  auto own = draft.device.peak.find(draft.computed_in);
  if (own == draft.device.peak.end()) own = draft.device.peak.find(DType::f32);  // as the roofline takes it
  if (own == draft.device.peak.end()) return change.wrong("the device's peak is not known");
  FlopsPerSecond peak = own->second;
  SIBYL_CHECK(set(peak, change, parse_flops_per_second));
  const double factor = peak / own->second;
  for (auto& [dtype, of_type] : draft.device.peak) of_type *= factor;
  for (AttentionSpeed& known : draft.device.attention_speeds) known.speed *= factor;
  return {};
}

// What is 0 is not known.
template <class T>
std::string text_of(T value) {
  return value.value() > 0 ? to_string(value) : "";
}

std::string text_of(const Outside& rate) {
  if (rate.known.value() > 0) return to_string(rate.known);
  return rate.assumed.value() > 0 ? to_string(rate.assumed * rate.factor) + " assumed" : "";
}

std::string peak_text(const Draft& draft) {
  auto own = draft.device.peak.find(draft.computed_in);
  if (own == draft.device.peak.end()) own = draft.device.peak.find(DType::f32);
  return own == draft.device.peak.end() ? "" : to_string(own->second);
}

struct Entry {
  ClusterKey key;
  Result<void> (*apply)(Draft&, const Change&);
  std::string (*read)(const Draft&);
  double (*share)(const Draft&) = nullptr;
};

std::optional<double> fabric_background(const Cluster& cluster) {
  const fabric::Fabric* fabric = cluster.network.links();
  return fabric == nullptr ? std::nullopt : std::optional(fabric->spec().background);
}

Draft draft_of(const Cluster& cluster, DType computed_in) {
  const auto outside = [](BytesPerSecond known, double factor, const OutsideRate& now) {
    return Outside{known, factor, now.assumed() ? now.rate * (1 / factor) : BytesPerSecond{}};
  };
  return {cluster.network.topology().spec(),
          cluster.kernels.device(),
          outside(cluster.host_link, cluster.host_link_factor, host_link_rate(cluster)),
          outside(cluster.storage_read, cluster.storage_factor, storage_read_rate(cluster)),
          computed_in,
          fabric_background(cluster)};
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
      {{"link.bandwidth", "link bandwidth", "of one device to the others of its node", "300GB/s"},
       [](Draft& d, const Change& c) { return set(d.links.device_link.bandwidth, c, parse_bytes_per_second); },
       [](const Draft& d) { return text_of(d.links.device_link.bandwidth); }},
      {{"link.latency", "link latency", "of a message between devices of a node", "2us"},
       [](Draft& d, const Change& c) { return set(d.links.device_link.latency, c, parse_seconds); },
       [](const Draft& d) { return text_of(d.links.device_link.latency); }},
      {{"link.background", "load on links", "share of a node's links that others use", "0.3", true},
       [](Draft& d, const Change& c) { return set_share(d.links.device_link.background, c); },
       [](const Draft& d) { return fmt::format("{:.3g}", d.links.device_link.background); },
       [](const Draft& d) { return d.links.device_link.background; }},
      {{"nic.bandwidth", "NIC bandwidth", "of one network adapter", "200Gb/s"},
       [](Draft& d, const Change& c) { return set(d.links.nic_bandwidth, c, parse_bytes_per_second); },
       [](const Draft& d) { return text_of(d.links.nic_bandwidth); }},
      {{"nic.latency", "NIC latency", "of a message between nodes without its switches", "2us"},
       [](Draft& d, const Change& c) { return set(d.links.nic_latency, c, parse_seconds); },
       [](const Draft& d) { return text_of(d.links.nic_latency); }},
      {{"nic.per_node", "NICs per node", "network adapters of a node", "8"},
       [](Draft& d, const Change& c) { return set_count(d.links.nics_per_node, c); },
       [](const Draft& d) { return fmt::format("{}", d.links.nics_per_node); }},
      {{"nic.background", "load on NICs", "share of each NIC that others use", "0.3", true},
       [](Draft& d, const Change& c) { return set_share(d.links.nic_background, c); },
       [](const Draft& d) { return fmt::format("{:.3g}", d.links.nic_background); },
       [](const Draft& d) { return d.links.nic_background; }},
      {{"fabric.background", "load on fabric", "share of a fabric's links between nodes that others use", "0.3", true},
       set_fabric_background,
       [](const Draft& d) { return d.fabric_background ? fmt::format("{:.3g}", *d.fabric_background) : ""; },
       [](const Draft& d) { return d.fabric_background.value_or(0); }},
      {{"switch.latency", "switch latency", "of a message through one switch", "300ns"},
       [](Draft& d, const Change& c) { return set(d.links.switch_latency, c, parse_seconds); },
       [](const Draft& d) { return text_of(d.links.switch_latency); }},
      {{"switch.oversubscription", "oversubscription", "of switches: bandwidth down over bandwidth up", "1"},
       [](Draft& d, const Change& c) { return set(d.links.oversubscription, c, parse_positive); },
       [](const Draft& d) { return fmt::format("{:.3g}", d.links.oversubscription); }},
      {{"device.flops", "compute peak", "of one device in the type computed in", "300TFLOP/s"}, set_flops, peak_text},
      {{"device.memory", "memory capacity", "of one device", "80GB"},
       [](Draft& d, const Change& c) { return set(d.device.memory, c, parse_bytes); },
       [](const Draft& d) { return text_of(d.device.memory); }},
      {{"device.memory_bandwidth", "memory bandwidth", "of one device", "3TB/s"},
       [](Draft& d, const Change& c) { return set(d.device.memory_bandwidth, c, parse_bytes_per_second); },
       [](const Draft& d) { return text_of(d.device.memory_bandwidth); }},
      {{"device.dispatch", "launch time", "host time to launch a kernel", "4us"},
       [](Draft& d, const Change& c) {
         d.device.dispatch_error = 0;  // it is as said
         return set(d.device.dispatch, c, parse_seconds);
       },
       [](const Draft& d) { return text_of(d.device.dispatch); }},
      {{"host_link.bandwidth", "host link bandwidth", "of one device to its host's memory and back", "50GB/s"},
       [](Draft& d, const Change& c) { return set_outside(d.host_link, c); },
       [](const Draft& d) { return text_of(d.host_link); }},
      {{"storage.bandwidth", "storage bandwidth", "of a node when reading", "10GB/s"},
       [](Draft& d, const Change& c) { return set_outside(d.storage, c); },
       [](const Draft& d) { return text_of(d.storage); }},
  };
  return all;
}

const Entry* find_entry(std::string_view key) {
  const auto entry = std::ranges::find(entries(), key, [](const Entry& e) { return e.key.name; });
  return entry == entries().end() ? nullptr : &*entry;
}

Result<void> apply(Draft& draft, const std::string& text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const Change change{std::string_view(text).substr(0, equals),
                      std::string_view(text).substr(std::min(equals + 1, text.size()))};
  if (const Entry* entry = find_entry(change.key)) return entry->apply(draft, change);
  std::vector<std::string_view> known;
  for (const ClusterKey& key : cluster_keys()) known.push_back(key.name);
  return fail(ErrorCode::usage, fmt::format("a cluster has no '{}' to change", change.key), {},
              fmt::format("known are {}", fmt::join(known, ", ")));
}

}  // namespace

const std::vector<ClusterKey>& cluster_keys() {
  static const std::vector<ClusterKey> keys = [] {
    std::vector<ClusterKey> all;
    for (const Entry& entry : entries()) all.push_back(entry.key);
    return all;
  }();
  return keys;
}

bool is_cluster_key(std::string_view name) { return find_entry(name) != nullptr; }

std::string value_text(const Cluster& cluster, std::string_view key, DType computed_in) {
  const Entry* entry = find_entry(key);
  return entry == nullptr ? std::string() : entry->read(draft_of(cluster, computed_in));
}

double share_of(const Cluster& cluster, std::string_view key) {
  const Entry* entry = find_entry(key);
  return entry == nullptr || entry->share == nullptr ? 0 : entry->share(draft_of(cluster, DType::f32));
}

Result<Cluster> changed(const Cluster& cluster, std::span<const std::string> changes, DType computed_in) {
  const TopologySpec& before = cluster.network.topology().spec();
  Draft draft = draft_of(cluster, computed_in);
  for (const std::string& change : changes) SIBYL_CHECK(apply(draft, change));
  Cluster other = cluster;
  if (!(draft.links == before) || draft.fabric_background != fabric_background(cluster)) {
    auto network = cluster.network.with_links(draft.links, draft.fabric_background);
    if (!network) return fail(ErrorCode::usage, network.error().message, network.error().where, network.error().hint);
    other.network = std::move(*network);
  }
  other.kernels = cluster.kernels.on(std::move(draft.device));
  other.host_link = draft.host_link.known;
  other.host_link_measured = cluster.host_link_measured && other.host_link == cluster.host_link;
  other.host_link_factor = draft.host_link.factor;
  other.storage_factor = draft.storage.factor;
  if (!(draft.storage.known == cluster.storage_read)) {
    // Who reads twice as fast writes twice as fast.
    if (cluster.storage_read.value() > 0)
      other.storage_write = cluster.storage_write * (draft.storage.known / cluster.storage_read);
    other.storage_read = draft.storage.known;
    other.storage_measured = false;
  }
  if (!changes.empty()) other.name = fmt::format("{} with {}", cluster.name, fmt::join(changes, ", "));
  return other;
}

}  // namespace sibyl
