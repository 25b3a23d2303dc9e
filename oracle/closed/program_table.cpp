#include "oracle/closed/program_table.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "base/hash.h"
#include "oracle/cost/framework.h"
#include "oracle/cost/kernels.h"
#include "oracle/cost/price.h"
#include "oracle/cost/ring_overlap.h"

namespace sibyl::closed {
namespace {

// The program as one stage that accumulates and exchanges all of its gradients, so that every kernel a stage may run is
// among its own.
Stage with_everything(Stage stage, bool split) {
  using Kind = Turn::Kind;
  for (int m = 0; m < 2; ++m) {
    stage.schedule.push_back({Kind::forward, m, 0});
    stage.schedule.push_back({split ? Kind::backward_input : Kind::backward, m, 0});
    if (split) stage.schedule.push_back({Kind::backward_weight, m, 0});
  }
  GradientSync all;
  all.buckets.emplace_back().parameters = gradient_order(stage);
  stage.gradients.push_back(std::move(all));
  return stage;
}

}  // namespace

std::vector<Row> priced_rows(const Stage& program, const Strategy& strategy, KernelPrices& kernels, bool split) {
  const Cluster& cluster = kernels.cluster();
  const Mesh mesh = mesh_of(strategy);
  const Stage stage = with_everything(program, split);
  const StageKernels of = kernels_of(stage, cluster.kernels.device().backend);
  std::vector<PricedKernel> prices;
  for (const KernelKey& key : of.keys) prices.push_back(kernels.of(key, strategy));
  const std::vector<ExchangeWait> waits = exchange_waits(mesh, stage, of, prices, cluster);
  const double factor = cluster.composition.factor, bare = bare_launch(cluster.kernels.device());
  std::vector<Row> rows(stage.steps.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    const StageKernels::OfStep& step = of.steps[i];
    const auto add = [&](Kernels& sum, const std::optional<StageKernels::Index>& key, double launches = 1) {
      if (!key) return;
      const double time = prices[*key].estimate.time.time.value();
      sum.seconds += time * factor;
      sum.launches += launches;
      row.alone += time;
    };
    add(row.forward, step.forward);
    row.computed_forward = row.alone * factor;
    if (step.forward) row.forward.seconds += cluster.step_overhead_per_operation.value() * factor;
    add(row.backward, step.backward);
    for (const auto key : step.sums) add(row.backward, key, bare);
    add(row.backward_weight, step.backward_weight);
    row.computed_backward = row.alone * factor - row.computed_forward;
    for (const auto& key : {step.backward, step.backward_weight})
      if (key) row.kernels_backward += prices[*key].estimate.time.time.value() * factor;
    if (const auto* exchange = std::get_if<Exchange>(&stage.steps[i])) {
      const PricedExchange priced = price_exchange(mesh, stage, *exchange, cluster);
      const auto exchanged = [](const CollectiveEstimate& sent, const WireUse& wire, Seconds wait) {
        return Exchanged{(wait + sent.time.time).value(), wait.value(), wire, sent.in_turn, true};
      };
      if (priced.forward) row.exchange_forward = exchanged(*priced.forward, priced.forward_wire, waits[i].forward);
      if (priced.backward) row.exchange_backward = exchanged(*priced.backward, priced.backward_wire, waits[i].backward);
    }
  }
  return rows;
}

Exchanged Exchanged::after(double computing) const {
  const double alone = seconds - wait;
  if (in_turn == 1 || alone <= 0) return *this;
  Exchanged result = *this;
  const double time = time_in_turn(alone, in_turn, computing);
  result.seconds = wait + time;
  result.wire.busy = std::min(1.0, wire.busy * alone / time);
  return result;
}

Exchanged Exchanged::hidden(double most) const {
  Exchanged result = *this;
  result.seconds -= std::min(most, seconds - wait);
  return result;
}

namespace {

// Exchanges after each other, as oracle/cost/waits has those of a stage.
void in_a_pass(std::vector<Row>& rows) {
  constexpr double enough = std::numeric_limits<double>::infinity();
  double computing = enough;
  std::size_t met = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Row& row = rows[i];
    if (row.exchange_forward.sent) {
      row.first_forward = row.exchange_forward.after(enough);
      row.exchange_forward = row.exchange_forward.after(computing);
      row.met_forward = std::exchange(met, i + 1);
      computing = 0;
    }
    computing += row.computed_forward;
  }
  computing = enough;
  met = absent;
  for (std::size_t i = rows.size(); i-- > 0;) {
    Row& row = rows[i];
    if (row.exchange_backward.sent) {
      row.first_backward = row.exchange_backward.after(enough);
      row.exchange_backward = row.exchange_backward.after(computing);
      row.met_backward = std::exchange(met, i);
      computing = 0;
    }
    computing += row.computed_backward;
  }
}

}  // namespace

