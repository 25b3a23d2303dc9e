#include "calibration/cluster_file.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <optional>

#include "base/quantity.h"
#include "calibration/fabric_file.h"
#include "calibration/library_file.h"
#include "calibration/yaml_mapping.h"

namespace sibyl {
namespace {

void device_link(YamlMapping& m, LinkSpec& link) {
  m.scalar("kind", link.kind, parse_link_kind, true);
  m.scalar("bandwidth", link.bandwidth, parse_bytes_per_second, true);
  m.scalar("latency", link.latency, parse_seconds, true);
  m.scalar("reduces", link.reduces, parse_yes_or_no);
  m.scalar("background", link.background, parse_share);
}

void nic(YamlMapping& m, TopologySpec& t) {
  m.scalar("per_node", t.nics_per_node, parse_count, true);
  m.scalar("bandwidth", t.nic_bandwidth, parse_bytes_per_second, true);
  m.scalar("latency", t.nic_latency, parse_seconds, true);
  m.scalar("background", t.nic_background, parse_share);
}

void switches(YamlMapping& m, TopologySpec& t) {
  m.scalar("latency", t.switch_latency, parse_seconds);
  m.scalar("levels", t.levels, parse_count);
  m.scalar("nodes_per_switch", t.nodes_per_switch, parse_count);
  m.scalar("oversubscription", t.oversubscription, parse_factor);
  m.scalar("reduces", t.switches_reduce, parse_yes_or_no);
}

void overlap(YamlMapping& m, OverlapSample& o) {
  m.scalar("compute_slowdown", o.compute_slowdown, parse_factor, true);
  m.scalar("communication_slowdown", o.communication_slowdown, parse_factor, true);
}

// Either written here or measured in another file.
Result<void> one_network(const YamlMapping& top, const std::string& where) {
  const bool measured = top.given("network").has_value();
  for (const char* key : {"nodes", "devices_per_node", "device_link"})
    if (!measured && !top.given(key)) return fail(fmt::format("the cluster lacks the key '{}'", key), where);
  for (const char* key : {"nodes", "devices_per_node", "device_link", "nic", "switch", "fabric"})
    if (const auto place = top.given(key); measured && place)
      return fail(fmt::format("'{}' is said by the calibration that 'network' names", key), *place);
  if (const auto place = top.given("switch"); place && top.given("fabric"))
    return fail("'switch' and 'fabric' both say what joins the nodes", *place, "leave one out");
  return {};
}

// What lies above a switch matters only where it is said how many nodes lie below one.
Result<void> said_in_full(const YamlMapping& switches, const TopologySpec& t) {
  if (const auto place = switches.given("levels"); place && t.levels > 1 && t.nodes_per_switch == 0)
    return fail("'levels' without 'nodes_per_switch' says nothing", *place, "say how many nodes are below one switch");
  if (const auto place = switches.given("oversubscription"); place && t.oversubscription > 1 && t.levels == 1)
    return fail("'oversubscription' without 'levels' says nothing: one switch has nothing above it", *place,
                "levels: 2, and nodes_per_switch");
  return {};
}

// Without NICs the fabric's links end at devices, and their rate is the nearest there is to a NIC's.
Result<void> without_nics(ClusterFile& c) {
  c.shape->direct = true;
  c.topology.nic_latency = Seconds{};
  BytesPerSecond& rate = c.shape->link.bandwidth;
  if (rate.value() <= 0 && !std::holds_alternative<fabric::Custom>(c.shape->network))
    return fail("the link's bandwidth is not said, and there is no nic to take it from", c.shape_where);
  if (rate.value() > 0) c.topology.nic_bandwidth = rate;
  rate = BytesPerSecond{};
  return {};
}

Result<ClusterFile> read_root(const YAML::Node& root, const std::string& file) {
  ClusterFile c;
  YamlMapping top(file, "the cluster"), link(file, "device_link"), nics(file, "nic"), switched(file, "switch"),
      both(file, "overlap"), disks(file, "storage"), hosts(file, "host_link");
  OverlapSample slow;
  device_link(link, c.topology.device_link);
  nic(nics, c.topology);
  switches(switched, c.topology);
  overlap(both, slow);
  Seconds step_overhead{-1};
  BytesPerSecond storage, to_host;
  hosts.scalar("bandwidth", to_host, parse_bytes_per_second, true);
  disks.scalar("bandwidth", storage, parse_bytes_per_second, true);

  top.scalar("name", c.name, parse_text, true);
  top.key(
      "calibration",
      [&](const YAML::Node& node) -> Result<void> {
        c.calibration_where = top.where(node);
        if (!node.IsScalar() || node.Scalar().empty()) return fail("must be a name or a path", c.calibration_where);
        c.calibration = node.Scalar();
        return {};
      },
      true);
  std::string network;
  top.scalar("network", network, parse_text);
  top.scalar("nodes", c.topology.nodes, parse_count);
  top.scalar("devices_per_node", c.topology.devices_per_node, parse_count);
  top.key("device_link", [&](const YAML::Node& node) { return link.read(node); });
  top.key("nic", [&](const YAML::Node& node) { return nics.read(node); });
  top.key("switch", [&](const YAML::Node& node) { return switched.read(node); });
  top.key("fabric", [&](const YAML::Node& node) -> Result<void> {
    c.shape_where = top.where(node);
    SIBYL_TRY(c.shape, read_fabric(node, file, c.topology));
    return {};
  });
  top.scalar("algorithm", c.algorithm, parse_algorithm);
  top.scalar("protocol", c.protocol, parse_protocol);
  top.key("library", [&](const YAML::Node& node) -> Result<void> {
    SIBYL_TRY(c.library, read_library(node, file));
    return {};
  });
  top.key("overlap", [&](const YAML::Node& node) -> Result<void> {
    SIBYL_CHECK(both.read(node));
    c.overlap = slow;
    return {};
  });
  top.scalar("step_overhead_per_operation", step_overhead, parse_seconds);
  top.key("storage", [&](const YAML::Node& node) { return disks.read(node); });
  top.key("host_link", [&](const YAML::Node& node) { return hosts.read(node); });
  SIBYL_CHECK(top.read(root));
  SIBYL_CHECK(one_network(top, top.where(root)));
  SIBYL_CHECK(said_in_full(switched, c.topology));
  for (const auto& [key, rate] : {std::pair{"storage", storage}, std::pair{"host_link", to_host}})
    if (const auto place = top.given(key); place && rate.value() <= 0)
      return fail(fmt::format("the bandwidth of '{}' must be above 0", key), *place);
  if (top.given("network")) c.network = network;
  if (c.shape && !top.given("nic")) SIBYL_CHECK(without_nics(c));
  if (step_overhead.value() >= 0) c.step_overhead_per_operation = step_overhead;
  if (storage.value() > 0) c.storage_read = storage;
  if (to_host.value() > 0) c.host_link = to_host;
  return c;
}

}  // namespace

Result<ClusterFile> parse_cluster_file(std::string_view text, const std::string& file) {
  try {
    return read_root(YAML::Load(std::string(text)), file);
  } catch (const YAML::Exception& problem) {
    const std::string where = problem.mark.is_null() ? file : fmt::format("{}:{}", file, problem.mark.line + 1);
    return fail(fmt::format("not valid YAML: {}", problem.msg), where);
  }
}

}  // namespace sibyl
