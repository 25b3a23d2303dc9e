// The Plan: what every rank does in one training step. The simulator prices it and the trainer executes it; neither knows
// a strategy by name.
//
// A Plan has one Stage per pipeline stage; all ranks of a stage run the same program on tensors of the same local shapes,
// so a Stage describes each of them. Stage i lies on pipeline coordinate i modulo their number. `steps` is the forward
// program of one micro-batch; backward runs it in reverse, each Compute with its gradient mask and each Exchange with its
// backward collective. What a stage needs of the one before it, it receives; what the next one needs, it sends.
// `gradients` says what is exchanged once gradients are complete; `updates` what the optimizer then does. `schedule` is
// the order in which a coordinate's ranks take the passes of their stages over the micro-batches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "models/graph.h"
#include "models/training/training.h"
#include "netmodel/network.h"
#include "oracle/plan/bytes_sent.h"
#include "oracle/plan/sharding/conversion.h"
#include "oracle/plan/sharding/layout.h"
#include "oracle/strategy.h"

namespace sibyl {

// The device mesh: axes from the fastest-varying rank digit to the slowest. A group of an axis is the ranks that differ
// in that digit alone.
struct Mesh {
  struct Extent {
    MeshAxis axis = MeshAxis::data;
    int size = 1;
    bool operator==(const Extent&) const = default;
  };
  std::vector<Extent> extents;

