#include "oracle/validate/validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/validate/process.h"

namespace sibyl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Validated made(double predicted, double half_interval, double measured, double memory_predicted,
               double memory_measured) {
  Validated v;
  v.name = "case";
  v.prediction.step_time = Seconds{predicted};
  v.prediction.interval_low = Seconds{predicted - half_interval};
  v.prediction.interval_high = Seconds{predicted + half_interval};
  v.prediction.memory.total = Bytes{memory_predicted};
  v.measurement.step_time = Seconds{measured};
  v.measurement.peak_memory = Bytes{memory_measured};
  v.measurement.bytes_sent = {0};
  return v;
}

// Errors +10 %, -20 %, 0 %: mean of sizes 10 %, median 10 %, largest 20 %, bias -3.33 %. Two of three inside.
TEST(Validation, SummarizesByHand) {
  const std::vector<Validated> cases = {made(1.1, 0.2, 1.0, 100, 100), made(0.8, 0.1, 1.0, 105, 100),
                                        made(2.0, 0.1, 2.0, 90, 100)};
  const ValidationSummary s = summarize(cases);
  EXPECT_NEAR(s.mean_time_error, 0.10, 1e-12);
  EXPECT_NEAR(s.median_time_error, 0.10, 1e-12);
  EXPECT_NEAR(s.max_time_error, 0.20, 1e-12);
  EXPECT_NEAR(s.bias, -0.1 / 3, 1e-12);
  EXPECT_NEAR(s.inside_interval, 2.0 / 3, 1e-12);
  EXPECT_NEAR(s.mean_memory_error, 0.05, 1e-12);
  EXPECT_NEAR(s.max_memory_error, 0.10, 1e-12);
  EXPECT_TRUE(s.bytes_agree);
}

TEST(Validation, OneWrongByteIsSaid) {
  std::vector<Validated> cases = {made(1, 1, 1, 1, 1)};
  cases[0].prediction.bytes_sent = 100;
  cases[0].measurement.bytes_sent = {100, 101};  // one rank's is what is predicted
  EXPECT_TRUE(summarize(cases).bytes_agree);
  cases[0].measurement.bytes_as_planned = false;
  EXPECT_FALSE(summarize(cases).bytes_agree);
  cases[0].measurement.bytes_as_planned = true;
  cases[0].measurement.bytes_sent = {101, 102};
  EXPECT_FALSE(summarize(cases).bytes_agree);
  EXPECT_THAT(summary_sentence(summarize(cases)), HasSubstr("NOT as predicted"));
}

TrainingRun run_of(double step, double forward, double spread, int steps) {
  TrainingRun run;
  run.step_time = Seconds{step};
  run.forward = Seconds{forward};
  run.spread = spread;
  run.steps = steps;
  run.bytes_sent = {7, 8};
  return run;
}

// Steps of 1.0, 1.3 and 1.0 s: their mean is 1.1, the relative distances from it 0.1/1.1, 0.2/1.1 and 0.1/1.1, their
// median 0.0909; times 1.4826 = 0.1348.
TEST(Validation, TakesTheMeanOfRounds) {
  const TrainingRun m = mean_of({run_of(1.0, 0.4, 0.02, 10), run_of(1.3, 0.3, 0.03, 10), run_of(1.0, 0.2, 0.04, 5)});
  EXPECT_DOUBLE_EQ(m.step_time.value(), 1.1);
  EXPECT_DOUBLE_EQ(m.forward.value(), 0.3);
  EXPECT_DOUBLE_EQ(m.spread, 0.03);
  EXPECT_NEAR(m.drift, 0.1348, 1e-4);
  EXPECT_EQ(m.steps, 25);
  EXPECT_EQ(m.rounds, 3);
  EXPECT_THAT(m.bytes_sent, ElementsAre(7, 8));
  const TrainingRun alone = mean_of({run_of(1.0, 0.4, 0.02, 10)});
  EXPECT_DOUBLE_EQ(alone.step_time.value(), 1.0);
  EXPECT_DOUBLE_EQ(alone.spread, 0.02);
  EXPECT_DOUBLE_EQ(alone.drift, 0.0);
  // What was saved of several runs and is read again is the mean already.
  const TrainingRun again = mean_of({m});
  EXPECT_DOUBLE_EQ(again.drift, m.drift);
  EXPECT_EQ(again.rounds, 3);
}

