// Models of one node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/models/onnx/model_builder.h"

namespace sibyl {

using Numbers = std::vector<int>;

// A model of one node y = op(x, extra inputs...).
inline ModelBuilder one(int opset, const std::string& op, const std::vector<Extent>& x,
                        const std::vector<std::string>& extra = {},
                        const std::vector<std::pair<std::string, ModelBuilder::Value>>& attributes = {},
                        const std::string& domain = "") {
  ModelBuilder model(opset);
  std::vector<std::string> inputs{"x"};
  inputs.insert(inputs.end(), extra.begin(), extra.end());
  model.input("x", x).node(op, inputs, {"y"}, attributes, domain).output("y");
  return model;
}

}  // namespace sibyl
