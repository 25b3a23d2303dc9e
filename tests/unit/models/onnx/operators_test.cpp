// One node at a time: the shape of its result and the operation it becomes, over the opsets that changed its form.
#include <limits>

#include "tests/unit/models/graph_builder.h"
#include "tests/unit/models/onnx/lookup.h"
#include "tests/unit/models/onnx/one_node.h"

namespace sibyl {
namespace {

// (224 + 2*3 - 7) / 2 + 1 = 112.
TEST(Convolutions, SevenBySevenStrideTwo) {
  auto model = one(13, "Conv", {1, 3, 224, 224}, {"w"}, {{"strides", Numbers{2, 2}}, {"pads", Numbers{3, 3, 3, 3}}});
  model.weight("w", {64, 3, 7, 7});
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{1, 64, 112, 112}));
  const auto* conv = first<Convolution>(imported->graph);
  ASSERT_NE(conv, nullptr);
  EXPECT_EQ(*conv, (Convolution{{7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}, 1, false, {}}));
  EXPECT_EQ(imported->graph.parameter_count(), 64 * 3 * 7 * 7);
}

// SAME: ceil(10/3) = 4 positions need (4-1)*3 + 4 = 13, so 3 are padded; the odd one at the end for SAME_UPPER.
TEST(Convolutions, AutoPadPutsTheOddPixelWhereItSays) {
  for (const bool upper : {true, false}) {
    auto model = one(11, "Conv", {1, 2, 10}, {"w"},
                     {{"strides", Numbers{3}}, {"auto_pad", std::string(upper ? "SAME_UPPER" : "SAME_LOWER")}});
    model.weight("w", {5, 2, 4});
    const auto imported = import(model);
    EXPECT_EQ(result_shape(imported), (Shape{1, 5, 4}));
    const auto* conv = first<Convolution>(imported->graph);
    EXPECT_EQ(conv->pad_begin[0], upper ? 1 : 2);
    EXPECT_EQ(conv->pad_end[0], upper ? 2 : 1);
  }
}

// (5-1)*2 + 3 + 1 - 2*1 = 10 by attributes; the same reached by output_shape with 12 - 10 + ... padding.
TEST(Convolutions, TransposedByPaddingAndByOutputShape) {
  auto padded =
      one(11, "ConvTranspose", {1, 6, 5, 5}, {"w"},
          {{"strides", Numbers{2, 2}}, {"pads", Numbers{1, 1, 1, 1}}, {"output_padding", Numbers{1, 1}}, {"group", 2}});
  padded.weight("w", {6, 4, 3, 3});
  EXPECT_EQ(result_shape(import(padded)), (Shape{1, 8, 10, 10}));
  auto shaped =
      one(11, "ConvTranspose", {1, 6, 5, 5}, {"w"}, {{"strides", Numbers{2, 2}}, {"output_shape", Numbers{10, 10}}});
  shaped.weight("w", {6, 4, 3, 3});  // whole: (5-1)*2 + 3 = 11, one pixel is cut
  const auto imported = import(shaped);
  EXPECT_EQ(result_shape(imported), (Shape{1, 4, 10, 10}));
  const auto* conv = first<Convolution>(imported->graph);
  EXPECT_TRUE(conv->transposed);
  EXPECT_EQ(conv->pad_begin[0] + conv->pad_end[0], 1);
}

// ceil((7 - 2) / 3) + 1 = 3, the third window starting at 6 < 7; of 6, ceil((6-2)/3)+1 = 3 would start at 6,
// outside: 2.
TEST(Pools, CeilModeLeavesOutWindowsBehindTheInput) {
  for (const auto& [in, out] : {std::pair{7, 3}, std::pair{6, 2}}) {
    const auto imported = import(
        one(11, "MaxPool", {1, 1, in}, {}, {{"kernel_shape", Numbers{2}}, {"strides", Numbers{3}}, {"ceil_mode", 1}}));
    EXPECT_EQ(result_shape(imported), (Shape{1, 1, out}));
  }
}

TEST(Pools, GlobalPoolsEverySpatialDimension) {
  EXPECT_EQ(result_shape(import(one(9, "GlobalAveragePool", {2, 8, 5, 6, 7}))), (Shape{2, 8, 1, 1, 1}));
}

TEST(MatrixProducts, FollowNumpy) {
  struct Case {
    std::vector<Extent> a;
    std::vector<std::int64_t> b;
    Shape y;
  };
  for (const Case& c : {Case{{2, 3, 4}, {4, 5}, {2, 3, 5}}, Case{{2, 1, 3, 4}, {7, 4, 5}, {2, 7, 3, 5}},
                        Case{{2, 3, 4}, {4}, {2, 3}}}) {
    auto model = one(13, "MatMul", c.a, {"w"});
    model.weight("w", c.b);
    EXPECT_EQ(result_shape(import(model)), c.y);
  }
}

