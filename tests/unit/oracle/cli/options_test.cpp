#include "oracle/cli/options.h"

#include <gmock/gmock.h>

namespace sibyl::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Arguments> parse_prediction(std::vector<std::string> words) {
  Command c;
  c.program = "sibyl predict";
  c.options = concatenated({model_options(), strategy_options(), output_options()});
  return Arguments::parse(std::move(c), words);
}

Result<Strategy> strategy(std::vector<std::string> words, std::optional<int> devices = std::nullopt) {
  SIBYL_TRY(const Arguments arguments, parse_prediction(std::move(words)));
  return read_strategy(arguments, devices);
}

TEST(Batch, IsForTheStepOrForEachDevice) {
  EXPECT_EQ(parse_batch("512").value(), (BatchSize{512, false}));
  EXPECT_EQ(parse_batch("64/device").value(), (BatchSize{64, true}));
  EXPECT_EQ(parse_batch("64/device")->global(8), 512);
  EXPECT_EQ(parse_batch("512")->global(8), 512);
  for (const char* bad : {"", "0", "-1", "64/gpu", "64/", "/device", "1.5"}) {
    const auto batch = parse_batch(bad);
    ASSERT_FALSE(batch.has_value()) << bad;
    EXPECT_EQ(batch.error().code, ErrorCode::usage);
  }
}

TEST(DeviceCounts, ListsAndRanges) {
  EXPECT_THAT(parse_device_counts("8").value(), ElementsAre(8));
  EXPECT_THAT(parse_device_counts("4,1,4").value(), ElementsAre(1, 4));
  EXPECT_THAT(parse_device_counts("1..16").value(), ElementsAre(1, 2, 4, 8, 16));
  EXPECT_THAT(parse_device_counts("1..6").value(), ElementsAre(1, 2, 4, 6));  // the end is always included
  EXPECT_THAT(parse_device_counts("4..12:4").value(), ElementsAre(4, 8, 12));
  EXPECT_THAT(parse_device_counts("1,2,8..32").value(), ElementsAre(1, 2, 8, 16, 32));
  EXPECT_THAT(parse_device_counts("1-64").value(), ElementsAre(1, 2, 4, 8, 16, 32, 64));
  EXPECT_THAT(parse_device_counts("3-20,4-8:2").value(), ElementsAre(3, 4, 6, 8, 12, 20));
  for (const char* bad :
       {"",     "0",  "8..1", "1..",   "..8",    "1,,2", "a",   "1..8:0", "1..10000000:1", "64-1", "-1",
        "-1-4", "1-", "1--4", "1-4-8", "1..4-8", "1-8:", "0-4", "2-x",    "1 - 4",         "1:4",  "1..8..2"}) {
    const auto counts = parse_device_counts(bad);
    ASSERT_FALSE(counts.has_value()) << bad;
    EXPECT_EQ(counts.error().code, ErrorCode::usage) << bad;
  }
}

TEST(StrategyOptions, DefaultsAndSettings) {
  const auto plain = strategy({}, 4);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->data, 4);
  EXPECT_EQ(plain->global_batch, 128);  // 32 of each of 4 devices
  EXPECT_EQ(plain->exchange, GradientExchange::overlapped);
  EXPECT_EQ(plain->split_until, "");

  const auto set = strategy({"--parallel", "data=8", "--batch", "64/device", "--accumulation", "2", "--precision",
                             "bf16", "--optimizer", "adam", "--bucket", "512KiB", "--split-until", "layer2"});
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->data, 8);
  EXPECT_EQ(set->global_batch, 512);
  EXPECT_EQ(set->accumulation, 2);
  EXPECT_EQ(set->split_until, "layer2");
  EXPECT_EQ(set->precision, Precision::bf16);
  EXPECT_EQ(set->optimizer, OptimizerKind::adam);
  EXPECT_EQ(set->bucket, Bytes{512.0 * 1024});
  EXPECT_EQ(set->first_bucket, Bytes{512.0 * 1024});  // 1 MiB would be larger than the others
  EXPECT_EQ(plain->compression, Compression{});
  EXPECT_EQ(strategy({"--compress", "topk:0.5"})->compression, (Compression{Compression::Kind::top_k, 0.5}));
  EXPECT_EQ(order_text(*strategy({"--parallel", "data=2,tensor=2", "--order", "data"})), "data,tensor");
}

TEST(StrategyOptions, ContradictionsAreRefused) {
  EXPECT_THAT(strategy({"--parallel", "data=8"}, 4).error().message, HasSubstr("--devices says 4"));
  EXPECT_EQ(strategy({"--parallel", "data=2", "--order", "rows"}).error().code, ErrorCode::usage);
  EXPECT_THAT(strategy({"--no-overlap", "--bucket", "25MiB"}, 4).error().message, HasSubstr("no effect"));
  EXPECT_FALSE(strategy({"--bucket", "0"}, 4).has_value());
  EXPECT_EQ(strategy({"--compress", "zip"}).error().where, "--compress");
}

TEST(ImportOptions, ReadsDimensionsAndLoss) {
  const auto arguments = parse_prediction({"--dim", "seq=1024", "--dim", "width=3", "--loss", "mean-squared-error"});
  ASSERT_TRUE(arguments.has_value());
  const auto options = read_import_options(*arguments);
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->dims.at("seq"), 1024);
  EXPECT_EQ(options->dims.at("width"), 3);
  EXPECT_EQ(options->loss, LossKind::mean_squared_error);
  for (const char* bad : {"seq", "=3", "seq=", "seq=0", "seq=x"})
    EXPECT_FALSE(read_import_options(*parse_prediction({"--dim", bad})).has_value()) << bad;
  EXPECT_FALSE(read_import_options(*parse_prediction({"--dim", "a=1", "--dim", "a=2"})).has_value());
}

TEST(LoadModel, AnUnknownZooModelIsSuggested) {
  const auto import = load_import("zoo:resnet5", {});
  ASSERT_FALSE(import.has_value());
  EXPECT_EQ(import.error().code, ErrorCode::bad_input);
  EXPECT_THAT(import.error().hint, HasSubstr("zoo:resnet50"));
}

}  // namespace
}  // namespace sibyl::cli
