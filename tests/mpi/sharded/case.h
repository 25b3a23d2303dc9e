// One way of sharing one of the small models, and the fixture whose tests every such case must pass.
#pragma once

#include <gtest/gtest.h>

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl::trainer {

struct Case {
  std::string model, parallel;
  int micro_batches = 1;
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int chunks = 1;
  int zero = 0;
  std::string recompute = "none";
  BatchNorm batch_norm = BatchNorm::replica;
  double clip = 0.0;
  std::string order = {};
  int zero_ranks = 0;
  std::string offload = {};
  OptimizerKind optimizer = OptimizerKind::momentum;
  Precision precision = Precision::fp32;
  std::string split_until = {};
  ContextExchange context_exchange = ContextExchange::automatic;
  std::vector<std::string> stages = {};  // what those after the first begin with
  bool whole_experts = false;
};

Case synchronised(std::string model, std::string parallel);
Case synchronised(Case one);
Case updated(Case one, OptimizerKind by);
Case halved(Case one);                        // computes in bf16
Case until(Case one, std::string operation);  // the last that is split
Case clipped(Case one);                       // by a norm that gradients exceed
Case ordered(Case one, std::string order);    // along which axis neighbouring ranks lie
Case repeated(Case one, int zero_ranks);
Case begun_at(Case one, std::vector<std::string> operations);
Case by_keys(Case one);                                    // context's ranks exchange keys and values
Case in_a_ring(Case one);                                  // which go round
Case whole(Case one);                                      // experts are dealt out over ranks of tensor, too
Case offloaded(Case one, std::string what = "optimizer");  // in blocks of several tensors, or of one that is large

Strategy strategy_of(const Case& one);
// The case on one rank, with as many samples at a time, so that batch-norm sees the same.
Case serial(const Case& one);
// Clipped steps are short, and those by norms as long as the weights let them.
double learning_rate(const Case& one);
void PrintTo(const Case& one, std::ostream* out);

// Those for as many ranks as run; asked after MPI_Init, when GoogleTest begins.
std::vector<Case> of_these_ranks(std::vector<Case> cases);
template <class... Cases>
auto of_these_ranks(Cases... cases) {
  return testing::ValuesIn(of_these_ranks(std::vector<Case>{std::move(cases)...}));
}

class Sharded : public testing::TestWithParam<Case> {};

}  // namespace sibyl::trainer
