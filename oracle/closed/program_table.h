// What the closed form knows of a program: for each of its steps what its passes take and what its parameters are, so
// that a pipeline stage, whichever steps it has, is a range of rows.
//
// Made once for all strategies of one form_key() (closed_form.h): exchanges between operations are priced here. Rows of
// the same content have the same hash, so that equal stages are found by their hash and worked out once. Seconds and
// bytes are plain doubles: nothing but oracle/closed reads them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "netmodel/network.h"
#include "oracle/closed/made_again.h"
#include "oracle/cost/kernel_prices.h"
#include "oracle/cost/tensor_overlap.h"
#include "oracle/plan/blocks.h"
#include "oracle/plan/pipeline/cut.h"
#include "oracle/plan/plan.h"
#include "oracle/plan/recompute.h"

namespace sibyl::closed {

// For an index: there is none.
inline constexpr std::size_t absent = std::numeric_limits<std::size_t>::max();

// What of a strategy's stages runs again.
struct RunsAgain {
  Recompute recompute = Recompute::none;
  BlocksAgain blocks = {};              // full: which of them
  std::vector<std::string> kinds = {};  // operations: of these kinds
  auto operator<=>(const RunsAgain&) const = default;
};

// Kernels of one pass over one step.
struct Kernels {
  double seconds = 0;
  double launches = 0;  // in dispatches: those of no operation are less than one (cost/framework.h)
  void add(const Kernels& other) { seconds += other.seconds, launches += other.launches; }
};

// What computation waits for in one pass before a step.
struct Exchanged {
  double seconds = 0;
  double wait = 0;     // of these, at the beginning: for the others
  WireUse wire;
  double in_turn = 1;  // what of the rest it has at the least, if there is enough to compute before it (cost/waits.h)

  bool sent = false;  // else there is nothing to wait for

  [[nodiscard]] double least() const { return wait + (seconds - wait) * std::min(1.0, in_turn); }
  [[nodiscard]] Exchanged after(double computing) const;  // seconds, since the one before
  [[nodiscard]] Exchanged hidden(double most) const;      // by so many seconds at most
};

struct Row {
  Kernels forward;          // with the host's time per operation
  Kernels backward;         // and the sums of gradients; where backward is taken in two parts, the first
  Kernels backward_weight;  // where it is, the second
  double kernels_backward = 0;  // seconds: of both parts, without sums
  Exchanged exchange_forward, exchange_backward;
  double alone = 0;                                    // its kernels in one micro-batch, by themselves
  double computed_forward = 0, computed_backward = 0;  // of these, composed

  // As a stage's first exchange of a pass; and which is the one before it, 1 + its step forward, its step backward.
  Exchanged first_forward, first_backward;
  std::size_t met_forward = 0, met_backward = absent;
  // Which products beside it hide them, of those that are in the stage.
  std::vector<BesideProducts::Product> products = {};
  [[nodiscard]] Exchanged forward_in(std::size_t begin, std::size_t end) const {
    const Exchanged& sent = met_forward > begin ? exchange_forward : first_forward;
    return products.empty() ? sent : sent.hidden(beside(end).forward.value());
  }
  [[nodiscard]] Exchanged backward_in(std::size_t end) const {
    const Exchanged& sent = met_backward < end ? exchange_backward : first_backward;
    return products.empty() ? sent : sent.hidden(beside(end).backward.value());
  }

 private:
  [[nodiscard]] KernelTimes beside(std::size_t end) const {
    KernelTimes all;
    for (const BesideProducts::Product& product : products)
      if (product.step < end) all.forward += product.forward, all.backward += product.backward;
    return all;
  }
};

// Of a program's steps, whichever stages they are in; exchanges with the waits that a rank of this strategy has, and
// not yet after each other. `split`: backward is taken in two parts.
std::vector<Row> priced_rows(const Stage& program, const Strategy& strategy, KernelPrices& kernels, bool split);
using PricedRows = std::array<std::vector<Row>, 2>;  // by that; empty where they are not known

struct Parameter {
  LocalTensorId tensor;  // of the program
  Shape shape;
  std::int64_t elements = 0;
  DType dtype = DType::f32, gradient_type = DType::f32;
  std::size_t summed = 0;                   // over which axes: of summed_over()
  std::size_t first_use = 0, last_use = 0;  // steps that give it a gradient
  // Kernels: its gradient added to that of earlier micro-batches; copied, into a bucket or out of it; and cast, where
  // it is summed in another type than it is made in.
  double sum = 0, copy = 0, cast = 0;
  double bytes() const { return static_cast<double>(elements) * size_in_bytes(dtype); }
  double gradient_bytes() const { return static_cast<double>(elements) * size_in_bytes(gradient_type); }
};

// A step's backward gives a parameter its gradient, or a part of it. In the order in which backward does so.
struct Use {
  std::size_t parameter = 0, step = 0;
  // 1 + the last step before this one that does, too, and the next one behind it; 0: none.
  std::size_t before = 0, after = 0;
};

// A step reads a parameter or a buffer.
struct Reading {
  std::size_t step = 0, before = 0;  // as of Use
  double bytes = 0;
};

// What crosses a position between steps.
struct Crossed {
  std::vector<LocalTensorId> tensors;
  std::vector<double> forward, backward;  // bytes of each tensor; of those whose gradient comes back

