#include "calibration/summary.h"

#include <nlohmann/json.hpp>

namespace sibyl {
namespace {

struct CountedKind {
  const char* name;
  std::size_t SampleCounts::*count;
};
constexpr CountedKind counted_kinds[] = {
    {"kernels", &SampleCounts::kernels}, {"point_to_point", &SampleCounts::point_to_point},
    {"pairs", &SampleCounts::pairs},     {"collectives", &SampleCounts::collectives},
    {"overlap", &SampleCounts::overlap}, {"meetings", &SampleCounts::meetings},
    {"io", &SampleCounts::io},           {"steps", &SampleCounts::steps}};

}  // namespace

SampleCounts count_samples(const Calibration& c) {
  return {c.kernels.size(), c.point_to_point.size(), c.pairs.size(), c.collectives.size(),
          c.overlap.size(), c.meetings.size(),       c.io.size(),    c.steps.size()};
}

std::string summary_json(const std::string& file, const SampleCounts& before, const Calibration& now, Seconds elapsed) {
  const SampleCounts after = count_samples(now);
  nlohmann::ordered_json json;
  json["schema"] = "sibyl-calibrated";
  json["version"] = 1;
  json["file"] = file;
  json["elapsed_s"] = elapsed.value();
  json["ranks_per_node"] = now.ranks_per_node;
  json["threads"] = now.threads;
  for (const CountedKind& kind : counted_kinds) {
    // What is measured anew may replace what there was.
    const std::size_t was = before.*kind.count, is = after.*kind.count;
    json["added"][kind.name] = is > was ? is - was : 0;
    json["samples"][kind.name] = is;
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace sibyl
