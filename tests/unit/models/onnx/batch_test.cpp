// Which extents are the batch, and what happens to constants that an export baked it into.
#include <gmock/gmock.h>

#include "models/onnx/operators/reshape_target.h"
#include "tests/support/cancelling.h"
#include "tests/unit/models/onnx/lookup.h"

namespace sibyl {
namespace {

using onnx_import::batch_axes_after;

ImportOptions batch_of(std::int64_t batch) {
  ImportOptions options;
  options.batch = batch;
  return options;
}

// The batch stays behind as many elements as before the reshape.
TEST(BatchAfterReshape, FollowsRowMajorOrder) {
  EXPECT_EQ(batch_axes_after({1, 197, 768}, 0, {1, 197, 12, 64}, {1, 197, 12, 64}, 1).front(), 0u);
  EXPECT_EQ(batch_axes_after({1, 197, 768}, 0, {1, 197, 768}, {1, -1, 768}, 1).front(), 0u);   // not the -1
  EXPECT_EQ(batch_axes_after({8, 197, 768}, 0, {1576, 768}, {-1, 768}, 8).front(), 0u);        // tokens flattened
  EXPECT_EQ(batch_axes_after({197, 1, 768}, 1, {197, 12, 64}, {197, 12, 64}, 1).front(), 1u);  // S x B*H x D
  EXPECT_EQ(batch_axes_after({197, 1, 768}, 1, {197, 768}, {-1, 768}, 1).front(), 0u);         // S*B x E
  EXPECT_EQ(batch_axes_after({24, 32}, 0, {6, 4, 32}, {6, 4, 32}, 4).front(), 1u);             // S*B back to S x B
}

TEST(BatchAfterReshape, NoneWhereNoAxisHoldsIt) { EXPECT_TRUE(batch_axes_after({8, 3}, 0, {3, 8}, {3, 8}, 5).empty()); }

TEST(Batch, ABakedBatchOfOneIsRebound) {
  ModelBuilder model(13);
  model.input("x", {1, 6, 32}).ints("heads", {1, 6, 4, 8}).ints("flat", {1, -1}).weight("w", {192, 10});
  model.node("Reshape", {"x", "heads"}, {"h"})
      .node("Transpose", {"h"}, {"t"}, {{"perm", std::vector<int>{0, 2, 1, 3}}});
  model.node("Reshape", {"t", "flat"}, {"f"}).node("MatMul", {"f", "w"}, {"y"}).output("y");
  const auto imported = import(model, batch_of(8));
  EXPECT_EQ(result_shape(imported), (Shape{8, 10}));
  EXPECT_EQ(find_tensor(imported->graph, "t")->shape, (Shape{8, 4, 6, 8}));
  for (const char* name : {"x", "h", "t", "f", "y"})
    EXPECT_EQ(find_tensor(imported->graph, name)->batch_axis, 0u) << name;
  EXPECT_FALSE(find_tensor(imported->graph, "w")->batch_axis);
}

// The class token has no batch; where the export's batch of 1 needed no expansion, rebinding must add one.
TEST(Batch, AClassTokenIsExpandedWhereItIsConcatenated) {
  ModelBuilder model(13);
  model.input("x", {1, 16, 32})
      .weight("token", {1, 1, 32})
      .node("Concat", {"token", "x"}, {"y"}, {{"axis", 1}})
      .output("y");
  const auto imported = import(model, batch_of(4));
  EXPECT_EQ(result_shape(imported), (Shape{4, 17, 32}));
  EXPECT_EQ(count<Expand>(imported->graph), 1);
}

TEST(Batch, AConstantThatForbidsAnotherBatchIsNamed) {
  ModelBuilder model(13);
  model.input("x", {4, 6}).weight("noise", {4, 6}).node("Add", {"x", "noise"}, {"sum"}).output("sum");
  const auto rebound = import(model, batch_of(8));
  ASSERT_FALSE(rebound);
  EXPECT_EQ(rebound.error().where, "sum");
  EXPECT_THAT(rebound.error().message, testing::HasSubstr("Add forbids another batch than 4"));
  EXPECT_THAT(rebound.error().hint, testing::HasSubstr("dynamic"));

  // Unasked, the model can be looked at, but not predicted: a data-parallel rank would have another batch.
  const auto as_baked = import(model);
  ASSERT_TRUE(as_baked);
  EXPECT_EQ(as_baked->graph.batch(), 4);
  ASSERT_EQ(as_baked->unsupported.size(), 1u);
  EXPECT_EQ(as_baked->unsupported[0].node, "sum");
}

// Whatever it is at: nodes, another guess about the batch, or the batch of the file in the end.
TEST(Batch, AnImportEndsWhenItIsCancelled) {
  ModelBuilder model(13);
  model.input("x", {4, 6}).weight("noise", {4, 6}).ints("flat", {24});
  model.node("Reshape", {"x", "flat"}, {"f"}).node("Relu", {"f"}, {"r"});
  model.node("Add", {"x", "noise"}, {"sum"}).output("sum").output("r");
  test::expect_ends_when_cancelled([&](const Cancelled& cancelled) {
    ImportOptions options;
    options.cancelled = cancelled;
    return import(model, options);
  });
}

// S x B x E to S*B x E and back: at a batch of 1, 16 could be S alone or S*B. No node fails where the batch is taken to
// lie in E, but the mean over tokens would be one over samples, too, and the result would have lost its batch.
TEST(Batch, AResultWithoutItsBatchIsAWrongGuess) {
  ModelBuilder model(13);
  model.input("x", {16, "batch", 32}).ints("flat", {16, 32}).ints("apart", {16, 1, 32}).weight("w", {32, 32});
  model.node("Reshape", {"x", "flat"}, {"tokens"}).node("MatMul", {"tokens", "w"}, {"h"});
  model.node("Reshape", {"h", "apart"}, {"sbe"});
  model.node("Transpose", {"sbe"}, {"bse"}, {{"perm", std::vector<int>{1, 0, 2}}});
  model.node("ReduceMean", {"bse"}, {"y"}, {{"axes", std::vector<int>{1}}, {"keepdims", 0}}).output("y");
  EXPECT_EQ(result_shape(import(model, batch_of(3))), (Shape{3, 32}));
}

// A query that is learned is expanded to the batch; exported at 1, its expansion does nothing.
TEST(Batch, AnExpansionToABatchOfOneMayGrow) {
  ModelBuilder model(13);
  model.input("k", {1, 8, 16}).weight("q", {1, 16, 4}).ints("to", {1, 16, 4});
  model.node("Expand", {"q", "to"}, {"qs"}).node("Concat", {"qs", "qs"}, {"twice"}, {{"axis", 0}});
  model.node("Concat", {"k", "k"}, {"keys"}, {{"axis", 0}}).node("MatMul", {"keys", "twice"}, {"y"}).output("y");
  const auto imported = import(model, batch_of(3));
  EXPECT_EQ(result_shape(imported), (Shape{6, 8, 4}));
}

// A padding mask's zeros, stored for each head of each sample: [2 * 4, 1, 6].
TEST(Batch, AConstantThatRepeatsAlongTheBatchIsOneOfThem) {
  ModelBuilder model(13);
  model.input("hidden", {2, 6}, onnx::TensorProto::BOOL).scalar("low", -1e9F);
  model.ints("apart", {2, 1, 1, 6}).ints("heads", {2, 4, 1, 6}).ints("flat", {8, 1, 6});
  auto* zeros = model.graph().add_initializer();
  zeros->set_name("zeros_i");
  zeros->set_data_type(onnx::TensorProto::INT64);
  for (const int extent : {8, 1, 6}) zeros->add_dims(extent);
  for (int i = 0; i < 48; ++i) zeros->add_int64_data(0);
  model.node("Cast", {"zeros_i"}, {"zeros"}, {{"to", 1}}).node("Reshape", {"hidden", "apart"}, {"a"});
  model.node("Expand", {"a", "heads"}, {"h"}).node("Reshape", {"h", "flat"}, {"f"});
  model.node("Where", {"f", "low", "zeros"}, {"y"}).output("y");
  const auto imported = import(model, batch_of(5));
  EXPECT_EQ(result_shape(imported), (Shape{20, 1, 6}));
}

// w.unsqueeze(0).repeat(batch, 1, 1): at a batch of 1 it repeats nothing, but does so all the same.
TEST(Batch, ATileByTheBatchGrows) {
  for (const std::int64_t batch : {1, 3}) {
    ModelBuilder model(13);
    model.input("x", {"batch", 4, 8}).weight("w", {1, 4, 8}).ints("first", {0}).ints("once", {1, 1});
    model.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "first"}, {"samples"});
    model.node("Concat", {"samples", "once"}, {"repeats"}, {{"axis", 0}}).node("Tile", {"w", "repeats"}, {"t"});
    model.node("Add", {"x", "t"}, {"y"}).output("y");
    const auto imported = import(model, batch_of(batch));
    EXPECT_EQ(result_shape(imported), (Shape{batch, 4, 8}));
    ASSERT_TRUE(imported);
    ASSERT_NE(find_tensor(imported->graph, "t"), nullptr);
    EXPECT_EQ(find_tensor(imported->graph, "t")->batch_axis, 0u);
    EXPECT_EQ(count<Expand>(imported->graph), 1);
  }
}

