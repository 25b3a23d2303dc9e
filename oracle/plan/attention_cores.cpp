#include "oracle/plan/attention_cores.h"

#include <algorithm>
#include <optional>

namespace sibyl {
namespace {

constexpr int farthest = 12;  // steps from the softmax to either product

template <class Operation>
bool is(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  return compute && std::holds_alternative<Operation>(compute->attributes);
}

class Finder {
 public:
  explicit Finder(const Stage& stage) : stage_(stage), maker_(stage.tensors.size()), read_(stage.tensors.size()) {
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      for (const LocalTensorId in : inputs_of(stage.steps[i]))
        if (in.valid()) read_[in.index()] = {i, read_[in.index()].times + 1};
      for (const LocalTensorId out : outputs_of(stage.steps[i]))
        if (out.valid()) maker_[out.index()] = i;
    }
  }

  [[nodiscard]] std::vector<AttentionCore> run() const {
    std::vector<AttentionCore> cores;
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      if (is<Attention>(stage_.steps[i])) cores.push_back({i, i});
      if (!is<Softmax>(stage_.steps[i])) continue;
      const auto scores = product_before(i), mix = product_behind(i);
      if (scores && mix) cores.push_back({*scores, *mix});
    }
    std::ranges::sort(cores, {}, &AttentionCore::mix);
    return cores;
  }

 private:
  // Of a step's operands the one that becomes its result: masks and scales are smaller, or given.
  [[nodiscard]] std::optional<std::size_t> maker_of_main_operand(const Step& step) const {
    const std::int64_t elements = element_count(stage_[outputs_of(step).front()].shape);
    for (const LocalTensorId in : inputs_of(step))
      if (in.valid() && maker_[in.index()] && element_count(stage_[in].shape) == elements) return maker_[in.index()];
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::size_t> product_before(std::size_t softmax) const {
    std::optional<std::size_t> at = softmax;
    for (int steps = 0; at && steps < farthest; ++steps) {
      if (is<MatMul>(stage_.steps[*at])) return at;
      at = is_within_core(stage_.steps[*at]) ? maker_of_main_operand(stage_.steps[*at]) : std::nullopt;
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::size_t> product_behind(std::size_t softmax) const {
    std::size_t at = softmax;
    for (int steps = 0; steps < farthest && is_within_core(stage_.steps[at]); ++steps) {
      const std::span<const LocalTensorId> made = outputs_of(stage_.steps[at]);
      const Read& read = read_[made.front().index()];
      if (read.times != 1) return std::nullopt;
      at = read.last;
      const bool mixes = is<MatMul>(stage_.steps[at]) && inputs_of(stage_.steps[at]).front() == made.front();
      if (mixes) return at;
    }
    return std::nullopt;
  }

  struct Read {
    std::size_t last = 0;  // the step
    int times = 0;
  };

  const Stage& stage_;
  std::vector<std::optional<std::size_t>> maker_;  // by LocalTensorId
  std::vector<Read> read_;                         // likewise
};

}  // namespace

bool is_within_core(const Step& step) {
  return is<Unary>(step) || is<Binary>(step) || is<Where>(step) || is<Dropout>(step) || is<Cast>(step) ||
         is<Reshape>(step) || is<Softmax>(step) || is<Expand>(step);
}

std::vector<AttentionCore> attention_cores(const Stage& stage) { return Finder(stage).run(); }

}  // namespace sibyl