// torch's nn.Linear: weight [N, K], transB.
TEST(MatrixProducts, GemmOfAWeightIsLinear) {
  auto model = one(11, "Gemm", {8, 20}, {"w", "b"}, {{"transB", 1}});
  model.weight("w", {10, 20}).weight("b", {10});
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{8, 10}));
  const auto* linear = first<Linear>(imported->graph);
  ASSERT_NE(linear, nullptr);
  EXPECT_FALSE(linear->weight_kn);
  EXPECT_EQ(imported->graph.operations().size(), 1u);
}

// A lone number is a constant elsewhere; here it is what a layer with one result learns.
TEST(MatrixProducts, ABiasOfOneResultTrains) {
  auto model = one(11, "Gemm", {8, 20}, {"w", "b"}, {{"transB", 1}});
  model.weight("w", {1, 20}).weight("b", {1});
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->graph.parameter_count(), 21);
  ASSERT_NE(first<Linear>(imported->graph), nullptr);
  EXPECT_EQ(imported->graph.operations().front().inputs.size(), 3U);
}

TEST(MatrixProducts, GemmWithFactorsIsWrittenOut) {
  auto model = one(11, "Gemm", {8, 20}, {"w", "b"}, {{"alpha", 0.5}, {"beta", 2.0}});
  model.weight("w", {20, 10}).weight("b", {10});
  EXPECT_EQ(result_shape(import(model)), (Shape{8, 10}));
}

// Heads: b s (h d) x (h d) k. The sum over j of bij,bkj is q k^T.
TEST(MatrixProducts, Einsum) {
  struct Case {
    std::string equation;
    std::vector<Extent> a, b;
    Shape y;
  };
  const Case cases[] = {{"bij,bkj->bik", {2, 3, 4}, {2, 5, 4}, {2, 3, 5}},
                        {"bhid,bhjd->bhij", {2, 6, 3, 4}, {2, 6, 5, 4}, {2, 6, 3, 5}},
                        {"bihd,bjhd->bhij", {2, 3, 6, 4}, {2, 5, 6, 4}, {2, 6, 3, 5}},
                        {"bi,bj->bij", {2, 3}, {2, 5}, {2, 3, 5}},
                        {"ij,jk", {2, 3}, {3, 5}, {2, 5}}};
  for (const Case& c : cases) {
    ModelBuilder model(13);
    model.input("a", c.a).input("b", c.b).node("Einsum", {"a", "b"}, {"y"}, {{"equation", c.equation}}).output("y");
    const auto imported = import(model);
    EXPECT_EQ(result_shape(imported), c.y) << c.equation;
    EXPECT_EQ(count<MatMul>(imported->graph), 1) << c.equation;
  }
}

TEST(MatrixProducts, AnEinsumThatIsNoProductIsUnsupported) {
  ModelBuilder model(13);
  model.input("a", {2, 3})
      .input("b", {2, 3})
      .node("Einsum", {"a", "b"}, {"y"}, {{"equation", std::string("...i,...i->...")}})
      .output("y");
  const auto imported = import(model);
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->unsupported.size(), 1u);
  EXPECT_EQ(imported->unsupported[0].op_type, "Einsum");
}

TEST(Views, ReshapeFlattenSqueezeUnsqueezeInBothForms) {
  auto reshape = one(13, "Reshape", {2, 3, 4}, {"s"});
  EXPECT_EQ(result_shape(import(reshape.ints("s", {0, -1}))), (Shape{2, 12}));
  EXPECT_EQ(result_shape(import(one(9, "Flatten", {2, 3, 4}, {}, {{"axis", 2}}))), (Shape{6, 4}));
  EXPECT_EQ(result_shape(import(one(11, "Squeeze", {2, 1, 3, 1}, {}, {{"axes", Numbers{1}}}))), (Shape{2, 3, 1}));
  auto squeeze = one(13, "Squeeze", {2, 1, 3, 1}, {"axes"});
  EXPECT_EQ(result_shape(import(squeeze.ints("axes", {-1}))), (Shape{2, 1, 3}));
  EXPECT_EQ(result_shape(import(one(11, "Unsqueeze", {2, 3}, {}, {{"axes", Numbers{0, 3}}}))), (Shape{1, 2, 3, 1}));
  auto unsqueeze = one(13, "Unsqueeze", {2, 3}, {"axes"});
  EXPECT_EQ(result_shape(import(unsqueeze.ints("axes", {-1, 1}))), (Shape{2, 1, 3, 1}));
}

TEST(Views, TileRepeatsEachAxis) {
  auto model = one(13, "Tile", {2, 3}, {"r"});
  EXPECT_EQ(result_shape(import(model.ints("r", {1, 4}))), (Shape{2, 12}));
}

