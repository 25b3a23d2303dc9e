#include "oracle/cli/study.h"

#include <gmock/gmock.h>

#include "netmodel/topology.h"
#include "oracle/cli/options.h"

namespace sibyl::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<Arguments> parse_predict(const std::vector<std::string>& words) {
  Command command;
  command.program = "sibyl predict";
  command.operands = "MODEL";
  command.options = prediction_options();
  command.least_operands = command.most_operands = 1;
  return Arguments::parse(std::move(command), words);
}

Result<Cluster> changed_by(const std::vector<std::string>& changes) {
  std::vector<std::string> words = {"zoo:lenet", "--cluster=dgx-a100", "--devices=8"};
  for (const std::string& change : changes) words.push_back("--set=" + change);
  SIBYL_TRY(const Arguments arguments, parse_predict(words));
  SIBYL_TRY(Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(const Strategy strategy, read_strategy_for(arguments, cluster));
  return with_changes(arguments, std::move(cluster), strategy);
}

TEST(ChangedCluster, NothingSetIsTheClusterAsItIs) { EXPECT_EQ(changed_by({})->name, load_cluster("dgx-a100")->name); }

TEST(ChangedCluster, PartsBecomeWhatIsSet) {
  const auto before = load_cluster("dgx-a100");
  const auto after = changed_by({"nic.bandwidth=2x", "device.memory=100GB"});
  ASSERT_TRUE(after.has_value());
  EXPECT_DOUBLE_EQ(after->network.topology().spec().nic_bandwidth.value(),
                   2 * before->network.topology().spec().nic_bandwidth.value());
  EXPECT_EQ(after->kernels.device().memory, Bytes{100e9});
  EXPECT_THAT(after->name, HasSubstr("nic.bandwidth=2x"));
}

TEST(ChangedCluster, AnUnknownPartIsAnErrorOfUsage) {
  const auto wrong = changed_by({"banana=2x"});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::usage);
  EXPECT_THAT(wrong.error().message, HasSubstr("banana"));
}

Result<Cluster> read_with(const std::vector<std::string>& options) {
  std::vector<std::string> words = {"zoo:lenet", "--cluster=dgx-a100"};
  words.insert(words.end(), options.begin(), options.end());
  SIBYL_TRY(const Arguments arguments, parse_predict(words));
  return read_cluster(arguments);
}

// 3 nodes of 4 devices, and of 4 of another kind: links and NICs are still those of a DGX A100.
TEST(ReadCluster, NodesMayHoldOtherNumbersAndKindsOfDevices) {
  const auto before = load_cluster("dgx-a100"), other = load_cluster("dgx-h100");
  const auto after = read_with({"--nodes=3", "--devices-per-node=4", "--device-type=h100-sxm"});
  ASSERT_TRUE(after.has_value()) << to_string(after.error());
  EXPECT_EQ(after->devices(), 12);
  const TopologySpec &own = after->network.topology().spec(), &spec = before->network.topology().spec();
  EXPECT_EQ(own.devices_per_node, 4);
  EXPECT_EQ(own.device_link, spec.device_link);
  EXPECT_EQ(own.nics_per_node, spec.nics_per_node);
  EXPECT_EQ(after->kernels.device().name, other->kernels.device().name);
  EXPECT_THAT(after->name, AllOf(HasSubstr("h100-sxm"), HasSubstr("dgx-a100")));
  EXPECT_EQ(read_with({"--devices-per-node=4"})->nodes, before->nodes);
}

TEST(ReadCluster, AnUnknownKindOfDeviceIsSaid) {
  const auto wrong = read_with({"--device-type=h1000"});
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().where, "--device-type");
  EXPECT_THAT(wrong.error().hint, HasSubstr("h100-sxm"));
  EXPECT_EQ(read_with({"--devices-per-node=0"}).error().code, ErrorCode::usage);
}

TEST(LoadDimensions, OfTheZoo) {
  const auto text = load_dimensions("zoo:gpt2");
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, testing::ElementsAre(OpenDimension{"seq", 1024}));
  EXPECT_THAT(load_dimensions("zoo:resnet50").value(), testing::IsEmpty());
  EXPECT_THAT(load_dimensions("zoo:resnet5").error().hint, HasSubstr("zoo:resnet50"));
}

}  // namespace
}  // namespace sibyl::cli
