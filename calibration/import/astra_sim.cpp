// The network file of ASTRA-sim 2's analytical backend:
//   topology: [ FullyConnected, Ring ]     # a building block for each dimension
//   npus_count: [ 8, 16 ]
//   bandwidth: [ 50.0, 25.0 ]              # of a link, in 2^30 bytes a second (its bw_GBps_to_Bpns)
//   latency: [ 500.0, 700.0 ]              # ns of a link; switches add none
// One dimension joins nodes of a single device. Of several the first is a node, the others join nodes, each device by
// an adapter and links of its own: rings are a torus, one switch is one switch, switches on switches a fat tree.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>

#include "base/quantity.h"
#include "calibration/import/part.h"
#include "calibration/yaml_mapping.h"

namespace sibyl::import {
namespace {

constexpr int most_of_a_dimension = 1 << 16;
constexpr double unit_of_bandwidth = 1 << 30;

enum class Block { ring, fully_connected, a_switch };

struct Dimension {
  Block block = Block::ring;
  int size = 1;
  fabric::LinkRate link;

  // Of each member.
  [[nodiscard]] double links() const {
    return block == Block::a_switch ? 1 : std::max(1, block == Block::ring ? std::min(2, size - 1) : size - 1);
  }
};

Result<Block> parse_block(const std::string& text) {
  if (text == "Ring") return Block::ring;
  if (text == "FullyConnected") return Block::fully_connected;
  if (text == "Switch") return Block::a_switch;
  return fail(fmt::format("unknown topology '{}'", text), {}, "Ring, FullyConnected or Switch");
}

Result<double> parse_figure(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(value >= 0 && value <= 1e6))
    return fail(fmt::format("'{}' is no number from 0 to 1e6", text));
  return value;
}

// A list of the file, one entry a dimension.
template <class T, class Parse>
void entries(YamlMapping& m, const std::string& key, std::vector<T>& target, Parse parse) {
  m.key(
      key,
      [&m, &target, parse](const YAML::Node& node) -> Result<void> {
        if (!node.IsSequence() || node.size() == 0) return fail("must be a list, one entry a dimension", m.where(node));
        for (const YAML::Node& entry : node) {
          SIBYL_TRY(const std::string text, m.single_value(entry));
          auto value = parse(text);
          if (!value) return fail(value.error().message, m.where(entry), value.error().hint);
          target.push_back(std::move(*value));
        }
        return {};
      },
      true);
}

Result<std::vector<Dimension>> read_dimensions(const YAML::Node& root, const std::string& file) {
  YamlMapping m(file, "the network");
  std::vector<Block> blocks;
  std::vector<int> sizes;
  std::vector<double> bandwidths, latencies;
  entries(m, "topology", blocks, parse_block);
  entries(m, "npus_count", sizes, parse_count);
  entries(m, "bandwidth", bandwidths, parse_figure);
  entries(m, "latency", latencies, parse_figure);
  SIBYL_CHECK(m.read(root));
  if (sizes.size() != blocks.size() || bandwidths.size() != blocks.size() || latencies.size() != blocks.size())
    return fail("topology, npus_count, bandwidth and latency must be lists of the same length", m.where(root));
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (sizes[i] > most_of_a_dimension)
      return fail(fmt::format("a dimension has at most {} members", most_of_a_dimension),
                  m.given("npus_count").value_or(file));
    if (bandwidths[i] <= 0) return fail("a bandwidth must be above 0", m.given("bandwidth").value_or(file));
    dimensions.push_back(
        {blocks[i], sizes[i], {BytesPerSecond{unit_of_bandwidth * bandwidths[i]}, Seconds{1e-9 * latencies[i]}}});
  }
  return dimensions;
}

void set_node(const Dimension& node, Part& part) {
  part.devices_per_node = node.size;
  const bool switched = node.block == Block::a_switch;  // to it and from it
  part.device_link = LinkSpec{switched ? LinkKind::nvswitch : LinkKind::nvlink_mesh, node.link.bandwidth * node.links(),
                              node.link.latency * (switched ? 2.0 : 1.0)};
  if (node.block == Block::ring) part.inside = fabric::InnerRing{};
  if (node.block == Block::fully_connected) part.inside = fabric::Mesh{};
  if (node.block == Block::a_switch) part.inside = fabric::NvSwitch{};
}

// What joins nodes: dimensions of one block.
Result<void> set_network(const std::vector<Dimension>& between, const std::string& where, Part& part) {
  const Block block = between.front().block;
  double nodes = 1;
  bool differ = false;
  for (const Dimension& d : between) {
    if (d.block != block) return fail("nodes that are joined by different topologies cannot be described", where);
    nodes *= d.size;
    if (d.link != between.front().link) {
      part.link.bandwidth = std::min(part.link.bandwidth, d.link.bandwidth);
      part.link.latency = std::max(part.link.latency, d.link.latency);
      differ = true;
    }
  }
  if (differ) part.assumed.push_back("all links between nodes are as slow as the slowest dimension's");
  if (nodes * *part.devices_per_node > most_devices)
    return fail(fmt::format("{:.0f} nodes are too many", nodes), where);
  part.nodes = static_cast<int>(nodes);
  std::vector<int> sizes;
  for (const Dimension& d : between) sizes.push_back(d.size);
  if (block == Block::ring) part.network = fabric::Torus{sizes};
  if (block == Block::fully_connected && between.size() > 1)
    return fail("several fully connected dimensions cannot be described", where);
  if (block == Block::fully_connected) part.network = fabric::FullyConnected{};
  // A router's cable to the next one is those of all its devices.
  if (block != Block::a_switch) part.link.bandwidth *= *part.devices_per_node;
  if (block == Block::a_switch) {
    sizes.front() *= *part.devices_per_node;  // adapters below a switch
    part.network = fabric::FatTree{sizes, std::vector<int>(sizes.size() - 1, 1)};
  }
  return {};
}

}  // namespace

Result<Part> read_astra_sim(std::string_view text, const std::string& file) {
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    SIBYL_TRY(const std::vector<Dimension> dimensions, read_dimensions(root, file));
    Part part;
    part.format = "ASTRA-sim network";
    const bool only_one = dimensions.size() == 1;
    const std::vector<Dimension> between(dimensions.begin() + (only_one ? 0 : 1), dimensions.end());
    if (only_one)
      set_node({Block::a_switch, 1, dimensions.front().link}, part), part.inside.reset();
    else
      set_node(dimensions.front(), part);
    part.link = between.front().link;
    part.switch_latency = Seconds{};
    BytesPerSecond of_a_device{};
    for (const Dimension& d : between) of_a_device += d.link.bandwidth * d.links();
    SIBYL_CHECK(set_network(between, file, part));
    // Links of a single device end at it; a switch's, and those of several devices, at adapters.
    if (!only_one || between.front().block == Block::a_switch)
      part.nics = Nics{*part.devices_per_node,
                       between.front().block == Block::a_switch ? part.link.bandwidth : of_a_device, Seconds{}};
    return part;
  } catch (const YAML::Exception& problem) {
    const std::string where = problem.mark.is_null() ? file : fmt::format("{}:{}", file, problem.mark.line + 1);
    return fail(fmt::format("not valid YAML: {}", problem.msg), where);
  }
}

}  // namespace sibyl::import
