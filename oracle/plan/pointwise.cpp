#include "oracle/plan/pointwise.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "models/training/training.h"

namespace sibyl {
namespace {

bool is_pointwise(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  if (compute == nullptr || compute->fused || compute->outputs.size() != 1) return false;
  const Attributes& a = compute->attributes;
  return std::holds_alternative<Unary>(a) || std::holds_alternative<Binary>(a) || std::holds_alternative<Dropout>(a) ||
         std::holds_alternative<Cast>(a) || std::holds_alternative<Slice>(a) || std::holds_alternative<Concat>(a);
}

// Its gradients are the incoming one, or parts of it, whatever came in.
bool only_moves(const Attributes& attributes) {
  const auto* binary = std::get_if<Binary>(&attributes);
  if (binary != nullptr) return binary->kind == BinaryKind::add || binary->kind == BinaryKind::sub;
  return !std::holds_alternative<Unary>(attributes);
}

class Grouper {
 public:
  explicit Grouper(const Stage& stage)
      : result_(stage), readers_(stage.tensors.size()), group_(stage.steps.size(), none) {
    for (std::size_t i = 0; i < stage.steps.size(); ++i)
      for (const LocalTensorId in : inputs_of(stage.steps[i]))
        if (in.valid()) readers_[in.index()].push_back(i);
    for (const Link& link : stage.sends) readers_[link.tensor.index()].push_back(none);
  }

  Stage run() {
    for (std::size_t i = result_.steps.size(); i-- > 0;)
      if (is_pointwise(result_.steps[i])) join(i);
    for (const auto& [last, members] : members_)
      if (members.size() > 1) mark(last, members);
    for (Step& step : result_.steps)
      if (auto* compute = std::get_if<Compute>(&step))
        if (auto* norm = std::get_if<Normalization>(&compute->attributes); norm && norm->kind == NormalizationKind::rms)
          norm->in_one_kernel = true;
    return std::move(result_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // The group of all that read its result, if that is one; else one of its own, by its number.
  void join(std::size_t step) {
    const std::vector<std::size_t>& readers = readers_[compute(step).outputs.front().index()];
    std::size_t group = readers.empty() || readers.front() == none ? none : group_[readers.front()];
    for (const std::size_t reader : readers)
      if (reader == none || group_[reader] != group) group = none;
    group_[step] = group == none ? step : group;
    members_[group_[step]].push_back(step);
  }

  void mark(std::size_t last, const std::vector<std::size_t>& members) {
    std::map<std::size_t, double> outside;  // bytes read of a tensor
    bool adds = true;
    Compute::Moved apart;
    for (const std::size_t step : members) {
      const Compute& one = compute(step);
      adds = adds && only_moves(one.attributes);
      const TrainingRule rule = training_rule(signature(result_, one), one.gradients, Backend::cuda);
      apart.forward += (rule.forward.read + rule.forward.written).value();
      if (one.gradients != 0) apart.backward += (rule.backward.read + rule.backward.written).value();
      for (const LocalTensorId in : one.inputs) {
        if (!in.valid() || made_inside(in, last)) continue;
        // Of a slice only what it takes.
        const double read = bytes_of(std::holds_alternative<Slice>(one.attributes) ? one.outputs.front() : in);
        double& known = outside[in.index()];
        known = std::min(known + read, bytes_of(in));
      }
    }
    double in = 0, differentiated = 0;
    for (const auto& [tensor, bytes] : outside) {
      in += bytes;
      if (result_.tensors[tensor].requires_gradient) differentiated += bytes;
    }
    keep_what_comes_in(last, members);
    for (const std::size_t step : members) compute(step).fused = step != last;
    Compute& kernel = compute(last);
    const double out = bytes_of(kernel.outputs.front());
    kernel.moved = {.forward = std::min(apart.forward, in + out),
                    .backward = std::min(apart.backward, out + differentiated + (adds ? 0.0 : in))};
  }

  // An operand or the result of a member, made inside.
  struct Inner {
    std::size_t step;
    std::optional<std::size_t> operand;
  };

  void keep_what_comes_in(std::size_t last, const std::vector<std::size_t>& members) {
    std::vector<Inner> inner;
    std::map<std::size_t, double> between, from_outside;  // bytes kept, by tensor
    for (const std::size_t step : members) {
      const Compute& one = compute(step);
      if (one.gradients == 0) continue;
      for (const Saved& saved : training_rule(signature(result_, one), one.gradients, Backend::cuda).saved) {
        if (saved.what == Saved::What::extra) continue;
        const bool is_input = saved.what == Saved::What::input;
        if (is_input && (saved.index >= one.inputs.size() || !one.inputs[saved.index].valid())) continue;
        if (is_input && saved.index >= 32) return;  // of Kept's bits
        const LocalTensorId id = is_input ? one.inputs[saved.index] : one.outputs.front();
        const bool inside = is_input ? made_inside(id, last) : step != last;
        (inside ? between : from_outside)[id.index()] = bytes_of(id);
        if (inside) inner.push_back({step, is_input ? std::optional(saved.index) : std::nullopt});
      }
    }
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> more;  // by tensor: the member and operand that read it
    double added = 0, spared = 0;                                     // bytes
    for (const auto& [tensor, bytes] : between) spared += bytes;
    for (const std::size_t step : members)
      for (std::size_t in = 0; in < compute(step).inputs.size(); ++in) {
        const LocalTensorId id = compute(step).inputs[in];
        if (!id.valid() || made_inside(id, last) || from_outside.contains(id.index())) continue;
        const TensorKind kind = result_[id].kind;
        if (kind != TensorKind::activation && kind != TensorKind::input) continue;
        if (compute(step).gradients == 0 || in >= 32) return;  // nobody would keep it
        if (more.try_emplace(id.index(), step, in).second) added += bytes_of(id);
      }
    if (inner.empty() || added >= spared) return;
    for (const auto& [step, operand] : inner) {
      if (operand)
        compute(step).kept.not_inputs |= 1U << *operand;
      else
        compute(step).kept.not_output = true;
    }
    for (const auto& [tensor, read] : more) compute(read.first).kept.also_inputs |= 1U << read.second;
  }

  [[nodiscard]] bool made_inside(LocalTensorId tensor, std::size_t group) const {
    return std::ranges::any_of(members_.at(group), [&](std::size_t step) {
      return std::get<Compute>(result_.steps[step]).outputs.front() == tensor;
    });
  }
  Compute& compute(std::size_t step) { return std::get<Compute>(result_.steps[step]); }
  [[nodiscard]] double bytes_of(LocalTensorId id) const {
    const LocalTensor& tensor = result_[id];
    return static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype);
  }

  Stage result_;
  std::vector<std::vector<std::size_t>> readers_;            // steps, by tensor; none: it is sent
  std::vector<std::size_t> group_;                           // by step: the last step of its group
  std::map<std::size_t, std::vector<std::size_t>> members_;  // by the last step
};

}  // namespace

Stage with_fused_pointwise(const Stage& stage) { return Grouper(stage).run(); }

bool has_fusible_pointwise(const Stage& stage, std::string_view family) {
  const Stage fused = with_fused_pointwise(stage);
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    const auto* apart = std::get_if<Compute>(&stage.steps[i]);
    if (apart == nullptr || (!family.empty() && name_of(apart->attributes) != family)) continue;
    const auto& together = std::get<Compute>(fused.steps[i]);
    if (together.fused != apart->fused || !(together.moved == apart->moved)) return true;
    if (!(together.attributes == apart->attributes)) return true;  // a norm in one kernel
  }
  return false;
}

}  // namespace sibyl
