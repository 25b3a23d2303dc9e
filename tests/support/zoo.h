// A model of the zoo, as a graph.
#pragma once

#include <map>
#include <string>

#include "models/onnx/import.h"
#include "models/zoo/zoo.h"

namespace sibyl::test {

inline Graph zoo(const std::string& name, std::int64_t batch = 2, const std::map<std::string, std::int64_t>& dims = {}) {
  ImportOptions options;
  options.batch = batch;
  options.dims.insert(dims.begin(), dims.end());
  return inspect_onnx_bytes(zoo_model_bytes(name).value(), name, options).value().graph;
}

}  // namespace sibyl::test