TEST(Views, DepthToSpace) {
  EXPECT_EQ(result_shape(import(one(13, "DepthToSpace", {2, 12, 3, 5}, {}, {{"blocksize", 2}}))), (Shape{2, 3, 6, 10}));
  EXPECT_EQ(result_shape(import(one(13, "SpaceToDepth", {2, 3, 6, 10}, {}, {{"blocksize", 2}}))), (Shape{2, 12, 3, 5}));
}

// A negative step walks back: from 4 (clamped 9) down to 1 (exclusive 0) in twos: 4, 2.
TEST(Parts, SliceByAttributesAndByInputs) {
  EXPECT_EQ(result_shape(import(
                one(9, "Slice", {2, 10}, {}, {{"starts", Numbers{1}}, {"ends", Numbers{-2}}, {"axes", Numbers{1}}}))),
            (Shape{2, 7}));
  auto back = one(13, "Slice", {2, 5}, {"s", "e", "a", "t"});
  back.ints("s", {9}).ints("e", {0}).ints("a", {1}).ints("t", {-2});
  EXPECT_EQ(result_shape(import(back)), (Shape{2, 2}));
  auto rest = one(13, "Slice", {2, 5}, {"s", "e", "a"});
  rest.ints("s", {2}).ints("e", {INT64_MAX}).ints("a", {-1});
  EXPECT_EQ(result_shape(import(rest)), (Shape{2, 3}));
}

TEST(Parts, SplitInItsThreeForms) {
  for (const int opset : {11, 13, 18}) {
    ModelBuilder model(opset);
    model.input("x", {2, 10});
    if (opset == 11) model.node("Split", {"x"}, {"a", "b"}, {{"axis", 1}, {"split", Numbers{7, 3}}});
    if (opset == 13) model.ints("sizes", {7, 3}).node("Split", {"x", "sizes"}, {"a", "b"}, {{"axis", 1}});
    if (opset == 18) model.node("Split", {"x"}, {"a", "b"}, {{"axis", 1}, {"num_outputs", 2}});
    model.output("a").output("b");
    const auto imported = import(model);
    EXPECT_EQ(result_shape(imported), (Shape{2, opset == 18 ? 5 : 7})) << opset;
    EXPECT_EQ(imported->graph[imported->graph.outputs[1]].shape, (Shape{2, opset == 18 ? 5 : 3})) << opset;
  }
}

// A table's rows by ids; the ids are below its rows.
TEST(Parts, GatherFromAWeightIsAnEmbedding) {
  ModelBuilder model(13);
  model.input("ids", {2, 7}, onnx::TensorProto::INT64)
      .weight("table", {50, 16})
      .node("Gather", {"table", "ids"}, {"y"})
      .output("y");
  const auto imported = import(model);
  EXPECT_EQ(result_shape(imported), (Shape{2, 7, 16}));
  EXPECT_EQ(count<Embedding>(imported->graph), 1);
  EXPECT_EQ(find_tensor(imported->graph, "ids")->index_bound, 50);
}

TEST(Parts, PadByAttributeInputAndAxes) {
  EXPECT_EQ(result_shape(import(one(9, "Pad", {1, 2, 5, 5}, {}, {{"pads", Numbers{0, 0, 1, 2, 0, 0, 3, 4}}}))),
            (Shape{1, 2, 9, 11}));
  auto cut = one(13, "Pad", {1, 2, 5, 5}, {"p"});
  EXPECT_EQ(result_shape(import(cut.ints("p", {0, 0, -1, 0, 0, 0, -1, 2}))), (Shape{1, 2, 3, 7}));
  auto axes = one(18, "Pad", {1, 2, 5, 5}, {"p", "", "axes"});
  EXPECT_EQ(result_shape(import(axes.ints("p", {1, 1}).ints("axes", {-1}))), (Shape{1, 2, 5, 7}));
}

TEST(Reductions, AxesByAttributeAndByInput) {
  EXPECT_EQ(result_shape(import(one(11, "ReduceMean", {2, 3, 4}, {}, {{"axes", Numbers{-1}}, {"keepdims", 0}}))),
            (Shape{2, 3}));
  auto mean = one(18, "ReduceMean", {2, 3, 4}, {"axes"});
  EXPECT_EQ(result_shape(import(mean.ints("axes", {1, 2}))), (Shape{2, 1, 1}));
  EXPECT_EQ(result_shape(import(one(13, "ArgMax", {2, 3, 4}, {}, {{"axis", 1}, {"keepdims", 0}}))), (Shape{2, 4}));
}

