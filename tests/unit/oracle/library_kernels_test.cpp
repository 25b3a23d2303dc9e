// What libraries make of a plan's kernels beside images: elementwise operations in one kernel, updates in one kernel,
// exchanges beside products, and what a host needs to launch all that.
#include <gtest/gtest.h>

#include <set>
#include <span>

#include "calibration/cluster_change.h"
#include "oracle/cost/kernels.h"
#include "oracle/cost/price.h"
#include "oracle/plan/pointwise.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using test::zoo;

Strategy training(std::int64_t batch = 2) {
  Strategy s;
  s.global_batch = batch;
  return s;
}

Stage program(const std::string& model, bool fused) {
  Strategy s = training();
  s.fused_pointwise = fused;
  return make_plan(zoo(model, 2), s)->stages.front();
}

// The groups' kernels, and the operations that have none of their own.
struct Groups {
  std::vector<const Compute*> kernels;
  int without = 0;
};
Groups groups_of(const Stage& stage) {
  Groups groups;
  for (const Step& step : stage.steps) {
    const auto* compute = std::get_if<Compute>(&step);
    if (compute == nullptr) continue;
    groups.without += compute->fused ? 1 : 0;
    if (compute->moved.forward > 0) groups.kernels.push_back(compute);
  }
  return groups;
}

double bytes_of(const Stage& stage, LocalTensorId id) {
  return static_cast<double>(element_count(stage[id].shape)) * size_in_bytes(stage[id].dtype);
}

// Each of four layers of Llama: SwiGLU, whose product reads SiLU's operand and its own, and writes one result, three
// tensors alike; backward it reads the gradient and both, and writes two gradients, five.
TEST(FusedPointwise, SwiGluIsOneKernel) {
  const Stage stage = program("llama-mini", true);
  int seen = 0;
  for (const Compute* kernel : groups_of(stage).kernels) {
    const auto* binary = std::get_if<Binary>(&kernel->attributes);
    const Shape& shape = stage[kernel->outputs.front()].shape;
    if (binary == nullptr || binary->kind != BinaryKind::mul || shape.size() != 3) continue;
    ++seen;
    const double one = bytes_of(stage, kernel->outputs.front());
    EXPECT_DOUBLE_EQ(kernel->moved.forward, 3 * one);
    EXPECT_DOUBLE_EQ(kernel->moved.backward, 5 * one);
  }
  EXPECT_EQ(seen, 4);
}

// Rotary positions of q and of k: x and the tables of sines and cosines in, as much as x out, whatever is sliced,
// negated, put together, multiplied and added between.
TEST(FusedPointwise, RotaryPositionsAreOneKernel) {
  const Stage stage = program("llama-mini", true);
  int seen = 0;
  for (const Compute* kernel : groups_of(stage).kernels) {
    const auto* binary = std::get_if<Binary>(&kernel->attributes);
    if (binary == nullptr || binary->kind != BinaryKind::add || stage[kernel->outputs.front()].shape.size() != 4)
      continue;
    ++seen;
    const double one = bytes_of(stage, kernel->outputs.front());
    EXPECT_GE(kernel->moved.forward, 2 * one);
    EXPECT_LT(kernel->moved.forward, 3 * one);
  }
  EXPECT_EQ(seen, 8);
  EXPECT_GT(groups_of(stage).without, 4 + 8 * 4);
  EXPECT_TRUE(groups_of(program("llama-mini", false)).kernels.empty());
}

// What is fused launches nothing and adds no gradients up by itself; each group is priced as a copy of what it moves.
TEST(FusedPointwise, LaunchesOneKernelAGroup) {
  const Stage stage = program("llama-mini", true);
  const StageKernels kernels = kernels_of(stage, Backend::cuda);
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    if (compute == nullptr) continue;
    if (compute->fused) {
      EXPECT_FALSE(kernels.steps[i].forward || kernels.steps[i].backward);
      EXPECT_TRUE(kernels.steps[i].sums.empty());
    } else if (compute->moved.forward > 0) {
      ASSERT_TRUE(kernels.steps[i].forward);
      const Work work = work_of(kernels.keys[*kernels.steps[i].forward], Backend::cuda);
      EXPECT_NEAR((work.read + work.written).value(), compute->moved.forward, 8);
    }
  }
}

