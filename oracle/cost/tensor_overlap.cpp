#include "oracle/cost/tensor_overlap.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sibyl {
namespace {

bool is_product(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  return compute != nullptr && std::holds_alternative<Linear>(compute->attributes);
}

void hide(std::optional<CollectiveEstimate>& transfer, Seconds most, Seconds& hidden) {
  if (!transfer) return;
  hidden = std::min(transfer->time.time, most);
  transfer->time.time -= hidden;
}

}  // namespace

// What is gathered feeds products; what is scattered comes from one.
std::vector<BesideProducts> beside_products(const Mesh& mesh, const Stage& stage,
                                            const std::function<KernelTimes(std::size_t step)>& times) {
  std::vector<std::size_t> maker(stage.tensors.size(), stage.steps.size());  // step, by tensor
  std::vector<std::vector<std::size_t>> readers(stage.tensors.size());       // steps, likewise
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    for (const LocalTensorId out : outputs_of(stage.steps[i])) maker[out.index()] = i;
    for (const LocalTensorId in : inputs_of(stage.steps[i]))
      if (in.valid()) readers[in.index()].push_back(i);
  }
  std::vector<BesideProducts> all;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (exchange == nullptr || exchange->axis != MeshAxis::tensor) continue;
    const double parts = mesh.size(exchange->axis), share = (parts - 1) / parts;
    BesideProducts own{i, {}};
    const auto add = [&](std::size_t step) {
      if (step >= stage.steps.size() || !is_product(stage.steps[step])) return;
      const KernelTimes product = times(step);
      own.products.push_back({step, product.forward * share, product.backward * share});
    };
    if (exchange->forward.motion == Motion::all_gather) std::ranges::for_each(readers[exchange->output.index()], add);
    if (exchange->forward.motion == Motion::reduce_scatter) add(maker[exchange->input.index()]);
    if (!own.products.empty()) all.push_back(std::move(own));
  }
  return all;
}

void hide_behind_products(const Plan& plan, const Stage& stage, PricedStage& priced) {
  const auto times = [&](std::size_t step) {
    const StageKernels::OfStep& kernels = priced.kernels.steps[step];
    const auto time = [&](const std::optional<StageKernels::Index>& key) {
      return key ? priced.time(*key) : Seconds{};
    };
    return KernelTimes{time(kernels.forward), time(kernels.backward) + time(kernels.backward_weight)};
  };
  for (const BesideProducts& beside : beside_products(plan.mesh, stage, times)) {
    Seconds forward, backward;
    for (const BesideProducts::Product& product : beside.products)
      forward += product.forward, backward += product.backward;
    PricedExchange& own = priced.exchanges[beside.exchange];
    hide(own.forward, forward, own.hidden_forward);
    hide(own.backward, backward, own.hidden_backward);
  }
}

}  // namespace sibyl
