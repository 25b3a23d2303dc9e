#include "oracle/report/read_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace sibyl {
namespace {

using testing::HasSubstr;

TraceProcess rank_one() {
  TraceSpan forward{"fc \"1\" forward",
                    "forward",
                    Seconds{1e-3},
                    Seconds{3e-3},
                    {{"kind", std::string("linear")}, {"relative_error", 0.25}}};
  forward.micro_batch = 2;
  const TraceSpan message{"all-reduce bucket 0", "communication", Seconds{2e-3}, Seconds{5e-3}};
  return {TraceSource::measured, 1, "rank 1, measured", {{"compute", {forward}}, {"communication", {message}}}};
}

TEST(ReadTrace, ReadsWhatWasWritten) {
  const auto read = parse_trace(trace_file({trace_events(rank_one())}, {{"model", std::string("m")}}), "real.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  const TraceProcess& process = read->front();
  EXPECT_EQ(process.source, TraceSource::measured);
  EXPECT_EQ(process.rank, 1);
  EXPECT_EQ(process.name, "rank 1, measured");
  ASSERT_EQ(process.tracks.size(), 2U);
  EXPECT_EQ(process.tracks[1].name, "communication");
  const TraceSpan& span = process.tracks[0].spans.at(0);
  EXPECT_EQ(span.name(), "fc \"1\" forward");
  EXPECT_EQ(span.category(), "forward");
  EXPECT_NEAR(span.start.value(), 1e-3, 1e-12);
  EXPECT_NEAR(span.end.value(), 3e-3, 1e-12);
  ASSERT_EQ(span.arguments().size(), 2U);
  const auto argument = [&](std::string_view name) {
    return std::ranges::find(span.arguments(), name, &TraceArgument::name)->value;
  };
  EXPECT_EQ(std::get<std::string>(argument("kind")), "linear");
  EXPECT_EQ(span.micro_batch, 2);
  EXPECT_EQ(std::get<double>(argument("relative_error")), 0.25);
}

// As profilers write it: a bare list, events in any order, kinds that are not spans, tracks without names.
TEST(ReadTrace, ReadsOtherFiles) {
  const auto read = parse_trace(R"([{"ph":"X","name":"b","pid":4,"tid":9,"ts":5,"dur":1.5},
    {"ph":"i","name":"now","ts":1}, {"ph":"C"},
    {"ph":"X","name":"a","pid":4,"tid":9,"ts":1,"dur":2,"args":{"deep":[[1]],"yes":true,"none":null}},
    {"ph":"M","name":"thread_sort_index","pid":4,"tid":3,"args":{"sort_index":-1}},
    {"ph":"X","name":"c","pid":4,"tid":3,"ts":0,"dur":0}])",
                                "other.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  const TraceProcess& process = read->at(0);
  EXPECT_EQ(process.source, TraceSource::predicted);
  EXPECT_EQ(process.rank, 2);
  EXPECT_EQ(process.name, "process 4");
  ASSERT_EQ(process.tracks.size(), 2U);
  EXPECT_EQ(process.tracks[0].name, "thread 3");
  EXPECT_EQ(process.tracks[1].spans[0].name(), "b");
  EXPECT_NEAR(process.tracks[1].spans[0].end.value(), 6.5e-6, 1e-15);
}

TEST(ReadTrace, SaysWhatIsWrongAndWhere) {
  const auto error = [](std::string_view text) { return parse_trace(text, "f.json").error(); };
  EXPECT_THAT(error("{").message, HasSubstr("is not a trace"));
  EXPECT_THAT(error("{}").message, HasSubstr("traceEvents"));
  EXPECT_THAT(error("[]").message, HasSubstr("no complete events"));
  EXPECT_EQ(error("[3]").where, "f.json: $.traceEvents[0]");
  EXPECT_EQ(error(R"([{"ph":"X","ts":0}])").where, "f.json: $.traceEvents[0]");
  EXPECT_THAT(error(R"([{"ph":"X","ts":0}])").message, HasSubstr("'dur' is missing"));
  EXPECT_EQ(error(R"([{"ph":"X","ts":"soon","dur":1}])").where, "f.json: $.traceEvents[0].ts");
  EXPECT_EQ(error(R"([{"ph":"X","ts":1,"dur":-1}])").where, "f.json: $.traceEvents[0].dur");
  EXPECT_EQ(error(R"([{"ph":"X","ts":1e300,"dur":1}])").where, "f.json: $.traceEvents[0].ts");
  EXPECT_EQ(error(R"([{"ph":"X","pid":"one","ts":1,"dur":1}])").where, "f.json: $.traceEvents[0].pid");
  EXPECT_EQ(read_trace("/nowhere/real.json").error().where, "/nowhere/real.json");
}

}  // namespace
}  // namespace sibyl
