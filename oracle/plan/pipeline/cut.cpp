#include "oracle/plan/pipeline/cut.h"

#include <algorithm>

namespace sibyl {
namespace {

bool is_activation(const Stage& stage, LocalTensorId id) { return stage[id].kind == TensorKind::activation; }

// Cheap enough to be run twice; with a gradient only what makes another form of a weight.
bool may_repeat(const Compute& compute) {
  const Attributes& op = compute.attributes;
  if (std::holds_alternative<Cast>(op) || std::holds_alternative<Reshape>(op) || std::holds_alternative<Transpose>(op) ||
      std::holds_alternative<Slice>(op) || std::holds_alternative<Expand>(op))
    return true;
  return compute.gradients == 0 && (std::holds_alternative<Unary>(op) || std::holds_alternative<Binary>(op) ||
                                    std::holds_alternative<Where>(op));
}

// The step that makes each tensor; the number of steps for those that none makes.
std::vector<std::size_t> producers(const Stage& whole) {
  std::vector<std::size_t> result(whole.tensors.size(), whole.steps.size());
  for (std::size_t i = 0; i < whole.steps.size(); ++i)
    for (const LocalTensorId out : outputs_of(whole.steps[i]))
      if (out.valid()) result[out.index()] = i;
  return result;
}

}  // namespace

Bytes tensor_bytes(const LocalTensor& tensor) {
  return Bytes{static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)};
}

std::vector<bool> repeatable_steps(const Stage& whole) {
  const std::vector<std::size_t> producer = producers(whole);
  std::vector<bool> repeatable(whole.steps.size(), false);
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&whole.steps[i]);
    repeatable[i] = compute && may_repeat(*compute) &&
                    std::all_of(compute->inputs.begin(), compute->inputs.end(), [&](LocalTensorId in) {
                      if (!in.valid() || !is_activation(whole, in)) return true;
                      const std::size_t made_by = producer[in.index()];
                      return made_by < i && repeatable[made_by];  // by none: it is received
                    });
  }
  return repeatable;
}

std::vector<OperationId> beginnings(const Stage& whole) {
  std::vector<OperationId> result(whole.steps.size() + 1);
  OperationId last;
  std::size_t begin = 0;  // of the exchanges since the last computation
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    const auto* compute = std::get_if<Compute>(&whole.steps[i]);
    if (!compute) continue;
    if (compute->operation != last) result[begin] = last = compute->operation;
    begin = i + 1;
  }
  return result;
}

Crossing::Crossing(const Stage& whole)
    : whole_(whole),
      made_(whole.tensors.size(), 0),
      last_use_(whole.tensors.size(), 0),
      last_gradient_(whole.tensors.size(), 0),
      bytes_(whole.steps.size() + 1) {
  const std::vector<bool> repeatable = repeatable_steps(whole);
  for (std::size_t i = 0; i < whole.steps.size(); ++i) {
    const Step& step = whole.steps[i];
    if (!repeatable[i])
      for (const LocalTensorId out : outputs_of(step))
        if (out.valid()) made_[out.index()] = i + 1;
    for (const LocalTensorId in : inputs_of(step))
      if (in.valid()) last_use_[in.index()] = i + 1;
    each_gradient(whole, step, [&](LocalTensorId in) { last_gradient_[in.index()] = i + 1; });
  }
  // Differences first, then their sums.
  for (std::size_t t = 0; t < made_.size(); ++t) {
    if (made_[t] == 0) continue;
    const Bytes bytes = tensor_bytes(whole.tensors[t]);
    const auto add = [&](std::size_t last) {
      if (last <= made_[t]) return;
      bytes_[made_[t]] += bytes;
      bytes_[last] -= bytes;
    };
    add(last_use_[t]);
    add(last_gradient_[t]);
  }
  for (std::size_t p = 1; p < bytes_.size(); ++p) bytes_[p] += bytes_[p - 1];
  note_alive();
}

// Who lives at a position is asked for of many, and of a long program few of its tensors live at once.
void Crossing::note_alive() {
  for (std::size_t t = 0; t < made_.size(); ++t)
    if (made_[t] > 0 && last_use_[t] > made_[t]) in_order_.push_back(t);
  std::ranges::stable_sort(in_order_, {}, [&](std::size_t t) { return made_[t]; });
  std::vector<std::size_t> alive;
  auto next = in_order_.begin();
  for (std::size_t position = 0; position < bytes_.size(); position += between) {
    for (; next != in_order_.end() && made_[*next] <= position; ++next) alive.push_back(*next);
    std::erase_if(alive, [&](std::size_t t) { return last_use_[t] <= position; });
    noted_.push_back({alive, static_cast<std::size_t>(next - in_order_.begin())});
  }
}

