// Tables dealt out over ranks by their columns: what each rank holds and sends, and what cannot be dealt out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"
#include "oracle/plan/plan.h"
#include "oracle/strategy.h"

namespace sibyl {
namespace {

using testing::HasSubstr;

constexpr std::int64_t tables = 8, table_rows = 1000, table_width = 16, bag = 4;  // of dlrm-mini

Graph dlrm(std::int64_t batch) {
  ImportOptions options;
  options.batch = batch;
  return inspect_onnx_bytes(*zoo_model_bytes("dlrm-mini"), "dlrm-mini", options)->graph;
}

Result<Plan> tables_over(std::string_view parallel, std::int64_t batch) {
  Strategy strategy;
  EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
  strategy.global_batch = batch;
  return make_plan(dlrm(batch), strategy);
}

// Of each table a rank has half of the columns, and of its 4 samples everything else.
TEST(TableParallel, DealsOutColumns) {
  const Plan plan = tables_over("table=2", 8).value();
  int dealt = 0;
  for (const LocalTensor& tensor : plan.stages[0].tensors) {
    if (tensor.kind == TensorKind::input) {
      EXPECT_EQ(tensor.shape.at(0), 4);
    }
    if (tensor.kind != TensorKind::parameter || tensor.shape.front() != table_rows) continue;
    EXPECT_EQ(tensor.shape, (Shape{table_rows, table_width / 2}));
    ++dealt;
  }
  EXPECT_EQ(dealt, tables);
  // What is looked up is summed over a bag before it is given.
  for (const Step& step : plan.stages[0].steps) {
    const auto* exchange = std::get_if<Exchange>(&step);
    if (exchange == nullptr || exchange->forward.motion != Motion::all_to_all) continue;
    EXPECT_EQ(plan.stages[0][exchange->output].shape, (Shape{4, table_width}));
  }
}

// Of each table: the ids of 4 samples, of 8 bytes each, are gathered; of the sums of 8 samples in 8 columns a half goes
// to the other rank, and so do gradients back. A loss of 4 bytes. Gradients of what is no table are summed: a ring of
// two sends each element once there and once back, halved. Those of tables have nobody to meet.
TEST(TableParallel, BytesOfALookup) {
  const Plan plan = tables_over("table=2", 8).value();
  const BytesSent sent = bytes_by_kind(plan, 0, Algorithm::ring);
  EXPECT_EQ(sent.exchanges, tables * (4 * bag * 8 + 2 * 8 * (table_width / 2) * 4 / 2) + 4);
  EXPECT_EQ(sent.gradients, (dlrm(8).parameter_count() - tables * table_rows * table_width) * 4);
  EXPECT_EQ(plan.stages[0].gradients.size(), 1U);
}

TEST(TableParallel, RefusesWhatCannotBeDealtOut) {
  const auto three = tables_over("table=3", 9);
  ASSERT_FALSE(three.has_value());
  EXPECT_EQ(three.error().code, ErrorCode::infeasible);
  EXPECT_THAT(three.error().message, HasSubstr("3 ranks cannot have as many of 16 each"));
  EXPECT_THAT(three.error().hint, HasSubstr("table=2"));
  EXPECT_THAT(tables_over("data=2,table=2", 6).error().message,
              HasSubstr("cannot be divided over 2 replicas of 2 ranks"));
  Strategy strategy;
  ASSERT_TRUE(parse_parallel("table=2", strategy).has_value());
  strategy.global_batch = 2;
  ImportOptions options;
  options.batch = 2;
  const Graph without = inspect_onnx_bytes(*zoo_model_bytes("small-cnn"), "small-cnn", options)->graph;
  EXPECT_THAT(make_plan(without, strategy).error().message, HasSubstr("looks nothing up"));
}

}  // namespace
}  // namespace sibyl