ProgramTable::ProgramTable(Program program, const Strategy& strategy, KernelPrices& kernels, const ProgramTable* alike)
    : whole_(std::move(program.whole)),
      folded_(std::move(program.folded)),
      like_(std::move(program.like)),
      folded_rows_(std::move(program.rows)),
      strategy_(strategy),
      kernels_(&kernels) {
  if (alike) {
    facts_ = alike->facts_;
    return;
  }
  facts_ = std::make_shared<Facts>(*whole_, like_);
  facts_->crossed.resize(steps() + 1);
  for (const Step& step : whole_->steps) {
    facts_->trained.push_back(false);
    each_gradient(*whole_, step, [&](LocalTensorId) { facts_->trained.back() = true; });
  }
  find_parameters();
  price_parameters();
  find_readings();
  hash_steps();
}

const std::vector<Row>& ProgramTable::rows(bool split) {
  std::vector<Row>& rows = rows_[split ? 1 : 0];
  if (rows.empty()) {
    rows = make_rows(split);
    in_a_pass(rows);
    hide_exchanges(rows);
  }
  return rows;
}

// As price_exchanges() does.
void ProgramTable::hide_exchanges(std::vector<Row>& rows) const {
  if (strategy_.overlap_tensor) {
    const auto times = [&](std::size_t step) {
      return KernelTimes{Seconds{rows[step].computed_forward}, Seconds{rows[step].kernels_backward}};
    };
    for (BesideProducts& beside : beside_products(mesh_of(strategy_), *whole_, times))
      rows[beside.exchange].products = std::move(beside.products);
  }
  if (!goes_round(strategy_)) return;
  const Slowdown slowdown = slowdown_of(strategy_, kernels_->cluster());
  for (const Ring& ring : rings(*whole_)) {
    const Row& attention = rows[ring.attention];
    BesideAttention forward(Seconds{attention.computed_forward}, ring.ranks, slowdown);
    BesideAttention backward(Seconds{attention.kernels_backward}, ring.ranks, slowdown);
    const auto hide = [](BesideAttention& beside, Exchanged& own, Exchanged& first) {
      if (!own.sent) return;
      BesideAttention as_first =
          beside;  // it is the stage's first, or it is not: what is left after it is about the same
      const auto by = [](BesideAttention& kernels, const Exchanged& one) {
        const Seconds alone{one.seconds - one.wait};
        return (alone - kernels.waited(alone)).value();
      };
      first = first.hidden(by(as_first, first));
      own = own.hidden(by(beside, own));
    };
    for (const std::size_t exchange : ring.exchanges) {
      hide(forward, rows[exchange].exchange_forward, rows[exchange].first_forward);
      hide(backward, rows[exchange].exchange_backward, rows[exchange].first_backward);
    }
  }
}

std::vector<Row> ProgramTable::make_rows(bool split) {
  std::vector<Row> rows = std::move(folded_rows_[split ? 1 : 0]);
  if (rows.empty()) rows = priced_rows(folded_ ? *folded_ : *whole_, strategy_, *kernels_, split);
  if (!folded_) return rows;
  std::vector<Row> all;
  all.reserve(steps());
  std::size_t own = 0;  // steps of the whole that are of the folded program, in its order
  std::vector<std::size_t> row_of(steps());
  for (std::size_t i = 0; i < steps(); ++i) {
    row_of[i] = like_[i] == i ? own++ : row_of[like_[i]];
    all.push_back(rows[row_of[i]]);
  }
  return all;
}

