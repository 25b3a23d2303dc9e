#include "oracle/cli/doctor_network.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/quantity.h"
#include "calibration/cluster_file.h"
#include "calibration/measured_cluster.h"
#include "calibration/shipped.h"
#include "netmodel/diagnosis.h"
#include "oracle/cli/console.h"
#include "oracle/report/paint.h"

namespace sibyl::cli {
namespace {

using Json = nlohmann::ordered_json;

MeasuredNetwork measured_by(Calibration calibration) {
  MeasuredNetwork network;
  network.machine = measured_topology(calibration);
  network.messages = std::move(calibration.point_to_point);
  network.pairs = std::move(calibration.pairs);
  network.collectives = std::move(calibration.collectives);
  return network;
}

Result<MeasuredNetwork> network_named(const std::string& name) {
  if (name.ends_with(".json")) {
    SIBYL_TRY(Calibration calibration, load_calibration(name));
    return measured_by(std::move(calibration));
  }
  const auto known = shipped::find(shipped::Kind::cluster, name);
  SIBYL_TRY(const std::string text, known ? Result<std::string>(std::string(*known)) : read_text(name));
  SIBYL_TRY(const ClusterFile file, parse_cluster_file(text, name));
  const std::filesystem::path folder = std::filesystem::path(name).parent_path();
  const std::string calibration_name = file.network.value_or(file.calibration);
  SIBYL_TRY(Calibration calibration, calibration_name.ends_with(".json") ? load_calibration(folder / calibration_name)
                                                                         : shipped_calibration(calibration_name));
  MeasuredNetwork network = measured_by(std::move(calibration));
  if (!file.network) {
    network.machine = file.topology;
    network.rated = file.topology.nic_bandwidth;
  }
  return network;
}

}  // namespace

std::vector<Option> doctor_network_options() {
  return {{.name = "--rated", .value = "RATE", .help = "of `network`: what one adapter is rated at, like 100Gb/s"}};
}

Result<int> doctor_network(const Arguments& arguments) {
  SIBYL_TRY(MeasuredNetwork network, network_named(arguments.operands()[1]));
  if (const auto rated = arguments.text("--rated")) {
    auto rate = parse_bytes_per_second(*rated);
    if (!rate || rate->value() <= 0)
      return fail(ErrorCode::usage, fmt::format("'{}' is no rate", *rated), "--rated", "like 100Gb/s");
    network.rated = *rate;
  }
  const std::vector<Finding> findings = diagnose(network);
  if (arguments.has("--json")) {
    Json json = {{"schema", "sibyl-doctor-network"}, {"version", 1}, {"findings", Json::array()}};
    for (const Finding& finding : findings)
      json["findings"].push_back(
          {{"kind", to_string(finding.kind)}, {"what", finding.what}, {"advice", finding.advice}});
    SIBYL_CHECK(print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
    return 0;
  }
  const Paint paint(text_style(arguments));
  std::string text;
  for (const Finding& finding : findings) {
    const std::string kind = fmt::format("{:<8}", to_string(finding.kind));
    text += fmt::format("{} {}\n", finding.kind == Finding::Kind::limit ? paint.alarm(kind) : kind, finding.what);
    if (!finding.advice.empty()) text += fmt::format("         -> {}\n", finding.advice);
  }
  SIBYL_CHECK(print(text));
  return 0;
}

}  // namespace sibyl::cli