  [[nodiscard]] int size() const;
  [[nodiscard]] int size(MeshAxis axis) const;    // 1 where the mesh does not have it
  [[nodiscard]] int stride(MeshAxis axis) const;  // distance between neighbouring ranks of a group
  [[nodiscard]] int coordinate(int rank, MeshAxis axis) const;
  [[nodiscard]] std::vector<int> group(int rank, MeshAxis axis) const;  // the ranks of its group, in order
  // The ranks that differ in these digits alone, in order.
  [[nodiscard]] std::vector<int> group(int rank, std::span<const MeshAxis> axes) const;
};

Mesh mesh_of(const Strategy& strategy);

// How the groups of an axis, or of several at once, lie on nodes of `devices_per_node`: where they do not lie alike as
// the one with the most nodes does.
GroupPlacement placement(const Mesh& mesh, MeshAxis axis, int devices_per_node);
GroupPlacement placement(const Mesh& mesh, std::span<const MeshAxis> axes, int devices_per_node);
// The same of one group, given its ranks in order.
GroupPlacement placement(const Mesh& mesh, const std::vector<int>& group, int devices_per_node);

using LocalTensorId = Id<struct LocalTensorTag>;

// Of a tensor's dimension the ranks of an axis hold a part each. Parts of parts come in the order of the list.
struct PartOf {
  MeshAxis axis = MeshAxis::tensor;
  Layout layout;
  bool operator==(const PartOf&) const = default;
};

// A tensor as one rank holds it.
struct LocalTensor {
  TensorId origin;  // the Graph's tensor this is (a part of)
  Shape shape;
  DType dtype = DType::f32;
  TensorKind kind = TensorKind::activation;
  bool requires_gradient = false;
  std::vector<PartOf> cuts = {};
  // Of a parameter: axes whose ranks each make a summand of its gradient, beside data.
  std::vector<MeshAxis> summed_over = {};
  std::optional<std::size_t> samples = {};  // of an input: the dimension along which samples lie
  // Of a parameter: what its gradients are summed, sent and kept in, where that is not its own type.
  std::optional<DType> summed_in = {};
  [[nodiscard]] DType gradient_type() const { return summed_in.value_or(dtype); }
};

// Runs one operation of the Graph on local operands. `attributes` are the local ones.
struct Compute {
  OperationId operation;
  Attributes attributes;
  std::vector<LocalTensorId> inputs;  // an absent optional operand is an invalid id
  std::vector<LocalTensorId> outputs;
  DType dtype = DType::f32;
  std::uint32_t gradients = 0;  // mask of inputs whose gradient backward computes; 0 = no backward
  bool fused = false;           // another operation's kernel does this, too
  bool strided = false;         // on a GPU those around take it in any order of axes (plan/strided.h): nothing moves
  // What is priced in place of its own kernels where operations are fused (plan/image_kernels.h, plan/pointwise.h): a
  // copy that reads and writes so many bytes. 0: of what is fused, nothing; of others, their own kernels.
  struct Moved {
    double forward = 0, backward = 0;
    bool operator==(const Moved&) const = default;
  };
  Moved moved = {};
  // Where operations are fused: what their rules keep for backward and the kernel makes again instead (operands by
  // bit, or the result), and operands that are kept for that.
  struct Kept {
    std::uint32_t not_inputs = 0, also_inputs = 0;
    bool not_output = false;
    bool operator==(const Kept&) const = default;
  };
  Kept kept = {};
};

// Between operations, what a tensor is changed from one layout to another by, forward, and its gradient backward.
struct Exchange {
  MeshAxis axis = MeshAxis::tensor;
  LocalTensorId input, output;
  Transfer forward, backward;
  double filled =
      1.0;  // of all-to-alls: below 1 this share alone is sent, and one rank gets its own whole (dropless.h)
};

using Step = std::variant<Compute, Exchange>;

// Of the step itself: good as long as it. An absent operand is an invalid id.
std::span<const LocalTensorId> inputs_of(const Step& step);
std::span<const LocalTensorId> outputs_of(const Step& step);
Attributes attributes_of(const Step& step);  // of a Compute; else those of a copy

// Gradients that are exchanged in one message. Ready when backward has produced all of them.
struct Bucket {
  std::vector<LocalTensorId> parameters;  // in the order they lie in the buffer
  std::int64_t elements = 0;
  DType dtype = DType::f32;                  // the parameters'
  DType summed = DType::f32;                 // their gradients' (LocalTensor::gradient_type)
  [[nodiscard]] std::int64_t bytes() const;  // of gradients
  [[nodiscard]] std::int64_t parameter_bytes() const;
};

struct GradientSync {
  std::vector<MeshAxis> axes = {MeshAxis::data};  // the group's; the mean is taken over data, the sum over the others
  bool overlapped = true;             // while backward goes on; else after it
  std::vector<int> stages = {};       // of a parameter that several stages hold: these, summed over; else its own alone
  // More than one: each rank of the group keeps its part of every bucket's sum alone (Communicator::part), updates that
  // part of the parameters, and all ranks' parts are gathered: after the update, or by a ParameterUnit before use. Both lists of
  // buckets are one.
  int parts = 1;
  // Where the group is more ranks than parts: as many shares of `parts` neighbouring ranks hold all parts each, and a part's
  // sum is then summed over those who hold the same.
  int copies = 1;
  int buffers = 0;  // of the largest bucket's size, which serve all buckets in turn; 0: each has its own
  Compression compression = {};       // of every bucket (plan/compression.h)
  int senders = 1;                    // where they are compressed: the ranks whose gradients are summed
  std::vector<Bucket> first_buckets;  // of the first step, before arrival order is known
  std::vector<Bucket> buckets;        // of every later step, in the order they are sent

