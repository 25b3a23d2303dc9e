#include "oracle/plan/strided.h"

#include <algorithm>
#include <variant>
#include <vector>

namespace sibyl {
namespace {

template <class Op>
const Op* of(const Step& step) {
  const auto* compute = std::get_if<Compute>(&step);
  return compute ? std::get_if<Op>(&compute->attributes) : nullptr;
}

bool is_elementwise(const Step& step) {
  return of<Unary>(step) || of<Binary>(step) || of<Cast>(step) || of<Dropout>(step) || of<Slice>(step) ||
         of<Concat>(step);
}

// Whose rows stay as they are: heads and tokens change places.
bool keeps_rows(const Transpose& op) {
  return !op.permutation.empty() && op.permutation.back() == static_cast<std::int64_t>(op.permutation.size()) - 1;
}

class Marker {
 public:
  explicit Marker(const Stage& stage)
      : result_(stage), maker_(stage.tensors.size(), none), readers_(maker_.size()), seen_(maker_.size(), false) {
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      for (const LocalTensorId out : outputs_of(stage.steps[i]))
        if (out.valid()) maker_[out.index()] = i;
      for (const LocalTensorId in : inputs_of(stage.steps[i]))
        if (in.valid()) readers_[in.index()].push_back(i);
    }
  }

  Stage run() {
    constexpr std::size_t operands = 3;  // queries, keys, values
    for (const Step& step : result_.steps) {
      if (!of<Attention>(step)) continue;
      const std::span<const LocalTensorId> in = inputs_of(step);
      for (std::size_t i = 0; i < std::min(operands, in.size()); ++i) mark_before(in[i]);
      for (const LocalTensorId out : outputs_of(step))
        if (out.valid()) mark_behind(out);
    }
    return std::move(result_);
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  void mark_before(LocalTensorId id) {
    const std::size_t step = id.valid() ? maker_[id.index()] : none;
    if (step == none || seen_[id.index()] || !only_takes_views(id)) return;
    seen_[id.index()] = true;  // there may be many ways to it
    if (const auto* transpose = of<Transpose>(result_.steps[step]); transpose && keeps_rows(*transpose))
      std::get<Compute>(result_.steps[step]).strided = true;
    if (is_elementwise(result_.steps[step]))
      for (const LocalTensorId in : inputs_of(result_.steps[step])) mark_before(in);
  }

  // Whoever reads it takes it in any order.
  [[nodiscard]] bool only_takes_views(LocalTensorId id) const {
    return std::ranges::all_of(readers_[id.index()], [&](std::size_t reader) {
      return of<Attention>(result_.steps[reader]) || is_elementwise(result_.steps[reader]);
    });
  }

  void mark_behind(LocalTensorId id) {
    if (readers_[id.index()].size() != 1) return;
    const std::size_t reader = readers_[id.index()].front();
    if (const auto* transpose = of<Transpose>(result_.steps[reader]); transpose && keeps_rows(*transpose))
      std::get<Compute>(result_.steps[reader]).strided = true;
  }

  Stage result_;
  std::vector<std::size_t> maker_;                 // the step, by tensor
  std::vector<std::vector<std::size_t>> readers_;  // likewise
  std::vector<bool> seen_;                         // likewise
};

}  // namespace

Stage with_strided_attention(const Stage& stage) { return Marker(stage).run(); }

}  // namespace sibyl
