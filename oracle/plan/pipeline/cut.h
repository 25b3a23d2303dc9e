// A program cut into pipeline stages at positions between its steps.
//
// What a stage makes and a later one needs goes from stage to stage: every stage between receives it and sends it on,
// and its gradient comes back the same way. Parameters, buffers and inputs are there wherever they are used; what is
// made of them alone by casts, views and pointwise operations without a gradient is made again where it is wanted, not
// sent. A parameter used by several stages is held by each of them (a tie): the sum of its gradients is exchanged.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "base/result.h"
#include "oracle/plan/plan.h"

namespace sibyl {

Bytes tensor_bytes(const LocalTensor& tensor);

// By step: made again by every stage that wants its results.
std::vector<bool> repeatable_steps(const Stage& whole);

// By position: the operation that begins there, invalid where none does. Exchanges belong to the operation after them.
std::vector<OperationId> beginnings(const Stage& whole);

// By position p: the activations that steps before p make and that steps from p on need, repeatable ones left out.
class Crossing {
 public:
  explicit Crossing(const Stage& whole);
  [[nodiscard]] std::vector<LocalTensorId> at(std::size_t position) const;
  [[nodiscard]] Bytes bytes(std::size_t position) const { return bytes_[position]; }  // both ways
  // Does a step from `position` on hand the tensor a gradient?
  [[nodiscard]] bool gradient(LocalTensorId id, std::size_t position) const {
    return last_gradient_[id.index()] >= position + 1;
  }

 private:
  void note_alive();

  const Stage& whole_;
  std::vector<std::size_t> made_, last_use_, last_gradient_;  // by tensor: 1 + index of the step; 0: none
  std::vector<Bytes> bytes_;                                  // by position
  // Tensors that live somewhere between steps, as they are made; every so many positions those alive, and which is made
  // next.
  static constexpr std::size_t between = 64;
  std::vector<std::size_t> in_order_;
  struct Noted {
    std::vector<std::size_t> alive;
    std::size_t next = 0;
  };
  std::vector<Noted> noted_;
};

// The stages that hold each parameter held by several, by its id in the whole program.
using Ties = std::map<LocalTensorId, std::vector<int>>;

struct CutProgram {
  std::vector<Stage> stages;                         // steps, tensors, links
  std::vector<std::vector<LocalTensorId>> whole_id;  // by stage and tensor: in the whole program
  Ties ties;
};

// `begins`: where each stage after the first begins; ascending, none at an end.
CutProgram cut(const Stage& whole, const std::vector<std::size_t>& begins);

}  // namespace sibyl
