// Gradients that travel as fp16, levels or chosen values: what is sent, what it takes, what it needs.
#include "oracle/plan/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "oracle/cost/price.h"
#include "oracle/predict.h"
#include "oracle/simulate/step.h"
#include "oracle/wiring.h"
#include "tests/support/any_plan.h"
#include "tests/support/clusters.h"
#include "tests/support/footprints.h"
#include "tests/support/graphs.h"
#include "tests/support/zoo.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Compression form(std::string_view text) { return parse_compression(text).value(); }

Strategy sending_as(std::string_view text, int replicas = 2) {
  Strategy strategy;
  strategy.data = replicas;
  strategy.global_batch = 2 * replicas;
  strategy.compression = form(text);
  return strategy;
}

// 40 parameters of fc1, 27 of fc2: one bucket of 67.
const Graph& small() {
  static const Graph graph = test::mlp({4, 8, 3}, 2);
  return graph;
}

BytesSent sent(const Strategy& strategy, int rank = 0) {
  return bytes_by_kind(make_plan(small(), strategy).value(), rank, Algorithm::ring);
}

TEST(Compression, IsReadAndWritten) {
  for (const char* text : {"none", "fp16", "bf16", "1bit", "2bit", "topk:0.01", "topk:1", "topk:1e-05"})
    EXPECT_EQ(compression_text(form(text)), text);
  EXPECT_EQ(form("topk:0.25"), (Compression{Compression::Kind::top_k, 0.25}));
  for (const char* bad :
       {"", "3bit", "fp16:2", "1bit:", "topk", "topk:", "topk:0", "topk:-0.1", "topk:1.01", "topk:1%", "topk:nan"}) {
    const auto read = parse_compression(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, ErrorCode::usage);
    EXPECT_EQ(read.error().where, "--compress");
  }
}

RC_GTEST_PROP(Compression, AnyShareIsReadAsItWasWritten, ()) {
  const Compression one{Compression::Kind::top_k, 1.0 / test::any(1, 100000)};
  RC_ASSERT(form(compression_text(one)) == one);
}

// A ring of two sends as much as it sums: 67 elements of two bytes.
TEST(Compression, CastsHalveWhatIsSent) {
  EXPECT_EQ(sent(sending_as("none")).gradients, 67 * 4);
  for (const char* cast : {"fp16", "bf16"}) EXPECT_EQ(sent(sending_as(cast)).gradients, 67 * 2);
}

// Of two ranks each gets 34 levels of the other and gives 34 sums: of one bit 5 bytes, of two 9, and 4 of a scale. Of
// four ranks three parts go out both times: 17 levels in 3 bytes.
TEST(Compression, LevelsAreSentByPartsTwice) {
  for (const int rank : {0, 1}) {
    EXPECT_EQ(sent(sending_as("1bit"), rank).gradients, 2 * (5 + 4));
    EXPECT_EQ(sent(sending_as("2bit"), rank).gradients, 2 * (9 + 4));
  }
  for (const int rank : {0, 3}) EXPECT_EQ(sent(sending_as("1bit", 4), rank).gradients, 2 * 3 * (3 + 4));
}

// A tenth of 67 is 7 values of 4 bytes and 7 indices of 4; a rank hands on all but its neighbour's. Never none.
TEST(Compression, ChosenValuesAreGatheredWithTheirPlaces) {
  EXPECT_EQ(sent(sending_as("topk:0.1")).gradients, 7 * 8);
  EXPECT_EQ(sent(sending_as("topk:0.1", 4), 2).gradients, 3 * 7 * 8);
  EXPECT_EQ(sent(sending_as("topk:0.0001")).gradients, 8);
  EXPECT_EQ(sent(sending_as("topk:1")).gradients, 67 * 8);
}

// Of 2^31 elements an index has 4 bytes no longer.
TEST(Compression, IndicesAreAsLongAsTheyMustBe) {
  GradientSync sync;
  sync.compression = {Compression::Kind::top_k, 1};
  sync.senders = 2;
  const auto bytes = [&](std::int64_t elements) {
    return bucket_messages(sync, {{}, elements, DType::f32}).front().elements / elements;
  };
  EXPECT_EQ(bytes((std::int64_t{1} << 31) - 1), 2 * (4 + 4));
  EXPECT_EQ(bytes(std::int64_t{1} << 31), 2 * (4 + 8));
}

