// Published timings of collectives: reading, and what is made of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "oracle/validate/published/collectives.h"

namespace sibyl::published {
namespace {

using testing::HasSubstr;

const std::string head =
    "source,gpu,n_gpus,n_nodes,intranode,internode,collective,algo,message_bytes,time_us,library,trust\n";

std::vector<CollectiveVerdict> judged(const std::string& rows) {
  return judge_collectives(read_collective_rows(head + rows, "f.csv").value());
}

TEST(PublishedCollectives, ReadsRows) {
  const auto rows = read_collective_rows(head +
                                             "S,A100-SXM,16,2,NVLink3+NVSwitch,4x100Gb/s per node,all_reduce,nccl "
                                             "default,1048576,309.4,NCCL,A\nS,H200,2,1,,,p2p,nvbandwidth,,,x,A\n",
                                         "f.csv");
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 1U);  // the other is a bandwidth alone
  EXPECT_EQ(rows->front().line, 2);
  EXPECT_EQ(rows->front().gpus_per_node, 8);
  EXPECT_DOUBLE_EQ(rows->front().time.value(), 309.4e-6);
}

TEST(PublishedCollectives, MistakesNameTheirLine) {
  const auto error = [](const std::string& row) { return read_collective_rows(head + row, "f.csv").error(); };
  EXPECT_EQ(error("S,A100,8,3,,,all_reduce,,8,1,,A\n").where, "f.csv:2");
  EXPECT_THAT(error("S,A100,8,1,,,all_sing,,8,1,,A\n").message, HasSubstr("all_sing"));
  EXPECT_THAT(error("S,A100,8,1,,,all_reduce,,-8,1,,A\n").message, HasSubstr("above 0"));
  EXPECT_THAT(read_collective_rows("source,gpu\n", "f.csv").error().message, HasSubstr("n_gpus"));
}

TEST(PublishedCollectives, SaysWhyARowIsNotPriced) {
  EXPECT_THAT(judged("S,A100-SXM,8,1,,,all_reduce,NVLS,8,1,,A\n")[0].why_not, HasSubstr("NVLS"));
  EXPECT_TRUE(judged("S,H200-SXM,8,1,,,all_reduce,NVLS,8,1,,A\n")[0].priced());
  EXPECT_THAT(judged("S,A100-SXM,8,1,,,all_reduce,sonar,8,1,,A\n")[0].why_not, HasSubstr("sonar"));
  EXPECT_THAT(judged("S,A100-SXM,8,1,,,all_reduce,,8,1,,C\n")[0].why_not, HasSubstr("vouch"));
  EXPECT_THAT(judged("S,A100-SXM,16,2,,not stated,all_reduce,,8,1,,A\n")[0].why_not, HasSubstr("joins"));
  EXPECT_THAT(judged("S,Abacus,8,1,,,all_reduce,,8,1,,A\n")[0].why_not, HasSubstr("Abacus"));
}

// Seven sizes that take 100 us and a nanosecond for each kilobyte: the first three set the latency and are not judged;
// halves foretell each other exactly between the ends, for all is one straight line.
TEST(PublishedCollectives, ALongSeriesSetsItsLatencyAndForetellsItself) {
  std::string rows;
  for (int i = 0; i < 7; ++i) {
    const int bytes = 1000 << i;
    rows += "S,A100-SXM,16,2,NVLink3+NVSwitch,4x100Gb/s per node,all_reduce,nccl default," + std::to_string(bytes) +
            "," + std::to_string(100 + bytes * 1e-3) + ",NCCL,A\n";
  }
  const auto verdicts = judged(rows);
  ASSERT_EQ(verdicts.size(), 7U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_THAT(verdicts[i].why_not, HasSubstr("latency"));
  EXPECT_TRUE(verdicts[3].priced());
  EXPECT_NEAR(verdicts[3].predicted.time.value(), 108e-6, 20e-6);
  EXPECT_GT(verdicts[3].latency_of_adapter.value(), 5e-6);
  for (std::size_t i = 1; i < 6; ++i) {
    ASSERT_TRUE(verdicts[i].from_others) << i;
    EXPECT_NEAR(verdicts[i].from_others->time / verdicts[i].row.time, 1.0, 1e-9) << i;
  }
}

// The file of docs/validation/collectives.md: between nodes 10 % is the goal from other sizes, and what the links alone give is
// watched.
TEST(PublishedCollectives, TheShippedTable) {
  std::ifstream file(SIBYL_SOURCE_DIR "/tests/data/published_collectives.csv");
  std::stringstream text;
  text << file.rdbuf();
  const auto rows = read_collective_rows(text.str(), "published_collectives.csv");
  ASSERT_TRUE(rows) << rows.error().message;
  double links = 0, halves = 0, of_links = 0, of_halves = 0;
  for (const CollectiveVerdict& v : judge_collectives(*rows)) {
    if (v.row.gpus == v.row.gpus_per_node) continue;
    if (v.priced()) links += std::abs(v.error()), ++of_links;
    if (v.from_others) halves += std::abs(v.from_others->time / v.row.time - 1), ++of_halves;
  }
  ASSERT_GE(of_links, 60);
  EXPECT_LT(links / of_links, 0.12);
  EXPECT_LT(halves / of_halves, 0.10);
}

}  // namespace
}  // namespace sibyl::published