void ProgramTable::find_parameters() {
  std::vector<std::size_t> parameter_of(whole_->tensors.size(), absent);
  std::vector<std::size_t> last(whole_->tensors.size(), 0);  // 1 + step
  std::vector<std::vector<Use>> of_step(steps());
  for (std::size_t i = 0; i < steps(); ++i) {
    each_gradient(*whole_, whole_->steps[i], [&](LocalTensorId id) {
      const LocalTensor& tensor = (*whole_)[id];
      if (tensor.kind != TensorKind::parameter || last[id.index()] == i + 1) return;
      std::size_t& index = parameter_of[id.index()];
      if (index == absent) {
        index = facts_->parameters.size();
        std::vector<MeshAxis> axes = tensor.summed_over;
        std::sort(axes.begin(), axes.end());
        const auto known = std::find(facts_->summed_over.begin(), facts_->summed_over.end(), axes);
        const auto summed = static_cast<std::size_t>(known - facts_->summed_over.begin());
        if (known == facts_->summed_over.end()) facts_->summed_over.push_back(std::move(axes));
        facts_->parameters.push_back(
            {id, tensor.shape, element_count(tensor.shape), tensor.dtype, tensor.gradient_type(), summed, i, i});
      }
      facts_->parameters[index].last_use = i;
      const std::size_t before = last[id.index()];
      if (before > 0) std::ranges::find(of_step[before - 1], index, &Use::parameter)->after = i + 1;
      of_step[i].push_back({index, i, before, 0});
      last[id.index()] = i + 1;
    });
    const auto* compute = std::get_if<Compute>(&whole_->steps[i]);
    if (compute && std::holds_alternative<Linear>(compute->attributes))
      std::reverse(of_step[i].begin(), of_step[i].end());
  }
  facts_->use_at.assign(steps() + 1, 0);
  for (std::size_t i = steps(); i-- > 0;) {
    facts_->use_at[i + 1] = facts_->uses.size();
    facts_->uses.insert(facts_->uses.end(), of_step[i].begin(), of_step[i].end());
  }
  facts_->use_at[0] = facts_->uses.size();
  for (std::size_t u = 0; u < facts_->uses.size(); ++u)
    if (const Parameter& p = facts_->parameters[facts_->uses[u].parameter]; p.first_use != p.last_use)
      facts_->shared_uses.push_back(u);
}

void ProgramTable::price_parameters() {
  const double factor = kernels_->cluster().composition.factor;
  const auto time = [&](Attributes attributes, std::vector<Shape> inputs, const Parameter& of, DType type) {
    const KernelKey key{{std::move(attributes), std::move(inputs), {of.shape}, type}, Pass::forward, 0};
    return kernels_->of(key, strategy_).estimate.time.time.value() * factor;
  };
  std::map<std::pair<Shape, DType>, const Parameter*> priced;  // layers have the same again
  for (Parameter& p : facts_->parameters) {
    const auto [like, added] = priced.try_emplace({p.shape, p.dtype}, &p);
    p.sum = added ? time(Binary{BinaryKind::add}, {p.shape, p.shape}, p, p.dtype) : like->second->sum;
    p.copy = added ? time(Copy{}, {p.shape}, p, p.gradient_type) : like->second->copy;
    if (p.gradient_type != p.dtype)
      p.cast = added ? time(Cast{p.gradient_type}, {p.shape}, p, p.dtype) : like->second->cast;
  }
}

double ProgramTable::copy_seconds(std::int64_t elements, DType dtype) {
  const KernelKey key{{Copy{}, {{elements}}, {{elements}}, dtype}, Pass::forward, 0};
  return kernels_->of(key, strategy_).estimate.time.time.value() * kernels_->cluster().composition.factor;
}

double ProgramTable::sum_seconds(std::int64_t elements, DType dtype) {
  const KernelKey key{{Binary{BinaryKind::add}, {{elements}, {elements}}, {{elements}}, dtype}, Pass::forward, 0};
  return kernels_->of(key, strategy_).estimate.time.time.value() * kernels_->cluster().composition.factor;
}

void ProgramTable::find_readings() {
  std::vector<std::size_t> last(whole_->tensors.size(), 0);
  for (std::size_t i = 0; i < steps(); ++i)
    for (const LocalTensorId in : inputs_of(whole_->steps[i])) {
      if (!in.valid() || last[in.index()] == i + 1) continue;
      const LocalTensor& tensor = (*whole_)[in];
      if (tensor.kind != TensorKind::parameter && tensor.kind != TensorKind::buffer) continue;
      facts_->readings.push_back(
          {i, last[in.index()], static_cast<double>(element_count(tensor.shape)) * size_in_bytes(tensor.dtype)});
      last[in.index()] = i + 1;
    }
}