// Before opset 13, Softmax over axis 1 of N C H W is over C*H*W.
TEST(Reductions, SoftmaxFlattensBeforeOpset13) {
  const auto old = import(one(11, "Softmax", {2, 3, 4}, {}, {{"axis", 1}}));
  EXPECT_EQ(result_shape(old), (Shape{2, 3, 4}));
  EXPECT_EQ(old->graph.operations().size(), 3u);
  const auto recent = import(one(13, "Softmax", {2, 3, 4}, {}, {{"axis", 1}}));
  EXPECT_EQ(recent->graph.operations().size(), 1u);
  EXPECT_EQ(first<Softmax>(recent->graph)->axis, 1);
}

TEST(Elementwise, ClipInBothFormsAndReluSix) {
  const auto old = import(one(9, "Clip", {2, 3}, {}, {{"min", 0.0}, {"max", 6.0}}));
  auto model = one(13, "Clip", {2, 3}, {"low", "high"});
  const auto recent = import(model.scalar("low", 0).scalar("high", 6));
  for (const auto* imported : {&old, &recent}) {
    EXPECT_EQ(result_shape(*imported), (Shape{2, 3}));
    EXPECT_EQ(*first<Unary>((*imported)->graph), (Unary{UnaryKind::clip, 0.0, 6.0}));
  }
}

TEST(Elementwise, DropoutKeepsItsRatioInBothForms) {
  const auto old = import(one(11, "Dropout", {2, 3}, {}, {{"ratio", 0.25}}));
  auto model = one(13, "Dropout", {2, 3}, {"ratio"});
  const auto recent = import(model.scalar("ratio", 0.25F));
  for (const auto* imported : {&old, &recent}) {
    ASSERT_TRUE(*imported);
    EXPECT_EQ(first<Dropout>((*imported)->graph)->ratio, 0.25);
  }
}

// Images of `size` x `size` pixels, scaled.
ModelBuilder resized(int size, float height, float width) {
  ModelBuilder model(13);
  model.input("x", {1, 2, size, size});
  model.node("Resize", {"x", "", "s"}, {"y"}, {{"mode", std::string("linear")}}).output("y");
  auto* tensor = model.graph().add_initializer();
  tensor->set_name("s");
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(4);
  for (const float scale : {1.0F, 1.0F, height, width}) tensor->add_float_data(scale);
  return model;
}

TEST(Elementwise, ResizeByScalesAndSizes) {
  EXPECT_EQ(result_shape(import(resized(5, 2.0F, 1.5F))), (Shape{1, 2, 10, 7}));
  // 0.7f is 0.69999998807907…: of 10 pixels 7 are left in floats, as ONNX has it, where 6.9999998… would leave 6.
  EXPECT_EQ(result_shape(import(resized(10, 0.7F, 0.7F))), (Shape{1, 2, 7, 7}));
  ModelBuilder sizes(13);
  sizes.input("x", {1, 2, 5, 5}).ints("s", {1, 2, 8, 9}).node("Resize", {"x", "", "", "s"}, {"y"}).output("y");
  EXPECT_EQ(result_shape(import(sizes)), (Shape{1, 2, 8, 9}));
}

// x is no number where it is not equal to itself; infinite where |x| is, or x itself by one sign.
TEST(Unaries, WhatIsNoNumberOrInfiniteIsABoolean) {
  const auto nan = import(one(13, "IsNaN", {2, 3}));
  ASSERT_EQ(result_shape(nan), (Shape{2, 3}));
  EXPECT_EQ(nan->graph[nan->graph.outputs.front()].dtype, DType::boolean);
  using Names = std::vector<std::string>;
  EXPECT_EQ(test::operations_of(nan->graph), (Names{"binary(kind=equal)", "unary(kind=logical_not)"}));
  const auto infinite = import(one(10, "IsInf", {2, 3}));
  ASSERT_TRUE(infinite);
  EXPECT_EQ(test::operations_of(infinite->graph), (Names{"unary(kind=abs)", "binary(kind=equal)"}));
  const auto below = import(one(20, "IsInf", {2, 3}, {}, {{"detect_positive", 0}}));
  ASSERT_TRUE(below);
  ASSERT_EQ(test::operations_of(below->graph), Names{"binary(kind=equal)"});
  const Tensor& limit = below->graph[below->graph.operations()[0].inputs[1]];
  EXPECT_EQ(limit.values, std::vector<double>{-std::numeric_limits<double>::infinity()});
}

TEST(Unaries, CeluIsEluOfAScaledOperand) {
  EXPECT_EQ(first<Unary>(import(one(13, "Celu", {2, 3}))->graph)->kind, UnaryKind::elu);
  const auto imported = import(one(13, "Celu", {2, 3}, {}, {{"alpha", 2.0}}));
  EXPECT_EQ(result_shape(imported), (Shape{2, 3}));
  EXPECT_EQ(count<Unary>(imported->graph), 3);  // x / 2, elu, times 2
}

}  // namespace
}  // namespace sibyl
