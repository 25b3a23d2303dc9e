// Each input changes what it should, in the direction that it should, and nothing else.
#include "oracle/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "calibration/cluster_change.h"
#include "oracle/predict.h"
#include "oracle/report/sensitivity_report.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"

namespace sibyl {
namespace {

using testing::HasSubstr;

// A GPU on which a linear layer of 1024 x 1024 is bound by arithmetic, a ReLU by memory, and the first kernel waits for
// its launch.
Device gpu() {
  Device device = test::cpu_device();
  device.backend = Backend::cuda;
  device.peak = {{DType::f32, FlopsPerSecond{1e12}}};
  device.memory_bandwidth = BytesPerSecond{1e11};
  device.dispatch = Seconds{5e-6};
  return device;
}

Graph model() { return test::mlp({1024, 1024, 1024, 16}, 64); }

TopologySpec links(int nodes, int devices_per_node) {
  TopologySpec spec;
  spec.nodes = nodes;
  spec.devices_per_node = devices_per_node;
  spec.device_link.latency = Seconds{1e-6};
  spec.nic_bandwidth = BytesPerSecond{1e9};
  return spec;
}

Cluster machine(const TopologySpec& spec, Algorithm algorithm = Algorithm::automatic) {
  Cluster cluster = test::cluster(spec.nodes, spec.devices_per_node, spec.nic_bandwidth, {}, gpu());
  cluster.network = Network(*Topology::make(spec), {}, {}, algorithm);
  return cluster;
}
Cluster machine(int nodes, int devices_per_node) { return machine(links(nodes, devices_per_node)); }

// Gradients go after backward, so that all that they take is waited for.
Strategy replicas(int count) {
  Strategy strategy;
  strategy.data = count;
  strategy.global_batch = 64 * count;
  strategy.exchange = GradientExchange::at_end;
  return strategy;
}

Sensitivities of(const Strategy& strategy, const Cluster& cluster) {
  const Graph graph = model();
  const auto result = sensitivities(graph, strategy, cluster);
  EXPECT_TRUE(result) << to_string(result.error());
  return result.value_or(Sensitivities{});
}

const Sensitivity& input(const Sensitivities& all, const std::string& name) {
  const auto found = std::ranges::find(all.inputs, name, &Sensitivity::name);
  EXPECT_NE(found, all.inputs.end()) << name;
  return *found;
}

// Those of the cluster's parts that make any difference to the step time; all others must make none.
std::set<std::string> parts_that_count(const Sensitivities& all) {
  std::set<std::string> names;
  for (const Sensitivity& each : all.inputs) {
    if (!each.resource) continue;
    for (const Variation* v : {&each.twice, &each.half})
      if (v->evaluation && v->evaluation->step_time != all.now.step_time) names.insert(each.name);
  }
  return names;
}

void expect_better_is_faster(const Sensitivities& all, const std::string& name) {
  const Sensitivity& each = input(all, name);
  ASSERT_TRUE(each.twice.evaluation) << name << ": " << to_string(each.twice.evaluation.error());
  ASSERT_TRUE(each.half.evaluation) << name << ": " << to_string(each.half.evaluation.error());
  EXPECT_LT(each.twice.change, 0) << name;
  EXPECT_GT(each.half.change, 0) << name;
}

TEST(Sensitivity, OfOneDeviceOnlyTheDeviceCounts) {
  const Sensitivities all = of(replicas(1), machine(1, 1));
  EXPECT_THAT(parts_that_count(all),
              testing::UnorderedElementsAre("device.flops", "device.memory_bandwidth", "device.dispatch"));
  for (const char* name : {"device.flops", "device.memory_bandwidth", "device.dispatch"})
    expect_better_is_faster(all, name);
}

TEST(Sensitivity, OfOneNodeItsLinksCountBesideTheDevice) {
  const Sensitivities all = of(replicas(2), machine(1, 2));
  EXPECT_THAT(parts_that_count(all),
              testing::UnorderedElementsAre("device.flops", "device.memory_bandwidth", "device.dispatch",
                                            "link.bandwidth", "link.latency"));
  expect_better_is_faster(all, "link.bandwidth");
  expect_better_is_faster(all, "link.latency");
}

TEST(Sensitivity, OfSingleDevicesOnNodesTheNetworkCountsAndLinksDoNot) {
  const Sensitivities all = of(replicas(2), machine(2, 1));
  const std::set<std::string> parts = parts_that_count(all);
  for (const char* name : {"nic.bandwidth", "nic.latency", "switch.latency"}) expect_better_is_faster(all, name);
  for (const char* name : {"link.bandwidth", "link.latency", "device.memory", "storage.bandwidth"})
    EXPECT_FALSE(parts.contains(name)) << name;
}

// Eight ranks of two nodes share each node's NIC.
TEST(Sensitivity, MoreNicsAreWorthSomethingWhereRanksShareThem) {
  const Sensitivities all = of(replicas(8), machine(2, 4));
  const Sensitivity& nics = input(all, "nic.per_node");
  ASSERT_TRUE(nics.twice.evaluation);
  EXPECT_LT(nics.twice.change, 0);
  ASSERT_FALSE(nics.half.evaluation) << "half a NIC";
  EXPECT_EQ(nics.half.change, 0);
}

// Trees climb to the top of the switches; neighbours in a ring hardly do.
TEST(Sensitivity, OversubscriptionCountsBetweenSwitches) {
  TopologySpec spec = links(4, 1);
  spec.levels = 2, spec.nodes_per_switch = 2, spec.oversubscription = 4;
  expect_better_is_faster(of(replicas(4), machine(spec, Algorithm::tree)), "switch.oversubscription");
  const Sensitivities flat = of(replicas(4), machine(links(4, 1), Algorithm::tree));
  EXPECT_FALSE(parts_that_count(flat).contains("switch.oversubscription"));
}

// Half of what others use leaves more, twice leaves less; only on links that messages cross.
TEST(Sensitivity, WhatOthersUseCountsOnTheLinksThatAreCrossed) {
  TopologySpec across = links(2, 1), inside = links(1, 2);
  across.nic_background = across.device_link.background = 0.4;
  inside.nic_background = inside.device_link.background = 0.4;
  const Sensitivities of_nics = of(replicas(2), machine(across)), of_links = of(replicas(2), machine(inside));
  expect_better_is_faster(of_nics, "nic.background");
  EXPECT_FALSE(parts_that_count(of_nics).contains("link.background"));
  expect_better_is_faster(of_links, "link.background");
  EXPECT_FALSE(parts_that_count(of_links).contains("nic.background"));
  EXPECT_EQ(input(of_nics, "nic.background").twice.setting, "nic.background=0.5x");
}

// Nor can more than all of it be used.
TEST(Sensitivity, WhereNobodyElseIsThereIsNoBackgroundToVary) {
  const Sensitivities quiet = of(replicas(2), machine(2, 1));
  for (const char* name : {"link.background", "nic.background"})
    EXPECT_EQ(std::ranges::count(quiet.inputs, name, &Sensitivity::name), 0) << name;
  TopologySpec busy = links(2, 1);
  busy.nic_background = 0.6;
  const Sensitivities all = of(replicas(2), machine(busy));
  const Sensitivity& background = input(all, "nic.background");
  EXPECT_LT(background.twice.change, 0);
  ASSERT_FALSE(background.half.evaluation) << "120 %";
  EXPECT_EQ(background.half.evaluation.error().message, "a background is a share from 0 to 0.99");
  EXPECT_EQ(all.inputs.size(), quiet.inputs.size() + 1);
}

// A step reads 64 x 1024 f32 and 64 i64 from storage that gives 1 MB/s: a quarter of a second, which nothing else
// shortens.
TEST(Sensitivity, WhereSamplesAreWaitedForOnlyStorageCounts) {
  Cluster cluster = machine(1, 1);
  cluster.storage_read = BytesPerSecond{1e6};
  Strategy strategy = replicas(1);
  strategy.data_source = DataSource::storage;
  const Sensitivities all = of(strategy, cluster);
  EXPECT_THAT(parts_that_count(all), testing::ElementsAre("storage.bandwidth"));
  expect_better_is_faster(all, "storage.bandwidth");
  EXPECT_EQ(all.inputs.front().name, "storage.bandwidth") << "the largest effect comes first";
  EXPECT_NEAR(input(all, "storage.bandwidth").half.change, 1, 1e-9) << "half the rate, twice the time";
}

// Adam's state lies outside, on a machine whose rates are assumed.
Sensitivities of_offloaded(Tier tier, bool on_gpu = true) {
  Cluster cluster = machine(1, 1);
  Device device = gpu();
  if (!on_gpu) device.backend = Backend::cpu;
  cluster.kernels = KernelTable(device, {});
  Strategy strategy = replicas(1);
  strategy.optimizer = OptimizerKind::adam;
  strategy.optimizer_tier = tier;
  return of(strategy, cluster);
}

bool lists(const Sensitivities& all, const std::string& name) {
  return std::ranges::count(all.inputs, name, &Sensitivity::name) > 0;
}

TEST(Sensitivity, OfStateInTheHostsMemoryTheLinkToItCounts) {
  const Sensitivities all = of_offloaded(Tier::host);
  EXPECT_THAT(parts_that_count(all), testing::UnorderedElementsAre("device.flops", "device.memory_bandwidth",
                                                                   "device.dispatch", "host_link.bandwidth"));
  expect_better_is_faster(all, "host_link.bandwidth");
  EXPECT_EQ(input(all, "host_link.bandwidth").now, "25.2 GB/s assumed");
  EXPECT_FALSE(lists(all, "storage.bandwidth"));
}

// The drive is slower than the link that its bytes cross, too; a quarter of the link would not be.
TEST(Sensitivity, OfStateInStorageItsRateCounts) {
  const Sensitivities all = of_offloaded(Tier::nvme);
  expect_better_is_faster(all, "storage.bandwidth");
  EXPECT_EQ(input(all, "storage.bandwidth").now, "3.20 GB/s assumed");
  EXPECT_TRUE(lists(all, "host_link.bandwidth"));
  EXPECT_FALSE(parts_that_count(all).contains("host_link.bandwidth"));
}

// A processor's storage is read into its memory at once; half of its memory's bandwidth is what it copies with.
TEST(Sensitivity, OfAProcessorsStateItsMemoryOrItsStorageCounts) {
  const Sensitivities in_memory = of_offloaded(Tier::host, false), in_storage = of_offloaded(Tier::nvme, false);
  expect_better_is_faster(in_memory, "host_link.bandwidth");
  EXPECT_EQ(input(in_memory, "host_link.bandwidth").now, "50.0 GB/s assumed");
  EXPECT_FALSE(lists(in_memory, "storage.bandwidth"));
  expect_better_is_faster(in_storage, "storage.bandwidth");
  EXPECT_FALSE(lists(in_storage, "host_link.bandwidth"));
}

// Known rates are listed always, as a network's are on one node; unknown ones where they are used.
TEST(Sensitivity, OutsideDevicesIsListedWhatIsKnownOrUsed) {
  const Sensitivities unknown = of(replicas(1), machine(1, 1));
  for (const char* name : {"host_link.bandwidth", "storage.bandwidth"}) EXPECT_FALSE(lists(unknown, name)) << name;
  Cluster cluster = machine(1, 1);
  cluster.storage_read = cluster.host_link = BytesPerSecond{1e9};
  const Sensitivities known = of(replicas(1), cluster);
  for (const char* name : {"host_link.bandwidth", "storage.bandwidth"}) EXPECT_EQ(input(known, name).effect(), 0);
  EXPECT_EQ(known.inputs.size(), unknown.inputs.size() + 2);
}

TEST(Sensitivity, MemoryDecidesWhatFitsAndNothingElse) {
  const Sensitivities all = of(replicas(1), machine(1, 1));
  const Sensitivity& memory = input(all, "device.memory");
  EXPECT_EQ(memory.effect(), 0);
  EXPECT_EQ(memory.twice.evaluation->memory_capacity, 2 * all.now.memory_capacity);
  EXPECT_EQ(memory.half.evaluation->memory_capacity, 0.5 * all.now.memory_capacity);
}

TEST(Sensitivity, SaysOfEveryPartWhatSetWouldSayOfIt) {
  const Graph graph = model();
  TopologySpec spec = links(2, 2);
  spec.nic_background = spec.device_link.background = 0.1;
  Cluster cluster = machine(spec);
  cluster.storage_read = BytesPerSecond{1e9};
  Strategy strategy = replicas(4);
  strategy.optimizer = OptimizerKind::adam;
  strategy.optimizer_tier = Tier::host;
  const Sensitivities all = of(strategy, cluster);
  EXPECT_EQ(all.inputs.size(), cluster_keys().size() - 1 + 3);  // there is no fabric
  for (const Sensitivity& each : all.inputs)
    for (const Variation* v : {&each.twice, &each.half}) {
      if (!each.resource || !v->evaluation) continue;
      const auto other = changed(cluster, std::span(&v->setting, 1), DType::f32);
      ASSERT_TRUE(other) << v->setting;
      EXPECT_EQ(predict(graph, strategy, *other)->step_time, v->evaluation->step_time) << v->setting;
    }
  EXPECT_TRUE(std::ranges::is_sorted(all.inputs, std::greater{}, &Sensitivity::effect));
}

// Launches and updates are shared by more samples of a larger batch; more micro-batches launch more.
TEST(Sensitivity, ComparesAnotherBatchByItsSamples) {
  Strategy strategy = replicas(1);
  strategy.accumulation = 2;
  const Sensitivities all = of(strategy, machine(1, 1));
  const Sensitivity& batch = input(all, "batch");
  EXPECT_EQ(batch.twice.setting, "batch=128");
  EXPECT_EQ(batch.half.setting, "batch=32");
  EXPECT_LT(batch.twice.change, 0);
  EXPECT_GT(batch.half.change, 0);
  EXPECT_DOUBLE_EQ(batch.twice.change,
                   batch.twice.evaluation->step_time.value() / 128 / (all.now.step_time.value() / 64) - 1);
  const Sensitivity& micro_batches = input(all, "micro-batches");
  EXPECT_EQ(micro_batches.twice.setting, "micro-batches=4");
  EXPECT_GT(micro_batches.twice.change, 0);
  EXPECT_LT(micro_batches.half.change, 0);
}

TEST(Sensitivity, SaysWhyAnInputCannotBeVaried) {
  const Sensitivities all = of(replicas(1), machine(1, 1));
  EXPECT_EQ(input(all, "micro-batches").half.evaluation.error().message, "one micro-batch cannot be halved");
  EXPECT_EQ(input(all, "bucket").twice.evaluation.error().message, "gradients are exchanged in one message");
  Cluster unknown = machine(1, 1);
  Device device = gpu();
  device.dispatch = {};
  unknown.kernels = KernelTable(device, {});
  EXPECT_THAT(input(of(replicas(1), unknown), "device.dispatch").twice.evaluation.error().message,
              HasSubstr("not known here"));
}

// Two replicas exchange eight weights of 256 KiB: four to a bucket, or two.
TEST(Sensitivity, OfBucketsIsThatOfTheirSize) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(9, 256), 64);
  Strategy strategy = replicas(2);
  strategy.exchange = GradientExchange::overlapped;
  strategy.bucket = Bytes{1.0 * 1024 * 1024};
  const Sensitivities all = *sensitivities(graph, strategy, machine(2, 1));
  const Sensitivity& bucket = input(all, "bucket");
  EXPECT_EQ(bucket.half.setting, "bucket=0.5MiB");
  EXPECT_GT(bucket.effect(), 0);
  Strategy half = strategy;
  half.bucket = half.first_bucket = Bytes{0.5 * 1024 * 1024};
  EXPECT_EQ(bucket.half.evaluation->step_time, predict(graph, half, machine(2, 1))->step_time);
}

TEST(Sensitivity, CanBeCancelled) {
  const Graph graph = model();
  std::size_t done = 0;
  const auto result = sensitivities(graph, replicas(1), machine(1, 1),
                                    {[&](std::size_t n, std::size_t) { done = n; }, [&] { return done == 2; }});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::interrupted);
  EXPECT_EQ(done, 2U);
}

TEST(SensitivityReport, HasARowForEveryInputAndItsReason) {
  const SensitivityReport report{"m", "c", of(replicas(1), machine(1, 1))};
  const Table table = to_table(report);
  EXPECT_EQ(table.rows.size(), report.result.inputs.size());
  EXPECT_THAT(csv(table), HasSubstr("one micro-batch cannot be halved"));
  EXPECT_THAT(to_text(report, {}), HasSubstr("device.flops"));
  EXPECT_THAT(to_json(report), HasSubstr("\"setting\": \"device.flops=2x\""));
}

}  // namespace
}  // namespace sibyl
