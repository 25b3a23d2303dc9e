// The ways in which one operation can be shared by the ranks of an axis.
//
// A Variant says which layouts the operands must have for the results to have theirs, when every rank runs the local
// operation. It is always right, whatever the strategy; a Policy (policy.h) chooses. That every rank repeats the whole
// operation is always possible, and is not listed by the rules.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "oracle/plan/sharding/emitter.h"
#include "oracle/plan/sharding/layout.h"

namespace sibyl {

// How a multiplication by a weight is shared.
enum class Cut {
  none,      // not a multiplication by a weight
  columns,   // each rank makes some of the output features (ParaDL's filters)
  rows,      // each rank takes some of the input features (ParaDL's channels): results are partial
  groups,    // each rank takes some groups of a grouped convolution
  along,     // weights are whole; each rank takes a part of the data: samples, tokens, or rows of an image
  table,     // each rank has some rows of a table and looks up those: results are partial
  features,  // of a table: each rank has some columns and looks up all ranks' ids, and each gets all of its own
  experts,   // each rank has some experts, and all tokens that go to them
};

struct Variant {
  std::vector<Need> inputs;     // parallel to the operands
  std::vector<Layout> outputs;  // parallel to the results
  Attributes attributes;        // of the local operation
  Cut cut = Cut::none;
  // This operand is not handed to the operation but added to its summed result: a bias, along `outputs[0].dim`.
  std::optional<std::size_t> late_bias = {};
  // The result is multiplied by this: a mean over a split dimension is the sum over ranks of means divided by their
  // number.
  double scale = 1.0;
  // Where one local operation is not enough: adds the steps that make the results of the operands, which lie as `inputs`
  // says. `outputs` is then what these steps leave, and `sent` the elements a rank sends in them, over both passes.
  std::function<std::vector<LocalTensorId>(Emitter&, const std::vector<LocalTensorId>&)> program = {};
  double sent = 0.0;
};

// What a rule may look at.
struct Operands {
  const std::vector<Shape>& inputs;  // whole, as the program before this axis has them; {} where absent
  const std::vector<Shape>& outputs;
  const std::vector<std::optional<Layout>>& arriving;  // of each operand; empty: a source, in whatever layout is asked
  std::int64_t ways = 1;
  Ints column_pieces;  // extents in which a later operation takes the output features apart; empty: it does not

  [[nodiscard]] bool has(std::size_t input) const { return input < inputs.size() && present[input]; }
  std::vector<bool> present;
  bool logits = false;  // the output features are classes that a loss alone reads: they may be rounded up
  bool bag = false;     // what is looked up is summed over a bag's places, and read by nobody else
  bool table = false;   // operand 0 is a table whose rows are worth sharing, rounded up where need be
  bool tokens = false;  // ranks have a part of every sequence, throughout or between weights
  bool routes = false;  // which expert gets a token is all that the result is read for
  [[nodiscard]] const Layout* split(std::size_t input) const {  // how the operand arrives, if split
    return has(input) && arriving[input] && arriving[input]->is_split() ? &*arriving[input] : nullptr;
  }
};

}  // namespace sibyl