// The median of 1.0, 1.9 and 1.2 s is 1.2, so that 1.9 is more than 1.5 times as long and no speed of the machine; of
// two rounds neither can be told from the other.
TEST(Validation, LeavesOutARoundThatWasHalted) {
  const auto of = [](double seconds) { return run_of(seconds, 0.3, 0.02, 10); };
  const TrainingRun m = mean_of({of(1.0), of(1.9), of(1.2)});
  EXPECT_DOUBLE_EQ(m.step_time.value(), 1.1);
  EXPECT_EQ(m.rounds, 3);
  EXPECT_DOUBLE_EQ(mean_of({of(1.0), of(1.9)}).step_time.value(), 1.45);
}

// Of two saved runs of two rounds and of one all three rounds count, as if they had been one run.
TEST(Validation, TakesTheRoundsOfSavedRunsTogether) {
  Validated saved = made(1.1, 0.2, 1.0, 100, 90);
  saved.measurement = mean_of({run_of(1.0, 0.4, 0.02, 10), run_of(1.3, 0.3, 0.03, 10)});
  const TrainingRun two = parse_measurements(to_json({saved}), "saved.json")->at("case");
  EXPECT_THAT(two.of_rounds, ElementsAre(Seconds{1.0}, Seconds{1.3}));
  const TrainingRun m = mean_of({two, run_of(1.0, 0.2, 0.04, 5)});
  EXPECT_DOUBLE_EQ(m.step_time.value(), 1.1);
  EXPECT_NEAR(m.drift, 0.1348, 1e-4);
  EXPECT_EQ(m.rounds, 3);
  EXPECT_EQ(m.steps, 25);
}

TEST(Validation, ReadsBackTheRunsItSaved) {
  Validated v = made(1.1, 0.2, 1.0, 100, 90);
  v.measurement = run_of(1.0, 0.4, 0.02, 10);
  v.measurement.peak_memory = Bytes{90};
  v.measurement.drift = 0.1;
  v.measurement.rounds = 3;
  v.measurement.stages = {"conv2"};
  v.measurement.backward = Seconds{0.25};
  const auto runs = parse_measurements(to_json({v}), "saved.json");
  ASSERT_TRUE(runs.has_value()) << to_string(runs.error());
  const TrainingRun& m = runs->at("case");
  EXPECT_DOUBLE_EQ(m.step_time.value(), 1.0);
  EXPECT_DOUBLE_EQ(m.backward.value(), 0.25);
  EXPECT_DOUBLE_EQ(m.drift, 0.1);
  EXPECT_EQ(m.rounds, 3);
  EXPECT_EQ(m.steps, 10);
  EXPECT_THAT(m.bytes_sent, ElementsAre(7, 8));
  EXPECT_THAT(m.stages, ElementsAre("conv2"));
  EXPECT_EQ(m.emulated, "");
  EXPECT_FALSE(parse_measurements("[]", "f").has_value());
  EXPECT_EQ(parse_measurements(R"({"schema":"sibyl-val)", "f").error().message, "is no JSON, or not all of it");
  EXPECT_FALSE(parse_measurements(R"({"schema":"sibyl-validation","cases":[{"case":1}]})", "f").has_value());
}

// Whoever reads the table, its JSON or its CSV must see that nothing was computed.
TEST(Validation, LabelsWhatWasEmulated) {
  Validated real = made(1, 1, 1, 1, 1), emulated = real;
  emulated.measurement.emulated = "dgx1-v100";
  EXPECT_EQ(emulation_sentence({real}), "");
  EXPECT_THAT(markdown(to_table({real})), Not(HasSubstr("emulated")));
  EXPECT_THAT(emulation_sentence({real, emulated}), HasSubstr("dgx1-v100"));
  EXPECT_THAT(markdown(to_table({real, emulated})), AllOf(HasSubstr("| emulated |"), Not(HasSubstr("| measured |"))));
  EXPECT_THAT(csv(to_table({emulated})), HasSubstr("emulated_s"));
  EXPECT_THAT(to_json({real}), HasSubstr("\"emulated\": false"));
  const std::string json = to_json({emulated});
  EXPECT_THAT(json, AllOf(HasSubstr("\"emulated\": true"), HasSubstr("\"device\": \"emulated: dgx1-v100\"")));
  EXPECT_EQ(parse_measurements(json, "f")->at("case").emulated, "dgx1-v100");
}

// Emulated ranks that wait for processors are not what is predicted.
TEST(Validation, SaysHowBusyProcessorsWere) {
  std::vector<Validated> cases(3, made(1, 1, 1, 1, 1));
  for (Validated& v : cases) v.measurement.emulated = "dgx1-v100";
  EXPECT_THAT(emulation_sentence(cases), Not(HasSubstr("busy")));
  EXPECT_FALSE(parse_measurements(to_json(cases), "f")->at("case").processors_busy.has_value());
  cases[0].measurement.processors_busy = 0.25;
  cases[1].measurement.processors_busy = 0.87;
  cases[2].measurement.processors_busy = 0.5;
  EXPECT_THAT(emulation_sentence(cases), HasSubstr("busy for 50 % of the time in the median case, 87 % at most"));
  EXPECT_EQ(parse_measurements(to_json({cases[1]}), "f")->at("case").processors_busy, 0.87);
  EXPECT_EQ(mean_of({cases[0].measurement, cases[1].measurement, cases[2].measurement}).processors_busy, 0.5);
}

TEST(Validation, RefusesJsonThatIsNoMeasurement) {
  EXPECT_FALSE(parse_training_run("", "run").has_value());
  EXPECT_FALSE(parse_training_run("{\"step_time_s\": 1}", "run").has_value());
  EXPECT_FALSE(parse_training_run("{\"step_time_s\": \"x\"}", "run").has_value());
  const auto m = parse_training_run(
      R"({"step_time_s":0.5,"step_time_spread":0.01,"steps":9,"peak_memory_bytes":1e6,"bytes_sent_per_step":12,
          "bytes_sent_per_step_by_rank":[12,14],"bytes_planned_per_step_by_rank":[12,14],"device":"emulated: v100",
          "breakdown_s":{"forward":0.1,"backward":0.2,"communication_exposed":0.1,"optimizer":0.1}})",
      "run");
  ASSERT_TRUE(m.has_value());
  EXPECT_DOUBLE_EQ(m->step_time.value(), 0.5);
  EXPECT_THAT(m->bytes_sent, ElementsAre(12, 14));
  EXPECT_TRUE(m->bytes_as_planned);
  EXPECT_EQ(m->emulated, "v100");
}

