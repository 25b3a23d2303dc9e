#include "calibration/cluster_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "base/quantity.h"

namespace sibyl {
namespace {

// One mapping of the file. Each key is declared with what reads its value; keys that nobody declared are errors.
class Mapping {
 public:
  Mapping(std::string file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  using Read = std::function<Result<void>(const YAML::Node&)>;
  void key(std::string key, Read read, bool required = false) {
    entries_.push_back({std::move(key), std::move(read), required, false, {}});
  }

  template <class T, class Parse>
  void scalar(std::string of_key, T& target, Parse parse, bool required = false) {
    key(
        std::move(of_key),
        [this, &target, parse](const YAML::Node& node) -> Result<void> {
          if (!node.IsScalar()) return fail("must be a single value", where(node));
          auto value = parse(node.Scalar());
          if (!value) return fail(value.error().message, where(node), value.error().hint);
          target = std::move(*value);
          return {};
        },
        required);
  }

  Result<void> read(const YAML::Node& node) {
    if (!node.IsMap()) return fail(fmt::format("{} must be a mapping of keys to values", name_), where(node));
    for (const auto& member : node) SIBYL_CHECK(read_member(member.first, member.second));
    for (const Entry& entry : entries_)
      if (entry.required && !entry.seen)
        return fail(fmt::format("{} lacks the key '{}'", name_, entry.key), where(node));
    return {};
  }

  // The place of a key that was given.
  [[nodiscard]] std::optional<std::string> given(std::string_view key) const {
    for (const Entry& entry : entries_)
      if (entry.key == key && entry.seen) return entry.where;
    return std::nullopt;
  }

  [[nodiscard]] std::string where(const YAML::Node& node) const {
    return node.Mark().is_null() ? file_ : fmt::format("{}:{}", file_, node.Mark().line + 1);
  }

 private:
  struct Entry {
    std::string key;
    Read read;
    bool required;
    bool seen;
    std::string where = {};
  };

  Result<void> read_member(const YAML::Node& key_node, const YAML::Node& value) {
    const std::string name = key_node.IsScalar() ? key_node.Scalar() : std::string("?");
    const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == name; });
    if (entry == entries_.end()) {
      std::vector<std::string> known;
      for (const Entry& e : entries_) known.push_back(e.key);
      return fail(fmt::format("{} has no key '{}'", name_, name), where(key_node),
                  fmt::format("known are {}", fmt::join(known, ", ")));
    }
    if (entry->seen) return fail(fmt::format("'{}' is given twice", name), where(key_node));
    entry->seen = true;
    entry->where = where(key_node);
    return entry->read(value);
  }

  std::string file_, name_;
  std::vector<Entry> entries_;
};

Result<std::string> parse_text(const std::string& text) { return text; }

Result<double> parse_number(const std::string& text) {
  std::size_t used = 0;
  double value = std::nan("");
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || text.empty() || !std::isfinite(value))
    return fail(fmt::format("'{}' is not a number", text));
  return value;
}
Result<int> parse_count(const std::string& text) {
  SIBYL_TRY(const double value, parse_number(text));
  if (value < 1 || value > 1e7 || value != std::floor(value))
    return fail(fmt::format("'{}' is not a count", text), {}, "a whole number of at least 1");
  return static_cast<int>(value);
}
Result<double> parse_factor(const std::string& text) {
  SIBYL_TRY(const double value, parse_number(text));
  if (value < 1 || value > 1e6)
    return fail(fmt::format("'{}' is not a factor from 1 to 1e6", text), {}, "1 means no slow-down");
  return value;
}

void device_link(Mapping& m, LinkSpec& link) {
  m.scalar("kind", link.kind, parse_link_kind, true);
  m.scalar("bandwidth", link.bandwidth, parse_bytes_per_second, true);
  m.scalar("latency", link.latency, parse_seconds, true);
}

void nic(Mapping& m, TopologySpec& t) {
  m.scalar("per_node", t.nics_per_node, parse_count, true);
  m.scalar("bandwidth", t.nic_bandwidth, parse_bytes_per_second, true);
  m.scalar("latency", t.nic_latency, parse_seconds, true);
}

void switches(Mapping& m, TopologySpec& t) {
  m.scalar("latency", t.switch_latency, parse_seconds);
  m.scalar("levels", t.levels, parse_count);
  m.scalar("nodes_per_switch", t.nodes_per_switch, parse_count);
  m.scalar("oversubscription", t.oversubscription, parse_factor);
}

void overlap(Mapping& m, OverlapSample& o) {
  m.scalar("compute_slowdown", o.compute_slowdown, parse_factor, true);
  m.scalar("communication_slowdown", o.communication_slowdown, parse_factor, true);
}

// Either written here or measured in another file.
Result<void> one_network(const Mapping& top, const std::string& where) {
  const bool measured = top.given("network").has_value();
  for (const char* key : {"nodes", "devices_per_node", "device_link"})
    if (!measured && !top.given(key)) return fail(fmt::format("the cluster lacks the key '{}'", key), where);
  for (const char* key : {"nodes", "devices_per_node", "device_link", "nic", "switch"})
    if (const auto place = top.given(key); measured && place)
      return fail(fmt::format("'{}' is said by the calibration that 'network' names", key), *place);
  return {};
}

Result<ClusterFile> read_root(const YAML::Node& root, const std::string& file) {
  ClusterFile c;
  Mapping top(file, "the cluster"), link(file, "device_link"), nics(file, "nic"), fabric(file, "switch"),
      both(file, "overlap"),
      disks(file, "storage");
  OverlapSample slow;
  device_link(link, c.topology.device_link);
  nic(nics, c.topology);
  switches(fabric, c.topology);
  overlap(both, slow);
  Seconds step_overhead{-1};
  BytesPerSecond storage;
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
  top.key("switch", [&](const YAML::Node& node) { return fabric.read(node); });
  top.scalar("algorithm", c.algorithm, parse_algorithm);
  top.key("overlap", [&](const YAML::Node& node) -> Result<void> {
    SIBYL_CHECK(both.read(node));
    c.overlap = slow;
    return {};
  });
  top.scalar("step_overhead_per_operation", step_overhead, parse_seconds);
  top.key("storage", [&](const YAML::Node& node) { return disks.read(node); });
  SIBYL_CHECK(top.read(root));
  SIBYL_CHECK(one_network(top, top.where(root)));
  if (top.given("network")) c.network = network;
  if (step_overhead.value() >= 0) c.step_overhead_per_operation = step_overhead;
  if (storage.value() > 0) c.storage_read = storage;
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
