#include "oracle/report/report.h"

#include <gmock/gmock.h>

#include <clocale>

#include "oracle/closed/first_answer.h"
#include "oracle/memory/history.h"
#include "oracle/report/format.h"
#include "tests/unit/oracle/report/sample_prediction.h"

namespace sibyl {
namespace {

using testing::HasSubstr;
using testing::Not;

ScaleReport sample_scale() {
  ScaleReport report{"resnet50.onnx", "abci-v100", Scaling::weak, {}};
  Prediction one = sample_prediction().prediction;
  one.devices = 1, one.global_batch = 64, one.throughput = 200;
  report.points.push_back({1, one, 1.0});
  report.points.push_back({64, sample_prediction().prediction, 0.8});  // 10240 / 64 / 200
  report.points.push_back(
      {4096, fail(ErrorCode::infeasible, "abci-v100 has 4352 devices, | not more", "", "use fewer"), 0});
  return report;
}

// Of made-up steps: 100 to 140 ms; 30 ms of communication, of which 12 are waited for; 800 samples/s of 8 devices.
TEST(Figures, AreWhatTheirNamesSay) {
  Prediction p;
  p.interval_low = Seconds{0.1}, p.interval_high = Seconds{0.14};
  p.breakdown.communication_total = Seconds{0.03}, p.breakdown.communication_exposed = Seconds{0.012};
  p.throughput = 800, p.devices = 8;
  EXPECT_NEAR(half_interval(p).value(), 0.02, 1e-15);
  p.step_time = Seconds{0.12};
  EXPECT_EQ(interval_words(p), "± 20.0 ms");
  EXPECT_EQ(time_words(p), "120 ms ± 20.0 ms");
  p.step_time = Seconds{0.119};  // 19 and 21 ms: nearly even
  EXPECT_EQ(interval_words(p), "± 20.0 ms");
  p.step_time = Seconds{0.11};
  EXPECT_EQ(interval_words(p), "100 ms to 140 ms");
  EXPECT_EQ(time_words(p), "110 ms (100 ms to 140 ms)");
  EXPECT_NEAR(hidden_communication(p).value(), 0.018, 1e-15);
  EXPECT_DOUBLE_EQ(throughput_per_device(p), 100);
  p.breakdown.communication_exposed = Seconds{0.03 + 1e-12};  // rounding
  EXPECT_EQ(hidden_communication(p).value(), 0);
}

// What a caching allocator keeps counts between two predictions, and not against a formula, which has none of it.
TEST(Figures, RatiosCompareLikeWithLike) {
  Evaluation then, now;
  then.step_time = Seconds{0.1}, then.throughput = 100, then.memory.total = Bytes{8e9},
  then.memory.reserved = Bytes{10e9};
  now.step_time = Seconds{0.2}, now.throughput = 50, now.memory.total = Bytes{2e9}, now.memory.reserved = Bytes{5e9};
  const Ratios both = ratios(now, then);
  EXPECT_DOUBLE_EQ(both.step_time, 2);
  EXPECT_DOUBLE_EQ(both.throughput, 0.5);
  EXPECT_DOUBLE_EQ(both.memory, 0.5);
  EXPECT_DOUBLE_EQ(ratios(closed::FirstAnswer{Seconds{0.05}, 200, Bytes{2e9}, {}}, then).memory, 0.25);
  EXPECT_DOUBLE_EQ(ratios(closed::FirstAnswer{Seconds{0.05}, 200, Bytes{2e9}, {}}, then).step_time, 0.5);
}

TEST(Figures, WhatIsAliveIsAShareOfThePeak) {
  MemoryHistory history;
  history.footprint.peak.total = Bytes{4000};
  history.alive = {{"fc1.weight", MemoryKind::weights, Bytes{3000}, 1, "fc1"},
                   {"moments", MemoryKind::optimizer, Bytes{1000}, 2, ""}};
  const Table table = alive_table(history);
  EXPECT_EQ(csv(table),
            "name,kind,operation,bytes,share\nfc1.weight,weights,fc1,3000,0.75\n2 × moments,optimizer,,1000,0.25\n");
}

// Two layers of one kind are a row, under a name without their numbers; a name that stands alone keeps its own.
TEST(Figures, WhatIsAlikeIsOneRow) {
  MemoryHistory history;
  history.footprint.peak.total = Bytes{10000};
  history.alive = {{"head10.weight", MemoryKind::weights, Bytes{4000}, 1, "head"},
                   {"layers.9.mlp", MemoryKind::activations, Bytes{2000}, 1, "layers.9.mlp"},
                   {"layers.10.mlp", MemoryKind::activations, Bytes{3000}, 2, "layers.10.mlp"},
                   {"layers.10.mlp", MemoryKind::gradients, Bytes{1000}, 1, "layers.10.mlp"}};
  EXPECT_EQ(csv(alike_table(history)),
            "name,kind,count,largest_bytes,bytes,share\n"
            "layers.*.mlp,activations,3,2000,5000,0.5\n"
            "head10.weight,weights,1,4000,4000,0.4\n"
            "layers.10.mlp,gradients,1,1000,1000,0.1\n");
}

TEST(PredictionText, ShowsWhatAPersonAsks) {
  const std::string text = to_text(sample_prediction(), {});
  EXPECT_THAT(text, HasSubstr("resnet50.onnx on 64 devices of abci-v100 (16 nodes)"));
  EXPECT_THAT(text, HasSubstr("400 ms ± 20.0 ms"));
  EXPECT_THAT(text, HasSubstr("10,240 samples/s"));
  EXPECT_THAT(text, HasSubstr("(160 samples/s per device)"));
  EXPECT_THAT(text, HasSubstr("8.00 GiB of 16.0 GiB (50 %), fits"));
  // 48 cells for 16 GiB: 3 a GiB; 1 weights, 1 gradients, 4 activations, 1 communication, 1 framework.
  EXPECT_THAT(text, HasSubstr("[wwwgggaaaaaaaaaaaacccfff........................]"));
  EXPECT_THAT(text,
              HasSubstr("compute: convolution is 71 % of the step; twice as fast, the step would be 34 % shorter"));
  EXPECT_THAT(text, HasSubstr("\n  relieved by fewer bits, faster devices or a smaller batch\n"));
  EXPECT_THAT(text, HasSubstr("82 % measured, 15 % interpolated, 3.0 % estimated"));
  EXPECT_THAT(text, HasSubstr("hidden behind compute"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  // The worse of its two passes is what an operation is shown as.
  EXPECT_THAT(text, HasSubstr("conv1      convolution      1  30.0 ms   60.0 ms  90.0 ms  estimated"));
}

TEST(PredictionText, TimeAddsUpToTheStep) {
  // 0.1 + 0.2 + 0.02 + 0.08 s = the whole step of 0.4 s: nothing is left for the slowest rank.
  PredictionReport report = sample_prediction();
  EXPECT_EQ(slowest_rank_wait(report.prediction), Seconds{});
  report.prediction.step_time = Seconds{0.5};
  EXPECT_NEAR(slowest_rank_wait(report.prediction).value(), 0.1, 1e-12);
  EXPECT_THAT(to_text(report, {}), HasSubstr("slowest rank, waited for      100 ms    20 %"));
}

TEST(PredictionText, SaysWhereItDoesNotFit) {
  PredictionReport report = sample_prediction();
  report.prediction.fits = false;
  report.prediction.memory_capacity = Bytes{4.0 * 1024 * 1024 * 1024};
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("8.00 GiB of 4.00 GiB (200 %), does not fit"));
}

// Numbers in their units; what hardly anything is used of (0.5 % of the step) is left out.
TEST(PredictionText, NamesItsLimits) {
  const std::string text = to_text(sample_prediction(), {});
  EXPECT_THAT(text, HasSubstr("batch              4,096 samples  1.6 %  data            a larger batch\n"));
  EXPECT_THAT(text, HasSubstr("gradient exchange        80.0 ms   20 %  the step, data  a faster network\n"));
  EXPECT_THAT(text, Not(HasSubstr("weight update")));
}

TEST(PredictionText, SaysWhatIsSplitBesideTheModel) {
  PredictionReport report = sample_prediction();
  EXPECT_THAT(to_text(report, {}), HasSubstr("data=64, batch 4,096"));
  report.prediction.zero = 1;
  report.prediction.recompute = "selective";
  EXPECT_THAT(to_text(report, {}), HasSubstr("data=64, ZeRO 1, recompute selective, batch 4,096"));
}

TEST(PredictionText, SaysWhatIsOffloaded) {
  PredictionReport report = sample_prediction();
  EXPECT_THAT(to_text(report, {}), Not(HasSubstr("offloaded")));
  report.prediction.offload = "optimizer";
  report.prediction.host_memory = Bytes{3e9};
  report.prediction.breakdown.offload_exposed = Seconds{0.01};
  report.prediction.breakdown.offload_total = Seconds{0.03};
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("data=64, offload optimizer, batch 4,096"));
  EXPECT_THAT(text, HasSubstr("offloaded, waited for        10.0 ms"));
  EXPECT_THAT(text, HasSubstr("20.0 ms  of 30.0 ms of copying what is offloaded"));
  EXPECT_THAT(text, HasSubstr("host memory        2.79 GiB  of each node's host, for what is offloaded"));
}

TEST(PredictionText, SaysWhatIsAssumedOfTheModel) {
  PredictionReport report = sample_prediction();
  report.prediction.assumed = {"its batch-norms are put back"};
  EXPECT_THAT(to_text(report, {}), HasSubstr("Assumed\n  - its batch-norms are put back\n"));
  EXPECT_THAT(to_html(report), HasSubstr("<li>its batch-norms are put back</li>"));
}

TEST(PredictionText, ColourOnlyOnRequest) {
  EXPECT_THAT(to_text(sample_prediction(), {true}), HasSubstr("\033[1m400 ms\033[0m"));
}

TEST(PredictionJson, ReadsBackTheSame) {
  PredictionReport report = sample_prediction();
  report.options = {"--batch=64/device", "--no-overlap"};
  report.prediction.bytes_by_kind = {1, 2, 3, 4, 5};
  report.prediction.zero = 2;
  report.prediction.zero_ranks = 8;
  report.prediction.reduce_each = report.prediction.gather_late = true;
  report.prediction.clip = 0.5;
  report.prediction.batch_norm = "synchronised";
  report.prediction.compress = "topk:0.01";
  report.prediction.fused_norms = report.prediction.converted_images = report.prediction.half_weights = true;
  report.prediction.fp32_gradients = report.prediction.whole_experts = true;
  report.prediction.converted_norms = report.prediction.dropless = true;
  report.prediction.recompute = "full";
  report.prediction.order = "data,tensor";
  report.prediction.split_until = "layer2";
  report.prediction.offload = "optimizer:nvme";
  report.prediction.host_memory = Bytes{3e9};
  report.prediction.storage = Bytes{7e9};
  report.prediction.breakdown.offload_exposed = Seconds{0.01};
  report.prediction.breakdown.offload_total = Seconds{0.03};
  report.prediction.assumed = {"it has a name", "and another"};
  const std::string json = to_json(report);
  const auto read = parse_prediction(json, "p.json");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(to_json(*read), json);
  EXPECT_EQ(to_text(*read, {}), to_text(report, {}));
}

// Keys that were added within version 1.
TEST(PredictionJson, ReadsFilesFromBeforeAKeyWasAdded) {
  std::string json = to_json(sample_prediction());
  for (const std::string key : {",\n    \"io_total\": 0.0", "  \"options\": [],\n"}) {
    ASSERT_NE(json.find(key), std::string::npos) << key;
    json.erase(json.find(key), key.size());
  }
  EXPECT_EQ(to_json(parse_prediction(json, "p.json").value()), to_json(sample_prediction()));
}

// What the device and the model have taken for granted stands beside what every prediction does, in each spelling.
TEST(PredictionJson, KeepsWhatIsAssumed) {
  PredictionReport report = sample_prediction();
  const std::size_t always = assumptions(report.prediction).size();
  report.prediction.assumed = {"the framework holds 477 MiB", "kernels need no workspace"};
  const std::string json = to_json(report);
  EXPECT_THAT(
      json, HasSubstr("  \"assumed\": [\n    \"the framework holds 477 MiB\",\n    \"kernels need no workspace\",\n"));
  EXPECT_THAT(to_text(report, {}), HasSubstr("  - the framework holds 477 MiB\n  - kernels need no workspace\n"));
  EXPECT_THAT(to_html(report), HasSubstr("<li>kernels need no workspace</li>"));
  const auto read = parse_prediction(json, "p.json");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->prediction.assumed, report.prediction.assumed);
  EXPECT_EQ(assumptions(read->prediction).size(), always + 2);
  EXPECT_EQ(to_json(*read), json);
}

TEST(PredictionJson, KeepsWhatHasNoEffect) {
  PredictionReport report = sample_prediction();
  EXPECT_THAT(to_text(report, {}), testing::Not(HasSubstr("has no effect")));
  EXPECT_THAT(to_json(report), testing::Not(HasSubstr("without_effect")));
  report.prediction.without_effect = {"--zero 1: there are no replicas", "tf32: <none>"};
  EXPECT_THAT(to_text(report, {}),
              HasSubstr("\nhas no effect here: --zero 1: there are no replicas\nhas no effect here: tf32: <none>\n\n"));
  EXPECT_THAT(to_html(report), HasSubstr("has no effect here: tf32: &lt;none&gt;"));
  const auto read = parse_prediction(to_json(report), "p.json");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(read->prediction.without_effect, report.prediction.without_effect);
}

TEST(PredictionJson, KeepsWhatWouldFit) {
  PredictionReport report = sample_prediction();
  EXPECT_THAT(to_json(report), Not(HasSubstr("nearest")));
  report.nearest = {"--zero 3", 64, 4096, Bytes{14e9}};
  const std::string json = to_json(report);
  EXPECT_THAT(json, HasSubstr("\"words\": \"--zero 3\",\n    \"devices\": 64,\n    \"global_batch\": 4096,\n    "
                              "\"memory_bytes\": 14000000000"));
  EXPECT_EQ(to_json(parse_prediction(json, "p.json").value()), json);
  ScaleReport scale = sample_scale();
  scale.nearest = report.nearest;
  EXPECT_EQ(to_json(parse_scale(to_json(scale), "s.json").value()), to_json(scale));
  EXPECT_THAT(to_json(scale), HasSubstr("\"words\": \"--zero 3\""));
}

TEST(PredictionJson, HoldsSiNumbersUnderTheDocumentedKeys) {
  const std::string json = to_json(sample_prediction());
  EXPECT_THAT(json, HasSubstr("\"step_time_s\": 0.4,"));
  EXPECT_THAT(json, HasSubstr("\"throughput_samples_per_s\": 10240.0"));
  EXPECT_THAT(json, HasSubstr("\"total\": 8589934592,"));
  EXPECT_THAT(json, HasSubstr("\"relief\": 0.342"));
  EXPECT_THAT(json, HasSubstr("\"communication_exposed\": 0.08"));
}

// Older files do not say what would relieve it; what idles is no resource of any speed.
TEST(Report, OfABottleneckOnlyWhatIsSo) {
  std::string json = to_json(sample_prediction());
  const std::string relieved = ",\n    \"relieved_by\": \"fewer bits; faster devices; a smaller batch\"";
  ASSERT_NE(json.find(relieved), std::string::npos);
  const auto read = parse_prediction(json, "p.json");
  EXPECT_EQ(read->prediction.bottleneck.relieved_by, sample_prediction().prediction.bottleneck.relieved_by);
  json.erase(json.find(relieved), relieved.size());
  const auto older = parse_prediction(json, "p.json");
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(relief_clause(older->prediction.bottleneck), "");
  EXPECT_THAT(to_text(*older, {}), Not(HasSubstr("relieved by fewer")));
  EXPECT_EQ(relief_clause({"host dispatch", 0.5, 0.2, "a faster host"}), "relieved by a faster host");
  EXPECT_THAT(bottleneck_sentence({"pipeline bubble: few micro-batches for as many stages", 0.4, 0.2}),
              HasSubstr("; with twice as many micro-batches, the step would be 20 % shorter"));
  EXPECT_THAT(bottleneck_sentence({"pipeline imbalance: one stage takes longer than the others", 0.4, 0.4}),
              HasSubstr("; with even stages, the step would be 40 % shorter"));
}

TEST(PredictionJson, ErrorsNameFileAndPath) {
  const auto error = [](const std::string& from, const std::string& to) {
    std::string json = to_json(sample_prediction());
    json.replace(json.find(from), from.size(), to);
    const auto read = parse_prediction(json, "p.json");
    EXPECT_FALSE(read.has_value());
    return read ? Error{} : read.error();
  };
  EXPECT_EQ(error("\"step_time_s\": 0.4,", "\"step_time_s\": \"fast\",").where, "p.json: $.step_time_s");
  EXPECT_EQ(error("\"step_time_s\": 0.4,", "\"step_time_s\": -1,").where, "p.json: $.step_time_s");
  EXPECT_EQ(error("\"forward\": 0.1,", "").message, "'forward' is missing");
  EXPECT_EQ(error("\"devices\": 64", "\"devices\": 0").where, "p.json: $.plan.devices");
  EXPECT_EQ(error("\"devices\": 64", "\"devices\": 99999999999").where, "p.json: $.plan.devices");
  EXPECT_EQ(error("\"version\": 1", "\"version\": 7").where, "p.json: $.version");
  EXPECT_THAT(error("\"provenance\": \"estimated\"", "\"provenance\": \"sworn\"").where,
              HasSubstr("$.operations[0].backward.provenance"));
  for (const char* bad : {"", "{", "[]", "{}", "null", "{\"schema\": 3}", "{\"schema\": \"sibyl-scale\"}"})
    EXPECT_EQ(parse_prediction(bad, "p.json").error().code, ErrorCode::bad_input) << bad;
}

// From ten times on, times say more than percent: 8.99 s against 3.89 ms are 2,311 times.
TEST(RatioText, SaysManyTimesAsTimes) {
  EXPECT_EQ(ratio_text(1.12), "+12 %");
  EXPECT_EQ(ratio_text(0.88), "-12 %");
  EXPECT_EQ(ratio_text(1), "0 %");
  EXPECT_EQ(ratio_text(23.4), "× 23");
  EXPECT_EQ(ratio_text(3.89e-3 / 8.99), "÷ 2,311");
}

TEST(ScaleReportSpellings, OneRowPerCount) {
  const ScaleReport report = sample_scale();
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("weak scaling"));
  EXPECT_THAT(text, HasSubstr("80 %"));
  EXPECT_THAT(text, HasSubstr("abci-v100 has 4352 devices, | not more"));
  const std::string spreadsheet = csv(to_table(report));
  EXPECT_THAT(spreadsheet, HasSubstr("devices,global_batch,step_time_s,interval_half_s,"));
  EXPECT_THAT(spreadsheet, HasSubstr("\n64,4096,0.4,"));
  EXPECT_THAT(spreadsheet, HasSubstr("\n4096,,,,,,,,,,,\"abci-v100 has 4352 devices, | not more\",,,,,\n"));
  EXPECT_THAT(markdown(to_table(report)), HasSubstr("devices, \\| not more"));
}

