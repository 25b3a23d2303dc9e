// What copies between a GPU and its host show of the link.
#include "calibration/program/host_link.h"

#include <gtest/gtest.h>

namespace sibyl {
namespace {

cudnn::Transfer copied(const char* direction, double bytes, double time) {
  return {direction, Bytes{bytes}, Seconds{time}};
}

// 100 MB in 5 ms there and in 4 ms back: 20 and 25 GB/s. Short copies are slow to start, and those on the device are of
// its memory.
TEST(HostLink, IsTheSlowerWayOfTheLongestCopies) {
  const std::vector<cudnn::Transfer> copies = {
      copied("host_to_device", 1e8, 5e-3), copied("host_to_device", 4096, 1e-5), copied("device_to_host", 4096, 1e-5),
      copied("device_to_host", 1e8, 4e-3), copied("device_to_device", 1e8, 1e-1)};
  EXPECT_DOUBLE_EQ(host_link_of(copies).value(), 2e10);
}

TEST(HostLink, IsNotKnownByOneWay) {
  EXPECT_EQ(host_link_of({}), BytesPerSecond{});
  const std::vector<cudnn::Transfer> there = {copied("host_to_device", 1e8, 5e-3),
                                              copied("device_to_device", 1e8, 1e-4)};
  EXPECT_EQ(host_link_of(there), BytesPerSecond{});
}

}  // namespace
}  // namespace sibyl
