#include "models/onnx/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sibyl::onnx_import {

std::optional<std::size_t> differing_axis(const Shape& a, const Shape& b) {
  if (a.size() != b.size()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::int64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  constexpr double limit = 9.2e18;
  if (value >= limit) return INT64_MAX;
  if (value <= -limit) return INT64_MIN;
  return static_cast<std::int64_t>(value);
}

Result<std::size_t> front_axis(std::int64_t axis, std::int64_t rank) {
  if (axis < -rank || axis >= rank) return fail(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

Result<std::size_t> Node::front_axis(std::int64_t axis) const { return onnx_import::front_axis(axis, rank(0)); }

std::optional<std::size_t> Node::batch_axis(std::size_t i) const {
  return differing_axis(inputs_[i]->at[0].shape, inputs_[i]->at[1].shape);
}

bool Node::is_zero(std::size_t i) const {
  const KnownValues& values = fact(i).values;
  return is_constant(i) && values &&
         std::all_of(values->begin(), values->end(), [](double value) { return value == 0; });
}

std::optional<Ints> Node::ints_at(std::size_t i, std::size_t side) const {
  const KnownValues& values = inputs_[i]->at[side].values;
  if (!values) return std::nullopt;
  Ints result;
  result.reserve(values->size());
  for (const double value : *values) result.push_back(to_integer(value));
  return result;
}

std::optional<double> Node::scalar(std::size_t i) const {
  const KnownValues& values = fact(i).values;
  if (!values || values->size() != 1) return std::nullopt;
  return values->front();
}

const AttributeData* Node::attribute(std::string_view name) const {
  for (const AttributeData& attribute : data_->attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

std::int64_t Node::integer(std::string_view name, std::int64_t otherwise) const {
  const AttributeData* found = attribute(name);
  const auto* value = found != nullptr ? std::get_if<std::int64_t>(&found->value) : nullptr;
  return value != nullptr ? *value : otherwise;
}

double Node::number(std::string_view name, double otherwise) const {
  const AttributeData* found = attribute(name);
  const auto* value = found != nullptr ? std::get_if<double>(&found->value) : nullptr;
  return value != nullptr ? *value : otherwise;
}

std::string Node::text(std::string_view name, std::string_view otherwise) const {
  const AttributeData* found = attribute(name);
  const auto* value = found != nullptr ? std::get_if<std::string>(&found->value) : nullptr;
  return value != nullptr ? *value : std::string(otherwise);
}

std::optional<Ints> Node::integers(std::string_view name) const {
  const AttributeData* found = attribute(name);
  const auto* value = found != nullptr ? std::get_if<Ints>(&found->value) : nullptr;
  if (value == nullptr) return std::nullopt;
  return *value;
}

Result<std::optional<Ints>> Node::listed(std::string_view name, std::size_t i) const {
  if (auto from_attribute = integers(name)) return from_attribute;
  if (!has(i)) return std::optional<Ints>();
  auto values = ints(i);
  if (!values)
    return fail(fmt::format("its {} are computed while the model runs, so its result has no fixed shape", name));
  return values;
}

}  // namespace sibyl::onnx_import
