#include "base/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sibyl {
namespace {

TraceProcess one_span(std::string name, TraceSource source = TraceSource::predicted, int rank = 0,
                      std::vector<TraceArgument> arguments = {}) {
  const TraceSpan span{std::move(name), "forward", Seconds{2e-6}, Seconds{5.5e-6}, std::move(arguments)};
  return {source, rank, "rank", {{"compute", {span}}}};
}

// The whole file, word for word: 2 us to 5.5 us is "ts" 2 and "dur" 3.5, in microseconds.
TEST(Trace, IsSpeltAsTheFormatSays) {
  TraceProcess process =
      one_span("conv1 forward", TraceSource::predicted, 0, {{"flops", 2e9}, {"kind", "convolution"}});
  process.tracks[0].spans[0].micro_batch = 1;
  EXPECT_EQ(trace_file({trace_events(process)}, {{"model", "a.onnx"}}), R"({"traceEvents":[
{"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"rank"}},
{"ph":"M","name":"process_sort_index","pid":0,"tid":0,"args":{"sort_index":0}},
{"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"compute"}},
{"ph":"M","name":"thread_sort_index","pid":0,"tid":1,"args":{"sort_index":0}},
{"ph":"X","name":"conv1 forward","cat":"forward","pid":0,"tid":1,"ts":2.000,"dur":3.500,"args":{"flops":2000000000,"kind":"convolution","micro_batch":1}}
],
"displayTimeUnit":"ms",
"otherData":{"model":"a.onnx"}}
)");
}

// A rank's predicted and measured processes stand below each other when two files become one.
TEST(Trace, EveryRankAndSourceHasItsOwnProcess) {
  EXPECT_THAT(trace_events(one_span("a", TraceSource::predicted, 3)), testing::HasSubstr("\"pid\":6,"));
  EXPECT_THAT(trace_events(one_span("a", TraceSource::measured, 3)), testing::HasSubstr("\"pid\":7,"));
}

TEST(Trace, NamesMayHoldAnything) {
  const auto spelt = [](std::string name) { return trace_events(one_span(std::move(name))); };
  EXPECT_THAT(spelt("a\"b\\c\nd"), testing::HasSubstr(R"("name":"a\"b\\c\u000ad")"));
  EXPECT_THAT(spelt("caf\xC3\xA9"), testing::HasSubstr("\"name\":\"caf\xC3\xA9\""));
  // A lone continuation byte, and a character cut short: each becomes U+FFFD.
  EXPECT_THAT(spelt("\x80z\xC3"), testing::HasSubstr("\"name\":\"\xEF\xBF\xBDz\xEF\xBF\xBD\""));
}

TEST(Trace, NumbersThatJsonLacksAreNull) {
  const TraceProcess process = one_span("a", TraceSource::predicted, 0, {{"x", 1.0 / 0.0}});
  EXPECT_THAT(trace_events(process), testing::HasSubstr("{\"x\":null}"));
}

}  // namespace
}  // namespace sibyl
