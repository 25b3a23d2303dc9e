#include "oracle/cost/ring_overlap.h"

#include <algorithm>
#include <vector>

namespace sibyl {
namespace {

// Kernels that messages may go on beside, and what these leave of them.
class Beside {
 public:
  Beside(Seconds kernels, int ranks, const Slowdown& slowdown)
      : left_(kernels * (static_cast<double>(ranks - 1) / ranks)), slowdown_(slowdown) {}

  void hide(std::optional<CollectiveEstimate>& transfer, Seconds& hidden) {
    if (!transfer) return;
    const Seconds alone = transfer->time.time;
    const auto [length, compute, communication] = slowdown_.beside(alone);
    const Seconds both = std::min(alone * communication, left_ * compute);  // side by side for so long
    const Seconds waited = std::min(alone, both * (1 - 1 / compute) + alone - both / communication);
    left_ -= both / compute;
    hidden = alone - waited;
    transfer->time.time = waited;
  }

 private:
  Seconds left_;
  const Slowdown& slowdown_;
};

}  // namespace

void hide_behind_attention(const Stage& stage, const Slowdown& slowdown, PricedStage& priced) {
  std::vector<std::size_t> rounds;  // exchanges on their way to the attention that reads them
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (exchange != nullptr && exchange->forward.motion == Motion::pass_round) rounds.push_back(i);
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    const auto* attention = compute ? std::get_if<Attention>(&compute->attributes) : nullptr;
    if (attention == nullptr || attention->ring == 1) continue;
    const StageKernels::OfStep& kernels = priced.kernels.steps[i];
    const auto time = [&](const std::optional<StageKernels::Index>& key) {
      return key ? priced.time(*key) : Seconds{};
    };
    const int ranks = static_cast<int>(attention->ring);
    Beside forward(time(kernels.forward), ranks, slowdown), backward(time(kernels.backward), ranks, slowdown);
    for (const std::size_t round : rounds) {
      PricedExchange& own = priced.exchanges[round];
      forward.hide(own.forward, own.hidden_forward);
      backward.hide(own.backward, own.hidden_backward);
    }
    rounds.clear();
  }
}

}  // namespace sibyl