  [[nodiscard]] double forward_bytes() const { return std::accumulate(forward.begin(), forward.end(), 0.0); }
  [[nodiscard]] double backward_bytes() const { return std::accumulate(backward.begin(), backward.end(), 0.0); }
};

// A program, whole, and where it was unfolded (plan/folding.h) what it was made of.
struct Program {
  std::shared_ptr<const Stage> whole;
  std::optional<Stage> folded = {};
  std::vector<std::size_t> like = {};  // by step: the first that runs the same; itself where it was not put in
  PricedRows rows = {};                // of what it was made of
};

class ProgramTable {
 public:
  // `alike`: one of the same whole program, whatever the nodes that ranks lie on, or null.
  ProgramTable(Program program, const Strategy& strategy, KernelPrices& kernels, const ProgramTable* alike = nullptr);
  ProgramTable(const ProgramTable&) = delete;
  ProgramTable& operator=(const ProgramTable&) = delete;

  [[nodiscard]] const Stage& program() const { return *whole_; }
  [[nodiscard]] const std::shared_ptr<const Stage>& shared_program() const { return whole_; }
  [[nodiscard]] const std::vector<std::size_t>& like() const { return like_; }
  [[nodiscard]] std::size_t steps() const { return whole_->steps.size(); }
  // `split`: backward is taken in two parts. Gradients are summed over all uses in the program.
  const std::vector<Row>& rows(bool split);
  [[nodiscard]] const std::vector<Parameter>& parameters() const { return facts_->parameters; }
  // Sets of axes, each ascending: along them ranks of one replica hold summands of a parameter's gradient.
  [[nodiscard]] const std::vector<std::vector<MeshAxis>>& summed_over() const { return facts_->summed_over; }
  [[nodiscard]] const std::vector<Use>& uses() const { return facts_->uses; }
  // Those of steps [begin, end) are uses() from uses_from(end) to uses_from(begin).
  [[nodiscard]] std::size_t uses_from(std::size_t end) const { return facts_->use_at[end]; }
  // Of these, the ones of parameters that several steps use.
  [[nodiscard]] const std::vector<std::size_t>& shared_uses() const { return facts_->shared_uses; }
  [[nodiscard]] const std::vector<Reading>& readings() const { return facts_->readings; }
  const Crossed& crossed(std::size_t position);
  [[nodiscard]] const Crossing& crossing() const { return facts_->crossing; }
  // The blocks of a stage of steps [begin, end), and what of it runs again.
  const std::vector<Segment>& blocks(std::size_t begin, std::size_t end);
  std::vector<Segment> recomputed(const RunsAgain& what, std::size_t begin, std::size_t end);
  [[nodiscard]] const MadeAgain& made_again() const { return facts_->made_again; }
  // Of what the steps [begin, end) are, what they want made again, and what crosses either end.
  std::uint64_t content(std::size_t begin, std::size_t end);
  KernelPrices& kernels() { return *kernels_; }
  double copy_seconds(std::int64_t elements, DType dtype);  // of as many in a row
  double sum_seconds(std::int64_t elements, DType dtype);   // of two as long

 private:
  [[nodiscard]] bool trained(const Segment& segment) const;  // does its backward do something?
  std::vector<Row> make_rows(bool split);
  void hide_exchanges(std::vector<Row>& rows) const;
  void find_parameters();
  void price_parameters();
  void find_readings();
  void hash_steps();

  std::shared_ptr<const Stage> whole_;
  std::optional<Stage> folded_;
  std::vector<std::size_t> like_;
  PricedRows folded_rows_;
  Strategy strategy_;
  KernelPrices* kernels_;
  PricedRows rows_;
  // What depends on the whole program alone:
  struct Facts {
    explicit Facts(const Stage& whole, const std::vector<std::size_t>& like)
        : crossing(whole), blocks(whole, like), made_again(whole) {}

    Crossing crossing;
    std::vector<std::optional<Crossed>> crossed;  // by position
    Blocks blocks;
    std::map<std::pair<std::size_t, std::size_t>, std::vector<Segment>> blocks_within;  // by a stage's begin and end
    MadeAgain made_again;
    std::vector<Parameter> parameters;
    std::vector<std::vector<MeshAxis>> summed_over;
    std::vector<Use> uses;
    std::vector<std::size_t> shared_uses;
    std::vector<std::size_t> use_at;  // by position: how many are of steps from it on
    std::vector<Reading> readings;
    std::vector<bool> trained;                  // by step: its backward does something
    std::map<std::pair<Recompute, std::vector<std::string>>, std::vector<Segment>> rows_again;  // of the program
    std::vector<std::uint64_t> hashes, powers;
  };
  std::shared_ptr<Facts> facts_;
};

}  // namespace sibyl::closed
