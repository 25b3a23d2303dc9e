// Shapes and strides as cuDNN is given them. Needs no device.
#include "profiler/cudnn/images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sibyl::cudnn {
namespace {

using testing::ElementsAre;

TEST(Strides, OfRowsLieInOrder) {
  // 2 x 3 x 4 x 5: a column is 1 away, a row 5, a channel 20, a sample 60.
  EXPECT_THAT(strides_of({2, 3, 4, 5}, Layout::nchw), ElementsAre(60, 20, 5, 1));
}
TEST(Strides, OfChannelsLast) {
  // Channels are 1 apart, columns 3, rows 15, samples 60.
  EXPECT_THAT(strides_of({2, 3, 4, 5}, Layout::nhwc), ElementsAre(60, 1, 15, 3));
  EXPECT_THAT(strides_of({2, 3, 4, 5, 6}, Layout::nhwc), ElementsAre(360, 1, 90, 18, 3));
}
TEST(Strides, OfMatricesHaveNoChannels) { EXPECT_THAT(strides_of({7, 9}, Layout::nhwc), ElementsAre(9, 1)); }

TEST(Images, HaveTwoSpatialDimensionsAtLeast) {
  EXPECT_THAT(at_least_four({8, 16, 100}), ElementsAre(8, 16, 1, 100));
  EXPECT_THAT(at_least_four({8, 16}), ElementsAre(8, 16, 1, 1));
  EXPECT_THAT(at_least_four({8, 16, 4, 5, 6}), ElementsAre(8, 16, 4, 5, 6));
  EXPECT_THAT(spatial({3}, 1), ElementsAre(1, 3));
  EXPECT_THAT(spatial({3, 5, 7}, 1), ElementsAre(3, 5, 7));
}

TEST(ChannelBroadcast, WalksAlongTheImageAndRepeatsTheVector) {
  // 2 samples, 3 channels, 20 pixels. In nchw: extents 2 3 20, the vector moves with the second.
  const Strides first = channel_broadcast({2, 3, 4, 5}, Layout::nchw);
  EXPECT_EQ(first.rank, 3);
  EXPECT_EQ(first.extent[1], 3);
  EXPECT_EQ(first.a[0], 60);
  EXPECT_EQ(first.a[1], 20);
  EXPECT_EQ(first.b[0], 0);
  EXPECT_EQ(first.b[1], 1);
  EXPECT_EQ(first.b[2], 0);
  // In nhwc: extents 2 20 3, the vector moves with the last.
  const Strides last = channel_broadcast({2, 3, 4, 5}, Layout::nhwc);
  EXPECT_EQ(last.extent[1], 20);
  EXPECT_EQ(last.a[1], 3);
  EXPECT_EQ(last.b[1], 0);
  EXPECT_EQ(last.b[2], 1);
}

}  // namespace
}  // namespace sibyl::cudnn