// What somebody else reads, too, ends its group: y = relu(x) is read by the sum and by the product behind it.
TEST(FusedPointwise, WhatOthersReadIsWritten) {
  const Stage plain = program("resnet18", false), fused = program("resnet18", true);
  // Batch-norm and convolution are none, so additions and their ReLUs make the groups: 8 of them.
  EXPECT_EQ(groups_of(fused).kernels.size(), 8U);
  EXPECT_EQ(groups_of(fused).without, 8);
  EXPECT_TRUE(groups_of(plain).kernels.empty());
  // Apart the sum moves 3 forward and nothing backward, ReLU 2 and 3.
  for (const Compute* kernel : groups_of(fused).kernels) {
    const double one = bytes_of(fused, kernel->outputs.front());
    EXPECT_DOUBLE_EQ(kernel->moved.forward, 3 * one);
    EXPECT_DOUBLE_EQ(kernel->moved.backward, 3 * one);
  }
}

// Apart, SiLU keeps the gate and the product both of its operands, three tensors of [2, 128, 704] in f32 in each of
// four layers; together they keep the gate and the other operand, from which SiLU's result is made again.
TEST(FusedPointwise, KeepsWhatComesIn) {
  const Stage apart = program("llama-mini", false), together = program("llama-mini", true);
  const auto kept = [](const Stage& stage) {
    std::set<LocalTensorId> tensors;
    for (const Step& step : stage.steps) {
      const auto* compute = std::get_if<Compute>(&step);
      if (!compute || compute->gradients == 0) continue;
      for (const Saved& saved : rule_of(stage, *compute, Backend::cuda).saved) {
        const LocalTensorId id = saved.what == Saved::What::input ? compute->inputs[saved.index] : compute->outputs[0];
        if (saved.what != Saved::What::extra && stage[id].shape == Shape{2, 128, 704}) tensors.insert(id);
      }
    }
    return tensors.size();
  };
  // The product's result besides, which the last linear layer keeps.
  EXPECT_EQ(kept(apart), 4U * 4);
  EXPECT_EQ(kept(together), 4U * 3);
  Strategy s = training();
  const Cluster cluster = load_cluster("dgx-a100").value();
  const Bytes without = predict(zoo("llama-mini", 2), s, cluster)->memory.activations;
  s.fused_pointwise = true;
  const Bytes with = predict(zoo("llama-mini", 2), s, cluster)->memory.activations;
  // And nine RMS norms, one kernel each, no longer keep [2, 128, 256] of what they normalise.
  EXPECT_DOUBLE_EQ((without - with).value(), 4.0 * 2 * 128 * 704 * 4 + 9.0 * 2 * 128 * 256 * 4);
}

// Behind a sum a SiLU would have both of its operands kept in place of one: that is no gain.
TEST(FusedPointwise, KeepsNoMoreThanItsOperationsDoApart) {
  const Cluster cluster = load_cluster("dgx-a100").value();
  for (const char* model :
       {"llama-mini", "gpt2-mini", "bert-mini", "resnet18", "mobilenet-v2", "mixtral-mini", "t5-small"}) {
    Strategy s = training(2);
    const auto apart = predict(zoo(model, 2), s, cluster);
    s.fused_pointwise = true;
    const auto together = predict(zoo(model, 2), s, cluster);
    ASSERT_TRUE(apart && together) << model;
    EXPECT_LE(together->memory.activations, apart->memory.activations) << model;
  }
}

TEST(FusedPointwise, IsNeverSlower) {
  const Cluster cluster = load_cluster("dgx-a100").value();
  for (const char* model : {"llama-mini", "gpt2-mini", "resnet18"}) {
    Strategy s = training(8);
    const auto apart = predict(zoo(model, 8), s, cluster);
    s.fused_pointwise = true;
    const auto together = predict(zoo(model, 8), s, cluster);
    EXPECT_LT(together->step_time, apart->step_time) << model;
    EXPECT_TRUE(together->fused_pointwise);
  }
}

