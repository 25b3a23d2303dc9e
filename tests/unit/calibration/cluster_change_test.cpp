// Every key changes what it should and nothing else.
#include "calibration/cluster_change.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/outside_rates.h"
#include "netmodel/fabric/fabric.h"
#include "netmodel/topology.h"
#include "tests/support/clusters.h"

namespace sibyl {
namespace {

Cluster cluster() {
  Cluster c = test::cluster(4, 2);
  TopologySpec links = c.network.topology().spec();
  links.device_link.background = 0.2;
  links.nic_background = 0.4;
  fabric::FabricSpec leaf;
  leaf.network = fabric::LeafSpine{4, 1, 1};
  leaf.background = 0.1;
  c.network = *Network::on_fabric(links, leaf, {}, {});
  c.storage_read = BytesPerSecond{1e9};
  c.storage_write = BytesPerSecond{5e8};
  c.host_link = BytesPerSecond{2e10};
  Device device = test::cpu_device();
  device.dispatch = Seconds{4e-6};
  c.kernels = KernelTable(device, {});
  return c;
}

Cluster with(const std::vector<std::string>& changes, DType computed_in = DType::f32) {
  auto result = changed(cluster(), changes, computed_in);
  EXPECT_TRUE(result.has_value()) << (result ? "" : to_string(result.error()));
  return result.value_or(cluster());
}

Error refused(const std::string& change) {
  const auto result = changed(cluster(), std::vector{change}, DType::f32);
  EXPECT_FALSE(result.has_value()) << change;
  return result ? Error{} : result.error();
}

// What a key stands for, in SI units.
double value_of(const Cluster& c, std::string_view key) {
  const TopologySpec& t = c.network.topology().spec();
  const Device& d = c.kernels.device();
  if (key == "link.bandwidth") return t.device_link.bandwidth.value();
  if (key == "link.latency") return t.device_link.latency.value();
  if (key == "link.background") return t.device_link.background;
  if (key == "nic.bandwidth") return t.nic_bandwidth.value();
  if (key == "nic.latency") return t.nic_latency.value();
  if (key == "nic.per_node") return t.nics_per_node;
  if (key == "nic.background") return t.nic_background;
  if (key == "fabric.background") return c.network.links()->spec().background;
  if (key == "switch.latency") return t.switch_latency.value();
  if (key == "switch.oversubscription") return t.oversubscription;
  if (key == "device.flops") return d.peak.at(DType::f32).value();
  if (key == "device.memory") return d.memory.value();
  if (key == "device.memory_bandwidth") return d.memory_bandwidth.value();
  if (key == "device.dispatch") return d.dispatch.value();
  if (key == "host_link.bandwidth") return c.host_link.value();
  if (key == "storage.bandwidth") return c.storage_read.value();
  ADD_FAILURE() << "this test does not know " << key;
  return 0;
}

TEST(ClusterChange, EveryKeyMultipliesItsOwnValueAlone) {
  const Cluster before = cluster();
  for (const ClusterKey& key : cluster_keys()) {
    const Cluster after = with({std::string(key.name) + "=2x"});
    for (const ClusterKey& other : cluster_keys()) {
      const double factor = other.name == key.name ? 2 : 1;
      EXPECT_DOUBLE_EQ(value_of(after, other.name), factor * value_of(before, other.name)) << key.name << other.name;
    }
  }
}

TEST(ClusterChange, EveryKeyTakesItsExample) {
  const double expected[] = {300e9,  2e-6, 0.3,    25e9, 2e-6, 8,    0.3,  0.3,
                             300e-9, 1,    300e12, 80e9, 3e12, 4e-6, 50e9, 10e9};
  std::size_t i = 0;
  for (const ClusterKey& key : cluster_keys()) {
    const Cluster after = with({std::string(key.name) + "=" + std::string(key.takes)});
    EXPECT_DOUBLE_EQ(value_of(after, key.name), expected[i++]) << key.name;
  }
  EXPECT_EQ(i, std::size(expected));
}

TEST(ClusterChange, ChangesAreAppliedInOrder) {
  EXPECT_DOUBLE_EQ(value_of(with({"nic.bandwidth=2GB/s", "nic.bandwidth=0.5x"}), "nic.bandwidth"), 1e9);
}

// The test device has 100 GFLOP/s in f32 and 200 in bf16: 600 in bf16 is three times, so f32 becomes 300.
TEST(ClusterChange, AnAbsolutePeakIsThatOfTheTypeComputedIn) {
  const Cluster after = with({"device.flops=600GFLOP/s"}, DType::bf16);
  EXPECT_DOUBLE_EQ(after.kernels.device().peak.at(DType::bf16).value(), 600e9);
  EXPECT_DOUBLE_EQ(after.kernels.device().peak.at(DType::f32).value(), 300e9);
}

TEST(ClusterChange, TheNameSaysWhatIsDifferent) {
  EXPECT_EQ(with({"link.latency=0.5x", "device.memory=1GB"}).name, "test with link.latency=0.5x, device.memory=1GB");
  EXPECT_EQ(with({}).name, "test");
}

TEST(ClusterChange, AnUnknownKeyListsTheKnownOnes) {
  const Error error = refused("link.speed=2x");
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_THAT(error.message, testing::HasSubstr("link.speed"));
  for (const ClusterKey& key : cluster_keys()) EXPECT_THAT(error.hint, testing::HasSubstr(std::string(key.name)));
}

TEST(ClusterChange, ValuesThatCannotBeAreRefused) {
  for (const char* change :
       {"nic.bandwidth", "nic.bandwidth=", "nic.bandwidth=x", "nic.bandwidth=0x", "nic.bandwidth=-2x",
        "nic.bandwidth=3us", "nic.bandwidth=0GB/s", "nic.per_node=1.5", "nic.per_node=0.4x", "device.memory=infx",
        "switch.oversubscription=0.5", "nic.bandwidth=2x3x"})
    EXPECT_EQ(refused(change).code, ErrorCode::usage) << change;
}

// Of what others use a rest is left, and 0 is nothing special.
TEST(ClusterChange, ABackgroundIsAShare) {
  for (const std::string key : {"link.background", "nic.background", "fabric.background"}) {
    for (const double share : {0.0, 0.25, 0.99})
      EXPECT_DOUBLE_EQ(value_of(with({fmt::format("{}={}", key, share)}), key), share) << key;
    for (const char* value : {"1", "0.991", "-0.1", "30", "30%", "nan", "", "0.3GB/s", "10x"}) {
      const Error error = refused(key + "=" + value);
      EXPECT_EQ(error.code, ErrorCode::usage) << value;
      EXPECT_EQ(error.message, "a background is a share from 0 to 0.99") << value;
      EXPECT_EQ(error.where, key + "=" + value);
    }
    EXPECT_EQ(changed(with({key + "=0"}), std::vector{key + "=2x"}, DType::f32).error().message,
              "it is 0 here, so it cannot be multiplied");
  }
}

// 60 % of a NIC's 1 GB/s were ours, and then 25 %; inside a node nothing changes.
TEST(ClusterChange, ABackgroundLeavesTheRestOfItsOwnLinks) {
  const Topology before = cluster().network.topology(), after = with({"nic.background=0.75"}).network.topology();
  EXPECT_DOUBLE_EQ(before.path(1).bandwidth.value(), 0.6e9);
  EXPECT_DOUBLE_EQ(after.path(1).bandwidth.value(), 0.25e9);
  EXPECT_EQ(after.path(0).bandwidth, before.path(0).bandwidth);
}

TEST(ClusterChange, OnlyAFabricHasLinksOfItsOwn) {
  const Cluster without = test::cluster(4, 2);
  const std::vector<std::string> used{"fabric.background=0.3"};
  const auto refused_there = changed(without, used, DType::f32);
  ASSERT_FALSE(refused_there.has_value());
  EXPECT_EQ(refused_there.error().message, "the cluster has no fabric");
  EXPECT_EQ(refused_there.error().code, ErrorCode::usage);
  EXPECT_EQ(share_of(without, "fabric.background"), 0);
  EXPECT_EQ(value_text(without, "fabric.background", DType::f32), "");
}

TEST(ClusterChange, SharesAreTold) {
  EXPECT_DOUBLE_EQ(share_of(cluster(), "link.background"), 0.2);
  EXPECT_DOUBLE_EQ(share_of(cluster(), "nic.background"), 0.4);
  EXPECT_DOUBLE_EQ(share_of(cluster(), "fabric.background"), 0.1);
  EXPECT_EQ(share_of(cluster(), "nic.bandwidth"), 0);
  for (const ClusterKey& key : cluster_keys()) EXPECT_EQ(key.share, share_of(cluster(), key.name) > 0) << key.name;
}

TEST(ClusterChange, WhoReadsTwiceAsFastWritesTwiceAsFast) {
  EXPECT_DOUBLE_EQ(with({"storage.bandwidth=2x"}).storage_write.value(), 1e9);
  EXPECT_DOUBLE_EQ(with({"storage.bandwidth=3GB/s"}).storage_write.value(), 1.5e9);
  EXPECT_DOUBLE_EQ(with({"host_link.bandwidth=2x"}).storage_write.value(), 5e8);
}

TEST(ClusterChange, AHostLinkThatIsSaidIsNotMeasured) {
  Cluster measured = cluster();
  measured.host_link_measured = true;
  const auto after = [&](const std::string& change) {
    return changed(measured, std::vector{change}, DType::f32)->host_link_measured;
  };
  EXPECT_TRUE(after("device.memory=2x"));
  EXPECT_FALSE(after("host_link.bandwidth=2x"));
}

// What is not known and not assumed cannot be doubled, but can be given.
TEST(ClusterChange, TheUnknownIsGivenNotMultiplied) {
  Cluster unknown = cluster();
  TopologySpec links = unknown.network.topology().spec();
  links.switch_latency = {};
  unknown.network = Network(*Topology::make(links), {}, {});
  const std::vector<std::string> twice{"switch.latency=2x"}, given{"switch.latency=2us"};
  const auto refused_there = changed(unknown, twice, DType::f32);
  ASSERT_FALSE(refused_there.has_value());
  EXPECT_EQ(refused_there.error().message, "it is 0 or not known here, so it cannot be multiplied");
  EXPECT_DOUBLE_EQ(value_of(*changed(unknown, given, DType::f32), "switch.latency"), 2e-6);
  // Half a processor's memory bandwidth, where not even that is known.
  Device device = test::cpu_device();
  device.memory_bandwidth = {};
  unknown.kernels = KernelTable(device, {});
  unknown.host_link = {};
  EXPECT_FALSE(changed(unknown, std::vector<std::string>{"host_link.bandwidth=2x"}, DType::f32).has_value());
  EXPECT_EQ(value_text(unknown, "host_link.bandwidth", DType::f32), "");
}

// A rate that is assumed can be multiplied, and remains an assumption; one that is given is known.
TEST(ClusterChange, WhatIsAssumedOutsideDevicesCanBeMultiplied) {
  Cluster unknown = cluster();
  unknown.storage_read = unknown.storage_write = unknown.host_link = {};
  Device gpu = test::cpu_device();
  gpu.backend = Backend::cuda;
  gpu.architecture = "volta";
  unknown.kernels = KernelTable(gpu, {});
  const auto after = [&](const std::vector<std::string>& changes) { return *changed(unknown, changes, DType::f32); };
  EXPECT_EQ(value_text(unknown, "host_link.bandwidth", DType::f32), "12.6 GB/s assumed");
  EXPECT_EQ(value_text(unknown, "storage.bandwidth", DType::f32), "3.20 GB/s assumed");
  const Cluster faster = after({"host_link.bandwidth=2x"});
  EXPECT_DOUBLE_EQ(host_link_rate(faster).rate.value(), 25.2e9);
  EXPECT_EQ(host_link_rate(faster).as, "2 times four fifths of 16 lanes of PCIe 3.0");
  EXPECT_EQ(value_text(faster, "host_link.bandwidth", DType::f32), "25.2 GB/s assumed");
  EXPECT_EQ(faster.host_link, BytesPerSecond{}) << "not known, still";
  EXPECT_DOUBLE_EQ(storage_read_rate(faster).rate.value(), 3.2e9);
  const Cluster slower = after({"storage.bandwidth=0.5x", "storage.bandwidth=0.5x"});
  EXPECT_DOUBLE_EQ(storage_read_rate(slower).rate.value(), 0.8e9);
  EXPECT_DOUBLE_EQ(storage_write_rate(slower).rate.value(), 0.5e9);
  EXPECT_EQ(slower.storage_read, BytesPerSecond{}) << "so `--data-from storage` is refused, as before";
  EXPECT_DOUBLE_EQ(host_link_rate(slower).rate.value(), 12.6e9);
  const Cluster given = after({"host_link.bandwidth=40GB/s", "host_link.bandwidth=0.5x", "storage.bandwidth=6.4GB/s"});
  EXPECT_DOUBLE_EQ(host_link_rate(given).rate.value(), 20e9);
  EXPECT_FALSE(host_link_rate(given).assumed());
  EXPECT_FALSE(storage_read_rate(given).assumed());
  EXPECT_DOUBLE_EQ(storage_write_rate(given).rate.value(), 4e9);
  EXPECT_TRUE(storage_write_rate(given).assumed()) << "in proportion to reading";
}

// What is shown of a value is what was set.
TEST(ClusterChange, ValuesAreReadAsTheyAreSet) {
  const Cluster c =
      with({"nic.bandwidth=12.5GB/s", "device.memory=64GiB", "nic.per_node=3", "switch.oversubscription=2"});
  EXPECT_EQ(value_text(c, "nic.bandwidth", DType::f32), "12.5 GB/s");
  EXPECT_EQ(value_text(c, "device.memory", DType::f32), "64.0 GiB");
  EXPECT_EQ(value_text(c, "nic.per_node", DType::f32), "3");
  EXPECT_EQ(value_text(c, "switch.oversubscription", DType::f32), "2");
  EXPECT_EQ(value_text(c, "nic.background", DType::f32), "0.4");
  EXPECT_EQ(value_text(c, "banana", DType::f32), "");
  for (const ClusterKey& key : cluster_keys()) EXPECT_NE(value_text(c, key.name, DType::f32), "") << key.name;
}

}  // namespace
}  // namespace sibyl
