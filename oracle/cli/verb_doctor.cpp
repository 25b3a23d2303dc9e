#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/quantity.h"
#include "base/statistics.h"
#include "calibration/cluster.h"
#include "models/zoo/zoo.h"
#include "oracle/cli/console.h"
#include "oracle/cli/doctor_network.h"
#include "oracle/cli/external.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/paint.h"

namespace sibyl::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Check {
  std::string name;
  bool works = false;
  std::string detail;  // what was found, or what to do
};

Check program_check(const std::string& verb, const std::string& program, const std::string& needs) {
  const auto found = find_program(program);
  if (found) return {verb, true, found->string()};
  return {verb, false, fmt::format("{} is not here: tools/setup.sh all installs {}, then build again", program, needs)};
}

Check path_check(const std::string& name, const std::vector<std::string>& programs, const std::string& otherwise) {
  for (const std::string& program : programs)
    if (const auto found = find_on_path(program)) return {name, true, found->string()};
  return {name, false, otherwise};
}

// Every shipped cluster is read, so that a broken installation is seen here.
Check clusters_check() {
  const std::vector<std::string> names = shipped_clusters();
  for (const std::string& name : names)
    if (const auto cluster = load_cluster(name); !cluster) return {"clusters", false, to_string(cluster.error())};
  if (names.empty()) return {"clusters", false, "no cluster is shipped with this sibyl"};
  return {"clusters", true, fmt::format("{} shipped: {}", names.size(), fmt::join(names, ", "))};
}

Check gpu_check() {
  std::error_code error;
  if (std::filesystem::exists("/dev/nvidiactl", error)) return {"gpu", true, "an NVIDIA driver is loaded"};
  return {"gpu", false, "no NVIDIA driver is loaded: predicting needs none; calibrating a GPU does"};
}

std::vector<Check> examine() {
  return {
      {"predict", true, "inspect, predict, scale, whatif, compare and export need nothing else"},
      clusters_check(),
      {"zoo", true, fmt::format("{} models", zoo_models().size())},
      program_check("calibrate", "sibyl-calibrate", "Open MPI and libtorch"),
      program_check("train", "sibyl-train", "Open MPI and libtorch"),
      program_check("gui", "sibyl-gui", "Qt 6 and QCustomPlot"),
      path_check("launcher", {"mpirun", "srun"}, "neither mpirun nor srun is on PATH: several ranks cannot be started"),
      gpu_check(),
      {"threads", true, fmt::format("{} hardware threads", std::thread::hardware_concurrency())}};
}

// A shipped calibration: what was measured, and how well it predicts what was not.
struct Shipped {
  std::string name;
  Calibration calibration;
  std::vector<FamilyCoverage> families;
};

Result<std::vector<Shipped>> shipped() {
  std::vector<Shipped> all;
  for (const std::string& name : shipped_calibrations()) {
    SIBYL_TRY(Calibration calibration, shipped_calibration(name));
    std::vector<FamilyCoverage> families = kernel_table(calibration).coverage();
    all.push_back({name, std::move(calibration), std::move(families)});
  }
  return all;
}

std::string types_of(const std::vector<FamilyCoverage>& families) {
  std::set<DType> types;
  for (const FamilyCoverage& f : families) types.insert(f.dtype);
  std::vector<std::string_view> names;
  for (const DType type : types) names.push_back(to_string(type));
  return fmt::format("{}", fmt::join(names, ", "));
}

// The median over families of their leave-one-out medians, and the widest range of times.
std::string summary_of(const Shipped& one) {
  if (one.families.empty())
    return fmt::format("datasheet only; estimated from {}", fmt::join(one.calibration.donors, ", "));
  std::vector<double> errors;
  Seconds fastest = one.families.front().fastest, slowest = one.families.front().slowest;
  for (const FamilyCoverage& f : one.families) {
    if (f.samples >= 3) errors.push_back(f.median_error);
    fastest = std::min(fastest, f.fastest), slowest = std::max(slowest, f.slowest);
  }
  return fmt::format("{} kernels of {} families, {}, {} to {}, left out they are off by {:.1f} %",
                     one.calibration.kernels.size(), one.families.size(), types_of(one.families), to_string(fastest),
                     to_string(slowest), 100 * median(errors));
}

Json coverage_of(const Shipped& one) {
  Json families = Json::array();
  for (const FamilyCoverage& f : one.families)
    families.push_back({{"kernels", f.name},
                        {"type", to_string(f.dtype)},
                        {"samples", f.samples},
                        {"fastest_s", f.fastest.value()},
                        {"slowest_s", f.slowest.value()},
                        {"median_error", f.samples >= 3 ? Json(f.median_error) : Json()},
                        {"p90_error", f.samples >= 3 ? Json(f.p90_error) : Json()}});
  return {{"name", one.name},
          {"device", one.calibration.device.name},
          {"kernels", one.calibration.kernels.size()},
          {"donors", one.calibration.donors},
          {"families", std::move(families)}};
}

Result<int> run_doctor(const Arguments& arguments) {
  if (!arguments.operands().empty()) {
    if (arguments.operands().front() != "network" || arguments.operands().size() != 2)
      return fail(ErrorCode::usage, fmt::format("'{}' cannot be examined", arguments.operands().front()), {},
                  "sibyl doctor, or sibyl doctor network CLUSTER");
    return doctor_network(arguments);
  }
  if (arguments.has("--rated")) return fail(ErrorCode::usage, "has no effect but on a network", "--rated");
  const std::vector<Check> checks = examine();
  SIBYL_TRY(const std::vector<Shipped> calibrations, shipped());
  if (arguments.has("--json")) {
    Json json = {
        {"schema", "sibyl-doctor"}, {"version", 1}, {"checks", Json::array()}, {"calibrations", Json::array()}};
    for (const Check& check : checks)
      json["checks"].push_back({{"name", check.name}, {"works", check.works}, {"detail", check.detail}});
    for (const Shipped& one : calibrations) json["calibrations"].push_back(coverage_of(one));
    SIBYL_CHECK(print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
    return 0;
  }
  const Paint paint(text_style(arguments));
  std::string text;
  for (const Check& check : checks)
    text += fmt::format("{}  {:<10} {}\n", check.works ? "yes" : paint.alarm("no "), check.name, check.detail);
  text += "\nCalibrations shipped (`sibyl kernels NAME` shows each family of one):\n";
  for (const Shipped& one : calibrations) text += fmt::format("     {:<16} {}\n", one.name, summary_of(one));
  SIBYL_CHECK(print(text));
  return 0;
}

}  // namespace

Verb doctor_verb() {
  Command c;
  c.name = "doctor";
  c.program = "sibyl doctor";
  c.summary = "say what works on this machine and what to install for the rest";
  c.operands = "[network CLUSTER]";
  c.most_operands = 2;
  c.examples = {
      {"sibyl doctor", "one line each"},
      {"sibyl doctor network ours.json --rated 100Gb/s", "what limits the network that was measured, in words"}};
  c.options = concatenated({doctor_network_options(), output_options()});
  return {std::move(c), run_doctor};
}

}  // namespace sibyl::cli