Cluster a100s() { return load_cluster("dgx-a100").value(); }

// Adam by torch.optim moves 18 tensors, fused 7; what else the tail has is the same.
TEST(FusedUpdate, MovesLess) {
  Strategy s = training(8);
  s.optimizer = OptimizerKind::adam;
  const Graph graph = zoo("gpt2-mini", 8);
  const Seconds apart = predict(graph, s, a100s())->breakdown.optimizer;
  s.fused_update = true;
  EXPECT_NEAR(predict(graph, s, a100s())->breakdown.optimizer / apart, 7.0 / 18, 0.02);
}

// m = b1 m + (1 - b1) g: 2 + 2 + 3 tensors; v with a square more: 9; m / (sqrt v + eps): 2 + 2 + 3; p - lr u: 2 + 3.
TEST(WrittenUpdate, MovesATensorForEachOperatorsOperandsAndResult) {
  Strategy s = training(8);
  s.optimizer = OptimizerKind::adam;
  const Graph graph = zoo("gpt2-mini", 8);
  const Seconds steps = predict(graph, s, a100s())->breakdown.optimizer;
  s.written_update = true;
  EXPECT_NEAR(predict(graph, s, a100s())->breakdown.optimizer / steps, 28.0 / 18, 0.03);
}

std::vector<Seconds> exchanges_of(const Strategy& s, const Graph& graph, bool forward) {
  const Plan plan = make_plan(graph, s).value();
  std::vector<Seconds> all;
  for (const PricedExchange& e : price(plan, plan.stages.front(), a100s()).exchanges) {
    const auto& transfer = forward ? e.forward : e.backward;
    if (transfer) all.push_back(transfer->time.time + (forward ? e.hidden_forward : e.hidden_backward));
  }
  return all;
}

// What computation waits for becomes shorter by what products hide, never below nothing; what is sent takes as long.
TEST(OverlapTensor, HidesExchangesBehindProducts) {
  const Graph graph = zoo("gpt2-mini", 8);
  Strategy s = training(8);
  ASSERT_TRUE(parse_parallel("sequence=4", s));
  const auto waits = predict(graph, s, a100s());
  const auto whole = exchanges_of(s, graph, true), whole_back = exchanges_of(s, graph, false);
  s.overlap_tensor = true;
  const auto hides = predict(graph, s, a100s());
  EXPECT_LT(hides->breakdown.communication_exposed, waits->breakdown.communication_exposed);
  EXPECT_NEAR(hides->breakdown.communication_total / waits->breakdown.communication_total, 1.0, 1e-9);
  EXPECT_EQ(exchanges_of(s, graph, true), whole);
  EXPECT_EQ(exchanges_of(s, graph, false), whole_back);
}

// Of four ranks three quarters of the product behind a gather: c - min(c, 3/4 g), by hand for each gather that feeds
// one.
TEST(OverlapTensor, HidesAllButTheOwnPart) {
  const Graph graph = zoo("gpt2-mini", 8);
  Strategy s = training(8);
  ASSERT_TRUE(parse_parallel("sequence=4", s));
  s.overlap_tensor = true;
  const Plan plan = make_plan(graph, s).value();
  const Stage& stage = plan.stages.front();
  const PricedStage priced = price(plan, stage, a100s());
  int seen = 0;
  for (std::size_t i = 0; i + 1 < stage.steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    const auto* next = std::get_if<Compute>(&stage.steps[i + 1]);
    if (exchange == nullptr || exchange->forward.motion != Motion::all_gather || next == nullptr ||
        !std::holds_alternative<Linear>(next->attributes) || next->inputs.front() != exchange->output)
      continue;
    ++seen;
    const Seconds product = priced.time(*priced.kernels.steps[i + 1].forward);
    const PricedExchange& own = priced.exchanges[i];
    const Seconds sent = own.forward->time.time + own.hidden_forward;
    EXPECT_NEAR(own.hidden_forward.value(), std::min(sent, product * 0.75).value(), 1e-12);
  }
  EXPECT_GE(seen, 8) << "two in each of four layers";
}

