// cluster.yaml as values: what a person wrote, before the calibration it names is read. Format:
// docs/formats/cluster.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "calibration/calibration.h"
#include "netmodel/fabric/spec.h"
#include "netmodel/library.h"
#include "netmodel/topology.h"

namespace sibyl {

struct ClusterFile {
  std::string name;
  std::string calibration;             // a shipped calibration's name, or a path relative to this file
  std::string calibration_where;       // file:line, for errors about it
  std::optional<std::string> network;  // the path of a calibration whose network it is; then there is no topology
  TopologySpec topology;
  std::optional<fabric::FabricSpec> shape;  // of a fabric, whose counts and rates are in `topology`
  std::string shape_where;                  // file:line, for errors about it
  Algorithm algorithm = Algorithm::automatic;
  Protocol protocol = Protocol::automatic;
  LibraryChoice library;
  std::optional<OverlapSample> overlap;                // else from the calibration
  std::optional<Seconds> step_overhead_per_operation;  // else from the calibration
  std::optional<BytesPerSecond> storage_read;          // else from the calibration
  std::optional<BytesPerSecond> host_link;             // else from the calibration
};

// `file` names the text in errors, which carry "file:line".
Result<ClusterFile> parse_cluster_file(std::string_view text, const std::string& file);

}  // namespace sibyl
