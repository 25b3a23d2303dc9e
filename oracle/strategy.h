// A Strategy is what a user says about how to train: how many devices, which batch, how the model is split, in which
// precision, with which optimizer. It names no layer and no rank; plan() turns it into a Plan for one model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "models/dtype.h"
#include "models/operations/operations.h"
#include "oracle/axis_list.h"
#include "profiler/attention_library.h"

namespace sibyl {

// fp8: linear layers in f8e4m3, all else in bf16 (Transformer Engine).
enum class Precision { fp32, tf32, fp16, bf16, fp8 };

// How gradients are exchanged between replicas.
enum class GradientExchange {
  overlapped,  // PyTorch DDP: buckets, all-reduced while backward goes on
  at_end,      // one message after backward
};

// In what form gradients travel between the ranks that sum them (plan/compression.h).
struct Compression {
  enum class Kind { none, fp16, bf16, one_bit, two_bit, top_k } kind = Kind::none;
  double share = 1;  // top_k: of a bucket's values, the greatest that are sent; above 0, at most 1

  bool operator==(const Compression&) const = default;
};

// Which results are not kept for backward but computed again before it.
enum class Recompute {
  none,
  selective,   // attention's core: scores, softmax, dropout (Korthikanti et al., 2022)
  full,        // blocks: only what they read is kept (Chen et al., 2016)
  operations,  // those of some kinds
};

// Whose training it is: what is done beside the passes, and by which library (plan/framework.h).
enum class Framework { sibyl, pytorch_ddp };
std::string_view to_string(Framework framework);
Result<Framework> parse_framework(std::string_view text);
// Over which samples batch-norm takes its statistics.
enum class BatchNorm {
  replica,       // a rank's own: of a replica, and of a split image its own part
  synchronised,  // all of the micro-batch, over replicas and over all of an image
};

// Where samples lie when a step wants them.
enum class DataSource { memory, storage };

// Where lies what a step does not use at the moment.
enum class Tier { device, host, nvme };
std::string_view to_string(Tier tier);

// The axes along which devices share the work of a step (axis_list.h), as MeshAxis::tensor.
enum class MeshAxis {
#define SIBYL_ENUMERATOR(name, ...) name,
  SIBYL_AXES(SIBYL_ENUMERATOR)
#undef SIBYL_ENUMERATOR
};
std::string_view to_string(MeshAxis axis);

// The order of a pipeline's passes (plan/pipeline/schedules.h).
enum class PipelineSchedule { gpipe, one_forward_one_backward, interleaved, zero_bubble };

// What ranks of the context axis give each other around attention: their tokens of the others' heads, or their keys and
// values, before it or, in a ring, while it computes (plan/sharding/rules/heads.cpp). automatic: heads where they can
// be shared evenly, else keys.
enum class ContextExchange { automatic, heads, keys, ring };
std::string_view to_string(ContextExchange exchange);
Result<ContextExchange> parse_context_exchange(std::string_view text);

// Of a step: each is planned by itself.
inline constexpr std::int64_t most_micro_batches = 1 << 20;

struct Strategy {
  // Devices along each axis, as `int tensor = 1`. data: replicas. pipeline: devices among which the model's stages are
  // dealt out. What one replica is split over: tensor, weights by columns and rows in turn; filter, channel, by one of
  // the two; depth, height, width, images; context, the tokens of a sequence, throughout the model; expert, ranks that
  // each have their own samples of a replica's, and among which experts are dealt out; table, the same with what is
  // looked up in: of each table a rank has some columns.
#define SIBYL_DEGREE(name, ...) int name = 1;
  SIBYL_AXES(SIBYL_DEGREE)
#undef SIBYL_DEGREE
  std::vector<MeshAxis> order =
      {};  // from the axis along which neighbouring ranks lie to the farthest; others follow as usual
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  int chunks = 1;                  // stages of each of them; interleaved: at least 2
  std::vector<std::string> stage_starts = {};  // operations that begin the stages after the first; empty: balanced
  bool sequence = false;           // tensor: what lies between weights is split along the sequence
  bool overlap_tensor = false;     // and exchanged beside the products (cost/tensor_overlap.h)
  // filter, channel, images: the last operation that is split, as --stages takes names; empty: they go as far as they
  // can.
  std::string split_until = {};
  ContextExchange context_exchange = ContextExchange::automatic;
  bool dropless = false;           // expert: empty slots are not sent (plan/dropless.h)
  // tensor: experts are dealt out over its ranks, too, and none is cut (Megatron-Core's expert tensor parallelism of
  // 1).
  bool whole_experts = false;
  std::int64_t global_batch = 1;   // samples of one step over all replicas
  std::int64_t accumulation = 1;   // micro-batches whose gradients are summed before the exchange
  Precision precision = Precision::fp32;
  // fp16, bf16, fp8: parameters are held in two bytes, and everything but losses runs in them, beside f32 masters that the
  // optimizer updates (Megatron-LM, DeepSpeed, apex O2); else torch.autocast's way. The trainer does not run it.
  bool half_weights = false;
  // Of those, gradients are summed, over micro-batches and ranks, and kept in four bytes (Megatron-LM's
  // accumulate_allreduce_grads_in_fp32, which bf16 turns on; FSDP's reduce_dtype).
  bool fp32_gradients = false;
  OptimizerKind optimizer = OptimizerKind::sgd;
  bool fused_update = false;  // on GPUs by one kernel (OptimizerUpdate::fused); else as torch.optim does
  bool written_update = false;  // or by a kernel for each operator of its formula (OptimizerUpdate::written)
  int zero = 0;  // of what replicas need not all hold each keeps its part: 1 optimizer state, 2 gradients, 3 parameters
  int zero_ranks = 0;  // neighbouring replicas that hold all parts together, and further ones again; 0: all replicas do
  // zero 2, 3: every micro-batch's gradients are reduced at once, and ranks add up their parts of the sums (FSDP but
  // for no_sync, DeepSpeed); else they are summed whole, and reduced after the last.
  bool reduce_each = false;
  // zero 3, backward: a unit is gathered when the one before it has run (PyTorch's BACKWARD_POST), not while it runs.
  bool gather_late = false;
  Tier optimizer_tier = Tier::device;   // of the optimizer's state (plan/offload.h)
  Tier parameter_tier = Tier::device;   // of those that replicas share (plan/offload_parameters.h)
  Tier activation_tier = Tier::device;  // of what blocks that run again keep (plan/offload_activations.h)
  Recompute recompute = Recompute::none;
  int recompute_every = 1;     // full: of so many blocks in a row the last one; the others are kept
  int recompute_together = 1;  // full: so many blocks in a row as if they were one
  std::vector<std::string> recompute_kinds = {};  // operations: as name_of() has them, or a unary's own ("gelu")
  double clip = 0;                 // the norm that all gradients together are scaled down to; 0: they are not
  BatchNorm batch_norm = BatchNorm::replica;
  // What a library of kernels makes of images (plan/image_kernels.h).
  bool fused_norms = false;       // the kernel of a batch-norm adds the shortcut and takes the ReLU behind it
  bool fused_pointwise = false;   // elementwise operations in a row are one kernel (plan/pointwise.h)
  bool converted_images = false;  // images lie channels first; tensor cores are given copies with channels last
  bool converted_norms = false;   // images lie channels last; batch-norms are given copies with channels first
  AttentionLibrary attention = AttentionLibrary::flash2;  // whose kernels fused attention runs, where the device knows
  GradientExchange exchange = GradientExchange::overlapped;
  Bytes bucket{25.0 * 1024 * 1024};
  Bytes first_bucket{1024.0 * 1024};
  Compression compression = {};
  DataSource data_source = DataSource::memory;
  Framework framework = Framework::sibyl;

