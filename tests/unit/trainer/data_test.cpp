#include "trainer/data.h"

#include <gmock/gmock.h>

#include <fstream>
#include <numeric>
#include <set>

#include "tests/support/graphs.h"
#include "tests/unit/trainer/alone.h"

namespace sibyl::trainer {
namespace {

// A replica of the two-class perceptron on `batch` samples of three features.
class DataTest : public ::testing::Test {
 protected:
  struct Feed {
    explicit Feed(std::int64_t batch) : graph(test::mlp({3, 2}, batch)) {
      Strategy strategy;
      strategy.global_batch = batch;
      plan = *make_plan(graph, strategy);
      replica = std::make_unique<Replica>(*Replica::create(graph, plan.stages.front(), alone, 1));
    }
    at::Tensor& features() { return (*replica)[replica->inputs()[0]]; }
    at::Tensor& targets() { return (*replica)[replica->inputs()[1]]; }

    Graph graph;
    Plan plan;
    std::unique_ptr<Replica> replica;
  };

  // n samples: features (s, s, s), target s % 2.
  static std::filesystem::path folder(std::int64_t n, std::int64_t columns = 3, std::int64_t wrong_target = -1) {
    const std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "sibyl_data_test";
    std::filesystem::create_directories(path);
    std::vector<float> features;
    std::vector<std::int64_t> targets;
    for (std::int64_t s = 0; s < n; ++s) {
      for (std::int64_t c = 0; c < columns; ++c) features.push_back(static_cast<float>(s));
      targets.push_back(s == wrong_target ? 2 : s % 2);
    }
    write(path / "inputs.npy", "<f4", std::to_string(n) + ", " + std::to_string(columns), features);
    write(path / "targets.npy", "<i8", std::to_string(n) + ",", targets);
    return path;
  }
  static void write(const std::filesystem::path& path, const std::string& type, const std::string& shape,
                    const auto& values) {
    std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.resize(118, ' ');
    std::ofstream file(path, std::ios::binary);
    file << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header;
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(values[0])));
  }
};

TEST_F(DataTest, a_global_batch_is_the_same_for_any_number_of_ranks) {
  Feed whole(4), half(2);
  Data all = *Data::synthetic(*whole.replica, 4, 5), part = *Data::synthetic(*half.replica, 2, 5);
  all.fill(*whole.replica, 100);
  for (const std::int64_t rank : {0, 1}) {
    part.fill(*half.replica, 100 + 2 * rank);
    EXPECT_TRUE(at::equal(half.features(), whole.features().slice(0, 2 * rank, 2 * rank + 2)));
    EXPECT_TRUE(at::equal(half.targets(), whole.targets().slice(0, 2 * rank, 2 * rank + 2)));
  }
  const at::Tensor before = whole.features().clone();
  all.fill(*whole.replica, 104);
  EXPECT_FALSE(at::equal(before, whole.features()));
}

TEST_F(DataTest, synthetic_samples_have_unit_variance_and_ids_below_their_bound) {
  Feed feed(20000);
  Data data = *Data::synthetic(*feed.replica, 20000, 1);
  data.fill(*feed.replica, 0);
  // 60,000 uniform values: the mean strays by 0.004, the variance by 0.004.
  EXPECT_NEAR(feed.features().mean().item<double>(), 0.0, 0.02);
  EXPECT_NEAR(feed.features().var().item<double>(), 1.0, 0.02);
  EXPECT_EQ(feed.targets().min().item<std::int64_t>(), 0);
  EXPECT_EQ(feed.targets().max().item<std::int64_t>(), 1);
}

TEST_F(DataTest, an_epoch_feeds_each_sample_once_in_an_order_of_its_own) {
  Feed feed(2);
  Data data = *Data::from_folder(*feed.replica, 2, 3, folder(10), 2);
  std::vector<std::vector<float>> epochs(2);
  for (std::int64_t s = 0; s < 20; s += 2) {
    data.fill(*feed.replica, s);
    for (const std::int64_t slot : {0, 1}) {
      const float value = feed.features()[slot][2].item<float>();
      EXPECT_EQ(feed.targets()[slot].item<std::int64_t>(), static_cast<std::int64_t>(value) % 2);
      epochs[static_cast<std::size_t>(s / 10)].push_back(value);
    }
  }
  EXPECT_NE(epochs[0], epochs[1]);
  for (const auto& epoch : epochs) EXPECT_EQ(std::set<float>(epoch.begin(), epoch.end()).size(), 10U);
}

TEST_F(DataTest, says_what_is_wrong_with_a_folder) {
  Feed feed(2);
  const auto error = [&](const std::filesystem::path& path, std::int64_t batch) {
    const auto data = Data::from_folder(*feed.replica, 2, 3, path, batch);
    return data ? std::string() : data.error().message;
  };
  EXPECT_EQ(error(folder(4), 4), "");
  EXPECT_THAT(error("/nowhere", 2), ::testing::HasSubstr("no such folder"));
  EXPECT_THAT(error(folder(4), 6), ::testing::HasSubstr("fewer than the batch"));
  EXPECT_THAT(error(folder(4, 5), 2), ::testing::HasSubstr("takes 3 values"));
  EXPECT_THAT(error(folder(4, 3, 1), 2), ::testing::HasSubstr("from 0 to 1, not 2"));
  // Beside targets that there are.
  const std::filesystem::path empty = folder(4);
  write(empty / "inputs.npy", "<f4", "0, 3", std::vector<float>{});
  EXPECT_THAT(error(empty, 1), ::testing::HasSubstr("no samples"));
}

// One linear layer; labels of shape [batch, 1] are flattened for the loss.
Graph with_flattened_labels(std::int64_t batch) {
  Graph graph;
  const TensorId x = graph.add(Tensor{"x", {batch, 3}, DType::f32, TensorKind::input, 0, {}, 0});
  const TensorId weight = graph.add(Tensor{"weight", {2, 3}, DType::f32, TensorKind::parameter, {}, {}, 0});
  const TensorId y = graph.add(Tensor{"y", {batch, 2}, DType::f32, TensorKind::activation, 0, {}, 0});
  graph.add(Operation{"fc", Linear{}, {x, weight}, {y}, {}});
  const TensorId labels = graph.add(Tensor{"labels", {batch, 1}, DType::i64, TensorKind::input, 0, {}, 2});
  const TensorId flat = graph.add(Tensor{"flat", {batch}, DType::i64, TensorKind::activation, 0, {}, 2});
  graph.add(Operation{"flatten", Reshape{}, {labels}, {flat}, {}});
  graph.loss = graph.add(Tensor{"loss", {}, DType::f32, TensorKind::activation, {}, {}, 0});
  graph.add(Operation{"loss", CrossEntropy{1}, {y, flat}, {graph.loss}, {}});
  return graph.finish(batch) ? graph : Graph{};
}

TEST_F(DataTest, knows_targets_that_the_model_reshapes) {
  const Graph graph = with_flattened_labels(2);
  Strategy strategy;
  strategy.global_batch = 2;
  const Plan plan = *make_plan(graph, strategy);
  Replica replica = *Replica::create(graph, plan.stages.front(), alone, 1);
  Data data = Data::from_folder(replica, 2, 3, folder(4), 4).value();
  ASSERT_TRUE(data.targets().valid());
  data.fill_in_order(replica, 0);
  EXPECT_TRUE(at::equal(replica[data.targets()], at::arange(2, at::kLong).view({2, 1})));
}

}  // namespace
}  // namespace sibyl::trainer