TEST(ScaleReportSpellings, JsonReadsBackTheSame) {
  const std::string json = to_json(sample_scale());
  const auto read = parse_scale(json, "s.json");
  ASSERT_TRUE(read.has_value()) << to_string(read.error());
  EXPECT_EQ(to_json(*read), json);
  EXPECT_EQ(report_kind(json, "s.json").value(), ReportKind::scale);
}

TEST(Comparison, SaysHowMuchAndWhetherItIsSure) {
  const PredictionReport before = sample_prediction();
  PredictionReport after = before;
  after.prediction.step_time = Seconds{0.2};
  after.prediction.interval_low = Seconds{0.19};
  after.prediction.interval_high = Seconds{0.21};
  EXPECT_THAT(comparison_text(before, after, {}), HasSubstr("The second step is 2.00 times faster."));
  EXPECT_THAT(comparison_text(after, before, {}), HasSubstr("The second step is 2.00 times slower."));
  EXPECT_THAT(comparison_text(before, after, {}), HasSubstr("-50 %"));
  after.prediction.interval_high = Seconds{0.39};
  EXPECT_THAT(comparison_text(before, after, {}), HasSubstr("the intervals overlap"));
  EXPECT_THAT(comparison_json(before, after), HasSubstr("\"step_time_ratio\": 0.5"));
  after.prediction.step_time = before.prediction.step_time * 1.0004;
  EXPECT_THAT(comparison_text(before, after, {}), HasSubstr("Both steps take the same time, to 0.05 %."));
  EXPECT_THAT(comparison_text(before, after, {}), Not(HasSubstr("memory of a device")));
  after.prediction.memory_capacity = before.prediction.memory_capacity * 2;
  EXPECT_THAT(comparison_text(before, after, {}), HasSubstr("memory of a device"));
}

