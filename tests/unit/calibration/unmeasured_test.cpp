#include "calibration/unmeasured.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace sibyl {
namespace {

TEST(Unmeasured, DispatchIsWhatShippedDevicesHave) {
  for (const std::string& name : shipped_calibrations()) {
    const auto shipped = shipped_calibration(name);
    ASSERT_TRUE(shipped) << name;
    if (shipped->device.backend != Backend::cuda) continue;
    EXPECT_EQ(shipped->device.dispatch, usual_dispatch) << name;
    EXPECT_EQ(shipped->device.dispatch_error, usual_dispatch_error) << name;
  }
  Device device;
  assume_dispatch(device);
  EXPECT_EQ(device.dispatch, usual_dispatch);
  EXPECT_EQ(device.dispatch_error, usual_dispatch_error);
}

TEST(Unmeasured, AMeasuredDispatchStays) {
  Device device;
  device.dispatch = Seconds{2e-5};
  assume_dispatch(device);
  EXPECT_EQ(device.dispatch, Seconds{2e-5});
  EXPECT_EQ(device.dispatch_error, 0.0);
}

TEST(Unmeasured, AShippedDeviceLendsItsKernelsFirstAndThenItsDonors) {
  Calibration measured;
  measured.device.name = "NVIDIA H200";
  add_shipped(measured);
  EXPECT_EQ(measured.device.architecture, "hopper");
  EXPECT_EQ(measured.device.multiprocessors, 132);
  const auto shipped = shipped_calibration("h200-sxm");
  ASSERT_TRUE(shipped);
  ASSERT_EQ(measured.donors.size(), shipped->donors.size() + 1);
  EXPECT_EQ(measured.donors.front(), "h200-sxm");
  EXPECT_TRUE(std::equal(shipped->donors.begin(), shipped->donors.end(), measured.donors.begin() + 1));
}

TEST(Unmeasured, WhatTheDeviceToldStays) {
  Calibration measured;
  measured.device.name = "NVIDIA H200";
  measured.device.architecture = "its own";
  measured.device.multiprocessors = 16;  // a slice of one
  measured.donors = {"t4"};
  add_shipped(measured);
  EXPECT_EQ(measured.device.architecture, "its own");
  EXPECT_EQ(measured.device.multiprocessors, 16);
  EXPECT_EQ(measured.donors, std::vector<std::string>{"t4"});
}

TEST(Unmeasured, OfAnUnknownDeviceNothingIsSaid) {
  Calibration measured;
  measured.device.name = "Abacus 9000";
  add_shipped(measured);
  EXPECT_TRUE(measured.donors.empty());
  EXPECT_TRUE(measured.device.architecture.empty());
  EXPECT_EQ(measured.device.multiprocessors, 0);
}

}  // namespace
}  // namespace sibyl
