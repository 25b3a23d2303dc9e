#include "calibration/cluster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "calibration/measured_cluster.h"
#include "example.h"
#include "example_cluster.h"
#include "netmodel/topology.h"
#include "tests/support/text.h"

namespace sibyl {
namespace {

using test::replaced;

namespace fs = std::filesystem;

class ClusterFolder : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::temp_directory_path() / ("sibyl_cluster_" + std::to_string(::getpid()));
};

TEST_F(ClusterFolder, FindsTheCalibrationBesideTheFile) {
  ASSERT_TRUE(save_calibration(example_calibration(), folder_ / "mine.json"));
  std::ofstream(folder_ / "c.yaml") << replaced(example_cluster, "v100-sxm2-16gb", "mine.json");
  const auto cluster = load_cluster((folder_ / "c.yaml").string());
  ASSERT_TRUE(cluster) << to_string(cluster.error());
  EXPECT_EQ(cluster->kernels.device().name, "Example CPU");
  EXPECT_EQ(cluster->kernels.size(), 2U);
  EXPECT_EQ(cluster->devices(), 12);
  EXPECT_EQ(cluster->overlap.compute_slowdown, 1.1);
}

// Messages that were timed between CPUs hold up no kernel of the GPU that is put beside them; NCCL's do.
TEST_F(ClusterFolder, KnowsWhoseMessagesRunBesideAGpu) {
  ASSERT_TRUE(save_calibration(example_calibration(), folder_ / "wire.json"));
  std::ofstream(folder_ / "c.yaml") << "name: c\ncalibration: v100-sxm2-16gb\nnetwork: wire.json\n";
  const auto cluster = load_cluster((folder_ / "c.yaml").string());
  ASSERT_TRUE(cluster) << to_string(cluster.error());
  EXPECT_TRUE(cluster->overlap_known);
  EXPECT_EQ(cluster->overlap.compute_slowdown, 1.0);
  EXPECT_FALSE(load_cluster("dgx1-v100")->overlap_known);
}

// What the calibrator measured, unless the file says another rate.
TEST_F(ClusterFolder, KnowsTheMeasuredHostLink) {
  ASSERT_TRUE(save_calibration(example_calibration(), folder_ / "mine.json"));
  const std::string text = replaced(example_cluster, "v100-sxm2-16gb", "mine.json");
  std::ofstream(folder_ / "c.yaml") << text;
  const auto measured = load_cluster((folder_ / "c.yaml").string());
  ASSERT_TRUE(measured) << to_string(measured.error());
  EXPECT_EQ(measured->host_link, BytesPerSecond{2.4e10});
  EXPECT_TRUE(measured->host_link_measured);
  EXPECT_TRUE(load_cluster((folder_ / "mine.json").string())->host_link_measured);
  std::ofstream(folder_ / "said.yaml") << text << "host_link: {bandwidth: 10GB/s}\n";
  const auto said = load_cluster((folder_ / "said.yaml").string());
  ASSERT_TRUE(said) << to_string(said.error());
  EXPECT_EQ(said->host_link, BytesPerSecond{1e10});
  EXPECT_FALSE(said->host_link_measured);
  EXPECT_EQ(load_cluster("dgx1-v100")->host_link, BytesPerSecond{}) << "of shipped devices it was not measured";
}

// How ranks meet is known of those that the network was measured with.
TEST_F(ClusterFolder, TakesMeetingsFromItsNetwork) {
  Calibration wire = example_calibration();
  ASSERT_TRUE(save_calibration(wire, folder_ / "devices.json"));
  std::ofstream(folder_ / "c.yaml") << "name: c\ncalibration: devices.json\nnetwork: wire.json\n";
  const auto meetings = [&] {
    EXPECT_TRUE(save_calibration(wire, folder_ / "wire.json"));
    const auto cluster = load_cluster((folder_ / "c.yaml").string());
    EXPECT_TRUE(cluster) << to_string(cluster.error());
    return cluster->meetings;
  };
  EXPECT_EQ(meetings().ranks(), 4);
  wire.meetings.front().ranks = 8;
  EXPECT_EQ(meetings().ranks(), 8);
  wire.meetings.clear();
  EXPECT_FALSE(meetings().known());
}

// Three quarters of the NICs are others': messages between nodes take longer and are no longer called measured; inside
// a node nothing changes.
TEST_F(ClusterFolder, CarriesWhatWasMeasuredToBusyNics) {
  Calibration calibration = example_calibration();
  calibration.point_to_point.push_back({false, 1, Bytes{1e6}, Seconds{1e-2}, 0.1});
  ASSERT_TRUE(save_calibration(calibration, folder_ / "mine.json"));
  const std::string quiet = replaced(example_cluster, "v100-sxm2-16gb", "mine.json");
  const auto loaded = [&](const std::string& text) {
    std::ofstream(folder_ / "c.yaml") << text;
    return load_cluster((folder_ / "c.yaml").string());
  };
  const auto before = loaded(quiet),
             after = loaded(replaced(quiet, "latency: 2us\n", "latency: 2us\n  background: 0.75\n"));
  ASSERT_TRUE(before && after) << to_string(after.error());
  const auto message = [](const Cluster& cluster, bool same_node) {
    return cluster.network.point_to_point(Bytes{1e6}, same_node);
  };
  EXPECT_EQ(message(*after, true).time, message(*before, true).time);
  EXPECT_EQ(message(*after, true).provenance, message(*before, true).provenance);
  EXPECT_GT(message(*after, false).time / message(*before, false).time, 3.0);
  EXPECT_LE(message(*after, false).time / message(*before, false).time, 4.0);
  EXPECT_NE(message(*after, false).provenance, Provenance::measured);
  EXPECT_EQ(after->overlap.compute_slowdown, before->overlap.compute_slowdown);
  const auto all = loaded(replaced(quiet, "latency: 2us\n", "latency: 2us\n  background: 1\n"));
  ASSERT_FALSE(all);
  EXPECT_NE(all.error().message.find("background"), std::string::npos);
}

TEST_F(ClusterFolder, PointsAtTheLineThatNamesAnUnknownCalibration) {
  std::ofstream(folder_ / "c.yaml") << replaced(example_cluster, "v100-sxm2-16gb", "z99");
  const auto cluster = load_cluster((folder_ / "c.yaml").string());
  ASSERT_FALSE(cluster);
  EXPECT_EQ(cluster.error().where, (folder_ / "c.yaml").string() + ":2");
  EXPECT_NE(cluster.error().hint.find("h100-sxm"), std::string::npos);
}

TEST_F(ClusterFolder, TakesACalibrationAsTheClusterItWasMeasuredOn) {
  ASSERT_TRUE(save_calibration(example_calibration(), folder_ / "mine.json"));
  const auto cluster = load_cluster((folder_ / "mine.json").string());
  ASSERT_TRUE(cluster) << to_string(cluster.error());
  EXPECT_EQ(cluster->nodes, 2);
  EXPECT_EQ(cluster->devices_per_node, 2);
  // Medians of 1.1 1.3 1.2 and of 1.2 1.4 1.5.
  EXPECT_EQ(cluster->overlap.compute_slowdown, 1.2);
  EXPECT_EQ(cluster->overlap.communication_slowdown, 1.4);
  EXPECT_EQ(cluster->step_overhead_per_operation, Seconds{2.5e-6});
}

TEST_F(ClusterFolder, KnowsHowMessagesOfEachLengthAreSlowed) {
  Calibration calibration = example_calibration();
  calibration.overlap = {{1.9, 3.5, 0.01, Algorithm::automatic, Seconds{0.01}},
                         {1.6, 3.2, 0.01, Algorithm::automatic, Seconds{0.001}},
                         {1.2, 1.3, 0.01, Algorithm::gloo, Seconds{0.002}},
                         {1.5, 3.0, 0.01}};
  ASSERT_TRUE(save_calibration(calibration, folder_ / "mine.json"));
  const auto cluster = load_cluster((folder_ / "mine.json").string());
  ASSERT_TRUE(cluster) << to_string(cluster.error());
  ASSERT_EQ(cluster->overlap_by_message.size(), 2U);
  EXPECT_EQ(cluster->overlap_by_message[0].message, Seconds{0.001});
  EXPECT_EQ(cluster->overlap_by_message[0].communication_slowdown, 3.2);
  EXPECT_EQ(cluster->overlap_by_message[1].compute_slowdown, 1.9);
}

// Beside Gloo's all-reduce as beside the calibration's own, unless it was measured.
TEST_F(ClusterFolder, KnowsWhatGlooCostsComputation) {
  Calibration calibration = example_calibration();
  const auto reloaded = [&] {
    EXPECT_TRUE(save_calibration(calibration, folder_ / "mine.json"));
    return load_cluster((folder_ / "mine.json").string());
  };
  EXPECT_EQ(reloaded()->overlap_with_gloo.compute_slowdown, 1.2);
  calibration.overlap.push_back({1.7, 2.5, 0.01, Algorithm::gloo});
  const auto cluster = reloaded();
  EXPECT_EQ(cluster->overlap_with_gloo.compute_slowdown, 1.7);
  EXPECT_EQ(cluster->overlap_with_gloo.communication_slowdown, 2.5);
  EXPECT_EQ(cluster->overlap.compute_slowdown, 1.2);
}

TEST(MeasuredTopology, ReadsLinksOffMessages) {
  const TopologySpec spec = measured_topology(example_calibration());
  EXPECT_EQ(spec.device_link.kind, LinkKind::shared_memory);
  EXPECT_EQ(spec.device_link.latency, Seconds{1e-6});
  EXPECT_DOUBLE_EQ(spec.device_link.bandwidth.value(), 1e6 / 2e-4);
  EXPECT_EQ(spec.nic_latency, Seconds{1e-5});                    // half of 20 us: two NICs on the way
  EXPECT_DOUBLE_EQ(spec.nic_bandwidth.value(), 2 * 1e6 / 1e-2);  // two pairs through one NIC
}

// A wire of 100 MB/s behind 10 us that lets the first 100 KB of a message pass in no time: 64 KiB take 10 us, 6.5 GB/s.
// Of 1 to 8 MiB each further byte takes 10 ns, so one pair gets 100 MB/s, whatever one sample too fast says. Two pairs
// share it; four were timed with short messages only, in the burst, and tell no rate.
TEST(MeasuredTopology, TakesTheRateOfLongMessages) {
  Calibration c;
  constexpr double latency = 10e-6, per_byte = 10e-9, burst = 100e3;
  const auto timed = [&](int pairs, double bytes, double disturbed = 1.0) {
    const double time = latency + std::max(0.0, pairs * bytes - burst) * per_byte;
    c.point_to_point.push_back({false, pairs, Bytes{bytes}, Seconds{time * disturbed}, 0.1});
  };
  for (const double bytes : {1.0, 65536.0, 1048576.0, 4194304.0, 8388608.0}) timed(1, bytes), timed(2, bytes);
  timed(4, 16384);
  timed(1, 2097152, 0.2);
  const TopologySpec spec = measured_topology(c);
  EXPECT_NEAR(spec.nic_bandwidth.value(), 100e6, 1.0);
  EXPECT_DOUBLE_EQ(spec.nic_latency.value(), latency / 2);
}

// The example reads 100 MB in 0.25 s; a smaller sample and one that was written do not count.
TEST(MeasuredTopology, ReadsStorageOffItsLargestReading) {
  Calibration c = example_calibration();
  c.io.push_back({false, Bytes{1e6}, Seconds{1.0}});
  EXPECT_EQ(reading_rate(c), BytesPerSecond{4e8});
  EXPECT_EQ(writing_rate(c), BytesPerSecond{2e8});
  c.io.clear();
  EXPECT_EQ(reading_rate(c), BytesPerSecond{0});
}

TEST(MeasuredTopology, OneRankIsOneDevice) {
  Calibration c = example_calibration();
  c.machine.clear();
  c.ranks_per_node = 1;
  c.point_to_point.clear();
  c.collectives.clear();
  EXPECT_EQ(measured_topology(c).nodes, 1);
  EXPECT_EQ(measured_topology(c).devices_per_node, 1);
}

TEST(Cluster, UnknownNamesListTheKnown) {
  const auto cluster = load_cluster("no-such");
  ASSERT_FALSE(cluster);
  EXPECT_NE(cluster.error().hint.find("dgx-h100"), std::string::npos);
  EXPECT_FALSE(load_cluster("/no/such.yaml"));
  EXPECT_FALSE(load_cluster("/no/such.json"));
  EXPECT_FALSE(load_cluster(""));
}

// Sixteen V100 on four nodes, of which nobody measured messages: all bytes at half the rate.
TEST_F(ClusterFolder, SpeaksTheProtocolItNames) {
  const auto seconds = [&](const std::string& protocol) {
    std::ofstream(folder_ / "c.yaml") << replaced(replaced(example_cluster, "nodes: 3", "nodes: 4"), "LL128", protocol);
    const auto cluster = load_cluster((folder_ / "c.yaml").string());
    EXPECT_TRUE(cluster) << to_string(cluster.error());
    return cluster->network.collective(Collective::all_reduce, Bytes{1e9}, {4, 4, 1}).time.time.value();
  };
  EXPECT_NEAR(seconds("LL") / seconds("Simple"), 2.0, 0.02);
  EXPECT_DOUBLE_EQ(seconds("automatic"), seconds("Simple"));
}

TEST(Cluster, ResizesAndKeepsTheRest) {
  const auto cluster = load_cluster("abci-v100");
  ASSERT_TRUE(cluster) << to_string(cluster.error());
  const auto small = resized(*cluster, 1, 2);
  ASSERT_TRUE(small);
  EXPECT_EQ(small->devices(), 2);
  EXPECT_EQ(small->name, "abci-v100");
  EXPECT_EQ(small->kernels.size(), cluster->kernels.size());
  EXPECT_EQ(small->network.topology().spec().nodes, 1);
  EXPECT_FALSE(resized(*cluster, 0, 4));
}

// Kernels are the other device's, everything between devices is as it was.
TEST(Cluster, TakesOtherDevicesAndKeepsTheRest) {
  const auto cluster = load_cluster("abci-v100"), of_its_own = load_cluster("dgx-h100");
  const auto other = with_devices(*cluster, "h100-sxm");
  ASSERT_TRUE(other) << to_string(other.error());
  EXPECT_EQ(other->devices(), cluster->devices());
  EXPECT_EQ(other->network.topology().spec(), cluster->network.topology().spec());
  EXPECT_EQ(other->storage_read, cluster->storage_read);
  EXPECT_EQ(other->kernels.device().name, of_its_own->kernels.device().name);
  EXPECT_EQ(other->kernels.size(), of_its_own->kernels.size());
  EXPECT_FALSE(with_devices(*cluster, "abci-v100"));

  Cluster linked = *cluster;
  linked.host_link = BytesPerSecond{1e10};
  EXPECT_EQ(with_devices(linked, "h100-sxm")->host_link, linked.host_link) << "it was said of the machine";
  linked.host_link_measured = true;
  EXPECT_EQ(with_devices(linked, "h100-sxm")->host_link, BytesPerSecond{}) << "it was measured of the other device";
}

}  // namespace
}  // namespace sibyl
