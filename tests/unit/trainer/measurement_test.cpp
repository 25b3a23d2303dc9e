#include "trainer/measurement.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sibyl::trainer {
namespace {

Measurement of_steps(std::initializer_list<double> totals) {
  Measurement m;
  for (const double t : totals) m.steps.push_back({{}, {}, {}, {}, Seconds{t}});
  m.bytes_sent = {{.gradients = 9, .norms = 3}, {.gradients = 8}};
  m.bytes_planned = {{.gradients = 12}, {.gradients = 8}};
  m.losses = {2.0, 1.0};
  m.memory.peak = Bytes{4096};
  return m;
}

TEST(Measurement, medians_and_spread) {
  // Median of 1 2 3 4 10 is 3; distances 2 1 0 1 7 have median 1: 1.4826 / 3.
  const Measurement m = of_steps({4, 1, 10, 3, 2});
  EXPECT_DOUBLE_EQ(m.median(&StepTimes::total).value(), 3.0);
  EXPECT_DOUBLE_EQ(m.spread(), 1.4826 / 3.0);
  EXPECT_DOUBLE_EQ(of_steps({1, 2}).median(&StepTimes::total).value(), 1.5);
  EXPECT_EQ(of_steps({}).spread(), 0.0);
}

// What the system hands out is no part of a steady step; where every step took some, they are what there is.
TEST(Measurement, counts_steps_that_took_no_new_memory) {
  Measurement m = of_steps({4, 1, 10, 3, 2});
  m.grew = {true, false, true, false, false};
  EXPECT_DOUBLE_EQ(m.median(&StepTimes::total).value(), 2.0);
  EXPECT_DOUBLE_EQ(m.spread(), 1.4826 / 2.0);
  EXPECT_NE(to_text(m, {}, {}).find("median of 3"), std::string::npos) << to_text(m, {}, {});
  EXPECT_NE(to_text(m, {}, {}).find("in 2 of 5 steps"), std::string::npos) << to_text(m, {}, {});
  EXPECT_EQ(to_text(of_steps({1, 2}), {}, {}).find("new memory"), std::string::npos);
  m.grew.assign(5, true);
  EXPECT_DOUBLE_EQ(m.median(&StepTimes::total).value(), 3.0);
}

TEST(Measurement, json_says_what_was_run_and_measured) {
  Plan plan;
  plan.strategy.data = 2;
  plan.strategy.global_batch = 6;
  plan.mesh.extents = {{MeshAxis::data, 2}};
  const auto json = nlohmann::json::parse(to_json(of_steps({3, 3}), plan, {}, "m.onnx", 1));
  EXPECT_EQ(json["devices"], 2);
  EXPECT_EQ(json["step_time_s"], 3.0);
  EXPECT_EQ(json["throughput_samples_per_s"], 2.0);
  EXPECT_EQ(json["peak_memory_bytes"], 4096.0);
  EXPECT_EQ(json["bytes_sent_per_step"], 12);
  EXPECT_EQ(json["bytes_sent_per_step_by_rank"], (std::vector<int>{12, 8}));
  EXPECT_EQ(json["bytes_planned_per_step_by_rank"], (std::vector<int>{12, 8}));
  EXPECT_EQ(json["bytes_sent_per_step_by_kind"]["gradients"], (std::vector<int>{9, 8}));
  EXPECT_EQ(json["bytes_sent_per_step_by_kind"]["norms"], (std::vector<int>{3, 0}));
  EXPECT_EQ(json["bytes_planned_per_step_by_kind"]["norms"], (std::vector<int>{0, 0}));
  EXPECT_EQ(json["losses"], (std::vector<double>{2.0, 1.0}));
  EXPECT_FALSE(json.contains("accuracy"));
}

}  // namespace
}  // namespace sibyl::trainer