  [[nodiscard]] int degree(MeshAxis axis) const;
  [[nodiscard]] int devices() const { return data * devices_per_replica(); }
  [[nodiscard]] int devices_per_replica() const;
  [[nodiscard]] int samplers() const;  // ranks of one replica that each have samples of their own
  [[nodiscard]] int stages() const { return pipeline * chunks; }
  [[nodiscard]] bool offloads_to(Tier tier) const {
    return optimizer_tier == tier || parameter_tier == tier || activation_tier == tier;
  }
  // Does the size of buckets count: of gradients, or of what is fetched in blocks as large?
  [[nodiscard]] bool has_buckets() const {
    return exchange == GradientExchange::overlapped || zero == 3 || optimizer_tier != Tier::device ||
           parameter_tier != Tier::device;
  }
  [[nodiscard]] bool reduces_each() const { return reduce_each && accumulation > 1; }
  [[nodiscard]] bool offloads() const { return offloads_to(Tier::host) || offloads_to(Tier::nvme); }
};

inline OptimizerUpdate update_of(const Strategy& s) { return {s.optimizer, false, s.fused_update, s.written_update}; }
// Are keys and values passed on in a ring while attention computes?
inline bool goes_round(const Strategy& s) { return s.context > 1 && s.context_exchange == ContextExchange::ring; }
DType compute_type(Precision precision);
std::string_view to_string(Precision precision);
Result<Precision> parse_precision(std::string_view text);
// "none", "selective", "full", "every:K", "groups:K", "softmax,gelu": what runs again.
std::string recompute_text(const Strategy& strategy);
Result<void> parse_recompute(std::string_view text, Strategy& strategy);
std::string_view to_string(BatchNorm batch_norm);
Result<BatchNorm> parse_batch_norm(std::string_view text);
std::string_view to_string(OptimizerKind kind);
Result<OptimizerKind> parse_optimizer(std::string_view text);
// "2", "3:8": what is held by parts, and among how many replicas.
std::string zero_text(const Strategy& strategy);
Result<void> parse_zero(std::string_view text, Strategy& strategy);
// "optimizer", "optimizer:nvme,activations": what lies outside the device, in host memory unless a tier is named.
// Empty: nothing does.
std::string offload_text(const Strategy& strategy);
Result<void> parse_offload(std::string_view text, Strategy& strategy);
// "none", "fp16", "bf16", "1bit", "2bit", "topk:0.01": the form that gradients travel in.
std::string compression_text(const Compression& compression);
Result<Compression> parse_compression(std::string_view text);
// "gpipe", "1f1b", "interleaved:2", "zero-bubble": schedule and chunks.
std::string schedule_text(const Strategy& strategy);
Result<void> parse_schedule(std::string_view text, Strategy& strategy);
// "data=8,spatial=2x2" into the strategy's degrees; an unknown axis or a degree below 1 is an Error of code usage.
// spatial is HxW, or DxHxW; sequence=N is tensor=N with the sequence split.
Result<void> parse_parallel(std::string_view text, Strategy& strategy);
std::string parallel_text(const Strategy& strategy);  // "data=8", "data=2,tensor=4"
// Every axis, from the one along which neighbouring ranks lie: those of strategy.order, then the others as is usual:
// axis_list.h.
std::vector<MeshAxis> rank_order(const Strategy& strategy);
// "data,tensor" into strategy.order; sequence means tensor, spatial the three of images. An unknown axis, or one named twice, is
// an Error of code usage.
Result<void> parse_order(std::string_view text, Strategy& strategy);
std::string order_text(const Strategy& strategy);  // the split axes in their order; empty where it is the usual one

}  // namespace sibyl
