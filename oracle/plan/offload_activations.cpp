#include "oracle/plan/offload_activations.h"

#include <algorithm>

#include "oracle/plan/recompute.h"

namespace sibyl {
namespace {

// By tensor: whether its maker writes it anew and keeps nothing of it. A maker that runs again keeps nothing.
std::vector<bool> made_apart(const Stage& stage, const std::vector<Segment>& segments) {
  const std::vector<bool> again = steps_inside(segments, stage.steps.size());
  std::vector<bool> result(stage.tensors.size(), false);
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    if (const auto* exchange = std::get_if<Exchange>(&stage.steps[i])) {
      result[exchange->output.index()] = !in_place(exchange->forward);
      continue;
    }
    const auto& compute = std::get<Compute>(stage.steps[i]);
    const TrainingRule rule = rule_of(stage, compute, Backend::cpu);
    for (std::size_t out = 0; out < compute.outputs.size(); ++out) {
      const bool kept = !again[i] && compute.gradients != 0 && std::ranges::any_of(rule.saved, [&](const Saved& saved) {
        return saved.what == Saved::What::output && saved.index == out;
      });
      if (compute.outputs[out].valid()) result[compute.outputs[out].index()] = !rule.view && !kept;
    }
  }
  return result;
}

// By tensor: whether it is handed to another stage.
std::vector<bool> sent_on(const Stage& stage) {
  std::vector<bool> result(stage.tensors.size(), false);
  for (const Link& link : stage.sends) result[link.tensor.index()] = true;
  return result;
}

// By tensor: how many steps read it.
std::vector<int> readers(const Stage& stage, std::size_t begin, std::size_t end) {
  std::vector<int> result(stage.tensors.size(), 0);
  for (std::size_t i = begin; i < end; ++i)
    for (const LocalTensorId in : inputs_of(stage.steps[i]))
      if (in.valid()) ++result[in.index()];
  return result;
}

}  // namespace

Result<void> check_activations(const Strategy& strategy) {
  if (strategy.activation_tier == Tier::device) return {};
  const std::string where = "--offload " + offload_text(strategy);
  if (strategy.recompute != Recompute::full)
    return fail(ErrorCode::infeasible, "of activations those lie outside the device that blocks keep to run again",
                where, "give --recompute full, every:K or groups:K, too");
  return {};
}

void offload_activations(Stage& stage, const Strategy& strategy) {
  if (strategy.activation_tier == Tier::device) return;
  stage.kept_tier = strategy.activation_tier;
  stage.kept_outside = kept_apart(stage, stage.recomputed);
}

std::vector<std::vector<LocalTensorId>> kept_apart(const Stage& program, const std::vector<Segment>& segments) {
  const std::vector<bool> apart = made_apart(program, segments), sent = sent_on(program);
  const std::vector<int> all = readers(program, 0, program.steps.size());
  std::vector<std::vector<LocalTensorId>> result;
  for (const Segment& segment : segments) {
    const std::vector<int> own = readers(program, segment.begin, segment.end);
    std::vector<LocalTensorId> outside = inputs_of(program, segment);
    std::erase_if(outside, [&](LocalTensorId id) {
      return program[id].kind != TensorKind::activation || !apart[id.index()] || sent[id.index()] ||
             own[id.index()] != all[id.index()];
    });
    result.push_back(std::move(outside));
  }
  return result;
}

std::int64_t bytes_of(const Stage& stage, const std::vector<LocalTensorId>& kept) {
  std::int64_t bytes = 0;
  for (const LocalTensorId id : kept)
    bytes += element_count(stage[id].shape) * static_cast<std::int64_t>(size_in_bytes(stage[id].dtype));
  return bytes;
}

std::int64_t kept_outside_bytes(const Stage& stage, std::size_t segment) {
  return bytes_of(stage, stage.kept_outside[segment]);
}

std::int64_t kept_outside_bytes(const Stage& stage) {
  std::int64_t bytes = 0;
  for (std::size_t s = 0; s < stage.kept_outside.size(); ++s) bytes += kept_outside_bytes(stage, s);
  return bytes;
}

int most_on_their_way(const Stage& stage) {
  int now = 0, most = 0;
  for (const Turn& turn : stage.schedule) {
    if (turn.kind == Turn::Kind::forward) most = std::max(most, ++now);
    if (turn.kind == Turn::Kind::backward || turn.kind == Turn::Kind::backward_input) --now;
  }
  return most;
}

std::size_t outside_before(const Stage& stage, std::size_t segment) {
  for (std::size_t s = segment; s-- > 0;)
    if (!stage.kept_outside.empty() && !stage.kept_outside[s].empty()) return s;
  return segment;
}

}  // namespace sibyl
