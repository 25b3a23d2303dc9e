#include "netmodel/channels.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

int channels(LinkKind kind, double bandwidth, int nodes = 1, int nics = 1, int devices = 8) {
  TopologySpec spec;
  spec.nodes = 4;
  spec.devices_per_node = devices;
  spec.device_link = {kind, BytesPerSecond{bandwidth}, {}};
  spec.nics_per_node = nics;
  return nccl_channels(spec, nodes);
}

// As NCCL's logs have them: six NVLinks of V100, twelve of A100, eight of H800, eighteen of H100; one ring over PCIe.
TEST(Channels, OfANodeAreTwoForEachLink) {
  EXPECT_EQ(channels(LinkKind::nvlink_mesh, 120e9), 12);
  EXPECT_EQ(channels(LinkKind::nvswitch, 240e9), 24);
  EXPECT_EQ(channels(LinkKind::nvswitch, 164.8e9), 16);
  EXPECT_EQ(channels(LinkKind::nvswitch, 370.8e9), 24);
  EXPECT_EQ(channels(LinkKind::pcie, 24e9), 2);
}

TEST(Channels, BetweenNodesAreTwoForEachAdapter) {
  EXPECT_EQ(channels(LinkKind::nvswitch, 240e9, 4, 8), 16);
  EXPECT_EQ(channels(LinkKind::nvswitch, 240e9, 4, 1), 2);
  EXPECT_EQ(channels(LinkKind::pcie, 24e9, 4, 8), 2);
  EXPECT_EQ(channels(LinkKind::pcie, 24e9, 4, 4, 1), 8) << "one device a node: nothing inside";
}

TEST(Channels, LeaveTheOtherMultiprocessors) {
  EXPECT_DOUBLE_EQ(slowdown_beside(24, 108), 108.0 / 84);
  EXPECT_DOUBLE_EQ(slowdown_beside(2, 0), 1.0);
  EXPECT_DOUBLE_EQ(slowdown_beside(24, 20), 1.0);
}

}  // namespace
}  // namespace sibyl