// As many bytes, but not for what they were planned.
TEST(Validation, ComparesBytesByKind) {
  const auto run = [](const std::string& sent, const std::string& planned) {
    return parse_training_run(R"({"step_time_s":0.5,"step_time_spread":0.01,"steps":9,"peak_memory_bytes":1e6,
        "bytes_sent_per_step_by_rank":[12],"bytes_planned_per_step_by_rank":[12],
        "breakdown_s":{"forward":0.1,"backward":0.2,"communication_exposed":0.1,"optimizer":0.1},
        "bytes_sent_per_step_by_kind":{)" +
                                  sent + R"(},"bytes_planned_per_step_by_kind":{)" + planned + "}}",
                              "run");
  };
  EXPECT_TRUE(run(R"("gradients":[12])", R"("gradients":[12])")->bytes_as_planned);
  EXPECT_FALSE(run(R"("gradients":[8],"norms":[4])", R"("gradients":[12],"norms":[0])")->bytes_as_planned);
}

// Two rounds of 0.8 s, then three of 1.3: (2 * 0.8 + 3 * 1.3) / 5 = 1.1. Others stay as they are.
TEST(Validation, RoundsOfReferenceStepsAreAdded) {
  const std::vector<StepSample> all =
      with_earlier_rounds({{"a", Seconds{1.0}, Seconds{1.3}, 0.04, 3}, {"b", Seconds{2.0}, Seconds{2.5}, 0.02, 1}},
                          {{"a", Seconds{0.9}, Seconds{0.8}, 0.09, 2}, {"c", Seconds{3.0}, Seconds{3.0}, 0.01, 2}});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].predicted, Seconds{1.0});  // by the kernels as they are known now
  EXPECT_NEAR(all[0].measured.value(), 1.1, 1e-12);
  EXPECT_NEAR(all[0].spread, (2 * 0.09 + 3 * 0.04) / 5, 1e-12);
  EXPECT_EQ(all[0].rounds, 5);
  EXPECT_EQ(all[1].measured, Seconds{2.5});
  EXPECT_EQ(all[1].rounds, 1);
}

TEST(Process, WordsKeepQuotedBlanks) {
  EXPECT_THAT(*split_words("a  'b c' \"d e\"f ''"), ElementsAre("a", "b c", "d ef", ""));
  EXPECT_FALSE(split_words("a 'b").has_value());
}

TEST(Process, TakesOutputAndStatus) {
  EXPECT_EQ(*run_process({"sh", "-c", "echo one; echo two"}), "one\ntwo\n");
  const auto failed = run_process({"sh", "-c", "exit 4"});
  ASSERT_FALSE(failed.has_value());
  EXPECT_THAT(failed.error().message, HasSubstr("exit status 4"));
  EXPECT_EQ(run_process({"sh", "-c", "exit 130"}).error().code, ErrorCode::interrupted);
  EXPECT_FALSE(run_process({"no-such-program-anywhere"}).has_value());
}

}  // namespace
}  // namespace sibyl
