// The strategies that a search tries: every way of sharing a step among devices that the space allows.
//
// Batch, precision, optimizer and whatever else `fixed` says stay. Devices are shared out among the axes in every
// factorisation; each replica's batch is parted into micro-batches of every size allowed that divides it. Strategies
// that a model does not allow (more stages than layers, heads that cannot be divided) are among them: planning refuses
// those.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "oracle/strategy.h"

namespace sibyl {

struct Offload {
  Tier optimizer = Tier::device, activations = Tier::device, parameters = Tier::device;
  bool operator==(const Offload&) const = default;
};

struct SearchSpace {
  Strategy fixed;
  std::vector<int> devices;  // counts
  // That a replica may be split over; data has what is left.
  std::vector<MeshAxis> axes = {MeshAxis::tensor, MeshAxis::pipeline};
  bool data = true;
  bool sequence = true;  // tensor with the sequence split, beside tensor without
  // The same with its exchanges beside products, too (Strategy::overlap_tensor).
  bool overlaps_tensor = false;
  std::vector<std::int64_t> micro_batches = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};  // samples of a rank
  std::vector<int> zero = {0, 1, 2, 3};
  // State is shared out among neighbouring replicas, too, of every number that divides them (Strategy::zero_ranks).
  bool shards = false;
  // Of ZeRO 3 a block is gathered in backward while the one before it runs, and when it has run
  // (Strategy::gather_late). Else as `fixed` has it.
  bool gathers = false;
  // context: what ranks tell each other for attention. Empty: as `fixed` has it.
  std::vector<ContextExchange> context_exchanges = {};
  std::vector<Recompute> recompute = {Recompute::none, Recompute::selective, Recompute::full};
  std::vector<PipelineSchedule> schedules = {PipelineSchedule::one_forward_one_backward, PipelineSchedule::interleaved,
                                             PipelineSchedule::zero_bubble};
  // Stages of a device in interleaved schedules. Empty: 2, 4 and 8, and every number that shares `layers` out evenly.
  std::vector<int> chunks = {};
  int layers = 0;  // of the model, that repeat; search() knows
  // Beside the usual order of ranks (axes.h): a pipeline's stages nearer than replicas, and replicas nearest of all.
  bool orders = false;
  // Of gradients, where they are exchanged; 0: one message after backward. Empty: as `fixed` has it.
  std::vector<Bytes> buckets = {};
  // In which forms gradients travel. Empty: as `fixed` has it.
  std::vector<Compression> compressions = {};
  // Where ranks hold parts of gradients: of the last micro-batch alone, and of each (Strategy::reduce_each). Else as
  // `fixed` has it, where that can be chosen.
  bool reductions = false;
  // Where full recomputing is tried: also of so many blocks in a row the last alone.
  std::vector<int> recompute_every = {};
  // Also so many blocks in a row as if they were one, but where parameters are shared (ZeRO 3).
  std::vector<int> recompute_together = {};
  // What lies outside the device. Empty: as `fixed` has it. What a strategy does not allow is not tried with it.
  std::vector<Offload> offloads = {};
};
inline const std::vector<Bytes> usual_buckets = {Bytes{25.0 * 1024 * 1024}, Bytes{5.0 * 1024 * 1024},
                                                 Bytes{100.0 * 1024 * 1024}, Bytes{}};
inline const std::vector<Compression> usual_compressions = {{},
                                                            {Compression::Kind::bf16},
                                                            {Compression::Kind::one_bit},
                                                            {Compression::Kind::two_bit},
                                                            {Compression::Kind::top_k, 0.01}};
inline const std::vector<int> usual_recompute_every = {2, 3, 4}, usual_recompute_together = {2, 4};
inline const std::vector<Offload> usual_offloads = {{},
                                                    {Tier::host},
                                                    {Tier::device, Tier::host},
                                                    {Tier::host, Tier::host},
                                                    {Tier::host, Tier::device, Tier::host},
                                                    {Tier::host, Tier::host, Tier::host}};
inline const std::vector<Offload> offloads_to_storage = {{Tier::nvme},
                                                         {Tier::nvme, Tier::host},
                                                         {Tier::nvme, Tier::device, Tier::nvme},
                                                         {Tier::nvme, Tier::host, Tier::nvme}};

// Ascending in devices; otherwise from the simplest on: in an order that depends on the space alone.
std::vector<Strategy> strategies(const SearchSpace& space);

// "data,tensor,sequence,pipeline": which axes may be split. An unknown one is an Error of code usage.
Result<void> parse_axes(std::string_view text, SearchSpace& space);

// What may be tried in several ways that usually is not.
struct SearchVariation {
  std::string_view word, what;
  void (*vary)(SearchSpace& space);
};
std::span<const SearchVariation> search_variations();
// "order,schedule": words of these. An unknown one is an Error of code usage.
Result<void> parse_varied(std::string_view text, SearchSpace& space);

// The options of `sibyl predict` that tell the strategy from others of its space: "--parallel data=8,tensor=2 --zero
// 1".
std::string strategy_words(const Strategy& strategy);

// Fewer are simpler: ways of splitting first, then what else is asked of the trainer.
int complexity(const Strategy& strategy);

}  // namespace sibyl
