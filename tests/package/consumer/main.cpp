// A program that predicts, written against the installed Sibyl alone.
#include <models/onnx/import.h>
#include <models/zoo/zoo.h>
#include <oracle/predict.h>

#include <cstdio>

namespace {

sibyl::Result<sibyl::Prediction> predict_resnet50() {
  const sibyl::ImportOptions options = {.batch = 32, .dims = {}};
  SIBYL_TRY(const std::string bytes, sibyl::zoo_model_bytes("resnet50"));
  SIBYL_TRY(const sibyl::Import import, sibyl::inspect_onnx_bytes(bytes, "resnet50", options));
  SIBYL_TRY(const sibyl::Cluster cluster, sibyl::load_cluster("abci-v100"));
  return sibyl::predict(import.graph, {.data = 8, .global_batch = 256}, cluster);
}

}  // namespace

int main() {
  const sibyl::Result<sibyl::Prediction> prediction = predict_resnet50();
  if (!prediction) {
    std::fprintf(stderr, "%s\n", to_string(prediction.error()).c_str());
    return exit_code(prediction.error().code);
  }
  std::printf("%.1f ms a step, %.0f samples/s\n", 1e3 * prediction->step_time.value(), prediction->throughput);
  return prediction->step_time.value() > 0 && prediction->fits ? 0 : 1;
}
