#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "calibration/cluster.h"
#include "models/zoo/zoo.h"
#include "oracle/cli/console.h"
#include "oracle/cli/external.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/paint.h"

namespace sibyl::cli {
namespace {

struct Check {
  std::string name;
  bool works = false;
  std::string detail;  // what was found, or what to do
};

Check program_check(const std::string& verb, const std::string& program) {
  const auto found = find_program(program);
  if (found) return {verb, true, found->string()};
  return {verb, false,
          fmt::format("{} is not here: tools/setup.sh installs Open MPI and libtorch, then build again", program)};
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
      program_check("calibrate", "sibyl-calibrate"),
      program_check("train", "sibyl-train"),
      path_check("launcher", {"mpirun", "srun"}, "neither mpirun nor srun is on PATH: several ranks cannot be started"),
      gpu_check(),
      {"threads", true, fmt::format("{} hardware threads", std::thread::hardware_concurrency())}};
}

Result<int> run(const Arguments& arguments) {
  const std::vector<Check> checks = examine();
  if (arguments.has("--json")) {
    nlohmann::ordered_json json = {
        {"schema", "sibyl-doctor"}, {"version", 1}, {"checks", nlohmann::ordered_json::array()}};
    for (const Check& check : checks)
      json["checks"].push_back({{"name", check.name}, {"works", check.works}, {"detail", check.detail}});
    SIBYL_CHECK(print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"));
    return 0;
  }
  const Paint paint(text_style(arguments));
  std::string text;
  for (const Check& check : checks)
    text += fmt::format("{}  {:<10} {}\n", check.works ? "yes" : paint.alarm("no "), check.name, check.detail);
  SIBYL_CHECK(print(text));
  return 0;
}

}  // namespace

Verb doctor_verb() {
  Command c;
  c.name = "doctor";
  c.program = "sibyl doctor";
  c.summary = "say what works on this machine and what to install for the rest";
  c.examples = {{"sibyl doctor", "one line each"}};
  c.options = output_options();
  return {std::move(c), run};
}

}  // namespace sibyl::cli
