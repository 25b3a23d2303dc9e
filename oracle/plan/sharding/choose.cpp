#include "oracle/plan/sharding/choose.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "oracle/axes.h"
#include "oracle/plan/sharding/conversion.h"
#include "oracle/plan/sharding/look_ahead.h"
#include "oracle/plan/sharding/rules/rules.h"
#include "oracle/plan/sharding/tokens.h"

namespace sibyl {
namespace {

// What all ranks of another axis have along a dimension comes to lie there in a row, or a row of it is parted among
// them: of each rank's pieces ranks here have their part, before and after.
std::optional<Layout> of_all_ranks(const Transfer& transfer, const Layout& layout, const Operands& o) {
  if (transfer.motion != Motion::all_to_all || !transfer.pieces.empty() || !transfer.to_pieces.empty() ||
      (layout.dim != transfer.dim && layout.dim != transfer.to))
    return std::nullopt;
  const std::int64_t before = o.inputs[0][layout.dim], after = o.outputs[0][layout.dim];
  const Ints pieces = layout.pieces.empty() ? Ints{before} : layout.pieces;
  const auto count = static_cast<std::int64_t>(pieces.size());
  if (count * after % before != 0 || std::ranges::count(pieces, pieces.front()) != count) return std::nullopt;
  const auto made = static_cast<std::size_t>(count * after / before);
  return Layout::split(layout.dim, made > 1 ? Ints(made, pieces.front()) : Ints{});
}

// Ranks of another axis have a part of each of equal pieces, which come together or go apart: of each of the pieces
// that ranks here share, and which are whole numbers of those, they have their part before and after.
std::optional<Layout> of_whole_pieces(const Transfer& transfer, const Layout& layout, const Operands& o) {
  if (layout.pieces.empty() || !in_equal_pieces(transfer, layout.dim, o.ways)) return std::nullopt;
  const std::int64_t parted = pieces_along(transfer, layout.dim).front();
  const std::int64_t before = o.inputs[0][layout.dim], after = o.outputs[0][layout.dim];
  Ints pieces = layout.pieces;
  for (std::int64_t& piece : pieces) {
    if (piece * std::max(before, after) % (before * o.ways * parted) != 0) return std::nullopt;
    piece = piece * after / before;
  }
  return Layout::split(layout.dim, std::move(pieces));
}

// An exchange of another axis acts on some dimensions; the others may be split as well, and so may one that the
// exchange cuts in pieces, each of which is of one rank here.
std::vector<Variant> variants_of(const Exchange& exchange, const Operands& o) {
  if (const Layout* arriving = o.split(0); arriving && o.tokens) {
    auto after = of_all_ranks(exchange.forward, *arriving, o);
    if (!after) after = of_whole_pieces(exchange.forward, *arriving, o);
    if (after) return {{{sharding::as(*arriving)}, {*after}, Copy{}}};
  }
  return sharding::dimensionwise(Copy{}, o, [&](std::size_t dim) {
    const auto leaves = [&](const Transfer& t) {
      if (in_equal_pieces(t, dim, o.ways)) return true;
      switch (t.motion) {
        case Motion::none:
        case Motion::all_reduce:
        case Motion::maximum:
        case Motion::own_numbers: return true;
        default: return dim != t.dim && !(t.motion == Motion::all_to_all && dim == t.to);
      }
    };
    return leaves(exchange.forward) && leaves(exchange.backward);
  });
}

class Chooser {
 public:
  Chooser(const Stage& stage, const Policy& policy, int ways)
      : stage_(stage),
        policy_(policy),
        ways_(ways),
        produced_(stage.tensors.size(), false),
        end_(end_of(stage, policy.until)),
        ahead_(stage, ways) {
    result_.layouts.resize(stage.tensors.size());
    result_.partial_gradient.resize(stage.tensors.size(), true);
    for (const Step& step : stage.steps)
      for (const LocalTensorId out : outputs_of(step)) produced_[out.index()] = true;
    if (policy_.weights == Policy::Weights::image) split_images();
    if (policy_.weights == Policy::Weights::tokens) take_tokens();
    if (has_own_samples(policy_.axis)) split_samples();
  }

