#include "oracle/simulate/offload.h"

#include <algorithm>

#include "oracle/simulate/streams.h"

namespace sibyl {

OffloadedUpdates offloaded_updates(const Stage& stage, const PricedStage& priced, const Relief& relief) {
  std::vector<Task> tasks(stage.blocks.size());
  Seconds busy;
  for (std::size_t u = 0; u < priced.kernels.updates.size(); ++u) {
    const StageKernels::Index key = priced.kernels.updates[u];
    const bool arithmetic = priced.prices[key].bound == Bound::compute;
    const Seconds time = priced.time(key) * (arithmetic ? relief.compute_bound : relief.memory_bound);
    tasks[priced.kernels.updated_blocks[u]].duration += time;
    busy += time;
  }
  std::vector<Message> copies;
  for (std::size_t i = 0; i < stage.copies.size(); ++i) {
    const OffloadCopy& copy = stage.copies[i];
    const std::size_t after = copy.after == 0 ? Message::at_once : copy.after - 1;
    copies.push_back({priced.copies[i].estimate.time * relief.offload, after});
    if (copy.way == OffloadCopy::Way::in) tasks[copy.block].copies = i + 1;
  }
  StreamsResult run = run_streams(tasks, {}, {.copies = priced.beside_copies}, copies);
  OffloadedUpdates result{std::move(run.tasks), std::move(run.copies), std::max(run.compute_end, run.copy_end), {}};
  result.waited = result.end - busy;
  return result;
}

}  // namespace sibyl