// With ZeRO rank 0 scatters the other's 33 elements and gathers its own 34, the latter in f32. Of four replicas in
// pairs it then sums its part with one other rank.
TEST(Compression, SumsByPartsAreCastToo) {
  for (const int zero : {1, 2, 3}) {
    Strategy strategy = sending_as("bf16"), whole = sending_as("none");
    strategy.zero = whole.zero = zero;
    EXPECT_EQ(2 * sent(strategy).gradients, sent(whole).gradients) << zero;
    EXPECT_EQ(sent(strategy).parameters, sent(whole).parameters) << zero;
  }
  Strategy strategy = sending_as("fp16", 4);
  strategy.zero = 1;
  strategy.zero_ranks = 2;
  EXPECT_EQ(sent(strategy).gradients, 33 * 2 + 34 * 2);
  EXPECT_EQ(sent(strategy).parameters, 34 * 4);
}

TEST(Compression, WhatCannotBeIsRefused) {
  const auto refused = [&](const Strategy& strategy, ErrorCode code, std::string_view why) {
    const auto plan = make_plan(small(), strategy);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, code);
    EXPECT_EQ(plan.error().where, "--compress " + compression_text(strategy.compression));
    EXPECT_THAT(plan.error().message, HasSubstr(std::string(why)));
  };
  for (const char* text : {"1bit", "2bit", "topk:0.1"}) {
    Strategy strategy = sending_as(text);
    strategy.zero = 1;
    refused(strategy, ErrorCode::infeasible, "keep parts of sums");
    strategy.data = 1;  // nobody to share with
    EXPECT_TRUE(make_plan(small(), strategy));
    strategy = sending_as(text);
    strategy.framework = Framework::pytorch_ddp;
    refused(strategy, ErrorCode::usage, "pytorch-ddp has no hook");
  }
  for (const char* text : {"fp16", "bf16", "1bit"}) {
    Strategy strategy = sending_as(text);
    strategy.precision = Precision::bf16;
    strategy.half_weights = true;
    if (std::string_view(text) == "1bit")
      EXPECT_TRUE(make_plan(small(), strategy));
    else
      refused(strategy, ErrorCode::infeasible, "two bytes");
    strategy = sending_as(text);
    strategy.framework = Framework::pytorch_ddp;
    EXPECT_EQ(make_plan(small(), strategy).has_value(), std::string_view(text) != "1bit");
  }
}

std::vector<std::string> texts(const StageKernels& kernels, const std::vector<StageKernels::Index>& which) {
  std::vector<std::string> all;
  for (const auto key : which) all.push_back(to_string(kernels.keys[key]));
  return all;
}

struct ReadAndWritten {
  std::vector<std::string> before, after;
};
ReadAndWritten work_of(const Strategy& strategy) {
  const StageKernels kernels = kernels_of(make_plan(small(), strategy)->stages[0], Backend::cuda);
  return {texts(kernels, kernels.steps[0].compressions), texts(kernels, kernels.decompressions)};
}

TEST(Compression, CastsRunTheHooksKernels) {
  const ReadAndWritten work = work_of(sending_as("fp16"));
  EXPECT_THAT(work.before,
              ElementsAre("forward cast(to=f16)[67]->[67]:f32", "forward binary(kind=mul)[67,scalar]->[67]:f16"));
  EXPECT_THAT(work.after, ElementsAre("forward cast[67]->[67]:f16"));
  Strategy sharded = sending_as("fp16");
  sharded.zero = 1;
  EXPECT_THAT(work_of(sharded).after, ElementsAre("forward cast[34]->[34]:f16"));
}