  Choices run() {
    for (std::size_t i = 0; i < stage_.steps.size(); ++i) {
      const Step& step = stage_.steps[i];
      Variant variant = i < end_ ? choose_for(step, role_of(i)) : whole_of(step);
      settle(step, variant);
      result_.variants.push_back(std::move(variant));
    }
    return std::move(result_);
  }

 private:
  // Steps from here on are whole.
  static std::size_t end_of(const Stage& stage, OperationId until) {
    for (std::size_t i = stage.steps.size(); until.valid() && i-- > 0;)
      if (const auto* compute = std::get_if<Compute>(&stage.steps[i]); compute && compute->operation == until)
        return i + 1;
    return stage.steps.size();
  }

  static Variant whole_of(const Step& step) {
    return {std::vector<Need>(inputs_of(step).size()), std::vector<Layout>(outputs_of(step).size()),
            attributes_of(step)};
  }

  // The model's images arrive split; whatever can follow does.
  void split_images() {
    for (std::size_t i = 0; i < stage_.tensors.size(); ++i) {
      const LocalTensor& tensor = stage_.tensors[i];
      if (tensor.kind != TensorKind::input || !is_floating(tensor.dtype) || tensor.shape.size() < policy_.image_dim + 2)
        continue;
      const Layout layout = Layout::split(tensor.shape.size() - policy_.image_dim);
      if (divides(tensor.shape, layout, ways_)) result_.layouts[i] = layout;
    }
  }

  // Each rank is given its part of the samples.
  void split_samples() {
    for (std::size_t i = 0; i < stage_.tensors.size(); ++i)
      if (const LocalTensor& tensor = stage_.tensors[i]; tensor.samples)
        result_.layouts[i] = Layout::split(*tensor.samples);
  }

  // Features arrive split along the sequence; ids do where they are looked up, and whole where anything else reads
  // them.
  void take_tokens() {
    tokens_.emplace(stage_);
    for (const auto& [tensor, dim] : tokens_->features)
      if (divides(stage_[tensor].shape, Layout::split(dim), ways_))
        result_.layouts[tensor.index()] = Layout::split(dim);
  }

  [[nodiscard]] Tokens::Role role_of(std::size_t step) const {
    return tokens_ ? tokens_->roles[step] : Tokens::Role::any;
  }

  void split_ids(const Step& step, std::vector<std::optional<Layout>>& arriving) const {
    const LocalTensorId ids = inputs_of(step)[ids_operand(step)];
    const auto dim = tokens_->dim_of(ids);
    if (dim && divides(stage_[ids].shape, Layout::split(*dim), ways_))
      arriving[ids_operand(step)] = Layout::split(*dim);
  }

  // What is asked for before what will do instead.
  [[nodiscard]] std::vector<Variant> of_attention(const Attention& op, const Operands& o) const {
    std::vector<Variant> first, instead;
    switch (policy_.context_exchange) {
      case ContextExchange::automatic: first = sharding::by_heads(op, o), instead = sharding::by_keys(op, o); break;
      case ContextExchange::heads: return sharding::by_heads(op, o);
      case ContextExchange::keys: return sharding::by_keys(op, o);
      case ContextExchange::ring: first = sharding::by_ring(op, o), instead = sharding::by_keys(op, o); break;
    }
    std::ranges::move(instead, std::back_inserter(first));
    return first;
  }

  [[nodiscard]] std::vector<Variant> of_scores(const MatMul& op, const Operands& o) const {
    std::vector<Variant> by_heads = sharding::scores_by_heads(op, o), by_keys = sharding::scores_by_keys(op, o);
    if (policy_.context_exchange == ContextExchange::heads) return by_heads;
    if (policy_.context_exchange != ContextExchange::automatic) return by_keys;
    std::ranges::move(by_keys, std::back_inserter(by_heads));
    return by_heads;
  }

