// Rows priced, and what is said of them by source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "oracle/validate/published/judge.h"

namespace sibyl::published {
namespace {

using testing::HasSubstr;

Verdict made(const char* source, double measured, double predicted) {
  Verdict v;
  v.row.source = source;
  v.row.model = "m";
  v.row.gpu = "g";
  v.row.metric = Metric::iteration_time;
  v.measured = measured;
  v.predicted = predicted;
  v.low = predicted - 0.15;
  v.high = predicted + 0.15;
  return v;
}

// Of A: errors +10 %, -20 %, +30 %: mean and median of sizes 20 %, at 9/10 of the way 20 + 0.8 x 10 = 28 %, bias 20/3
// %; one of three measurements lies within 0.15. B is apart, and its second row is not priced.
TEST(PublishedSummary, IsBySourceByHand) {
  std::vector<Verdict> verdicts = {made("A", 1, 1.1), made("B", 2, 2), made("A", 1, 0.8), made("A", 1, 1.3),
                                   made("B", 1, 9)};
  verdicts[4].why_not = "no recipe";
  const std::vector<SourceSummary> summaries = summarize(verdicts);
  ASSERT_EQ(summaries.size(), 2U);
  const SourceSummary& a = summaries[0];
  EXPECT_EQ(a.source, "A");
  EXPECT_EQ(a.rows, 3U);
  EXPECT_NEAR(a.mean_error, 0.20, 1e-12);
  EXPECT_NEAR(a.median_error, 0.20, 1e-12);
  EXPECT_NEAR(a.p90_error, 0.28, 1e-12);
  EXPECT_NEAR(a.max_error, 0.30, 1e-12);
  EXPECT_NEAR(a.bias, 0.2 / 3, 1e-12);
  EXPECT_NEAR(a.inside_interval, 1.0 / 3, 1e-12);
  EXPECT_EQ(summaries[1].rows, 2U);
  EXPECT_EQ(summaries[1].priced, 1U);
  EXPECT_DOUBLE_EQ(summaries[1].max_error, 0.0);
  EXPECT_THAT(reasons_text(verdicts), HasSubstr("1 row: no recipe"));
}

TEST(PublishedSummary, JsonHasSourcesAndRows) {
  std::vector<Verdict> verdicts = {made("A", 1, 1.1), made("A", 1, 1)};
  verdicts[1].why_not = "no recipe";
  const auto json = nlohmann::json::parse(to_json(verdicts));
  EXPECT_EQ(json["sources"][0]["n"], 2);
  EXPECT_EQ(json["sources"][0]["priced"], 1);
  EXPECT_NEAR(json["sources"][0]["bias"].get<double>(), 0.1, 1e-12);
  EXPECT_EQ(json["rows"][1]["not_priced"], "no recipe");
  EXPECT_NEAR(json["rows"][0]["error"].get<double>(), 0.1, 1e-12);
}

TEST(PublishedSummary, JsonAddsOperationsUpByKindAndKeepsLimits) {
  std::vector<Verdict> verdicts = {made("A", 1, 1.1)};
  Prediction& p = verdicts[0].prediction;
  const auto took = [](double seconds) { return Estimate{.time = Seconds{seconds}}; };
  p.operations = {{.name = "a", .kind = "linear", .forward = took(1), .backward = took(2)},
                  {.name = "b", .kind = "softmax", .forward = took(4), .backward = took(8)},
                  {.name = "c", .kind = "linear", .forward = took(16), .backward = took(32)}};
  p.limits = {{"layer-wise collectives", "", 0.25, "s", 0.1, ""}};
  const auto row = nlohmann::json::parse(to_json(verdicts))["rows"][0];
  EXPECT_DOUBLE_EQ(row["operations_s"]["linear"]["forward"], 17);
  EXPECT_DOUBLE_EQ(row["operations_s"]["linear"]["backward"], 34);
  EXPECT_DOUBLE_EQ(row["operations_s"]["softmax"]["backward"], 8);
  EXPECT_EQ(row["limits"][0]["name"], "layer-wise collectives");
  EXPECT_DOUBLE_EQ(row["limits"][0]["value"], 0.25);
  EXPECT_TRUE(row["fits"]);
}

constexpr const char* columns =
    "source,model,arch_params,framework,precision,gpu,n_gpus,global_batch,micro_batch,seq_or_image,tp,metric,value,"
    "unit\n";

std::vector<Verdict> judged_rows(const std::string& rows) { return judge(*read_rows(columns + rows, "rows")); }

// One plan, asked for in four ways: they must agree. Two devices on a batch of 8 sequences of 128 tokens.
TEST(PublishedJudge, MetricsOfOnePlanAgree) {
  const std::string plan =
      R"(S,toy,"{""layers"": 2, ""hidden"": 256, ""heads"": 4, ""vocab"": 1024}",Megatron-LM,fp16,A100-SXM-80GB,2,8,4,128,1,)";
  const auto v =
      judged_rows(plan + "iteration_time,20,ms\n" + plan + "throughput,100,tokens/s\n" + plan +
                  "throughput_per_gpu,100,sequences/s/GPU\n" + plan + "fwd_bwd_time,10,ms\n" + plan + "memory,1,GiB\n");
  for (const Verdict& verdict : v) ASSERT_EQ(verdict.why_not, "");
  EXPECT_DOUBLE_EQ(v[0].measured, 0.02);
  EXPECT_NEAR(v[1].predicted * v[0].predicted, 8 * 128, 1e-6);
  EXPECT_NEAR(v[2].predicted * v[0].predicted, 8.0 / 2, 1e-9);
  EXPECT_LT(v[3].predicted, v[0].predicted);
  EXPECT_NEAR(v[0].predicted - v[3].predicted, v[0].prediction.breakdown.optimizer.value(), 1e-12);
  EXPECT_DOUBLE_EQ(v[4].predicted, v[0].prediction.memory.total.value());
  EXPECT_LT(v[1].low, v[1].predicted);
  EXPECT_GT(v[1].high, v[1].predicted);
  EXPECT_FALSE(v[0].assumed.empty());
}

// The network is built for the images that the row states; the published size needs no word.
TEST(PublishedJudge, ImagesAreOfTheStatedSize) {
  const std::string run = "S,ResNet-18,,PyTorch,fp32,A100-SXM-80GB,1,8,8,";
  const auto v = judged_rows(run + "224,1,iteration_time,10,ms\n" + run + "3x448x448,1,iteration_time,40,ms\n" + run +
                             "1x224x224,1,iteration_time,10,ms\n" + run + "8,1,iteration_time,10,ms\n");
  EXPECT_THAT(v[0].assumed, testing::Not(testing::Contains(HasSubstr("images of 224"))));
  EXPECT_THAT(v[1].assumed, testing::Contains("the network as it is for images of 224 x 224, on images of 448 x 448"));
  EXPECT_GT(v[1].predicted, 2 * v[0].predicted);  // four times the work
  EXPECT_THAT(v[2].why_not, HasSubstr("the network takes 3x224x224"));
  EXPECT_TRUE(v[3].priced()) << v[3].why_not;  // 8 x 8 is one pixel after the third halving
}

TEST(PublishedJudge, SaysWhyARowIsNotPriced) {
  const auto v = judged_rows(
      "S,toy,,X,fp32,A100-SXM-80GB,1,8,8,,1,iteration_time,1,s\n"
      "S,gpt2,,X,fp32,Abacus,1,8,8,,1,iteration_time,1,s\n"
      "S,gpt2,,X,fp32,A100-SXM-80GB,1,8,8,,1,loss,1,\n"
      "S,gpt2,,X,fp32,A100-SXM-80GB,1,8,8,,1,iteration_time,1,fortnights\n");
  EXPECT_THAT(v[0].why_not, HasSubstr("no recipe"));
  EXPECT_THAT(v[1].why_not, HasSubstr("Abacus"));
  EXPECT_THAT(v[2].why_not, HasSubstr("loss"));
  EXPECT_THAT(v[3].why_not, HasSubstr("fortnights"));
}

}  // namespace
}  // namespace sibyl::published
