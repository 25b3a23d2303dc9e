#include "oracle/plan/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "oracle/plan/attention_cores.h"
#include "oracle/plan/sharding/tokens.h"

namespace sibyl {
namespace {

// The degrees next to `wanted` that divide `extent`.
std::string nearest(std::int64_t extent, std::int64_t wanted) {
  std::int64_t below = wanted, above = wanted;
  while (below > 1 && extent % below != 0) --below;
  while (above <= extent && extent % above != 0) ++above;
  if (extent == 1) return "tensor=, pipeline= and data= divide such a model";
  if (above > extent) return fmt::format("the nearest that can: context={}", below);
  return below == 1 ? fmt::format("the nearest that can: context={}", above)
                    : fmt::format("the nearest that can: context={} or context={}", below, above);
}

// The attention that has fewest heads to share, of keys where they are fewer.
struct FewestHeads {
  std::int64_t heads = 0;
  bool grouped = false;  // there are fewer of keys
  std::string_view where;
};

FewestHeads heads_of(const Stage& stage, const AttentionCore& core) {
  const std::span<const LocalTensorId> read = inputs_of(stage.steps[core.scores]);
  const Shape &queries = stage[read[0]].shape, &keys = stage[read[1]].shape;
  const auto dim = heads_dim(queries, keys);
  if (!dim) return {1, false, {}};
  return {std::gcd(queries[*dim], keys[*dim]), keys[*dim] < queries[*dim], {}};
}

}  // namespace

Result<void> check_sequence(const Graph& graph, const Stage& stage, const Strategy& strategy) {
  const int ranks = strategy.context;
  const bool of_a_rank = strategy.tensor * strategy.filter * strategy.channel > 1;  // heads that these may have divided
  const Tokens tokens(stage);
  const std::vector<AttentionCore> cores = attention_cores(stage);
  if (cores.empty() || !tokens.has_sequence())
    return fail(ErrorCode::infeasible, "no sequence of tokens that attention mixes was found in the model",
                "--parallel", "context=N divides sequences of tokens; spatial=HxW divides images");
  std::int64_t length = 0, heads = 0;  // what is divided; of several the greatest common divisor
  const LocalTensor* uneven = nullptr;
  std::int64_t tokens_of_it = 0;
  for (const auto& sources : {tokens.ids, tokens.features})
    for (const auto& [tensor, dim] : sources) {
      const std::int64_t own = stage[tensor].shape[dim];
      length = std::gcd(length, own);
      if (own % ranks != 0 && uneven == nullptr) uneven = &stage[tensor], tokens_of_it = own;
    }
  std::optional<FewestHeads> undivided;
  for (const AttentionCore& core : cores) {
    if (strategy.context_exchange != ContextExchange::heads) break;  // keys need none
    FewestHeads own = heads_of(stage, core);
    heads = std::gcd(heads, own.heads);
    if (own.heads % ranks == 0 || (undivided && own.heads >= undivided->heads)) continue;
    own.where = graph[std::get<Compute>(stage.steps[core.scores]).operation].name;
    undivided = own;
  }
  const std::string hint = nearest(std::gcd(length, heads), ranks);
  if (uneven != nullptr)
    return fail(ErrorCode::infeasible,
                fmt::format("'{}' is a sequence of {} tokens, which {} ranks of context= cannot share evenly",
                            graph[uneven->origin].name, tokens_of_it, ranks),
                "--parallel", hint);
  // Without its heads a rank would do all of the attention, and all that follows it: nothing would be left to share.
  if (undivided)
    return fail(ErrorCode::infeasible,
                fmt::format("attention '{}' has {} head{}{}{}, which {} ranks of context= cannot share evenly",
                            undivided->where, undivided->heads, undivided->heads == 1 ? "" : "s",
                            undivided->grouped ? " of keys and values" : "", of_a_rank ? " on a rank" : "", ranks),
                "--context-exchange", "keys, which need no heads" + (undivided->heads == 1 ? "" : "; " + hint));
  return {};
}

Result<void> check_stays_split(const Graph& graph, const Stage& stage) {
  constexpr std::size_t nobody = -1;
  std::vector<std::size_t> gathered(stage.tensors.size(),
                                    nobody);             // by tensor: the step that wanted the sequence whole
  std::vector<bool> waits(stage.tensors.size(), false);  // was gathered, and not read yet
  std::int64_t tokens = 0, ranks = 0;                    // of the last that was
  std::vector<bool> product(stage.steps.size(), false);
  for (const AttentionCore& core : attention_cores(stage)) product[core.scores] = product[core.mix] = true;
  for (std::size_t i = 0; i < stage.steps.size(); ++i) {
    std::size_t by = nobody;
    const std::span<const LocalTensorId> read = inputs_of(stage.steps[i]);
    for (std::size_t operand = 0; operand < read.size(); ++operand) {
      const LocalTensorId in = read[operand];
      if (!in.valid() || (!waits[in.index()] && gathered[in.index()] == nobody)) continue;
      const bool keys = product[i] && operand > 0;  // or values: wanted whole, for queries of its own
      if (!waits[in.index()])
        by = gathered[in.index()];
      else if (!keys)
        by = i;
    }
    const auto* exchange = std::get_if<Exchange>(&stage.steps[i]);
    if (exchange && exchange->axis == MeshAxis::context && exchange->forward.motion == Motion::all_gather &&
        stage[exchange->input].requires_gradient) {
      waits[exchange->output.index()] = true;
      tokens = stage[exchange->output].shape[exchange->forward.dim];
      ranks = tokens / stage[exchange->input].shape[exchange->forward.dim];
    }
    if (by == nobody) continue;
    if (product[i]) {
      const auto* mixer = std::get_if<Compute>(&stage.steps[by]);
      return fail(
          ErrorCode::infeasible,
          fmt::format("'{}' wants all {} tokens of a sequence that attention reads again: {} ranks of context= cannot "
                      "share it",
                      mixer ? graph[mixer->operation].name : "an exchange", tokens, ranks),
          "--parallel", "tensor=, pipeline= and data= divide such a model");
    }
    for (const LocalTensorId out : outputs_of(stage.steps[i])) gathered[out.index()] = by;
  }
  return {};
}

std::optional<std::string> gathered_instead(const Graph& graph, const Plan& plan) {
  if (!goes_round(plan.strategy)) return std::nullopt;
  const auto is_shared = [](const LocalTensor& tensor) {
    return std::ranges::any_of(tensor.cuts, [](const PartOf& cut) { return cut.axis == MeshAxis::context; });
  };
  std::vector<std::string_view> names;
  for (const Stage& stage : plan.stages)
    for (const AttentionCore& core : attention_cores(stage)) {
      const auto& scores = std::get<Compute>(stage.steps[core.scores]);
      const auto* attention = std::get_if<Attention>(&scores.attributes);
      const bool round = attention != nullptr && attention->ring > 1;
      if (!round && is_shared(stage[scores.inputs[0]])) names.push_back(graph[scores.operation].name);
    }
  if (names.empty()) return std::nullopt;
  const std::string others = names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "";
  return fmt::format(
      "keys and values of attention '{}'{} are gathered: they go round only where it is one operation, of a sequence "
      "to itself, without a mask of its own",
      names.front(), others);
}

}  // namespace sibyl