  [[nodiscard]] std::vector<Variant> possible_variants(const Step& step, Tokens::Role role, const Operands& o) const {
    const auto* compute = std::get_if<Compute>(&step);
    if (!compute) return variants_of(std::get<Exchange>(step), o);
    const Attributes& op = compute->attributes;
    switch (role) {
      case Tokens::Role::attention: return of_attention(std::get<Attention>(op), o);
      case Tokens::Role::scores: return of_scores(std::get<MatMul>(op), o);
      case Tokens::Role::mix: return sharding::mix_as_scores(std::get<MatMul>(op), o);
      default: return std::visit([&](const auto& any) { return sharding::variants(any, o); }, op);
    }
  }

  Variant choose_for(const Step& step, Tokens::Role role) {
    std::vector<Shape> inputs, outputs;
    std::vector<std::optional<Layout>> arriving;
    std::vector<bool> present;
    for (const LocalTensorId in : inputs_of(step)) {
      present.push_back(in.valid());
      inputs.push_back(in.valid() ? stage_[in].shape : Shape{});
      arriving.push_back(in.valid() ? result_.layouts[in.index()] : std::nullopt);
    }
    for (const LocalTensorId out : outputs_of(step)) outputs.push_back(stage_[out].shape);
    if (role == Tokens::Role::lookup) split_ids(step, arriving);
    Operands operands{inputs, outputs, arriving, ways_, {}, present};
    operands.tokens = policy_.weights == Policy::Weights::tokens || policy_.home == Policy::Home::sequence;
    if (const auto results = outputs_of(step); !results.empty()) {
      operands.column_pieces = ahead_.pieces[results[0].index()];
      operands.logits = ahead_.logits[results[0].index()];
      operands.bag = ahead_.bags[results[0].index()];
      operands.routes = ahead_.routes[results[0].index()];
    }
    if (const auto read = inputs_of(step); !read.empty() && read[0].valid())
      operands.table = ahead_.table[read[0].index()];
    const Attributes attributes = attributes_of(step);
    std::vector<Variant> possible = possible_variants(step, role, operands);
    std::erase_if(possible, [&](const Variant& v) { return !fits(v, operands); });
    if (policy_.weights == Policy::Weights::tables && !inputs_of(step).empty() &&
        ahead_.bags[inputs_of(step)[0].index()] && operands.split(0))
      if (const auto bag = sharding::bag_by_features(std::get<Reduce>(attributes), operands)) return *bag;
    if (policy_.whole_experts && std::holds_alternative<GroupedLinear>(attributes))
      for (Variant& variant : possible)
        if (variant.cut == Cut::experts) return std::move(variant);
    if (multiplies_by_weight(attributes)) return by_policy(possible, operands, whole_of(step));
    const bool mixes = role != Tokens::Role::any && role != Tokens::Role::lookup;
    if (mixes && !possible.empty()) return std::move(possible.front());
    possible.push_back(whole_of(step));
    return cheapest(step, std::move(possible));
  }

  [[nodiscard]] bool fits(const Variant& variant, const Operands& o) const {
    for (std::size_t i = 0; i < o.inputs.size(); ++i)
      if (o.present[i] && !divides(o.inputs[i], variant.inputs.at(i).layout, ways_)) return false;
    for (std::size_t i = 0; i < o.outputs.size(); ++i)
      if (!divides(o.outputs[i], variant.outputs.at(i), ways_)) return false;
    return true;
  }

  static bool multiplies_by_weight(const Attributes& attributes) {
    return std::holds_alternative<Convolution>(attributes) || std::holds_alternative<Linear>(attributes) ||
           std::holds_alternative<Embedding>(attributes) || std::holds_alternative<GroupedLinear>(attributes);
  }

