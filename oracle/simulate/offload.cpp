#include "oracle/simulate/offload.h"

#include <algorithm>

#include "oracle/simulate/streams.h"

namespace sibyl {

OffloadedUpdates updated_in_blocks(std::span<const Seconds> updates, std::span<const OffloadCopy> copies,
                                   std::span<const Seconds> taken, double beside_copies) {
  std::vector<Task> tasks(updates.size());
  Seconds busy;
  for (std::size_t b = 0; b < updates.size(); ++b) busy += tasks[b].duration = updates[b];
  std::vector<Message> moved;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    moved.push_back({taken[i], copies[i].after == 0 ? Message::at_once : copies[i].after - 1});
    if (copies[i].way == OffloadCopy::Way::in) tasks[copies[i].block].copies = i + 1;
  }
  StreamsResult run = run_streams(tasks, {}, {.copies = beside_copies}, moved);
  OffloadedUpdates result{std::move(run.tasks), std::move(run.copies), std::max(run.compute_end, run.copy_end), {}};
  result.waited = result.end - busy;
  return result;
}

OffloadedUpdates offloaded_updates(const Stage& stage, const PricedStage& priced, const Relief& relief) {
  std::vector<Seconds> updates(stage.blocks.size());
  for (std::size_t u = 0; u < priced.kernels.updates.size(); ++u) {
    const StageKernels::Index key = priced.kernels.updates[u];
    const bool arithmetic = priced.prices[key].bound == Bound::compute;
    updates[priced.kernels.updated_blocks[u]] +=
        priced.time(key) * (arithmetic ? relief.compute_bound : relief.memory_bound);
  }
  std::vector<Seconds> taken;
  for (const PricedCopy& copy : priced.copies) taken.push_back(copy.estimate.time * relief.offload);
  return updated_in_blocks(updates, stage.copies, taken, priced.beside_copies);
}

}  // namespace sibyl