  [[nodiscard]] bool sharded() const { return parts > 1; }
};

struct Update {
  LocalTensorId parameter;
  OptimizerUpdate optimizer;
};

// A tensor between a stage and its neighbour: forward it comes or goes once in each micro-batch, and where `gradient`
// its gradient takes the way back.
struct Link {
  int peer = 0;  // the other stage
  LocalTensorId tensor;
  bool gradient = false;
};

// Before updates, gradients are scaled so that their norm over all parameters is at most `limit`. Ranks that differ along
// `axes` hold other gradients: their squares are summed. A gradient that all ranks of an axis hold counts once, and one that
// several stages hold by the first of them.
struct ClipNorm {
  double limit = 0;
  std::vector<MeshAxis> axes;
  bool sends = true;  // of the stages of one rank one sums for all of them
};

// Steps [begin, end) whose results are not kept: what they read is, and before their backward they run again.
struct Segment {
  std::size_t begin = 0, end = 0;
  bool operator==(const Segment&) const = default;
};

// Steps [begin, end) that read the parameters of one bucket of a sharded sync, which a rank holds its part of alone.
// They are gathered before the first of the steps and given up after the last, forward and backward. Gathering begins
// `ahead` units before, backward `ahead_backward`; 0: when the unit behind it has run, before its gradients are sent.
struct ParameterUnit {
  std::size_t begin = 0, end = 0;
  std::size_t sync = 0, bucket = 0;
  int ahead = 1, ahead_backward = 1;
};

// What lies outside the device and comes and goes together for an update: the state of whole parameters, and of the
// rank's parts of sharded buckets, and these parts themselves.
struct StateBlock {
  struct Part {
    std::size_t sync = 0, bucket = 0;
    bool operator==(const Part&) const = default;
  };
  std::vector<LocalTensorId> parameters;
  std::vector<Part> parts;
};

// A copy of a block between the device and where the block lies, on a stream of the device's own, which takes copies
// one after the other. It may begin when so many blocks have been updated; a block's update waits until it is in.
struct OffloadCopy {
  enum class Way { in, out } way = Way::in;  // to the device; from it
  std::size_t block = 0;
  std::size_t after = 0;
  bool operator==(const OffloadCopy&) const = default;
};

// One entry of a schedule: a pass of a stage over a micro-batch. A backward pass may come in two parts: the gradients of
// what was received, for which the stage before waits, and later those of the parameters.
struct Turn {
  enum class Kind { forward, backward, backward_input, backward_weight } kind = Kind::forward;
  int micro_batch = 0;
  int stage = 0;
  bool operator==(const Turn&) const = default;
};

struct Stage {
  OperationId first;  // the operation it begins with; of a pipeline's stages alone
  std::vector<LocalTensor> tensors;
  std::vector<Step> steps;
  std::vector<GradientSync> gradients;
  bool scaled = false;  // the loss is multiplied, so that f16 holds its gradients, and these divided again
  bool masters = false;  // parameters of two bytes have f32 ones beside them
  bool in_buckets = false;  // gradients are made in their buckets, and updates read them there (regathered.h)
  bool reduces_each = false;  // all of `gradients` in every micro-batch, parts being added up; else after the last
  std::vector<std::int64_t> buffer_broadcasts;  // bytes of messages from the first replica to all, once a step; waited for
  std::optional<ClipNorm> clip;
  // Optimizers that take norms of whole tensors (LAMB, LARS): the ranks along these axes hold other parts of them.
  std::vector<MeshAxis> norm_axes;
  std::vector<Update> updates;
  // Of state, and of a rank's parts of units, that lie elsewhere: blocks in the order of their updates, and copies in
  // that of their stream. Empty: it is here.
  Tier state_tier = Tier::device, parameter_tier = Tier::device;
  std::vector<StateBlock> blocks;
  std::vector<OffloadCopy> copies;
  std::vector<Link> receives, sends;  // activations that no step makes; ones that the next stage wants. In one order
  std::vector<Turn> schedule;         // its own turns out of the Plan's
  std::vector<Segment> recomputed;    // ascending
  // Of what each of them reads and keeps, what lies elsewhere from its forward to its backward; parallel. Empty:
  // nothing does.
  Tier kept_tier = Tier::device;
  std::vector<std::vector<LocalTensorId>> kept_outside;
  std::vector<ParameterUnit> units;            // in order of `begin`