// x.squeeze(0) if there is one sample: control flow of two kinds from a batch of 1, of one from 2.
TEST(Batch, WhatIsSpecialAboutOneSampleIsWalkedFromTwo) {
  ModelBuilder model(13);
  model.input("x", {"batch", 6}).ints("first", {0}).ints("one", {1});
  model.node("Shape", {"x"}, {"shape"}).node("Gather", {"shape", "first"}, {"samples"});
  model.node("Equal", {"samples", "one"}, {"is_one"}).node("If", {"is_one"}, {"s"});
  model.node("Relu", {"s"}, {"y"}).output("y");
  for (const char* name : {"then_branch", "else_branch"}) {
    auto* branch = model.graph().mutable_node(3)->add_attribute();
    branch->set_name(name);
    branch->set_type(onnx::AttributeProto::GRAPH);
    auto* node = branch->mutable_g()->add_node();
    node->set_op_type(branch->name() == "then_branch" ? "Squeeze" : "Identity");
    node->add_input("x");
    node->add_output(branch->name() + ".result");
    branch->mutable_g()->add_output()->set_name(branch->name() + ".result");
  }
  EXPECT_EQ(result_shape(import(model, batch_of(4))), (Shape{4, 6}));
}

TEST(Batch, ANodeThatTakesPartOfTheBatchIsUnsupported) {
  ModelBuilder model(13);
  model.input("x", {"batch", 6}).ints("s", {0}).ints("e", {1}).node("Slice", {"x", "s", "e", "s"}, {"y"}).output("y");
  const auto imported = import(model, batch_of(8));
  EXPECT_TRUE(!imported || !imported->unsupported.empty());
}