// Of one operation after the other, each over before the next is launched: the step is launches, and as unsure as they.
TEST(HostDispatch, MakesWhatWaitsForItUnsure) {
  Device device = a100s().kernels.device();
  device.dispatch = Seconds{1e-3};
  device.dispatch_error = 0.0;
  const Graph graph = test::mlp({4, 8, 6, 3}, 2);
  const auto with = [&](double error) {
    device.dispatch_error = error;
    return predict(graph, training(), test::cluster(1, 1, BytesPerSecond{1e9}, {}, device)).value();
  };
  const Prediction sure = with(0.0), unsure = with(0.3);
  EXPECT_GT(sure.breakdown.host, sure.step_time * 0.9);
  EXPECT_LT(sure.interval_high / sure.step_time, 1.05);
  // By a factor either way: in nine cases of ten at most 1.3^1.645 = 1.54.
  EXPECT_NEAR(unsure.interval_high / unsure.step_time, 1.54, 0.03);
  EXPECT_NEAR(unsure.interval_low / unsure.step_time, 1 / 1.54, 0.03);
}

// A second replica adds copies into buckets and back, which a loop in C++ launches: 5 us each where an operation
// takes 50. AlexNet's 16 gradients come back after the last message: 80 us, not 800; those on their way out may be
// hidden.
TEST(HostDispatch, IsTakenByOperations) {
  Device device = a100s().kernels.device();
  device.peak[DType::f32] = FlopsPerSecond{1e18};  // nothing but launches
  device.memory_bandwidth = BytesPerSecond{1e18};
  device.dispatch = Seconds{50e-6};
  const auto step = [&](int devices) {
    const Cluster cluster = test::cluster(1, devices, BytesPerSecond{1e18}, {}, device);
    Strategy s = training(2 * devices);
    s.data = devices;
    return predict(zoo("alexnet", 2), s, cluster)->breakdown;
  };
  const double extra = (step(2).host - step(1).host).value();
  EXPECT_GE(extra, 16 * 5e-6);
  EXPECT_LE(extra, 2 * 16 * 5e-6 * 1.01);
}

// However long launches take: doubting them widens the interval at both ends, but the step never gets quicker than with
// launches that take no time.
TEST(HostDispatch, LeavesTheDeviceItsShare) {
  const Graph graph = zoo("resnet18", 32);
  const auto with = [&](double microseconds, double error) {
    Device device = a100s().kernels.device();
    device.dispatch = Seconds{microseconds * 1e-6};
    device.dispatch_error = error;
    return predict(graph, training(32), test::cluster(1, 1, BytesPerSecond{1e9}, {}, device)).value();
  };
  const Prediction free = with(0, 0);
  int both = 0;
  for (const double microseconds : {2, 10, 30, 60, 120, 240}) {
    const Prediction sure = with(microseconds, 0), unsure = with(microseconds, 0.6);
    EXPECT_EQ(unsure.step_time, sure.step_time);
    EXPECT_LE(unsure.interval_low, sure.interval_low) << microseconds;
    EXPECT_GE(unsure.interval_high, sure.interval_high) << microseconds;
    EXPECT_GE(unsure.interval_low, free.interval_low - Seconds{1e-9}) << microseconds;
    both += unsure.interval_high - unsure.step_time > (unsure.step_time - unsure.interval_low) * 1.05 ? 1 : 0;
  }
  EXPECT_GE(both, 2) << "partly hidden launches can cost more than they can save";
}

// What a user says the host takes is not unsure.
TEST(HostDispatch, IsSureWhereItIsSaid) {
  const Cluster cluster = a100s();
  EXPECT_GT(cluster.kernels.device().dispatch_error, 0.1);
  const std::string said = "device.dispatch=10us";
  EXPECT_EQ(changed(cluster, std::span(&said, 1), DType::f32)->kernels.device().dispatch_error, 0.0);
}

}  // namespace
}  // namespace sibyl
