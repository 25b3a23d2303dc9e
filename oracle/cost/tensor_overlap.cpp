#include "oracle/cost/tensor_overlap.h"

#include <algorithm>
#include <vector>

namespace sibyl {
namespace {

bool is_product(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  return compute != nullptr && std::holds_alternative<Linear>(compute->attributes);
}

struct Products {
  Seconds forward, backward;
};

class Hider {
 public:
  Hider(const Plan& plan, const Stage& stage, PricedStage& priced) : plan_(plan), stage_(stage), priced_(priced) {
    makers_.assign(stage.tensors.size(), stage.steps.size());
    readers_.resize(stage.tensors.size());
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      for (const LocalTensorId out : outputs_of(stage.steps[i])) makers_[out.index()] = i;
      for (const LocalTensorId in : inputs_of(stage.steps[i]))
        if (in.valid()) readers_[in.index()].push_back(i);
    }
  }

  void run() {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&stage_.steps[i]);
      if (exchange == nullptr || exchange->axis != MeshAxis::tensor) continue;
      const double parts = plan_.mesh.size(exchange->axis), share = (parts - 1) / parts;
      const Products beside = products_of(*exchange);
      PricedExchange& own = priced_.exchanges[i];
      hide(own.forward, beside.forward * share, own.hidden_forward);
      hide(own.backward, beside.backward * share, own.hidden_backward);
    }
  }

 private:
  // What is gathered feeds products; what is scattered comes from one.
  [[nodiscard]] Products products_of(const Exchange& exchange) const {
    Products all;
    const auto add = [&](std::size_t step) {
      const StageKernels::OfStep& kernels = priced_.kernels.steps[step];
      if (kernels.forward) all.forward += priced_.time(*kernels.forward);
      for (const auto& kernel : {kernels.backward, kernels.backward_weight})
        if (kernel) all.backward += priced_.time(*kernel);
    };
    if (exchange.forward.motion == Motion::all_gather)
      for (const std::size_t reader : readers_[exchange.output.index()])
        if (is_product(stage_.steps[reader])) add(reader);
    if (exchange.forward.motion == Motion::reduce_scatter) {
      const std::size_t maker = makers_[exchange.input.index()];
      if (maker < stage_.steps.size() && is_product(stage_.steps[maker])) add(maker);
    }
    return all;
  }

  static void hide(std::optional<CollectiveEstimate>& transfer, Seconds most, Seconds& hidden) {
    if (!transfer) return;
    hidden = std::min(transfer->time.time, most);
    transfer->time.time -= hidden;
  }

  const Plan& plan_;
  const Stage& stage_;
  PricedStage& priced_;
  std::vector<std::size_t> makers_;                // step, by tensor
  std::vector<std::vector<std::size_t>> readers_;  // steps, by tensor
};

}  // namespace

void hide_behind_products(const Plan& plan, const Stage& stage, PricedStage& priced) {
  Hider(plan, stage, priced).run();
}

}  // namespace sibyl
