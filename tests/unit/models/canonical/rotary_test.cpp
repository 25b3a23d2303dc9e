// Rotary embeddings of x[B = 2, H = 4, S = 6, D = 16], tables stored for 32 positions.
#include "tests/unit/models/canonical/canonical_test.h"

namespace sibyl {
namespace {

using test::GraphBuilder;

struct Rotary : test::CanonicalTest {
  TensorId x = b.input({2, 4, 6, 16});

  TensorId part(TensorId t, std::int64_t axis, std::int64_t start, std::int64_t end, Shape shape) {
    return b.op(Slice{{axis}, {start}, {end}, {1}}, {t}, std::move(shape));
  }
  TensorId table(std::int64_t width) { return part(b.parameter({32, width}), 0, 0, 6, {6, width}); }
  // (-x2, x1) of halves x1, x2
  TensorId exchanged() {
    const TensorId low = part(x, 3, 0, 8, {2, 4, 6, 8}), high = part(x, 3, 8, 16, {2, 4, 6, 8});
    return b.op(Concat{3}, {b.unary(UnaryKind::neg, high), low}, {2, 4, 6, 16});
  }
  std::int64_t parameters(TensorId y) {
    const auto graph = canonicalize(b.finish({y}));
    EXPECT_TRUE(graph) << to_string(graph.error());
    return graph ? graph->parameter_count() : -1;
  }
};

TEST_F(Rotary, TablesOfHalvesAreNoWeights) {
  const TensorId y = b.add(b.mul(x, table(16)), b.mul(exchanged(), table(16)));
  EXPECT_EQ(parameters(y), 0);
}

TEST_F(Rotary, FrequenciesThatAngleTablesAreComputedFromAreNoWeights) {
  const TensorId frequencies = b.reshape(b.reshape(b.parameter({16}), {1, 16}), {1, 1, 16});
  const TensorId angles = b.mul(b.buffer({6, 1}), frequencies);
  const TensorId y =
      b.add(b.mul(x, b.unary(UnaryKind::cos, angles)), b.mul(exchanged(), b.unary(UnaryKind::sin, angles)));
  EXPECT_EQ(parameters(y), 0);
}

TEST_F(Rotary, TablesOfPartsTurnedOneByOneAreNoWeights) {  // even elements a, odd ones c, as LLaMA's first code
  const TensorId pairs = b.reshape(x, {2, 4, 6, 8, 2});
  const TensorId a = b.reshape(part(pairs, 4, 0, 1, {2, 4, 6, 8, 1}), {2, 4, 6, 8});
  const TensorId c = b.reshape(part(pairs, 4, 1, 2, {2, 4, 6, 8, 1}), {2, 4, 6, 8});
  const TensorId cos = table(8), sin = table(8);
  const TensorId first = b.sub(b.mul(a, cos), b.mul(c, sin)), second = b.add(b.mul(a, sin), b.mul(c, cos));
  EXPECT_EQ(parameters(b.op(Concat{3}, {first, second}, {2, 4, 6, 16})), 0);
}

TEST_F(Rotary, AWeightThatAlsoDoesSomethingElseStaysOne) {
  const TensorId weight = b.parameter({6, 16});
  const TensorId y = b.add(b.mul(x, weight), b.mul(exchanged(), table(16)));
  EXPECT_EQ(parameters(b.add(y, weight)), 6 * 16);
}

TEST_F(Rotary, ScalesOfUnrelatedTermsAreWeights) {  // x w + tanh(x) v
  const TensorId y = b.add(b.mul(x, b.parameter({6, 16})), b.mul(b.unary(UnaryKind::tanh, x), b.parameter({6, 16})));
  EXPECT_EQ(parameters(y), 2 * 6 * 16);
}

TEST_F(Rotary, TablesThatAnInputSetsKeepTheirWeights) {
  const TensorId gate = b.mul(b.input({6, 16}), b.parameter({16}));
  const TensorId y = b.add(b.mul(x, gate), b.mul(exchanged(), b.buffer({6, 16})));
  EXPECT_EQ(parameters(y), 16);
}

}  // namespace
}  // namespace sibyl
