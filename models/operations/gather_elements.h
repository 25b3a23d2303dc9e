// Elements picked one by one (ONNX GatherElements): the relative positions of DeBERTa's attention.
#pragma once

#include <string>
#include <vector>

#include "models/operations/own_file.h"

namespace sibyl {

// x, indices -> y of the indices' shape: y[i, j] = x[i, indices[i, j]] for axis 1, likewise for others. Indices count
// from the front, as torch.gather has them.
struct GatherElements {
  static constexpr std::string_view name = "gather_elements";
  static constexpr bool own_file = true;
  std::int64_t axis = 0;
  static void fields(auto& self, auto&& visit) { visit("axis", self.axis); }
  bool operator==(const GatherElements&) const = default;

  // Backward adds what comes into zeros of x's size; autograd keeps x for no more than that size.
  [[nodiscard]] TrainingRule training(const auto& c) const {
    const double e = c.element(), y = c.out(), indices = c.in(1) * rules::index_bytes;
    TrainingRule r;
    r.forward = rules::work(0, y * e + indices, y * e);
    r.backward = rules::work(y, y * e + indices, c.in(0) * e);
    r.saved = {rules::saved_input(0), rules::saved_input(1)};
    return r;
  }

  [[nodiscard]] bool independent_along(std::size_t dim) const { return static_cast<std::int64_t>(dim) != axis; }

  [[nodiscard]] std::optional<std::size_t> index_into(std::size_t operand) const {
    return operand == 1 ? std::optional(static_cast<std::size_t>(axis)) : std::nullopt;
  }

  [[nodiscard]] auto run(const auto& in) const { return in[0].gather(axis, in.indices(1)); }

  static constexpr std::string_view onnx_name = "GatherElements";
  static constexpr std::size_t operands = 2;
  static Shape result(const auto& node) { return node.shape(1); }
  static Result<GatherElements> from(const auto& node) {
    SIBYL_TRY(const std::size_t axis, node.front_axis(node.integer("axis", 0)));
    const Shape &x = node.shape(0), &indices = node.shape(1);
    bool fits = x.size() == indices.size();
    for (std::size_t i = 0; fits && i < x.size(); ++i) fits = i == axis || indices[i] <= x[i];
    if (!fits) return fail("indices of " + to_string(indices) + " do not fit " + to_string(x));
    const auto batch = node.batch_axis(0);
    if (node.side() == 1 && batch && *batch != axis && !node.batch_axis(1))
      return fail("its indices are of one batch, what they pick from of any");
    for (const std::int64_t index : node.ints(1).value_or(std::vector<std::int64_t>{}))
      if (index < 0 || index >= x[axis])
        return fail("index " + std::to_string(index) + " is not one of the " + std::to_string(x[axis]) +
                    " from the front");
    return GatherElements{static_cast<std::int64_t>(axis)};
  }
};

}  // namespace sibyl