  [[nodiscard]] Variant by_policy(const std::vector<Variant>& possible, const Operands& o, Variant whole) const {
    for (const Cut cut : preference(possible, o))
      for (const Variant& variant : possible)
        if (variant.cut == cut && (cut != Cut::along || stays_split(variant, o))) return variant;
    return whole;
  }

  [[nodiscard]] std::vector<Cut> preference(const std::vector<Variant>& possible, const Operands& o) const {
    switch (policy_.weights) {
      case Policy::Weights::columns: return {Cut::groups, Cut::columns};
      case Policy::Weights::rows: return {Cut::groups, Cut::rows};
      case Policy::Weights::image:
      case Policy::Weights::tokens: return {Cut::along};
      case Policy::Weights::experts: return {Cut::experts, Cut::along};
      case Policy::Weights::tables: return {Cut::features, Cut::along};
      case Policy::Weights::none:
      case Policy::Weights::alternate: break;
    }
    const Layout* arriving = o.split(0);
    // A router's weight is small: ranks that have some of the tokens choose for these, as Megatron-LM's do.
    if (o.routes && o.tokens && arriving) return {Cut::along, Cut::columns};
    const bool features_arrive = std::any_of(possible.begin(), possible.end(), [&](const Variant& v) {
      return v.cut == Cut::rows && arriving && v.inputs[0].layout == *arriving;
    });
    if (features_arrive) return {Cut::groups, Cut::rows, Cut::columns};
    return {Cut::groups, Cut::columns, Cut::table};
  }

  // What arrives split stays so; once gathered it stays whole.
  [[nodiscard]] static bool stays_split(const Variant& variant, const Operands& o) {
    for (std::size_t i = 0; i < o.inputs.size(); ++i)
      if (o.split(i) && variant.inputs[i].layout == *o.split(i)) return true;
    return false;
  }

  [[nodiscard]] Variant cheapest(const Step& step, std::vector<Variant> possible) const {
    std::vector<double> costs;
    for (const Variant& variant : possible) costs.push_back(cost(step, variant));
    const auto best = std::min_element(costs.begin(), costs.end()) - costs.begin();
    return std::move(possible[static_cast<std::size_t>(best)]);
  }

