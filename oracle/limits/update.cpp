// What is done with gradients beside exchanging them.
#include "oracle/limits/finders.h"

namespace sibyl::limits {
namespace {

// Once all messages are there: part of what a step spends after backward.
Seconds decompression(const Found& f) {
  Seconds time;
  f.each_slowest([&](const Stage&, const PricedStage& priced) {
    for (const auto key : priced.kernels.decompressions) time += priced.time(key);
  });
  return time;
}

}  // namespace

void compression(const Found& f, Limits& limits) {
  Seconds time = decompression(f);
  f.each_slowest([&](const Stage&, const PricedStage& priced) {
    for (const StageKernels::OfStep& step : priced.kernels.steps)
      for (const auto key : step.compressions) time += priced.time(key);
  });
  const Compression& compression = f.plan.strategy.compression;
  add_cost(f, time, "gradient compression", compression_text(compression),
           those_that_suit({{"a form that takes less work (fp16, bf16)", compression.kind > Compression::Kind::bf16},
                            {"a faster network, which needs none"}}),
           limits);
}

void update(const Found& f, Limits& limits) {
  add_cost(f, f.prediction.breakdown.optimizer - decompression(f), "weight update", "",
           those_that_suit({{"split weights"},
                            {"larger batches"},
                            {"a lighter optimizer", f.plan.strategy.optimizer != OptimizerKind::sgd}}),
           limits);
}

}  // namespace sibyl::limits