  [[nodiscard]] int micro_batches() const;
  [[nodiscard]] const LocalTensor& operator[](LocalTensorId id) const { return tensors[id.index()]; }
};

struct Plan {
  Strategy strategy;
  Mesh mesh;
  std::int64_t micro_batch = 1;  // samples per rank and micro-batch
  std::vector<Stage> stages;
  std::vector<std::vector<Turn>> schedule;  // by pipeline coordinate
};

// What the kernel of an operation's backward works in.
using WorkspaceOf = std::function<Bytes(const Signature&, std::uint32_t gradients)>;

// By what a model is cut into pipeline stages. `time`: of a step's passes, in any unit, FLOPs unless given; `link`: of
// sending so many bytes to the next stage, both ways together, in the same unit; `memory`: of one device, 0 for no limit;
// `backend`: by which it is known what is kept for backward; `workspace`: beside that, none unless given.
struct CutCosts {
  std::function<double(const Stage&, const Step&)> time = {};
  std::function<double(Bytes)> link = {};
  Bytes memory = {};
  Backend backend = Backend::cpu;
  WorkspaceOf workspace = {};
  // Before which steps the stages after the first begin, where somebody has found that out already.
  std::optional<std::vector<std::size_t>> begins = {};
};

// What can be said before anything is planned: the batch can be divided so, and the framework trains so.
Result<void> check_strategy(const Graph& graph, const Strategy& strategy);
// Fails with code infeasible (and the nearest feasible setting as hint) where the model cannot be split so.
Result<Plan> make_plan(const Graph& graph, const Strategy& strategy, const CutCosts& costs = {});

// The same in two steps. The first is what every rank of a replica runs on a micro-batch before it is cut into stages: the
// most work, and strategies have it in common whose program_key() is one.
Result<Stage> make_program(const Graph& graph, const Strategy& strategy);
Result<Plan> make_plan(const Graph& graph, const Strategy& strategy, Stage program, const CutCosts& costs = {});
using ProgramKey = std::tuple<std::int64_t, std::vector<int>, bool, ContextExchange, std::string, Precision, bool, bool,
                              bool, bool, bool, bool, bool, int>;
ProgramKey program_key(const Strategy& strategy);

// The operations that begin the stages after the first, as --stages takes them.
std::vector<std::string> stage_starts(const Graph& graph, const Plan& plan);

// The ranks between which `rank`, of one of the stages that take part, exchanges gradients.
std::vector<int> sync_group(const Mesh& mesh, const GradientSync& sync, int rank);
// Of these, those that hold all parts with `rank`, and those that hold the same part as `rank` does: all of them and itself
// alone where there is one copy.
std::vector<int> shard_group(const Mesh& mesh, const GradientSync& sync, int rank);
std::vector<int> copies_group(const Mesh& mesh, const GradientSync& sync, int rank);

// By step: the gradients that a backward_weight turn computes, as a mask like Compute::gradients: those of the weights
// of linear layers, of experts' too, and of convolutions, and of whatever is made of weights alone. Everything else is
// of backward_input turns.
std::vector<std::uint32_t> later_gradients(const Stage& stage);
// Is the stage's backward taken in two parts?
bool splits_backward(const Stage& stage);

// Calls visit(operand) for every operand to which this step's backward hands a gradient.
void each_gradient(const Stage& stage, const Step& step, auto&& visit) {
  if (const auto* exchange = std::get_if<Exchange>(&step)) {
    if (stage[exchange->input].requires_gradient) visit(exchange->input);
    return;
  }
  const auto& compute = std::get<Compute>(step);
  for (std::size_t i = 0; i < compute.inputs.size(); ++i)
    if (compute.gradients >> i & 1U) visit(compute.inputs[i]);
}

// The signature of a Compute step, for pricing and for measuring.
Signature signature(const Stage& stage, const Compute& compute);
// What training does with it: training_rule(), and of what is fused what its kernel keeps.
TrainingRule rule_of(const Stage& stage, const Compute& compute, Backend backend);
// The gradient of that operand is the memory of the result's, too (gradient_aliasing.h).
bool passes_gradient(const Stage& stage, const Compute& compute, std::size_t operand, Backend backend);

// Order in which backward finishes parameters' gradients: reverse forward order.
std::vector<LocalTensorId> gradient_order(const Stage& stage);

// The collective that carries a motion; none where nothing is sent.
std::optional<Collective> collective_of(Motion motion);

// Bytes that `rank` sends for one exchange on one micro-batch, and in one whole step (not the first), exactly.
std::int64_t bytes_sent(const Plan& plan, const Stage& stage, const Exchange& exchange, int rank, Pass pass,
                        Algorithm algorithm);
// What one rank sends to its neighbours in the pipeline for one pass of one micro-batch.
std::int64_t link_bytes(const Stage& stage, Pass pass);
// What a rank sends in one step, by kind and in all.
BytesSent bytes_by_kind(const Plan& plan, int rank, Algorithm algorithm);
std::int64_t bytes_sent_per_step(const Plan& plan, int rank, Algorithm algorithm);
// What a rank copies to its device from where it lies outside, and back, in one step.
OffloadedBytes bytes_offloaded(const Plan& plan, int rank);

}  // namespace sibyl