  // Elements sent for the operands, and within the operation, over both passes. What was converted for an earlier
  // operation is there.
  [[nodiscard]] double cost(const Step& step, const Variant& variant) const {
    double total = variant.sent;
    const std::span<const LocalTensorId> inputs = inputs_of(step);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].valid() || !result_.layouts[inputs[i].index()]) continue;
      if (converted_.contains({inputs[i], variant.inputs[i]})) continue;
      const Layout& have = *result_.layouts[inputs[i].index()];
      Shape shape = part_of(stage_[inputs[i]].shape, have, ways_);
      for (const Conversion& c : convert(have, variant.inputs[i], stage_[inputs[i]].requires_gradient)) {
        const Shape after = result_shape(c.forward, shape, ways_);
        total += elements_sent(c.forward, shape, after, ways_) + elements_sent(c.backward, after, shape, ways_);
        shape = after;
      }
    }
    return total;
  }

  // Sources take the layout they are first wanted in; sums go home.
  void settle(const Step& step, Variant& variant) {
    const std::span<const LocalTensorId> inputs = inputs_of(step), outputs = outputs_of(step);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].valid()) continue;
      const std::size_t at = inputs[i].index();
      const Need& need = variant.inputs[i];
      converted_.insert({inputs[i], need});
      result_.shares = result_.shares || need.layout.is_split();
      result_.partial_gradient[at] = result_.partial_gradient[at] && need.partial_gradient;
      if (!produced_[at] && stage_[inputs[i]].requires_gradient && !result_.layouts[at] && variant.late_bias != i)
        result_.layouts[at] = need.layout;
    }
    if (policy_.home == Policy::Home::sequence) note_rows(step, variant);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      result_.layouts[outputs[i].index()] =
          variant.outputs[i].is_partial() ? home(step, outputs[i], variant.outputs[i]) : variant.outputs[i];
    if (variant.late_bias && inputs[*variant.late_bias].valid())
      settle_bias(inputs[*variant.late_bias], outputs[0], variant);
  }

  // A bias is added to the sum where that is: a part of it, all of it, or all of it to some tokens.
  void settle_bias(LocalTensorId bias, LocalTensorId output, Variant& variant) {
    const Layout& sum = *result_.layouts[output.index()];
    const std::size_t features = variant.outputs[0].dim;
    Need need = sum.is_split(features) ? sharding::split(0, sum.pieces)
                : sum.is_split()       ? sharding::shared()
                                       : sharding::whole();
    result_.partial_gradient[bias.index()] = need.partial_gradient;
    if (stage_[bias].requires_gradient && !result_.layouts[bias.index()]) result_.layouts[bias.index()] = need.layout;
    variant.inputs[*variant.late_bias] = std::move(need);
  }

  [[nodiscard]] Layout home(const Step& step, LocalTensorId tensor, const Layout& partial) const {
    const Shape& shape = stage_[tensor].shape;
    Layout wanted = Layout::whole();
    if (policy_.home == Policy::Home::features && !shape.empty()) wanted = Layout::split(partial.dim);
    if (policy_.home == Policy::Home::sequence) wanted = sequence_home(step, shape);
    return divides(shape, wanted, ways_) ? wanted : Layout::whole();
  }

  // Slots and tokens in a row lie as they did before weights wanted them whole.
  [[nodiscard]] Layout sequence_home(const Step& step, const Shape& shape) const {
    if (std::holds_alternative<GroupedLinear>(attributes_of(step)))
      return slots_.extent == shape[1] ? slots_.layout : Layout::whole();
    if (shape.size() == 2) return rows_.extent == shape[0] ? rows_.layout : Layout::whole();
    return shape.size() == 3 ? sequence_of(shape) : Layout::whole();
  }

  // How slots come to their experts, and tokens of sequences that are put in a row.
  void note_rows(const Step& step, const Variant& variant) {
    const Attributes attributes = attributes_of(step);
    const std::span<const LocalTensorId> inputs = inputs_of(step);
    if (std::holds_alternative<GroupedLinear>(attributes)) {
      const std::optional<Layout>& come = result_.layouts[inputs[0].index()];
      if (come && come->is_split(1)) slots_ = {stage_[inputs[0]].shape[1], *come};
    } else if (std::holds_alternative<Reshape>(attributes)) {
      const Shape& made = stage_[outputs_of(step)[0]].shape;
      const bool in_a_row = stage_[inputs[0]].shape.size() == 3 && made.size() == 2;
      if (in_a_row && variant.inputs[0].layout.is_split(1) && variant.outputs[0].is_split(0))
        rows_ = {made[0], variant.outputs[0]};
    }
  }

  [[nodiscard]] Layout sequence_of(const Shape& shape) const {
    const std::int64_t parts = policy_.sequence_parts;
    if (parts == 1 || shape[1] % parts != 0) return Layout::split(1);
    return Layout::split(1, Ints(static_cast<std::size_t>(parts), shape[1] / parts));
  }

  const Stage& stage_;
  Policy policy_;
  int ways_;
  Choices result_;
  std::vector<bool> produced_;
  std::size_t end_;
  std::set<std::pair<LocalTensorId, Need>> converted_;
  LookAhead ahead_;
  std::optional<Tokens> tokens_;
  struct Rows {
    std::int64_t extent = 0;
    Layout layout;
  };
  Rows slots_, rows_;  // Home::sequence: the last that came so
};

}  // namespace

Choices choose(const Stage& stage, const Policy& policy, int ways) { return Chooser(stage, policy, ways).run(); }

}  // namespace sibyl