TEST(Batch, TheNameDecidesBeforeThePlace) {
  ModelBuilder model(13);
  model.input("x", {"time", "batch", 6}).node("Relu", {"x"}, {"y"}).output("y");
  ImportOptions options = batch_of(8);
  options.dims["time"] = 5;
  const auto imported = import(model, options);
  EXPECT_EQ(result_shape(imported), (Shape{5, 8, 6}));
  EXPECT_EQ(find_tensor(imported->graph, "y")->batch_axis, 1u);
}

// tf2onnx names every open extent differently.
TEST(Batch, SymbolsThatStandInFrontOnlyAreTheBatch) {
  ModelBuilder model(13);
  model.input("a", {"unk__1", 6}).input("b", {"unk__2", 6}).node("Add", {"a", "b"}, {"y"}).output("y");
  EXPECT_EQ(result_shape(import(model, batch_of(8))), (Shape{8, 6}));
}

// TensorFlow's way of leaving an extent open is -1, some zoos' for the batch is 0.
TEST(Batch, ZeroOrMinusOneInFrontIsOpen) {
  for (const int open : {0, -1}) {
    ModelBuilder model(9);
    model.input("data", {open, 6}).node("Relu", {"data"}, {"y"}).output("y");
    EXPECT_EQ(result_shape(import(model)), (Shape{1, 6})) << open;
    EXPECT_EQ(result_shape(import(model, batch_of(8))), (Shape{8, 6})) << open;
  }
}

TEST(Dimensions, MinusOneElsewhereIsOpenToo) {
  ModelBuilder model(13);
  model.input("x", {"batch", -1}).node("Relu", {"x"}, {"y"}).output("y");
  const auto unbound = import(model);
  ASSERT_FALSE(unbound);
  EXPECT_THAT(unbound.error().hint, testing::HasSubstr("--dim x.1=VALUE"));
}

TEST(Dimensions, AreBoundByOptionThenByMetadata) {
  ModelBuilder model(13);
  model.input("x", {"batch", "seq"}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_FALSE(import(model));
  auto* entry = model.model().add_metadata_props();
  entry->set_key("sibyl.dim.seq");
  entry->set_value("128");
  EXPECT_EQ(result_shape(import(model)), (Shape{1, 128}));
  ImportOptions options;
  options.dims["seq"] = 64;
  EXPECT_EQ(result_shape(import(model, options)), (Shape{1, 64}));
}

TEST(Dimensions, AnOpenExtentWithoutANameIsCalledByItsPlace) {
  ModelBuilder model(13);
  model.input("x", {"batch", ""}).node("Relu", {"x"}, {"y"}).output("y");
  const auto unbound = import(model);
  ASSERT_FALSE(unbound);
  EXPECT_THAT(unbound.error().hint, testing::HasSubstr("--dim x.1=VALUE"));
  ImportOptions options;
  options.dims["x.1"] = 7;
  EXPECT_EQ(result_shape(import(model, options)), (Shape{1, 7}));
}

TEST(Dimensions, AnUnknownNameIsAUsageErrorThatListsTheNames) {
  ModelBuilder model(13);
  model.input("x", {"batch", "seq"}).node("Relu", {"x"}, {"y"}).output("y");
  ImportOptions options;
  options.dims["sequence"] = 7;
  const auto imported = import(model, options);
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.error().code, ErrorCode::usage);
  EXPECT_THAT(imported.error().hint, testing::HasSubstr("batch, seq"));
}

}  // namespace
}  // namespace sibyl
