// NCCL's topology (NCCL_TOPO_DUMP_FILE): <system> holds a <cpu> for each NUMA node, that <pci> bridges and devices,
// those a <gpu> with its <nvlink>s or a <nic> with its <net>s. An <nvlink> names the PCI class of its other end
// (tclass): a GPU, an NVSwitch (0x068000), or on POWER9 a processor (0x068001), and by its bus number which (target). A
// <net>'s speed is in Mb/s.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <set>

#include "calibration/import/links.h"
#include "calibration/import/part.h"
#include "calibration/import/xml.h"

namespace sibyl::import {
namespace {

struct Gpu {
  int compute_capability = 0, nvlinks = 0, to_switches = 0;  // links to processors are none of these
  std::string bus;                                           // its number on it, as number_of() has it
  std::set<std::string> joined_to;                           // those of other GPUs, as far as it is said
  bool says_to_whom = true;
  BytesPerSecond pcie{};
};

struct NcclDevices {
  std::vector<Gpu> gpus;
  std::vector<double> nets;                       // Mb/s
  std::vector<int> gpus_of_cpu, branches_of_cpu;  // branches: PCI bridges of the first level that lead to GPUs
};

// "00000000:0B:00.0" is "0000:0b:00.0": a domain has four digits, or eight.
std::string number_of(std::string bus) {
  std::ranges::transform(bus, bus.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return bus.substr(std::min(bus.find_first_not_of('0'), bus.size()));
}

class NcclReader {
 public:
  Result<NcclDevices> read(const Element& system) {
    for (const Element& cpu : system.children) {
      if (cpu.name != "cpu") continue;
      const std::size_t before = found_.gpus.size();
      int branches = 0;
      for (const Element& child : cpu.children) {
        const std::size_t so_far = found_.gpus.size();
        SIBYL_CHECK(visit(child, {}, {}));
        branches += found_.gpus.size() > so_far ? 1 : 0;
      }
      found_.gpus_of_cpu.push_back(static_cast<int>(found_.gpus.size() - before));
      found_.branches_of_cpu.push_back(branches);
    }
    if (found_.gpus.empty())
      return fail("the topology has no <gpu>", system.where,
                  "write it with NCCL_TOPO_DUMP_FILE; what NCCL_TOPO_FILE reads may lack GPUs");
    return std::move(found_);
  }

 private:
  // `pcie`, `bus`: of the last bridge or device on the way.
  Result<void> visit(const Element& element, BytesPerSecond pcie, std::string bus) {
    if (element.name == "pci") {
      SIBYL_TRY(pcie, rate_of(element));
      bus = number_of(element.text("busid").value_or(""));
    } else if (element.name == "gpu") {
      return gpu(element, pcie, bus);
    } else if (element.name == "net") {
      SIBYL_TRY(const auto speed, element.number("speed", 1));
      if (!speed) return fail("<net> lacks 'speed'", element.where, "in Mb/s, like 200000");
      found_.nets.push_back(*speed);
    }
    for (const Element& child : element.children) SIBYL_CHECK(visit(child, pcie, bus));
    return {};
  }

  // link_speed: "16.0 GT/s PCIe", "8 GT/s"; an older kernel's "Unknown" is no speed.
  static Result<BytesPerSecond> rate_of(const Element& pci) {
    const std::string speed = pci.text("link_speed").value_or("");
    const double gigatransfers =
        speed.empty() || !std::isdigit(static_cast<unsigned char>(speed[0])) ? 0 : std::strtod(speed.c_str(), nullptr);
    SIBYL_TRY(const auto width, pci.number("link_width", 0));
    if (gigatransfers > 1000) return fail(fmt::format("<pci>: a link_speed of '{}'", speed), pci.where);
    return pcie_of(gigatransfers, width.value_or(0));
  }

  Result<void> gpu(const Element& element, BytesPerSecond pcie, const std::string& bus) {
    Gpu gpu;
    gpu.pcie = pcie;
    gpu.bus = bus;
    SIBYL_TRY(const auto sm, element.number("sm", 1));
    if (!sm || *sm > 1000) return fail("<gpu> must have 'sm', its compute capability", element.where, "like sm=\"80\"");
    gpu.compute_capability = static_cast<int>(*sm);
    for (const Element& link : element.children) {
      if (link.name != "nvlink") continue;
      SIBYL_TRY(const auto count, link.number("count", 0));
      if (!count || *count > 1000) return fail("<nvlink> must have 'count', the number of links", link.where);
      SIBYL_TRY(const std::string other_end, link.required("tclass"));
      if (other_end.starts_with("0x068001")) continue;
      gpu.nvlinks += static_cast<int>(*count);
      if (other_end.starts_with("0x0680")) {
        gpu.to_switches += static_cast<int>(*count);
      } else if (const auto target = link.text("target")) {
        gpu.joined_to.insert(number_of(*target));
      } else {
        gpu.says_to_whom = false;
      }
    }
    found_.gpus.push_back(gpu);
    return {};
  }

  NcclDevices found_;
};

bool alike(const std::vector<int>& counts) {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

// A DGX-1: eight GPUs, each joined to four others, with P100 by one link each and with V100 to two of them by two.
bool is_cube_mesh(const NcclDevices& found) {
  return found.gpus.size() == 8 && std::ranges::all_of(found.gpus, [&](const Gpu& gpu) {
           return gpu.to_switches == 0 && gpu.nvlinks == found.gpus.front().nvlinks &&
                  (gpu.nvlinks == 4 || gpu.nvlinks == 6);
         });
}

// Do NVLinks join every GPU to every other, as far as the file says whom they join?
bool all_joined(const std::vector<Gpu>& gpus) {
  const bool names_any = std::ranges::any_of(gpus, [&](const Gpu& gpu) {
    return std::ranges::any_of(gpus, [&](const Gpu& other) { return gpu.joined_to.contains(other.bus); });
  });
  if (!names_any) return true;  // other names for the same: they tell nothing
  return std::ranges::all_of(gpus, [&](const Gpu& gpu) {
    return !gpu.says_to_whom || std::ranges::all_of(gpus, [&](const Gpu& other) {
      return &other == &gpu || other.bus.empty() || gpu.joined_to.contains(other.bus);
    });
  });
}

void set_links(const NcclDevices& found, Part& part) {
  const auto least = std::ranges::min_element(found.gpus, {}, &Gpu::nvlinks);
  const auto most = std::ranges::max_element(found.gpus, {}, &Gpu::nvlinks);
  const Gpu& gpu = *least;
  if (least->nvlinks != most->nvlinks)
    part.assumed.push_back(fmt::format("every GPU has {} NVLinks, as the one with the fewest; another has {}",
                                       least->nvlinks, most->nvlinks));
  const bool switched = gpu.to_switches > 0, cube = is_cube_mesh(found);
  const bool some_joined = gpu.nvlinks > 0 && !switched && !cube && !all_joined(found.gpus);
  if (some_joined) part.assumed.push_back("all GPUs talk over PCIe: NVLinks join some of them alone");
  if (gpu.nvlinks == 0 || some_joined) {
    const BytesPerSecond rate = gpu.pcie.value() > 0 ? gpu.pcie : pcie_of(16, 16);
    if (gpu.pcie.value() <= 0)
      part.assumed.push_back("PCIe 4.0 x16: the file does not say the speed of the GPUs' links");
    part.device_link = LinkSpec{LinkKind::pcie, rate, pcie_latency};
    std::vector<int> sockets, branches;
    for (std::size_t i = 0; i < found.gpus_of_cpu.size(); ++i)
      if (found.gpus_of_cpu[i] > 0)
        sockets.push_back(found.gpus_of_cpu[i]), branches.push_back(found.branches_of_cpu[i]);
    if (alike(sockets) && alike(branches))
      part.inside = fabric::PcieTree{.sockets = static_cast<int>(sockets.size()), .switches_per_socket = branches[0]};
    return;
  }
  part.device_link = LinkSpec{switched ? LinkKind::nvswitch : LinkKind::nvlink_mesh,
                              nvlink_of(gpu.compute_capability) * static_cast<double>(gpu.nvlinks), nvlink_latency};
  constexpr int hopper = 90;
  if (switched && gpu.compute_capability >= hopper) {
    part.device_link->reduces = true;
    part.assumed.push_back("NVSwitches add what passes them (NVLink SHARP), as from Hopper on");
  }
  if (cube) part.inside = fabric::CubeMesh{gpu.nvlinks};
}

void set_nics(const NcclDevices& found, Part& part) {
  if (found.nets.empty()) return;
  const double fastest = *std::ranges::max_element(found.nets);
  const auto count = std::ranges::count(found.nets, fastest);
  part.nics = Nics{static_cast<int>(count), BytesPerSecond{fastest * 1e6 / 8}, {}};
  if (const auto slower = static_cast<std::ptrdiff_t>(found.nets.size()) - count; slower > 0)
    part.assumed.push_back(
        fmt::format("{} of the adapters, slower than the others, carry no traffic of training", slower));
}

}  // namespace

Result<Part> read_nccl(std::string_view text, const std::string& file) {
  SIBYL_TRY(const Element system, parse_xml(text, file));
  if (system.name != "system") return fail(fmt::format("<{}> is no NCCL topology", system.name), system.where);
  SIBYL_TRY(const NcclDevices found, NcclReader().read(system));
  Part part;
  part.format = "NCCL topology";
  part.devices_per_node = static_cast<int>(found.gpus.size());
  set_links(found, part);
  set_nics(found, part);
  return part;
}

}  // namespace sibyl::import