TEST(Compression, LevelsAreMadeTwiceAndReadTwice) {
  const auto made = [](const std::string& n) {
    return std::vector<std::string>{"forward binary[" + n + "," + n + "]->[" + n + "]:f32",
                                    "forward reduce(kind=l2,axes=0,keep_dims=0)[" + n + "]->[scalar]:f32",
                                    "forward cast(to=u8)[" + n + "]->[" + n + "]:f32",
                                    "forward binary(kind=sub)[" + n + "," + n + "]->[" + n + "]:f32"};
  };
  const ReadAndWritten work = work_of(sending_as("1bit", 4));
  EXPECT_EQ(work.before, made("67"));
  std::vector<std::string> after = {"forward cast[68]->[68]:u8",
                                    "forward reduce(kind=sum,axes=0,keep_dims=0)[4x17]->[17]:f32"};
  for (const std::string& kernel : made("17")) after.push_back(kernel);
  after.insert(after.end(), {"forward cast[68]->[68]:u8", "forward binary(kind=mul)[68,scalar]->[68]:f32"});
  EXPECT_EQ(work.after, after);
}

// Everyone adds up what p ranks chose: p times as much.
TEST(Compression, ChosenValuesOfAllRanksAreAddedUp) {
  const ReadAndWritten work = work_of(sending_as("topk:0.1", 4));
  EXPECT_THAT(work.before, ElementsAre("forward binary[67,67]->[67]:f32", "forward unary(kind=abs)[67]->[67]:f32",
                                       "forward top_k(k=7)[67]->[7,7]:f32", "forward gather[67,7]->[7]:f32",
                                       "forward gather[67,7]->[7]:f32"));
  EXPECT_THAT(work.after,
              ElementsAre("forward binary(kind=mul)[28,scalar]->[28]:f32", "backward:10 gather[67,28]->[28]:f32"));
}

// Four buckets, one for each parameter: those of fc2 when its backward, of step 2, has run, those of fc1 after step
// 0's.
TEST(Compression, ABucketIsCompressedWhenItIsComplete) {
  Strategy strategy = sending_as("fp16");
  strategy.bucket = strategy.first_bucket = Bytes{1};
  const StageKernels kernels = kernels_of(make_plan(small(), strategy)->stages[0], Backend::cpu);
  EXPECT_THAT(texts(kernels, kernels.steps[2].compressions),
              ElementsAre(HasSubstr("[3]"), HasSubstr("[3]"), HasSubstr("[24]"), HasSubstr("[24]")));
  EXPECT_THAT(texts(kernels, kernels.steps[0].compressions),
              ElementsAre(HasSubstr("[8]"), HasSubstr("[8]"), HasSubstr("[32]"), HasSubstr("[32]")));
  EXPECT_THAT(kernels.steps[1].compressions, IsEmpty());
  EXPECT_EQ(kernels.decompressions.size(), 4U);
}

struct OfOneMillisecond : testing::Test {
  Cluster cluster = test::cluster(2, 1);

  Prediction predicted(std::string_view text) {
    const Strategy strategy = sending_as(text);
    std::vector<KernelSample> samples;
    for (KernelKey& key : kernels_of(*make_plan(small(), strategy), Backend::cpu))
      samples.push_back({std::move(key), Seconds{1e-3}, 0.0, 100, {}, {}, {}});
    cluster = test::cluster(2, 1, BytesPerSecond{1e9}, std::move(samples));
    return predict(small(), strategy, cluster).value();
  }
  Seconds message(Collective collective, double bytes) const {
    return cluster.network.collective(collective, Bytes{bytes}, {1, 2, 1}).time.time;
  }
};

