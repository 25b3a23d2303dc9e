#include "calibration/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "base/files.h"
#include "calibration/cluster_file.h"
#include "calibration/device_names.h"
#include "calibration/measured_cluster.h"
#include "calibration/shipped.h"

namespace sibyl {
namespace {

// What joins the nodes: a regular topology, or (where there is a shape) a fabric.
struct Links {
  TopologySpec spec;
  const fabric::FabricSpec* shape = nullptr;
  std::string where;
};

Result<Network> quiet_network_of(const Links& links, Algorithm algorithm, Calibration& calibration) {
  std::vector<PointToPointSample>& messages = calibration.point_to_point;
  std::vector<CollectiveSample>& collectives = calibration.collectives;
  if (links.shape != nullptr) {
    auto network = Network::on_fabric(links.spec, *links.shape, std::move(messages), std::move(collectives), algorithm);
    if (!network && (network.error().where.empty() || network.error().where == "topology"))
      return fail(network.error().message, links.where, network.error().hint);
    return network;
  }
  auto topology = Topology::make(links.spec);
  if (!topology) return fail(topology.error().message, links.where, topology.error().hint);
  return Network(std::move(*topology), std::move(messages), std::move(collectives), algorithm);
}

// What was measured was measured on quiet links: it is carried to those that others use, too.
Result<Network> network_of(const Links& links, Algorithm algorithm, Calibration& calibration) {
  Links quiet = links;
  quiet.spec.device_link.background = quiet.spec.nic_background = 0.0;
  std::optional<fabric::FabricSpec> quiet_shape;
  std::optional<double> used;  // of a fabric's links
  if (links.shape != nullptr) {
    used = links.shape->background;
    quiet_shape = *links.shape;
    quiet_shape->background = 0.0;
    quiet.shape = &*quiet_shape;
  }
  auto network = quiet_network_of(quiet, algorithm, calibration);
  if (!network || (quiet.spec == links.spec && used.value_or(0.0) == 0.0)) return network;
  auto busy = network->with_links(links.spec, used);
  if (!busy) return fail(busy.error().message, links.where, busy.error().hint);
  return busy;
}

Result<Cluster> build(std::string name, const Links& links, Algorithm algorithm, Calibration calibration,
                      OverlapSample overlap, OverlapSample overlap_with_gloo, Seconds step_overhead,
                      BytesPerSecond storage) {
  SIBYL_TRY(Network network, network_of(links, algorithm, calibration));
  const TopologySpec& spec = links.spec;
  Composition composition = composition_of(calibration.steps, calibration.device.spread);
  std::vector<OverlapSample> by_message = overlap_by_message(calibration);
  Meetings meetings(calibration.meetings);
  const BytesPerSecond written = writing_rate(calibration);
  const BytesPerSecond host_link = calibration.device.host_link;
  const bool one_machine = calibration.one_machine, overlap_known = !calibration.overlap.empty();
  ReuseCurve reuse(calibration.reuses, calibration.reads, calibration.device.cache, calibration.lasting);
  const bool measured = storage.value() > 0 && storage == reading_rate(calibration);
  Cluster cluster{std::move(name),        spec.nodes, spec.devices_per_node, kernel_table(std::move(calibration)),
                  std::move(network),     overlap,    overlap_with_gloo,     step_overhead,
                  std::move(composition), storage,    std::move(by_message)};
  cluster.storage_write = written;
  cluster.storage_measured = measured;
  cluster.host_link = host_link;
  cluster.host_link_measured = host_link.value() > 0;
  cluster.one_machine = one_machine;
  cluster.meetings = std::move(meetings);
  cluster.reuse = std::move(reuse);
  cluster.overlap_known = overlap_known;
  return cluster;
}

Result<Calibration> named_calibration(const ClusterFile& file, const std::filesystem::path& folder) {
  const bool is_path = file.calibration.ends_with(".json") || file.calibration.find('/') != std::string::npos;
  auto calibration = is_path ? load_calibration(folder / file.calibration) : shipped_calibration(file.calibration);
  if (!calibration && !is_path)
    return fail(calibration.error().message, file.calibration_where, calibration.error().hint);
  return calibration;
}

Result<Cluster> from_yaml(std::string_view text, const std::string& file, const std::filesystem::path& folder) {
  SIBYL_TRY(const ClusterFile described, parse_cluster_file(text, file));
  SIBYL_TRY(Calibration calibration, named_calibration(described, folder));
  const OverlapSample overlap = described.overlap.value_or(typical_overlap(calibration));
  const OverlapSample with_gloo = described.overlap.value_or(typical_overlap(calibration, Algorithm::gloo));
  const Seconds overhead = described.step_overhead_per_operation.value_or(calibration.step_overhead_per_operation);
  const BytesPerSecond storage = described.storage_read.value_or(reading_rate(calibration));
  TopologySpec topology = described.topology;
  bool overlap_known = described.overlap.has_value();
  if (described.network) {
    SIBYL_TRY(Calibration other, load_calibration(folder / *described.network));
    topology = measured_topology(other);
    overlap_known = overlap_known || other.device.backend == Backend::cpu;
    calibration.point_to_point = std::move(other.point_to_point);
    calibration.collectives = std::move(other.collectives);
    if (calibration.device.backend == Backend::cpu) calibration.meetings = std::move(other.meetings);
  }
  const Links links{topology, described.shape ? &*described.shape : nullptr,
                    described.shape ? described.shape_where : file};
  SIBYL_TRY(Cluster cluster, build(described.name, links, described.algorithm, std::move(calibration), overlap,
                                   with_gloo, overhead, storage));
  cluster.network = cluster.network.speaking(described.protocol).running(described.library);
  if (described.overlap) cluster.overlap_by_message.clear();
  cluster.overlap_known = cluster.overlap_known || overlap_known;
  if (described.host_link) cluster.host_link = *described.host_link, cluster.host_link_measured = false;
  return cluster;
}

}  // namespace

std::vector<std::string> shipped_clusters() { return shipped::names(shipped::Kind::cluster); }

Result<Cluster> measured_cluster(Calibration calibration, std::string name, const std::string& where) {
  const TopologySpec spec = measured_topology(calibration);
  const OverlapSample overlap = typical_overlap(calibration);
  const OverlapSample with_gloo = typical_overlap(calibration, Algorithm::gloo);
  const Seconds overhead = calibration.step_overhead_per_operation;
  const BytesPerSecond storage = reading_rate(calibration);
  return build(std::move(name), {spec, nullptr, where}, Algorithm::automatic, std::move(calibration), overlap,
               with_gloo, overhead, storage);
}

Result<Cluster> cluster_of(Calibration calibration, std::string name, const TopologySpec& topology,
                           const std::string& where) {
  const OverlapSample overlap = typical_overlap(calibration);
  const OverlapSample with_gloo = typical_overlap(calibration, Algorithm::gloo);
  const Seconds overhead = calibration.step_overhead_per_operation;
  const BytesPerSecond storage = reading_rate(calibration);
  return build(std::move(name), {topology, nullptr, where}, Algorithm::automatic, std::move(calibration), overlap,
               with_gloo, overhead, storage);
}

Result<Cluster> load_cluster(const std::string& name_or_path) {
  if (const auto text = shipped::find(shipped::Kind::cluster, name_or_path))
    return from_yaml(*text, fmt::format("shipped:{}.yaml", name_or_path), {});
  const std::filesystem::path path(name_or_path);
  if (path.extension() == ".json") {
    SIBYL_TRY(Calibration calibration, load_calibration(path));
    return measured_cluster(std::move(calibration), path.stem().string(), path.string());
  }
  if (path.extension() == ".yaml" || path.extension() == ".yml") {
    SIBYL_TRY(const std::string text, read_file(path));
    return from_yaml(text, path.string(), path.parent_path());
  }
  return fail(
      fmt::format("no cluster is called '{}'", name_or_path), {},
      fmt::format("give a .yaml file, a calibration's .json, or one of {}", fmt::join(shipped_clusters(), ", ")));
}

Cluster on_network(Cluster devices, const Cluster& network) {
  devices.name += " on " + network.name;
  devices.nodes = network.nodes;
  devices.devices_per_node = network.devices_per_node;
  devices.network = network.network;
  return devices;
}

Result<Cluster> with_devices(const Cluster& cluster, const std::string& calibration) {
  SIBYL_TRY(Calibration shipped, shipped_calibration(calibration));
  const std::string name = shipped_device(calibration).value_or(calibration);
  SIBYL_TRY(Cluster devices, measured_cluster(std::move(shipped), name, name));
  Cluster other = on_network(std::move(devices), cluster);
  other.storage_read = cluster.storage_read;
  other.storage_write = cluster.storage_write;
  other.storage_measured = cluster.storage_measured;
  // What was measured is the other device's own link.
  if (cluster.host_link.value() > 0 && !cluster.host_link_measured) {
    other.host_link = cluster.host_link;
    other.host_link_measured = false;
  }
  other.host_link_factor = cluster.host_link_factor;
  other.storage_factor = cluster.storage_factor;
  return other;
}

Result<Cluster> resized(const Cluster& cluster, int nodes, int devices_per_node) {
  SIBYL_TRY(Network network, cluster.network.resized(nodes, devices_per_node));
  Cluster other = cluster;
  other.nodes = nodes;
  other.devices_per_node = devices_per_node;
  other.network = std::move(network);
  return other;
}

}  // namespace sibyl
