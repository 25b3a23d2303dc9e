// What PyTorch's DistributedDataParallel does beside what Sibyl's own trainer does, and what it has not.
#include "oracle/plan/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/cost/framework.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using test::zoo;

Strategy pytorch(int replicas) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = 2 * replicas;
  strategy.framework = Framework::pytorch_ddp;
  return strategy;
}

// ResNet-18's 20 batch-norms have 64 + 4 x 64 + 5 x 128 + 5 x 256 + 5 x 512 = 4800 channels, each with a mean and a
// variance of 4 bytes; and 20 counters of 8 bytes.
TEST(PytorchDdp, BroadcastsBuffersEachStep) {
  const Graph resnet = zoo("resnet18");
  EXPECT_THAT(make_plan(resnet, pytorch(2))->stages[0].buffer_broadcasts, ElementsAre(38400, 160));
  EXPECT_THAT(make_plan(resnet, pytorch(1))->stages[0].buffer_broadcasts, IsEmpty());
  EXPECT_THAT(make_plan(zoo("squeezenet1.1"), pytorch(2))->stages[0].buffer_broadcasts, IsEmpty());
  Strategy own = pytorch(2);
  own.framework = Framework::sibyl;
  EXPECT_THAT(make_plan(resnet, own)->stages[0].buffer_broadcasts, IsEmpty());
}

// 11,689,512 parameters of 4 bytes; of two ranks each sends half of them twice. The first sends the buffers, too.
TEST(PytorchDdp, SendsGradientsByGlooAndBuffers) {
  const auto plan = make_plan(zoo("resnet18"), pytorch(2));
  EXPECT_EQ(bytes_sent_per_step(*plan, 0, Algorithm::gloo), 46'758'048 + 38'400 + 160);
  EXPECT_EQ(bytes_sent_per_step(*plan, 1, Algorithm::gloo), 46'758'048);
}

TEST(PytorchDdp, TrainsWholeReplicasAndOverlaps) {
  const Graph graph = test::mlp({4, 8, 3}, 2);
  EXPECT_TRUE(make_plan(graph, pytorch(2)).has_value());
  const auto refused = [&](auto&& change) {
    Strategy strategy = pytorch(2);
    change(strategy);
    const auto plan = make_plan(graph, strategy);
    return !plan && plan.error().code == ErrorCode::usage;
  };
  EXPECT_TRUE(refused([](Strategy& s) { s.tensor = 2; }));
  EXPECT_TRUE(refused([](Strategy& s) { s.zero = 1; }));
  EXPECT_TRUE(refused([](Strategy& s) { s.exchange = GradientExchange::at_end; }));
}

// The bucket of 67 gradients, measured by Gloo at 50 ms and by Sibyl's communicator at 5 ms, waited for but for what backward
// hides.
TEST(PytorchDdp, IsPricedByWhatGlooTook) {
  Cluster cluster = test::cluster(2, 1);
  const auto sample = [](double seconds, Algorithm algorithm) {
    return CollectiveSample{Collective::all_reduce, algorithm, {1, 2, 1}, Bytes{268}, Seconds{seconds}, 0.0, "test"};
  };
  cluster.network = Network(cluster.network.topology(), {},
                            {sample(0.050, Algorithm::gloo), sample(0.005, Algorithm::automatic)});
  cluster.overlap = {1.5, 3.0, 0.0};
  cluster.overlap_with_gloo = {1.25, 2.0, 0.0, Algorithm::gloo};
  const Graph graph = test::mlp({4, 8, 3}, 2);
  Strategy strategy = pytorch(2);
  const auto ddp = predict(graph, strategy, cluster);
  EXPECT_NEAR(ddp->breakdown.communication_total.value(), 0.050, 1e-9);
  EXPECT_EQ(ddp->algorithm, "gloo");
  EXPECT_EQ(ddp->framework, "pytorch-ddp");
  EXPECT_THAT(ddp->bucket_bytes, ElementsAre(268));
  EXPECT_DOUBLE_EQ(slowdown_of(strategy, cluster).communication, 2.0);
  strategy.framework = Framework::sibyl;
  EXPECT_NEAR(predict(graph, strategy, cluster)->breakdown.communication_total.value(), 0.005, 1e-9);
  EXPECT_DOUBLE_EQ(slowdown_of(strategy, cluster).communication, 3.0);
}

// 24 of an A100's 108 multiprocessors carry NCCL's channels, unless somebody measured or said otherwise; a CPU has
// none.
TEST(Overlap, OfGpusIsWhatNcclTakes) {
  const Strategy strategy;
  Cluster cluster = load_cluster("dgx-a100").value();
  // Between nodes 16, two for each adapter; whatever the cluster has beside what is used.
  Strategy replicas;
  replicas.data = 16;
  EXPECT_DOUBLE_EQ(slowdown_of(replicas, cluster).compute, 108.0 / 92);
  replicas.data = 8;
  EXPECT_DOUBLE_EQ(slowdown_of(replicas, cluster).compute, 108.0 / 84);
  cluster = resized(cluster, 1, 8).value();
  EXPECT_DOUBLE_EQ(slowdown_of(strategy, cluster).compute, 108.0 / 84);
  EXPECT_DOUBLE_EQ(slowdown_of(strategy, cluster).communication, 1.0);
  cluster.overlap_known = true;
  EXPECT_DOUBLE_EQ(slowdown_of(strategy, cluster).compute, 1.0);
  cluster.overlap_known = false;
  cluster.overlap.compute_slowdown = 1.1;
  EXPECT_DOUBLE_EQ(slowdown_of(strategy, cluster).compute, 1.1);
  EXPECT_DOUBLE_EQ(slowdown_of(strategy, test::cluster(2, 1)).compute, 1.0);
}

}  // namespace
}  // namespace sibyl
