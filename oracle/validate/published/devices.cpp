#include "oracle/validate/published/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "calibration/device_names.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {
namespace {

// Words that say nothing of which chip it is, or what can be told otherwise.
constexpr auto ignored =
    std::to_array<std::string_view>({"nvidia", "tesla", "quadro", "geforce", "amd", "instinct", "intel", "gpu", "hbm2",
                                     "hbm2e", "hbm3", "gddr6", "lower", "tdp", "server", "edition", "dgx", "hgx"});

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  int depth = 0;
  for (const char c : lower_case(name)) {
    depth += c == '(' ? 1 : 0;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (letter && depth == 0) words.back() += c;
    if (!letter && !words.back().empty()) words.emplace_back();
    depth -= c == ')' && depth > 0 ? 1 : 0;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

// "80gb" -> 80.
int gigabytes(const std::string& word) {
  if (!word.ends_with("gb") && !word.ends_with("gib")) return 0;
  const std::string digits = word.substr(0, word.find('g'));
  const bool all = !digits.empty() && digits.size() < 6 &&
                   std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return all ? std::atoi(digits.c_str()) : 0;
}

struct ChipRow {
  std::string_view chip;
  ChipFacts facts;
};

// Links at the rates that NCCL counts with (src/graph/topo.h: 18 GB/s a link of Pascal, 20 of Volta and Ampere, 20.6 of
// Hopper, 40.1 of Blackwell; PCIe x16 of generation 3: 12, 4: 24, 5: 48); NICs of DGX-1 (P100, V100), DGX A100, H100,
// B200. Switches add from those of Hopper on.
constexpr auto chips = std::to_array<ChipRow>({
    {"p100", {72, false, 12, 4, 12.5}},
    {"v100", {120, false, 12, 4, 12.5}},
    {"a100", {240, true, 24, 8, 25}},
    {"a800", {160, true, 24, 8, 25}},
    {"h100", {370.8, true, 48, 8, 50, true}},
    {"h200", {370.8, true, 48, 8, 50, true}},
    {"h20", {370.8, true, 48, 8, 50, true}},
    {"h100nvl", {0, false, 48, 8, 50}},
    {"gh200", {0, false, 48, 1, 50, false, 1}},
    {"h800", {164.8, true, 48, 8, 50, true}},
    {"b200", {721.8, true, 48, 8, 50, true}},
    {"gb200", {721.8, true, 48, 4, 50, true, 4}},
    {"b300", {721.8, true, 96, 8, 100, true}},
    {"gb300", {721.8, true, 96, 4, 100, true, 4}},
    {"a10", {0, false, 24}},
    {"a10g", {0, false, 24}},
    {"a30", {0, false, 24}},
    {"a40", {0, false, 24}},
    {"a6000", {0, false, 24}},
    {"rtxa6000", {0, false, 24}},
    {"rtx3090", {0, false, 24}},
    {"rtx4090", {0, false, 24}},
    {"rtx6000ada", {0, false, 24}},
    {"rtx5090", {0, false, 48}},
    {"rtxpro6000", {0, false, 48}},
    {"l20", {0, false, 24}},
    {"l4", {0, false, 24}},
    {"l40", {0, false, 24}},
    {"l40s", {0, false, 24}},
    {"mi100", {0, false, 24}},
    {"mi210", {0, false, 24}},
    {"mi250", {0, false, 24}},
    {"mi250x", {0, false, 24}},
    {"mi300x", {0, false, 48}},
    {"mi325x", {0, false, 48}},
});

double distance(const DeviceName& wanted, const DeviceName& shipped) {
  double result = 0;
  if (!wanted.form.empty() && !shipped.form.empty() && wanted.form != shipped.form) result += 10;
  if (wanted.form.empty() && shipped.form != "sxm") result += 1;
  if (wanted.memory_gb > 0 && shipped.memory_gb > 0 && wanted.memory_gb != shipped.memory_gb) result += 2;
  return result;
}

}  // namespace

DeviceName parse_device_name(std::string_view name) {
  DeviceName result;
  for (const std::string& word : words_of(name)) {
    if (std::find(ignored.begin(), ignored.end(), word) != ignored.end()) continue;
    if (word.starts_with("sxm"))
      result.form = "sxm";
    else if (word.starts_with("pcie"))
      result.form = "pcie";
    else if (const int memory = gigabytes(word); memory > 0)
      result.memory_gb = memory;
    else
      result.chip += word;
  }
  return result;
}

Result<DeviceMatch> match_device(const std::string& gpu, const std::vector<std::string>& shipped) {
  if (const auto named = shipped_device(gpu);
      named && std::find(shipped.begin(), shipped.end(), *named) != shipped.end())
    return DeviceMatch{*named, {}};
  const DeviceName wanted = parse_device_name(gpu);
  const std::string* best = nullptr;
  double least = 0;
  for (const std::string& name : shipped) {
    const DeviceName candidate = parse_device_name(name);
    if (candidate.chip != wanted.chip) continue;
    const double d = distance(wanted, candidate);
    // Of equal ones the later name: the larger memory, which most machines with many devices have.
    if (!best || d <= least) best = &name, least = d;
  }
  if (!best)
    return fail(fmt::format("no shipped device is a '{}'", gpu), {},
                fmt::format("there are {}", fmt::join(shipped, ", ")));
  DeviceMatch match{*best, {}};
  const DeviceName chosen = parse_device_name(*best);
  const bool other =
      least >= 2 || (wanted.form.empty() && !chosen.form.empty()) || (wanted.memory_gb == 0 && chosen.memory_gb > 0);
  if (other) match.assumed.push_back(fmt::format("device '{}' taken as {}", gpu, *best));
  return match;
}

ChipFacts facts_of(const DeviceName& device) {
  ChipFacts facts;
  for (const ChipRow& row : chips)
    if (row.chip == device.chip) facts = row.facts;
  if (device.form == "pcie") facts.nvlink_gb_per_s = 0;
  return facts;
}

Result<Cluster> DeviceCatalogue::cluster(const std::string& calibration, const TopologySpec& topology) {
  const std::lock_guard lock(mutex_);
  auto known = known_.find(calibration);
  if (known == known_.end()) {
    SIBYL_TRY(Calibration read, shipped_calibration(calibration));
    known = known_.emplace(calibration, std::move(read)).first;
  }
  const Calibration& source = known->second;
  auto built = built_.find(calibration);
  if (built == built_.end()) {
    SIBYL_TRY(Cluster first, cluster_of(source, calibration, topology, calibration));
    built = built_.emplace(calibration, std::move(first)).first;
  }
  Cluster cluster = built->second;
  auto made = Topology::make(topology);
  if (!made) return fail(made.error().message, {}, made.error().hint);
  cluster.nodes = topology.nodes;
  cluster.devices_per_node = topology.devices_per_node;
  cluster.network = Network(std::move(*made), source.point_to_point, source.collectives);
  return cluster;
}

}  // namespace sibyl::published
