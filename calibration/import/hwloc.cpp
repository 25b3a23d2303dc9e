// hwloc's XML (lstopo FILE.xml): <object>s of a type, one inside the other. GPUs and adapters are PCIDev; what the
// system made of them hangs below as OSDev. A PCI link's speed (GB/s, one direction) stands on the device and on the
// bridges above it. What wires carry, and NVLink, hwloc does not tell.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibration/import/links.h"
#include "calibration/import/part.h"
#include "calibration/import/xml.h"

namespace sibyl::import {
namespace {

struct PciDevice {
  BytesPerSecond rate{};      // 0: not said
  bool open_fabrics = false;  // an adapter for RDMA
};

struct HwlocDevices {
  std::vector<PciDevice> gpus, adapters;
  std::vector<int> gpus_of_bridge;  // by host bridge
  int packages = 0;
  std::set<int> packages_of_bridges;  // those below which one lies that has GPUs
};

bool is_one_of(const std::string& word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "0302 [10de:20b0] [10de:1463] a1": class and vendor.
struct PciType {
  std::string of_class, vendor;
};
PciType type_of(const std::string& text) {
  if (text.size() < 10 || text[5] != '[') return {text.substr(0, 4), {}};
  return {text.substr(0, 4), text.substr(6, 4)};
}

// Below a PCI device: does an OSDev say that it is of this kind (hwloc 2's number), or is named so?
bool has_os_device(const Element& element, const std::string& number,
                   std::initializer_list<std::string_view> prefixes) {
  for (const Element& child : element.children) {
    if (child.name != "object") continue;
    const std::string name = child.text("name").value_or("");
    const bool named = std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (child.text("type") == "OSDev" && (child.text("osdev_type") == number || named)) return true;
    if (has_os_device(child, number, prefixes)) return true;
  }
  return false;
}

class HwlocReader {
 public:
  Result<HwlocDevices> read(const Element& root) {
    SIBYL_CHECK(visit(root, 0));
    if (found_.gpus.empty())
      return fail("no GPU among the PCI devices", root.where,
                  "lstopo --whole-io FILE.xml on a node with GPUs writes them");
    return std::move(found_);
  }

 private:
  // `package`: its number, from 1; 0: below none.
  Result<void> visit(const Element& element, int package) {
    const std::string type = element.name == "object" ? element.text("type").value_or("") : "";
    if (type == "Package" || type == "Socket") package = ++found_.packages;
    if (type == "PCIDev") SIBYL_CHECK(device(element));
    const std::size_t before = found_.gpus.size();
    for (const Element& child : element.children) SIBYL_CHECK(visit(child, package));
    const bool host_bridge = type == "Bridge" && element.text("bridge_type").value_or("").starts_with("0-");
    if (host_bridge && found_.gpus.size() > before) {
      found_.gpus_of_bridge.push_back(static_cast<int>(found_.gpus.size() - before));
      if (package > 0) found_.packages_of_bridges.insert(package);
    }
    return {};
  }

  Result<void> device(const Element& element) {
    SIBYL_TRY(const std::string text, element.required("pci_type"));
    const PciType type = type_of(text);
    SIBYL_TRY(const auto rate, element.number("pci_link_speed", 0));
    PciDevice device{BytesPerSecond{1e9 * rate.value_or(0)}, false};
    const bool display = is_one_of(type.of_class, {"0300", "0302", "0380", "1200"});
    // Others are the board's own graphics.
    if (display && is_one_of(type.vendor, {"10de", "1002"})) found_.gpus.push_back(device);
    if (is_one_of(type.of_class, {"0200", "0207", "0280"})) {
      device.open_fabrics = has_os_device(element, "3", {"mlx", "hfi", "bnxt_re", "rdma", "efa"});
      if (device.open_fabrics || has_os_device(element, "2", {"ib", "eth", "en"})) found_.adapters.push_back(device);
    }
    return {};
  }

  HwlocDevices found_;
};

BytesPerSecond slowest(const std::vector<PciDevice>& devices) {
  BytesPerSecond least{};
  for (const PciDevice& device : devices)
    if (device.rate.value() > 0 && (least.value() <= 0 || device.rate < least)) least = device.rate;
  return least;
}

BytesPerSecond fastest_of(const std::vector<PciDevice>& devices) {
  BytesPerSecond most{};
  for (const PciDevice& device : devices) most = std::max(most, device.rate);
  return most;
}

// Host bridges of the packages, where devices are dealt out over them evenly.
void set_inside(const HwlocDevices& found, Part& part) {
  const auto bridges = static_cast<int>(found.gpus_of_bridge.size());
  const auto known = static_cast<int>(found.packages_of_bridges.size());
  const int sockets = known > 0 ? known : std::max(1, std::min(found.packages, bridges));
  const bool even = std::ranges::all_of(found.gpus_of_bridge, [&](int n) { return n == found.gpus_of_bridge.front(); });
  if (bridges > 0 && even && bridges % sockets == 0)
    part.inside = fabric::PcieTree{.sockets = sockets, .switches_per_socket = bridges / sockets};
}

}  // namespace

Result<Part> read_hwloc(std::string_view text, const std::string& file) {
  SIBYL_TRY(const Element root, parse_xml(text, file));
  if (root.name != "topology") return fail(fmt::format("<{}> is no hwloc topology", root.name), root.where);
  SIBYL_TRY(HwlocDevices found, HwlocReader().read(root));
  Part part;
  part.format = "hwloc topology";
  part.devices_per_node = static_cast<int>(found.gpus.size());
  // NCCL's figure for 16 lanes of 16 GT/s is 24 GB/s, hwloc's 31.5: what the lanes carry before packets' heads.
  constexpr double payload = 24.0 / 31.507692;
  const BytesPerSecond rate = slowest(found.gpus) * payload;
  part.device_link = LinkSpec{LinkKind::pcie, rate.value() > 0 ? rate : pcie_of(16, 16), pcie_latency};
  if (rate.value() <= 0) part.assumed.push_back("PCIe 4.0 x16: the file does not say the speed of the GPUs' links");
  part.assumed.push_back("GPUs talk over PCIe: hwloc does not tell of NVLink (an NCCL topology does)");
  set_inside(found, part);
  if (std::ranges::any_of(found.adapters, &PciDevice::open_fabrics))
    std::erase_if(found.adapters, [](const PciDevice& d) { return !d.open_fabrics; });
  const BytesPerSecond fastest = fastest_of(found.adapters);
  if (const auto slower = std::erase_if(
          found.adapters, [&](const PciDevice& d) { return d.rate.value() > 0 && d.rate.value() < fastest.value(); });
      slower > 0)
    part.assumed.push_back(
        fmt::format("{} of the adapters, slower than the others, carry no traffic of training", slower));
  if (found.adapters.empty()) return part;
  part.nics = Nics{static_cast<int>(found.adapters.size()), fastest * payload, {}};
  if (part.nics->bandwidth.value() > 0)
    part.assumed.push_back("adapters are as fast as their PCIe links: hwloc does not tell the wires' rate");
  return part;
}

}  // namespace sibyl::import