std::vector<LocalTensorId> Crossing::at(std::size_t position) const {
  const auto& [before, next] = noted_[position / between];
  std::vector<LocalTensorId> result;
  for (const std::size_t t : before)
    if (last_use_[t] > position) result.push_back(LocalTensorId{t});
  for (std::size_t i = next; i < in_order_.size() && made_[in_order_[i]] <= position; ++i)
    if (last_use_[in_order_[i]] > position) result.push_back(LocalTensorId{in_order_[i]});
  std::ranges::sort(result, {}, &LocalTensorId::index);
  return result;
}

namespace {

class Cutter {
 public:
  Cutter(const Stage& whole, const std::vector<std::size_t>& begins)
      : whole_(whole), crossing_(whole), repeatable_(repeatable_steps(whole)), producer_(producers(whole)), ends_(begins) {
    ends_.push_back(whole.steps.size());
  }

  CutProgram run() {
    std::size_t begin = 0;
    for (std::size_t s = 0; s < ends_.size(); begin = ends_[s++]) {
      open();
      if (s > 0) link(begin, static_cast<int>(s) - 1, stage_.receives);
      for (std::size_t i = begin; i < ends_[s]; ++i)
        if (!repeatable_[i]) add(i);
      if (s + 1 < ends_.size()) link(ends_[s], static_cast<int>(s) + 1, stage_.sends);
      close(static_cast<int>(s));
    }
    std::erase_if(result_.ties, [](const auto& tie) { return tie.second.size() < 2; });
    return std::move(result_);
  }

 private:
  void open() {
    stage_ = Stage{};
    local_.assign(whole_.tensors.size(), LocalTensorId{});
    whole_id_.clear();
    again_.assign(whole_.steps.size(), false);
  }

  LocalTensorId local(LocalTensorId id) {
    LocalTensorId& known = local_[id.index()];
    if (known.valid()) return known;
    stage_.tensors.push_back(whole_[id]);
    whole_id_.push_back(id);
    return known = LocalTensorId{stage_.tensors.size() - 1};
  }

  void link(std::size_t position, int peer, std::vector<Link>& links) {
    for (const LocalTensorId id : crossing_.at(position))
      links.push_back({peer, local(id), crossing_.gradient(id, position)});
  }

  void add(std::size_t index) {
    for (const LocalTensorId in : inputs_of(whole_.steps[index])) {
      if (!in.valid() || !is_activation(whole_, in)) continue;
      const std::size_t made_by = producer_[in.index()];
      if (!repeatable_[made_by] || again_[made_by]) continue;
      again_[made_by] = true;
      add(made_by);
    }
    Step step = whole_.steps[index];
    if (auto* compute = std::get_if<Compute>(&step)) {
      for (auto* ids : {&compute->inputs, &compute->outputs})
        for (LocalTensorId& id : *ids)
          if (id.valid()) id = local(id);
    } else {
      auto& exchange = std::get<Exchange>(step);
      exchange.input = local(exchange.input);
      exchange.output = local(exchange.output);
    }
    stage_.steps.push_back(std::move(step));
  }

  void close(int stage) {
    for (const LocalTensorId parameter : gradient_order(stage_))
      result_.ties[whole_id_[parameter.index()]].push_back(stage);
    result_.stages.push_back(std::move(stage_));
    result_.whole_id.push_back(std::move(whole_id_));
  }

  const Stage& whole_;
  Crossing crossing_;
  std::vector<bool> repeatable_;
  std::vector<std::size_t> producer_, ends_;
  CutProgram result_;
  // Of the stage that is being written:
  Stage stage_;
  std::vector<LocalTensorId> local_;     // by id in the whole program
  std::vector<LocalTensorId> whole_id_;  // the other way
  std::vector<bool> again_;              // repeatable steps written so far
};

}  // namespace

CutProgram cut(const Stage& whole, const std::vector<std::size_t>& begins) { return Cutter(whole, begins).run(); }

}  // namespace sibyl
