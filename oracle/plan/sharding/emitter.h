// Writes steps that stand for one operation where its ranks need several, with exchanges between them.
#pragma once

#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

class Emitter {
 public:
  // Steps are added to `stage`. They are `of` that operation, and what they make is of `like`'s element type and origin.
  Emitter(Stage& stage, MeshAxis axis, OperationId of, DType dtype, const LocalTensor& like)
      : stage_(stage), axis_(axis), operation_(of), dtype_(dtype), like_(like) {}

  // Results of these shapes. Without `gradient` nothing of it is differentiated.
  std::vector<LocalTensorId> compute(Attributes operation, const std::vector<LocalTensorId>& inputs,
                                     const std::vector<Shape>& results, bool gradient = true);
  LocalTensorId compute(Attributes operation, const std::vector<LocalTensorId>& inputs, const Shape& result,
                        bool gradient = true) {
    return compute(std::move(operation), inputs, std::vector<Shape>{result}, gradient).front();
  }
  // Between the ranks of the axis.
  LocalTensorId exchange(LocalTensorId input, Motion forward, Motion backward);
  LocalTensorId exchange(LocalTensorId input, const Conversion& conversion, int ways);
  // The mean of what each of `ways` ranks has: a sum of shares. Each rank uses it for its own part of the work, so that
  // its gradient comes in summands, too. Of one rank: what it has.
  LocalTensorId mean(LocalTensorId own, int ways);
  // What was made is a rank's part of what the operation makes.
  void mark(LocalTensorId made, const Layout& layout);

 private:
  LocalTensorId add(const Shape& shape, bool gradient);

  Stage& stage_;
  MeshAxis axis_;
  OperationId operation_;
  DType dtype_;
  LocalTensor like_;
};

}  // namespace sibyl