// As it is: forward 4 ms, backward 4, 4 copies into the bucket; then 4 back and 4 updates. Cast and division belong to
// backward, and so does what is done to levels and chosen values before they are sent; what is done then to the copies
// back.
TEST_F(OfOneMillisecond, KernelsAndMessagesAddUp) {
  const auto times = [&](std::string_view text, double before, double after, auto... messages) {
    const Prediction p = predicted(text);
    EXPECT_NEAR(p.breakdown.backward.value(), 8e-3 + before * 1e-3, 1e-9) << text;
    EXPECT_NEAR(p.breakdown.optimizer.value(), 8e-3 + after * 1e-3, 1e-9) << text;
    Seconds sent;
    for (const auto& [collective, bytes] : {messages...}) sent += message(collective, bytes);
    EXPECT_NEAR(p.breakdown.communication_total / sent, 1, 1e-9) << text;
    EXPECT_NEAR(p.step_time.value(), 20e-3 + (before + after) * 1e-3 + sent.value(), 1e-9) << text;
    EXPECT_THAT(p.bucket_bytes, ElementsAre(67 * 4)) << "as gradients are summed";
  };
  using Message = std::pair<Collective, double>;
  times("none", 0, 0, Message{Collective::all_reduce, 67 * 4});
  times("fp16", 2, 1, Message{Collective::all_reduce, 67 * 2});
  times("1bit", 4, 8, Message{Collective::all_to_all, 18}, Message{Collective::all_gather, 18});
  times("2bit", 4, 8, Message{Collective::all_to_all, 26}, Message{Collective::all_gather, 26});
  times("topk:0.1", 5, 2, Message{Collective::all_gather, 2 * 56});
}

// Nothing of it is hidden: limits tell what it takes, and a guess among the kernels is called one.
TEST_F(OfOneMillisecond, AnswersSayWhatItTakes) {
  const Prediction p = predicted("topk:0.1");
  EXPECT_EQ(p.compress, "topk:0.1");
  const auto limit = std::ranges::find(p.limits, "gradient compression", &Limit::name);
  ASSERT_NE(limit, p.limits.end());
  EXPECT_NEAR(limit->value, 7e-3, 1e-9);
  EXPECT_EQ(limit->where, "topk:0.1");
  EXPECT_NEAR(limit->share, 7e-3 / p.step_time.value(), 1e-9);
  const Prediction plain = predicted("none");
  EXPECT_EQ(std::ranges::find(plain.limits, "gradient compression", &Limit::name), plain.limits.end());
  EXPECT_EQ(plain.compress, "");
  const Prediction guessed =
      predict(small(), sending_as("topk:0.1"), cluster).value();  // only the plain plan's are measured
  EXPECT_LT(guessed.provenance.measured, plain.provenance.measured);
}

// The bucket of 268 bytes takes 320 of an allocator of 64. A cast needs 134 bytes more. Of two ranks with levels of one
// bit each keeps what 67 and 34 of them lost, sends and receives 18 bytes, and has a byte for each level. Of chosen
// values: 67 for those not sent, 56 bytes of its own and 112 of both, and 67 sizes.
TEST(Compression, MemoryIsThatOfItsBuffers) {
  const auto of = [](std::string_view text) {
    return test::footprint_of(small(), sending_as(text)).peak.communication.value();
  };
  EXPECT_EQ(of("none"), 320);
  EXPECT_EQ(of("fp16"), 320 + 192);
  EXPECT_EQ(of("1bit"), 320 + 448 + 64 + 128);
  EXPECT_EQ(of("topk:0.1"), 320 + 320 + 192 + 320);
  const GradientSync sync = make_plan(small(), sending_as("1bit"))->stages[0].gradients.at(0);
  EXPECT_EQ(compression_memory(sync, sync.buckets.at(0)).sent, 2 * 18);
}

// Two buffers of the larger unit, of 40 elements, serve both in turn; so do two of two bytes.
TEST(Compression, BuffersThatGoRoundAreCastIntoSuchBuffers) {
  Strategy whole = sending_as("none"), cast = sending_as("bf16");
  whole.zero = cast.zero = 3;
  const auto of = [](const Strategy& s) { return test::footprint_of(small(), s).peak.communication.value(); };
  EXPECT_EQ(of(whole), 2 * 192);
  EXPECT_EQ(of(cast), 2 * 192 + 2 * 128);
}

TEST(Compression, MessagesSayHowTheyGo) {
  const auto kind = [](std::string_view text) {
    const Wiring told = wiring(small(), sending_as(text), test::cluster(2, 1)).value();
    return std::pair(told.gradients.at(0).kind, told.gradients.at(0).bytes.value());
  };
  EXPECT_EQ(kind("none"), std::pair(std::string("all-reduce"), 268.0));
  EXPECT_EQ(kind("fp16"), std::pair(std::string("all-reduce"), 134.0));
  EXPECT_EQ(kind("1bit"), std::pair(std::string("compressed all-reduce"), 18.0));
  EXPECT_EQ(kind("topk:0.1"), std::pair(std::string("all-gather"), 112.0));
}

