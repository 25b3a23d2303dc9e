// Reading files of published runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/validate/published/csv.h"
#include "oracle/validate/published/judge.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PublishedCsv, ReadsQuotesCommasAndLineEnds) {
  const auto csv = parse_csv(
      "\xEF\xBB\xBF"
      "a,b\r\n\"x, \"\"y\"\"\",\"two\nlines\"\r\n\r\nplain,\n",
      "f.csv");
  ASSERT_TRUE(csv) << csv.error().message;
  EXPECT_THAT(csv->header, ElementsAre("a", "b"));
  ASSERT_EQ(csv->records.size(), 2U);
  EXPECT_THAT(csv->records[0].fields, ElementsAre("x, \"y\"", "two\nlines"));
  EXPECT_EQ(csv->records[0].line, 2);
  EXPECT_THAT(csv->records[1].fields, ElementsAre("plain", ""));
  EXPECT_EQ(csv->records[1].line, 5);  // the first record takes two lines, and one is empty
}

TEST(PublishedCsv, MistakesNameTheirLine) {
  const auto error = [](const char* text) { return parse_csv(text, "f.csv").error(); };
  EXPECT_EQ(error("a,b\n1,2\n3\n").where, "f.csv:3");
  EXPECT_THAT(error("a,b\n1,2\n3\n").message, HasSubstr("1 fields"));
  EXPECT_EQ(error("a\n\"open\nmore\n").where, "f.csv:2");
  EXPECT_EQ(error("a\n\"x\"y\n").where, "f.csv:2");
  EXPECT_EQ(error("a\nx\"y\n").where, "f.csv:2");
  EXPECT_EQ(error("").where, "f.csv");
}

constexpr const char* header = "model,source,gpu,n_gpus,metric,value,unit,arch_params,micro_batch,dp,note_of_mine\n";

TEST(PublishedRows, ReadsWhatIsStated) {
  const auto rows =
      read_rows(std::string(header) +
                    "gpt,S,A100,8,iteration_time,1.5,s,\"{\"\"layers\"\": 2, \"\"act\"\": \"\"swiglu\"\"}\",4,n/a,x\n",
                "f");
  ASSERT_TRUE(rows) << rows.error().message;
  const Row& row = rows->front();
  EXPECT_EQ(row.gpus, 8);
  EXPECT_EQ(row.metric, Metric::iteration_time);
  EXPECT_DOUBLE_EQ(row.value, 1.5);
  EXPECT_EQ(row.architecture.integer("layers"), 2);
  EXPECT_EQ(row.architecture.text("act"), "swiglu");
  EXPECT_EQ(row.micro_batch, 4);
  EXPECT_FALSE(row.dp);
  EXPECT_FALSE(row.global_batch);
}

TEST(PublishedRows, WhatCannotBeReadNamesLineAndColumn) {
  const auto error = [](const std::string& row) { return read_rows(header + row, "f.csv").error(); };
  EXPECT_EQ(error("m,s,g,8,throughput,fast,,,,,\n").where, "f.csv:2");
  EXPECT_THAT(error("m,s,g,8,throughput,fast,,,,,\n").message, HasSubstr("value"));
  EXPECT_THAT(error("m,s,g,8,throughput,0,,,,,\n").message, HasSubstr("above 0"));
  EXPECT_THAT(error("m,s,g,8,throughput,nan,,,,,\n").message, HasSubstr("value"));
  EXPECT_THAT(error("m,s,g,0,throughput,1,,,,,\n").message, HasSubstr("n_gpus"));
  EXPECT_THAT(error("m,s,g,2.5,throughput,1,,,,,\n").message, HasSubstr("n_gpus"));
  EXPECT_THAT(error("m,s,g,8,throughput,1,,{not json,,,\n").message, HasSubstr("JSON"));
  EXPECT_THAT(error("m,s,g,8,throughput,1,,[],,,\n").message, HasSubstr("JSON"));
  EXPECT_THAT(error("m,s,g,8,throughput,1,,,-4,,\n").message, HasSubstr("micro_batch"));
  EXPECT_THAT(error(",s,g,8,throughput,1,,,,,\n").message, HasSubstr("model is empty"));
  EXPECT_EQ(read_rows("model,gpu\n", "f.csv").error().where, "f.csv:1");
}

TEST(PublishedRows, DevicesThatNobodyCountedAreNotGuessed) {
  const auto rows = read_rows(std::string(header) + "resnet50,S,A100,,throughput,1,,,8,,\n", "f");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(rows->front().gpus, 0);
  EXPECT_THAT(judge(*rows).front().why_not, HasSubstr("how many devices"));
}

TEST(PublishedRows, AnUnknownMetricIsKeptByName) {
  const auto rows = read_rows(std::string(header) + "m,s,g,8,mfu,50,%,,,,\n", "f");
  ASSERT_TRUE(rows);
  EXPECT_FALSE(rows->front().metric);
  EXPECT_EQ(rows->front().metric_name, "mfu");
}

}  // namespace
}  // namespace sibyl::published
