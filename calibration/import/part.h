// What one file of another program says of a cluster: any of a node's devices and links, its NICs, and what joins
// nodes.
//
// Each reader is one function in a file of its own; formats.h finds the right one, cluster_text.h joins parts to a
// cluster file. What a file does not say stays empty; what a reader takes for granted it says in `assumed`, as a
// sentence without full stop. Errors name file:line and the element.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "netmodel/fabric/spec.h"
#include "netmodel/topology.h"

namespace sibyl::import {

// Switches over nodes, each under one other at most, as Slurm lists them.
struct SwitchTree {
  struct Switch {
    std::string name;
    std::vector<std::string> switches, nodes;  // below it
    std::string where;
  };
  std::vector<Switch> switches;
};

struct Nics {
  int per_node = 1;
  BytesPerSecond bandwidth{};  // of each; 0: not known
  std::optional<Seconds> latency;
  double background = 0.0;  // share of each that others use
};

struct Part {
  std::string format;  // "NCCL topology"
  std::optional<int> nodes, devices_per_node;
  std::optional<LinkSpec> device_link;
  std::optional<fabric::Inside> inside;
  std::optional<Nics> nics;
  std::optional<SwitchTree> tree;
  std::optional<fabric::Outside> network;  // where it is no tree of switches
  fabric::LinkRate link;                   // of `network`
  std::optional<Seconds> switch_latency;   // of its switches and routers
  std::vector<std::string> assumed;
};

// NCCL_TOPO_DUMP_FILE: one node. NCCL, src/graph/topo.cc, xml.cc (2.27).
Result<Part> read_nccl(std::string_view text, const std::string& file);
// lstopo FILE.xml: one node. hwloc 2 (and 1's element names).
Result<Part> read_hwloc(std::string_view text, const std::string& file);
// topology.conf(5) of Slurm's tree and block plugins.
Result<Part> read_slurm_conf(std::string_view text, const std::string& file);
// topology.yaml(5): its default topology, or the first.
Result<Part> read_slurm_yaml(std::string_view text, const std::string& file);
// The network of ASTRA-sim's analytical backend: topology, npus_count, bandwidth (of a link, in 2^30 B/s), latency
// (ns).
Result<Part> read_astra_sim(std::string_view text, const std::string& file);

// By what the text is.
Result<Part> read_part(std::string_view text, const std::string& file);

}  // namespace sibyl::import