// Many parameters, few samples and a slow network.
TEST(Compression, TheBottleneckIsWhatCarriesGradients) {
  const Graph graph = test::mlp({512, 512, 512}, 2);
  const auto name = [&](std::string_view text) {
    Strategy strategy = sending_as(text, 8);
    strategy.global_batch = 16;
    return predict(graph, strategy, test::cluster(8, 1, BytesPerSecond{1e6})).value().bottleneck.name;
  };
  EXPECT_EQ(name("none"), "network: data all-reduce");
  EXPECT_EQ(name("1bit"), "network: data compressed all-reduce");
  EXPECT_EQ(name("topk:0.1"), "network: data all-gather");
}

// What several stages hold is exchanged once, after backward: as it is.
TEST(Compression, TiedParametersTravelAsTheyAre) {
  Strategy strategy = sending_as("1bit");
  strategy.pipeline = strategy.accumulation = 2;
  strategy.global_batch = 8;
  const Plan plan = make_plan(test::zoo("gpt2-mini", 2, {{"seq", 16}}), strategy).value();
  int tied = 0, compressed = 0;
  for (const Stage& stage : plan.stages)
    for (const GradientSync& sync : stage.gradients) {
      const bool as_it_is = sync.compression.kind == Compression::Kind::none;
      EXPECT_EQ(as_it_is, !sync.stages.empty());
      (as_it_is ? tied : compressed) += 1;
    }
  EXPECT_GT(tied, 0);
  EXPECT_GT(compressed, 0);
}

std::int64_t gradient_bytes(const Plan& plan) { return bytes_by_kind(plan, 0, Algorithm::ring).gradients; }

// A plan of any strategy whose gradients can be levels, and the strategy.
std::optional<std::pair<Graph, Strategy>> any_compressible() {
  const Graph graph = test::any_model();
  Strategy strategy = test::any_strategy();
  strategy.zero = 0;
  strategy.compression = {};
  if (!make_plan(graph, strategy)) return std::nullopt;
  return std::pair(graph, strategy);
}

RC_GTEST_PROP(Compression, MoreIsNeverSentInFewerBytes, ()) {
  const auto drawn = any_compressible();
  if (!drawn) return;
  const auto bytes = [&](const Compression& compression) {
    Strategy strategy = drawn->second;
    strategy.compression = compression;
    return gradient_bytes(make_plan(drawn->first, strategy).value());
  };
  const auto share = [](int thousandths) { return Compression{Compression::Kind::top_k, 0.001 * thousandths}; };
  const int less = test::any(1, 999), more = test::any(less, 1000);
  RC_ASSERT(bytes(share(less)) <= bytes(share(more)));
  RC_ASSERT(bytes({Compression::Kind::one_bit}) <= bytes({Compression::Kind::two_bit}));
  RC_ASSERT(bytes({Compression::Kind::fp16}) == bytes({Compression::Kind::bf16}));
  RC_ASSERT(bytes({Compression::Kind::fp16}) <= bytes({}));
}

// Of one plan: where a pipeline is cut depends on the bandwidth.
RC_GTEST_PROP(Compression, MoreBandwidthIsNeverSlower, ()) {
  const auto drawn = any_compressible();
  if (!drawn || drawn->second.stages() > 1) return;
  Strategy strategy = drawn->second;
  strategy.compression = form(test::one_of("fp16", "1bit", "2bit", "topk:0.01"));
  const Plan plan = make_plan(drawn->first, strategy).value();
  const auto time = [&](double bandwidth) {
    const std::vector<PricedStage> priced =
        price(plan, test::cluster(strategy.devices(), 1, BytesPerSecond{bandwidth}));
    return simulate_step(plan.stages[0], priced[0], {1.3, 1.6}).total;
  };
  const double slow = 1e6 * test::any(1, 10000);
  RC_ASSERT(time(slow * test::any(1, 10)) <= time(slow) * (1 + 1e-9));
}

}  // namespace
}  // namespace sibyl
