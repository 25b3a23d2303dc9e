#include "tests/mpi/sharded/case.h"

#include <fmt/format.h>
#include <mpi.h>

#include <ostream>
#include <stdexcept>

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
  if (one.context_exchange == ContextExchange::keys) text += " by keys";
  if (one.context_exchange == ContextExchange::ring) text += " in a ring";
  if (one.whole_experts) text += " whole experts";
  if (!one.order.empty()) text += " order " + one.order;
  if (one.recompute != "none") text += " recompute " + one.recompute;
  if (!one.offload.empty()) text += " offload " + one.offload;
  if (one.optimizer != OptimizerKind::momentum) text += fmt::format(" by {}", to_string(one.optimizer));
  if (one.precision != Precision::fp32) text += fmt::format(" in {}", to_string(one.precision));
  if (!one.split_until.empty()) text += " until " + one.split_until;
  for (const std::string& operation : one.stages) text += " at " + operation;
  return text;
}

}  // namespace

Case synchronised(std::string model, std::string parallel) {
  return synchronised(Case{std::move(model), std::move(parallel)});
}

Case synchronised(Case one) {
  one.batch_norm = BatchNorm::synchronised;
  return one;
}

Case updated(Case one, OptimizerKind by) {
  one.optimizer = by;
  return one;
}

Case halved(Case one) {
  one.precision = Precision::bf16;
  return one;
}

Case until(Case one, std::string operation) {
  one.split_until = std::move(operation);
  return one;
}

Case begun_at(Case one, std::vector<std::string> operations) {
  one.stages = std::move(operations);
  return one;
}

Case by_keys(Case one) {
  one.context_exchange = ContextExchange::keys;
  return one;
}

Case in_a_ring(Case one) {
  one.context_exchange = ContextExchange::ring;
  return one;
}

Case whole(Case one) {
  one.whole_experts = true;
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
  strategy.stage_starts = one.stages;
  strategy.zero = one.zero;
  strategy.zero_ranks = one.zero_ranks;
  EXPECT_TRUE(parse_recompute(one.recompute, strategy).has_value());
  if (!one.offload.empty()) {
    EXPECT_TRUE(parse_offload(one.offload, strategy).has_value());
  }
  strategy.optimizer = one.optimizer;
  strategy.precision = one.precision;
  strategy.split_until = one.split_until;
  strategy.context_exchange = one.context_exchange;
  strategy.whole_experts = one.whole_experts;
  strategy.batch_norm = one.batch_norm;
  strategy.clip = one.clip;
  strategy.bucket = strategy.first_bucket = Bytes{2048};  // several buckets, of several tensors each
  return strategy;
}

Case serial(const Case& one) {
  Case alone{one.model, "data=1", one.micro_batches};
  alone.clip = one.clip;
  alone.optimizer = one.optimizer;
  alone.precision = one.precision;
  return alone;
}

double learning_rate(const Case& one) {
  switch (one.optimizer) {
    case OptimizerKind::lamb: return 0.01;  // of a weight's norm, each step
    case OptimizerKind::lars: return 1.0;   // a thousandth of it
    case OptimizerKind::adam:
    case OptimizerKind::adamw: return 0.002;  // of 1, each step, whatever the gradient
    default: return one.clip > 0 ? 0.2 : 0.05;
  }
}

void PrintTo(const Case& one, std::ostream* out) { *out << text_of(one); }

std::vector<Case> of_these_ranks(std::vector<Case> cases) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (const Case& one : cases)
    if (const int devices = strategy_of(one).devices(); devices != 2 && devices != 4 && devices != 8)
      throw std::invalid_argument(text_of(one) + " runs on none of the numbers of ranks of CMakeLists.txt");
  std::erase_if(cases, [&](const Case& one) { return strategy_of(one).devices() != ranks; });
  return cases;
}

}  // namespace sibyl::trainer
