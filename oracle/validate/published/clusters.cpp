#include "oracle/validate/published/clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "oracle/validate/published/cells.h"

namespace sibyl::published {
namespace {

bool is_silent(const std::string& text) {
  return text.empty() || text == "n/a" || text == "-" || text == "unknown" || text.starts_with("not stated") ||
         text.starts_with("n/a (");
}

// The digits before `at` as a number, and where they begin.
struct Number {
  double value = 0;
  std::size_t begin = 0;
};
std::optional<Number> number_before(const std::string& text, std::size_t at) {
  while (at > 0 && text[at - 1] == ' ') --at;
  std::size_t begin = at;
  while (begin > 0 && ((text[begin - 1] >= '0' && text[begin - 1] <= '9') || text[begin - 1] == '.')) --begin;
  if (begin == at) return std::nullopt;
  return Number{std::strtod(text.substr(begin, at - begin).c_str(), nullptr), begin};
}

// Of NVLink and PCIe: the digit behind the word ("NVLink3", "PCIe 4.0"), 0 where there is none.
int generation(const std::string& text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return 0;
  std::size_t digit = at + word.size();
  while (digit < text.size() && (text[digit] == ' ' || text[digit] == 'g' || text[digit] == 'e' || text[digit] == 'n'))
    ++digit;
  return digit < text.size() && text[digit] >= '1' && text[digit] <= '9' ? text[digit] - '0' : 0;
}

// NCCL's latencies of a ring step by LL (src/graph/tuning.cc); other protocols are counted beyond it.
constexpr Seconds nvlink_latency{0.6e-6}, pcie_latency{1e-6};
// Of one adapter; a message crosses two. By sockets the kernel adds to it.
constexpr Seconds infiniband_latency{1.35e-6}, ethernet_latency{12.5e-6};

// Of a device's links in a DGX-1's hybrid cube mesh those that a ring of the first so many devices can use: GPU 0 and 1
// are joined by one, and each of the first four by four (Pascal: three) to the others, of six (four) in all
// (nvidia-smi topo -m, which DLPerf's report prints of its nodes).
double share_of_links(const DeviceName& device, int used) {
  const bool pascal = device.chip == "p100";
  if (used > 4) return 1;
  const double links = pascal ? 4 : 6;
  return (used > 2 ? links - (pascal ? 1 : 2) : 1) / links;
}

void set_device_links(const Row& row, MachineRecipe& machine) {
  const DeviceName device = parse_device_name(row.gpu);
  const ChipFacts facts = facts_of(device);
  const std::string text = lower_case(row.intranode);
  const bool says_nvlink = has(text, "nvlink") || has(text, "nvswitch");
  const bool silent = is_silent(text) || !(says_nvlink || has(text, "pcie") || has(text, "pci-e"));
  LinkSpec& link = machine.topology.device_link;
  if (says_nvlink || (silent && facts.nvlink_gb_per_s > 0)) {
    const double bandwidth =
        facts.nvlink_gb_per_s > 0 ? facts.nvlink_gb_per_s : facts_of({device.chip, "sxm", 0}).nvlink_gb_per_s;
    link = {LinkKind::nvlink_mesh, BytesPerSecond{1e9 * (bandwidth > 0 ? bandwidth : 40)}, nvlink_latency};
    const bool many = row.gpus_per_node.value_or(8) > 4 || row.gpus > 4;
    if (has(text, "cube")) link.bandwidth *= share_of_links(device, machine.topology.devices_per_node);
    if (has(text, "nvswitch") || (facts.nvswitch && (many || !has(text, "mesh")))) link.kind = LinkKind::nvswitch;
    link.reduces = link.kind == LinkKind::nvswitch && facts.switches_add;
  } else {
    constexpr double per_generation[] = {0, 3, 6, 12, 24, 48, 96};
    const int stated = generation(text, "pcie");
    const double bandwidth = stated > 0 && stated <= 6 ? per_generation[stated] : facts.pcie_gb_per_s;
    link = {LinkKind::pcie, BytesPerSecond{1e9 * bandwidth}, pcie_latency};
  }
  if (silent && row.gpus > 1)
    machine.assumed.push_back(fmt::format("devices of a node joined by {} at {:.3g} GB/s (the source does not say)",
                                          to_string(link.kind), link.bandwidth.value() / 1e9));
}

// "Storage: 2x …, Compute: 8x ConnectX-6 IB HDR 200Gb/Sec": the computing part.
std::string computing_part(std::string text) {
  const std::size_t compute = text.find("compute:");
  if (compute == std::string::npos) return text;
  text = text.substr(compute);
  return text.substr(0, text.find(','));
}

// "8x200gb/s", "2xedr 100gb/s", "8x connectx-6 ib hdr 200gb/sec", "10 gb/s ethernet".
struct Adapters {
  int count = 1;
  double gigabits = 0;
};
std::optional<Adapters> adapters(const std::string& text) {
  for (const char* unit : {"gb/s", "gbps", "gbit/s", "gbe"}) {
    const std::size_t at = text.find(unit);
    if (at == std::string::npos) continue;
    const std::optional<Number> rate = number_before(text, at);
    if (!rate || rate->value <= 0) continue;
    Adapters result{1, rate->value};
    const std::size_t times = text.rfind('x', rate->begin);
    for (std::size_t x = times; x != std::string::npos && x > 0; x = text.rfind('x', x - 1)) {
      const std::optional<Number> count = number_before(text, x);
      if (count && count->value >= 1 && count->value <= 64) {
        result.count = static_cast<int>(count->value);
        break;
      }
    }
    return result;
  }
  return std::nullopt;
}

void set_network(const Row& row, MachineRecipe& machine) {
  TopologySpec& topology = machine.topology;
  const std::string text = computing_part(lower_case(row.internode));
  const bool ethernet = has(text, "ethernet") || has(text, "roce") || has(text, "gbe") || has(text, "tcp");
  topology.nic_latency = ethernet && !has(text, "roce") ? ethernet_latency : infiniband_latency;
  topology.switch_latency = Seconds{ethernet ? 5e-7 : 1.3e-7};
  topology.levels = 2;
  topology.nodes_per_switch = 32;
  if (const std::size_t over = text.find("1:"); over != std::string::npos && has(text, "oversub"))
    topology.oversubscription = std::max(1.0, std::strtod(text.c_str() + over + 2, nullptr));
  const std::optional<Adapters> stated = adapters(text);
  if (stated) {
    topology.nics_per_node = stated->count;
    topology.nic_bandwidth = BytesPerSecond{stated->gigabits * 1e9 / 8};
  } else {
    const ChipFacts facts = facts_of(parse_device_name(row.gpu));
    const int machines = (topology.devices_per_node + facts.devices_of_machine - 1) / facts.devices_of_machine;
    topology.nics_per_node = facts.nics * machines;
    topology.nic_bandwidth = BytesPerSecond{facts.nic_gb_per_s * 1e9};
  }
  if ((!stated || has(text, "not stated")) && topology.nodes > 1)
    machine.assumed.push_back(fmt::format("{} network adapters of {:.3g} Gb/s a node (the source does not say)",
                                          topology.nics_per_node, topology.nic_bandwidth.value() * 8 / 1e9));
}

}  // namespace

MachineRecipe machine_of(const Row& row) {
  MachineRecipe machine;
  int per_node = static_cast<int>(row.gpus_per_node.value_or(std::min(row.gpus, 8)));
  if (!row.gpus_per_node && row.gpus > 8) machine.assumed.push_back("8 devices a node (the source does not say)");
  per_node = std::max(1, std::min(per_node, row.gpus));
  machine.topology.devices_per_node = per_node;
  machine.topology.nodes = (row.gpus + per_node - 1) / per_node;
  set_device_links(row, machine);
  set_network(row, machine);
  return machine;
}

}  // namespace sibyl::published
