// libFuzzer target: any bytes as a calibration file give a Calibration or an Error. A Calibration is written and read
// again without loss, and a cluster made from it is priced in numbers that are numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "calibration/cluster.h"
#include "calibration/codec.h"
#include "oracle/predict.h"
#include "oracle/report/report.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void predict_on(const Cluster& cluster, int devices) {
  static const Graph graph = test::mlp({16, 32, 10}, 8);
  Strategy strategy;
  strategy.data = devices;
  strategy.global_batch = 8 * devices;
  const auto prediction = predict(graph, strategy, cluster);
  if (!prediction) return;
  require(std::isfinite(prediction->step_time.value()) && std::isfinite(prediction->memory.total.value()));
  require(prediction->interval_low <= prediction->step_time && prediction->step_time <= prediction->interval_high);
  const std::string json = to_json({"mlp", cluster.name, *prediction});
  require(parse_prediction(json, "fuzz.json").has_value());
}

void check(Calibration calibration) {
  const std::string text = calibration_codec::write(calibration);
  const auto again = calibration_codec::read(text, "again.json");
  require(again && calibration_codec::write(*again) == text);
  const auto cluster = measured_cluster(std::move(calibration), "fuzz", "fuzz.json");
  if (!cluster) return;
  predict_on(*cluster, 1);
  predict_on(*cluster, std::min(cluster->devices(), 6));
}

}  // namespace
}  // namespace sibyl

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto calibration = sibyl::calibration_codec::read(text, "fuzz.json")) sibyl::check(std::move(*calibration));
  return 0;
}