// Content: what a step runs, which of its parameters other steps use as well, and where blocks begin and end.
void ProgramTable::hash_steps() {
  constexpr std::uint64_t base = 0xD1342543DE82EF95ULL;
  std::vector<Hash> of(steps());
  for (std::size_t i = 0; i < steps(); ++i) {
    if (!like_.empty() && like_[i] != i) {
      of[i] = of[like_[i]];
      continue;
    }
    if (const auto* compute = std::get_if<Compute>(&whole_->steps[i])) {
      of[i]
          .add(hash_value(signature(*whole_, *compute)))
          .add(compute->gradients)
          .add((compute->fused ? 1 : 0) + (compute->strided ? 2 : 0));
      for (const double bytes : {compute->moved.forward, compute->moved.backward})
        of[i].add(std::bit_cast<std::uint64_t>(bytes));
      continue;
    }
    const auto& exchange = std::get<Exchange>(whole_->steps[i]);
    for (const Transfer* transfer : {&exchange.forward, &exchange.backward})
      of[i].add(static_cast<std::uint64_t>(transfer->motion));
    of[i]
        .add(static_cast<std::uint64_t>(exchange.axis))
        .add(static_cast<std::uint64_t>((*whole_)[exchange.input].dtype));
    for (const LocalTensorId id : {exchange.input, exchange.output})
      for (const std::int64_t extent : (*whole_)[id].shape) of[i].add(static_cast<std::uint64_t>(extent));
  }
  for (const Use& use : facts_->uses) {
    const Parameter& parameter = facts_->parameters[use.parameter];
    of[use.step].add(static_cast<std::uint64_t>(parameter.elements));
    of[use.step].add(use.step - parameter.first_use).add(parameter.last_use - use.step);
    for (const MeshAxis axis : facts_->summed_over[parameter.summed])
      of[use.step].add(static_cast<std::uint64_t>(axis));
  }
  facts_->hashes.assign(1, 0);
  facts_->powers.assign(1, 1);
  for (const Hash& hash : of) {
    facts_->hashes.push_back(facts_->hashes.back() * base + hash.value());
    facts_->powers.push_back(facts_->powers.back() * base);
  }
}

std::uint64_t ProgramTable::content(std::size_t begin, std::size_t end) {
  Hash hash;
  hash.add(facts_->hashes[end] - facts_->hashes[begin] * facts_->powers[end - begin]);
  for (const auto& [reader, step] : facts_->made_again.of(begin, end))
    hash.add(reader - begin).add(facts_->hashes[step + 1] - facts_->hashes[step] * facts_->powers[1]);
  for (const std::size_t position : {begin, end}) {
    const Crossed& crossed = this->crossed(position);
    hash.add(crossed.forward.size());
    for (const double bytes : crossed.forward) hash.add(std::bit_cast<std::uint64_t>(bytes));
  }
  return hash.value();
}

const Crossed& ProgramTable::crossed(std::size_t position) {
  std::optional<Crossed>& crossed = facts_->crossed[position];
  if (crossed) return *crossed;
  crossed.emplace();
  for (const LocalTensorId id : facts_->crossing.at(position)) {
    crossed->tensors.push_back(id);
    const double bytes = static_cast<double>(element_count((*whole_)[id].shape)) * size_in_bytes((*whole_)[id].dtype);
    crossed->forward.push_back(bytes);
    if (facts_->crossing.gradient(id, position)) crossed->backward.push_back(bytes);
  }
  return *crossed;
}

const std::vector<Segment>& ProgramTable::blocks(std::size_t begin, std::size_t end) {
  const auto [known, added] = facts_->blocks_within.try_emplace({begin, end});
  if (added) known->second = facts_->blocks.within(begin, end);
  return known->second;
}

std::vector<Segment> ProgramTable::recomputed(const RunsAgain& what, std::size_t begin, std::size_t end) {
  if (what.recompute == Recompute::none) return {};
  if (what.recompute == Recompute::full) {
    std::vector<Segment> blocks = blocks_again(this->blocks(begin, end), what.blocks);
    std::erase_if(blocks, [&](const Segment& block) { return !trained(block); });
    return blocks;
  }
  const auto [entry, added] = facts_->rows_again.try_emplace({what.recompute, what.kinds});
  if (added) {
    Strategy strategy;
    strategy.recompute = what.recompute;
    strategy.recompute_kinds = what.kinds;
    entry->second = recomputed_segments(*whole_, strategy);
  }
  // A core is run again whole or not at all; of a row of operations each stage has its part.
  std::vector<Segment> inside;
  for (const Segment& row : entry->second) {
    const Segment part{std::max(row.begin, begin), std::min(row.end, end)};
    const bool whole = part.begin == row.begin && part.end == row.end;
    if (part.begin < part.end && (whole || (what.recompute == Recompute::operations && trained(part))))
      inside.push_back(part);
  }
  return inside;
}

bool ProgramTable::trained(const Segment& segment) const {
  return std::any_of(facts_->trained.begin() + static_cast<std::ptrdiff_t>(segment.begin),
                     facts_->trained.begin() + static_cast<std::ptrdiff_t>(segment.end),
                     [](bool trained) { return trained; });
}

}  // namespace sibyl::closed
