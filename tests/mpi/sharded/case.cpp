#include "tests/mpi/sharded/case.h"

#include <fmt/format.h>

#include <ostream>

#include "tests/mpi/sharded/models.h"

namespace sibyl::trainer {
namespace {

std::string text_of(const Case& one) {
  std::string text = one.model + " " + one.parallel;
  if (one.parallel.find("pipeline") != std::string::npos) text += " " + schedule_text(strategy_of(one));
  if (one.micro_batches > 1) text += fmt::format(" {} parts", one.micro_batches);
  if (one.zero > 0) text += " zero " + zero_text(strategy_of(one));
  if (one.batch_norm == BatchNorm::synchronised) text += " synchronised";
  if (one.clip > 0) text += " clipped";
  if (!one.order.empty()) text += " order " + one.order;
  if (one.recompute != "none") text += " recompute " + one.recompute;
  if (!one.offload.empty()) text += " offload " + one.offload;
  return text;
}

}  // namespace

Case synchronised(std::string model, std::string parallel) {
  Case one{std::move(model), std::move(parallel)};
  one.batch_norm = BatchNorm::synchronised;
  return one;
}

Case clipped(Case one) {
  one.clip = 0.5;
  return one;
}

Case ordered(Case one, std::string order) {
  one.order = std::move(order);
  return one;
}

Case repeated(Case one, int zero_ranks) {
  one.zero_ranks = zero_ranks;
  return one;
}

Case offloaded(Case one, std::string what) {
  one.offload = std::move(what);
  return one;
}

Strategy strategy_of(const Case& one) {
  Strategy strategy;
  EXPECT_TRUE(parse_parallel(one.parallel, strategy).has_value());
  EXPECT_TRUE(parse_order(one.order, strategy).has_value());
  strategy.global_batch = sharded_batch;
  strategy.accumulation = one.micro_batches;
  strategy.schedule = one.schedule;
  strategy.chunks = one.chunks;
  strategy.zero = one.zero;
  strategy.zero_ranks = one.zero_ranks;
  EXPECT_TRUE(parse_recompute(one.recompute, strategy).has_value());
  if (!one.offload.empty()) {
    EXPECT_TRUE(parse_offload(one.offload, strategy).has_value());
  }
  strategy.optimizer = OptimizerKind::momentum;
  strategy.batch_norm = one.batch_norm;
  strategy.clip = one.clip;
  strategy.bucket = strategy.first_bucket = Bytes{2048};  // several buckets, of several tensors each
  return strategy;
}

void PrintTo(const Case& one, std::ostream* out) { *out << text_of(one); }

}  // namespace sibyl::trainer
