// Naumov et al., "Deep learning recommendation model for personalization and recommendation systems" (2019): tables of
// embeddings for what is categorical, a perceptron for what is dense, products of each pair of the vectors, and a
// perceptron over those. Of a table the gradient is as large as itself, as of any embedding here, where its authors'
// code keeps the rows that were looked up.
#include "models/zoo/families.h"
#include "models/zoo/layers.h"
#include "models/zoo/transformer.h"

namespace sibyl::zoo {

namespace {

constexpr std::int64_t dense_features = 13;

Value hidden(Builder& b, Value x, const std::string& path, const Ints& widths) {
  for (std::size_t i = 0; i < widths.size(); ++i)
    x = relu(b, fully_connected(b, x, path + "." + std::to_string(2 * i), widths[i]));  // each followed by its ReLU
  return x;
}

// A feature's row of its table; of a bag of features the sum of their rows.
Value looked_up(Builder& b, const std::string& number, std::int64_t rows, const DlrmOptions& options) {
  const Shape ids = options.bag == 1 ? Shape{batch_extent} : Shape{batch_extent, options.bag};
  const Value features = b.input("sparse_" + number, ids, DType::i64);
  const Value found = embedding(b, b.parameter("emb_l." + number + ".weight", {rows, options.width}), features);
  if (options.bag == 1) return found;
  return b.apply("ReduceSum", {}, {found, b.ints({1})}, {batch_extent, options.width}, {{"keepdims", 0}});
}

// Products of each vector with those before it, behind the first vector itself.
Value interaction(Builder& b, const std::vector<Value>& vectors) {
  const auto count = static_cast<std::int64_t>(vectors.size());
  const std::int64_t width = vectors.front().shape[1];
  const Value rows =
      b.apply("Reshape", {}, {concat(b, vectors, 1), b.ints({0, count, width})}, {batch_extent, count, width});
  const Value columns = b.apply("Transpose", {}, {rows}, {batch_extent, width, count}, {{"perm", Ints{0, 2, 1}}});
  const Value products = b.apply("MatMul", {}, {rows, columns}, {batch_extent, count, count});
  Ints below;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < i; ++j) below.push_back(i * count + j);
  const Value flat = flatten(b, products);
  const Value pairs = b.apply("Gather", {}, {flat, b.ints(below)},
                              {batch_extent, static_cast<std::int64_t>(below.size())}, {{"axis", 1}});
  return concat(b, {vectors.front(), pairs}, 1);
}

}  // namespace

void dlrm(Builder& b, const DlrmOptions& options) {
  const Value dense = b.input("dense", {batch_extent, dense_features});
  std::vector<Value> vectors = {hidden(b, dense, "bot_l", options.bottom)};
  for (std::size_t i = 0; i < options.rows.size(); ++i)
    vectors.push_back(looked_up(b, std::to_string(i), options.rows[i], options));
  const Value x = hidden(b, interaction(b, vectors), "top_l", options.top);
  b.output(sigmoid(b, fully_connected(b, x, "top_l." + std::to_string(2 * options.top.size()), 1)));
}

}  // namespace sibyl::zoo
