#include "oracle/cost/ring_overlap.h"

#include <algorithm>
#include <utility>

namespace sibyl {
namespace {

void hide(BesideAttention& beside, std::optional<CollectiveEstimate>& transfer, Seconds& hidden) {
  if (!transfer) return;
  const Seconds alone = transfer->time.time;
  transfer->time.time = beside.waited(alone);
  hidden = alone - transfer->time.time;
}

}  // namespace

std::vector<Ring> rings(const Stage& stage) {
  std::vector<Ring> all;
  std::vector<std::size_t> exchanges;  // on their way to the attention that reads them
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (exchange != nullptr && exchange->forward.motion == Motion::pass_round) exchanges.push_back(i);
    const auto* compute = std::get_if<Compute>(&stage.steps[i]);
    const auto* attention = compute ? std::get_if<Attention>(&compute->attributes) : nullptr;
    if (attention == nullptr || attention->ring == 1) continue;
    all.push_back({i, static_cast<int>(attention->ring), std::move(exchanges)});
    exchanges.clear();
  }
  return all;
}

BesideAttention::BesideAttention(Seconds kernel, int ranks, const Slowdown& slowdown)
    : left_(kernel * (static_cast<double>(ranks - 1) / ranks)), slowdown_(slowdown) {}

Seconds BesideAttention::waited(Seconds alone) {
  const auto [length, compute, communication] = slowdown_.beside(alone);
  const Seconds both = std::min(alone * communication, left_ * compute);  // side by side for so long
  left_ -= both / compute;
  return std::min(alone, both * (1 - 1 / compute) + alone - both / communication);
}

void hide_behind_attention(const Stage& stage, const Slowdown& slowdown, PricedStage& priced) {
  for (const Ring& ring : rings(stage)) {
    const StageKernels::OfStep& kernels = priced.kernels.steps[ring.attention];
    const auto time = [&](const std::optional<StageKernels::Index>& key) {
      return key ? priced.time(*key) : Seconds{};
    };
    BesideAttention forward(time(kernels.forward), ring.ranks, slowdown);
    BesideAttention backward(time(kernels.backward), ring.ranks, slowdown);
    for (const std::size_t exchange : ring.exchanges) {
      PricedExchange& own = priced.exchanges[exchange];
      hide(forward, own.forward, own.hidden_forward);
      hide(backward, own.backward, own.hidden_backward);
    }
  }
}

}  // namespace sibyl
