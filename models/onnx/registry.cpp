#include <map>
#include <utility>

#include "models/onnx/operators/families.h"
#include "models/onnx/own_file.h"

namespace sibyl::onnx_import {

const Operator* find_operator(std::string_view domain, std::string_view op_type) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, const Operator*> operators = [] {
    std::map<Key, const Operator*> all;
    for (const auto table : {convolution_operators(), matrix_operators(), normalization_operators(),
                             pooling_operators(), unary_operators(), binary_operators(), reduction_operators(),
                             view_operators(), indexing_operators(), constant_operators(), resampling_operators(),
                             attention_operators(), expert_operators(), random_operators(), loss_operators()})
      for (const Operator& row : table) all.emplace(Key{row.domain, row.name}, &row);
    static const std::vector<Operator> own = own_file_operators(static_cast<const Attributes*>(nullptr));
    for (const Operator& row : own) all.emplace(Key{row.domain, row.name}, &row);
    return all;
  }();
  const auto found = operators.find({domain, op_type});
  return found == operators.end() ? nullptr : found->second;
}

}  // namespace sibyl::onnx_import