// Samples from storage: 0.06 s of reading, of which 0.01 s is waited for.
TEST(PredictionText, SaysWhatReadingCosts) {
  PredictionReport report = sample_prediction();
  EXPECT_THAT(to_text(report, {}), HasSubstr("training data are at hand"));
  report.prediction.breakdown.io = Seconds{0.01};
  report.prediction.breakdown.io_total = Seconds{0.06};
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("data, waited for"));
  EXPECT_THAT(text, HasSubstr("hidden behind the step       50.0 ms  of 60.0 ms of reading samples"));
  EXPECT_THAT(text, Not(HasSubstr("training data are at hand")));
}

TEST(Html, StandsAloneAndEscapesNames) {
  PredictionReport report = sample_prediction();
  report.model = "<script>alert(1)</script>";
  const std::string html = to_html(report);
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("http")));
  EXPECT_THAT(html, HasSubstr("400 ms"));
  EXPECT_THAT(to_html(sample_scale()), HasSubstr("<svg"));
}

TEST(Reports, DoNotDependOnTheLocale) {
  const std::string json = to_json(sample_prediction()), text = to_text(sample_prediction(), {});
  // A locale with a decimal comma, where the machine has one; the test asserts nothing new where it has not.
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  EXPECT_EQ(to_json(sample_prediction()), json);
  EXPECT_EQ(to_text(sample_prediction(), {}), text);
  EXPECT_TRUE(parse_prediction(json, "p.json").has_value());
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace sibyl
