#include "oracle/closed/stage_form.h"

#include <algorithm>
#include <map>

#include "netmodel/collective/partition.h"
#include "oracle/memory/state.h"
#include "oracle/plan/precision.h"

namespace sibyl::closed {

StageFormula::StageFormula(ProgramTable& table, MemoryTable& memory, Replicas& replicas, Slowdown slowdown)
    : table_(table),
      memory_(memory),
      replicas_(replicas),
      slowdown_(slowdown),
      dispatch_(table.kernels().cluster().kernels.device().dispatch.value()),
      factor_(table.kernels().cluster().composition.factor) {}

StageForm StageFormula::stage(Range range, Recompute recompute, bool split, bool alone) {
  prepare(range, recompute, split, alone);
  StageForm form;
  form.forward = turn({.forward = true});
  if (split) form.input = turn({.forward = false, .weights = false});
  for (const bool first : {true, false})
    for (const bool last : {true, false})
      form.backward[StageForm::slot(first, last)] =
          turn({.forward = false, .inputs = !split, .weights = true, .first = first, .last = last});
  for (std::size_t i = range.begin; i < range.end; ++i) form.alone += (*rows_)[i].alone;
  add_tail(form);
  add_memory(form);
  return form;
}

void StageFormula::prepare(Range range, Recompute recompute, bool split, bool alone) {
  range_ = range;
  alone_ = alone;
  rows_ = &table_.rows(split);
  segments_ = table_.recomputed(recompute, range.begin, range.end);
  messages_.clear();
  units_.clear();
  updated_.clear();
  gathers_ = copies_back_ = weights_ = optimizer_ = buffers_ = gradients_ = 0;
  copied_back_ = 0;
  freed_ = false;
  for (const Reading& reading : table_.readings())
    if (reading.step >= range.begin && reading.step < range.end && reading.before <= range.begin)
      weights_ += memory_.rounded(reading.bytes);
  std::map<std::vector<MeshAxis>, Arrivals> groups;
  for (std::size_t u = table_.uses_from(range.end); u < table_.uses_from(range.begin); ++u) {
    const Use& use = table_.uses()[u];
    const Parameter& parameter = table_.parameters()[use.parameter];
    if (use.before > range.begin) continue;
    gradients_ += memory_.rounded(parameter.bytes());
    std::vector<MeshAxis> axes = replicas_.axes(parameter.summed_over);
    if (replicas_.parts(axes) == 1 || tied(parameter)) add_whole(parameter);
    if (tied(parameter)) buffers_ += parameter.bytes();
    if (!axes.empty() && !tied(parameter)) groups[std::move(axes)].push_back({use.parameter, use.step});
  }
  if (replicas_.strategy().zero == 3) find_stretches();
  for (const auto& [axes, arrivals] : groups) add_group(axes, arrivals);
  std::stable_sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) {
    return a.steps.begin != b.steps.begin ? a.steps.begin < b.steps.begin : a.steps.end > b.steps.end;
  });
  begins_.assign(range.end - range.begin, false);
  ends_ = begins_;
  for (const Unit& unit : units_) begins_[unit.steps.begin - range.begin] = ends_[unit.steps.end - 1 - range.begin] = true;
}

// Do several stages hold it?
bool StageFormula::tied(const Parameter& parameter) const {
  return !alone_ && (parameter.first_use < range_.begin || parameter.last_use >= range_.end);
}

bool StageFormula::exchanged(const Parameter& parameter) const {
  return replicas_.strategy().data > 1 || !parameter.summed_over.empty() || tied(parameter);
}

// Updated by every rank that has it.
void StageFormula::add_whole(const Parameter& parameter) {
  const Strategy& strategy = replicas_.strategy();
  updated_.push_back(parameter.shape);
  optimizer_ += 4.0 * (optimizer_states(strategy.optimizer) + (has_half_weights(strategy) ? 1 : 0)) *
                static_cast<double>(parameter.elements);
  if (!exchanged(parameter)) return;
  copies_back_ += parameter.copy;
  ++copied_back_;
}

// As make_buckets() and zero.h's make_units() have them.
void StageFormula::add_group(const std::vector<MeshAxis>& axes, const Arrivals& arrivals) {
  const Strategy& strategy = replicas_.strategy();
  const int parts = replicas_.parts(axes);
  const bool sharded = parts > 1, gathered = sharded && strategy.zero == 3;
  const double states = 4.0 * (optimizer_states(strategy.optimizer) + (has_half_weights(strategy) ? 1 : 0));
  double largest = 0;
  for (const Bucket& bucket : gathered ? by_unit(arrivals) : in_turn(arrivals)) {
    const double size = size_in_bytes(bucket.dtype), bytes = static_cast<double>(bucket.elements) * size;
    messages_.push_back({replicas_.seconds(sharded ? Collective::reduce_scatter : Collective::all_reduce, bytes, axes),
                         bucket.step, strategy.exchange == GradientExchange::overlapped});
    largest = std::max(largest, bytes);
    if (!sharded || strategy.zero == 1) buffers_ += bytes;
    if (!sharded) continue;
    const std::int64_t part = collective::part(bucket.elements, parts, 0).size();
    const double own = static_cast<double>(part);
    updated_.push_back({part});
    optimizer_ += states * own;
    if (strategy.zero > 1) buffers_ += own * size;
    const double gather = replicas_.seconds(Collective::all_gather, bytes, axes);
    if (!gathered) {
      gathers_ += gather;
      continue;
    }
    weights_ += own * size - bytes;
    const Segment steps = bucket.stretch < stretches_.size() ? stretches_[bucket.stretch] : Segment{range_.begin, range_.end};
    units_.push_back({steps, gather, bytes});
  }
  if (sharded && strategy.zero > 1) buffers_ += 2 * largest;
  freed_ = freed_ || (sharded && strategy.exchange == GradientExchange::overlapped);
}

std::vector<StageFormula::Bucket> StageFormula::in_turn(const Arrivals& arrivals) const {
  const Strategy& strategy = replicas_.strategy();
  const bool overlapped = strategy.exchange == GradientExchange::overlapped;
  std::vector<Bucket> buckets;
  bool open = false;
  for (const auto& [index, step] : arrivals) {
    const Parameter& parameter = table_.parameters()[index];
    if (!open || buckets.back().dtype != parameter.dtype) buckets.push_back({0, parameter.dtype, step, 0});
    Bucket& bucket = buckets.back();
    bucket.elements += parameter.elements;
    bucket.step = std::min(bucket.step, step);
    const Bytes cap = buckets.size() == 1 ? strategy.first_bucket : strategy.bucket;
    open = !overlapped || static_cast<double>(bucket.elements) * size_in_bytes(bucket.dtype) < cap.value();
  }
  return buckets;
}

// Blocks, and what lies between them up to a bucket's size.
void StageFormula::find_stretches() {
  stretches_.clear();
  const double cap = replicas_.strategy().bucket.value();
  const auto fill = [&](std::size_t begin, std::size_t end) {
    Segment open{begin, begin};
    double bytes = 0;
    while (open.end < end) {
      for (std::size_t u = table_.uses_from(open.end + 1); u < table_.uses_from(open.end); ++u)
        if (table_.uses()[u].before <= range_.begin) bytes += table_.parameters()[table_.uses()[u].parameter].bytes();
      ++open.end;
      if (bytes < cap && open.end < end) continue;
      stretches_.push_back(open);
      open.begin = open.end;
      bytes = 0;
    }
  };
  std::size_t at = range_.begin;
  for (const Segment& block : table_.blocks(range_.begin, range_.end)) {
    fill(at, block.begin);
    stretches_.push_back(block);
    at = block.end;
  }
  fill(at, range_.end);
}

// The last stretch first, what several read last.
std::vector<StageFormula::Bucket> StageFormula::by_unit(const Arrivals& arrivals) {
  const auto stretch_of = [&](std::size_t step) {
    const auto after = std::upper_bound(stretches_.begin(), stretches_.end(), step,
                                        [](std::size_t s, const Segment& stretch) { return s < stretch.end; });
    return static_cast<std::size_t>(after - stretches_.begin());
  };
  std::map<std::size_t, Bucket> units;
  for (const auto& [index, step] : arrivals) {
    const Parameter& parameter = table_.parameters()[index];
    const std::size_t first = stretch_of(parameter.first_use);
    const std::size_t stretch = first == stretch_of(parameter.last_use) ? first : stretches_.size();
    const std::size_t order = stretch == stretches_.size() ? stretch : stretches_.size() - 1 - stretch;
    const auto [entry, added] = units.try_emplace(order, Bucket{0, parameter.dtype, step, stretch});
    entry->second.elements += parameter.elements;
    entry->second.step = std::min(entry->second.step, step);
  }
  std::vector<Bucket> buckets;
  for (const auto& [order, bucket] : units) buckets.push_back(bucket);
  return buckets;
}

void StageFormula::each_task(const Pass& pass, auto&& task, auto&& begun, auto&& done) {
  const auto forward = [&](std::size_t i) {
    const Row& row = (*rows_)[i];
    if (row.exchange_forward > 0) task(row.exchange_forward, 0);
    if (row.forward.launches > 0) task(row.forward.seconds, row.forward.launches);
  };
  if (pass.forward) {
    for (std::size_t i = range_.begin; i < range_.end; ++i) begun(i), forward(i), done(i);
    return;
  }
  auto segment = segments_.rbegin();
  for (std::size_t i = range_.end; i-- > range_.begin;) {
    begun(i);
    if (segment != segments_.rend() && segment->end == i + 1) {
      for (std::size_t s = segment->begin; pass.inputs && s < segment->end; ++s) forward(s);
      ++segment;
    }
    const Row& row = (*rows_)[i];
    Kernels sum;
    const auto add = [&](double seconds, int launches) { sum.seconds += seconds, sum.launches += launches; };
    if (pass.inputs) {
      if (row.exchange_backward > 0) task(row.exchange_backward, 0);
      add(row.backward.seconds, row.backward.launches);
    }
    if (pass.weights) add(row.backward_weight.seconds, row.backward_weight.launches);
    for (std::size_t u = table_.uses_from(i + 1); pass.weights && u < table_.uses_from(i); ++u) {
      const Use& use = table_.uses()[u];
      const Parameter& parameter = table_.parameters()[use.parameter];
      if (use.before > range_.begin) continue;
      if (!pass.first) add(parameter.sum, 1);
      if (pass.last && exchanged(parameter)) add(parameter.copy, 1);
    }
    if (sum.launches > 0) task(sum.seconds, sum.launches);
    done(i);
  }
}

double StageFormula::run(const Pass& pass, Host& host) {
  double busy = 0;
  each_task(
      pass,
      [&](double seconds, int launches) {
        host.issued += dispatch_ * launches;
        host.device = std::max(host.device, host.issued) + seconds;
        busy += seconds;
      },
      [](std::size_t) {}, [](std::size_t) {});
  return busy;
}

namespace {

constexpr double negligible = 0.003;  // of what is computed: waiting for the host

}  // namespace

StageForm::Turns StageFormula::turn(const Pass& pass) {
  Host host;
  const double busy = run(pass, host), waited = host.device - busy;
  const bool waits = waited > negligible * busy;
  if (!units_.empty()) return streams(std::span(&pass, 1), waits);
  if (pass.forward || !pass.weights || !pass.last || messages_.empty()) return {host.device, 0};
  return waits ? streams(std::span(&pass, 1), true) : with_messages(pass, 0, waited);
}

StageForm::Turns StageFormula::with_messages(const Pass& pass, double before, double waited) {
  std::vector<double> done_by(range_.end - range_.begin);  // compute done when a step's backward is
  double busy = before;
  each_task(
      pass, [&](double seconds, int) { busy += seconds; }, [](std::size_t) {},
      [&](std::size_t i) { done_by[i - range_.begin] = busy; });
  std::vector<Seconds> ready, durations;
  for (const Message& message : messages_) {
    ready.emplace_back(message.overlapped ? done_by[message.step - range_.begin] : busy);
    durations.emplace_back(message.seconds);
  }
  const StreamEnds ends = closed_streams(Seconds{busy}, ready, durations, slowdown_);
  return {ends.compute.value() + waited, durations.empty() ? 0 : ends.messages.value() + waited};
}

namespace {

// Tasks and messages of one stage after the other; tasks between two events may be one.
class Streams {
 public:
  Streams(double dispatch, bool one_by_one, std::size_t units)
      : dispatch_(dispatch), one_by_one_(one_by_one), gathered_(units, 0), there_(units, 0) {}

  void task(double seconds, int launches) {
    open_ += seconds;
    issue_ += dispatch_ * launches;
    if (one_by_one_) close();
  }
  void send(double seconds) {
    close();
    messages_.push_back({Seconds{seconds}, tasks_.empty() ? Message::at_once : tasks_.size() - 1});
  }
  // Tasks from here on wait for the unit; the next one is then on its way.
  void enter(std::size_t unit, double gather) {
    close();
    ask(unit, gather);
    needed_ = std::max(needed_, gathered_[unit]);
  }
  void ask(std::size_t unit, double gather) {
    if (there_[unit] != 0) return;
    send(gather);
    gathered_[unit] = messages_.size();
    there_[unit] = 1;
  }
  void leave(std::size_t unit) { there_[unit] = 0; }
  void has(std::size_t unit) { there_[unit] = 1; }

  StreamsResult run(Slowdown slowdown) {
    close();
    return run_streams(tasks_, messages_, slowdown);
  }

 private:
  void close() {
    if (open_ > 0 || issue_ > 0) tasks_.push_back({Seconds{open_}, Seconds{one_by_one_ ? issue_ : 0.0}, needed_});
    open_ = issue_ = 0;
  }

  double dispatch_, open_ = 0, issue_ = 0;
  bool one_by_one_;
  std::vector<Task> tasks_;
  std::vector<Message> messages_;
  std::size_t needed_ = 0;
  std::vector<std::size_t> gathered_;  // by unit: the messages after which it is there
  std::vector<char> there_;            // or on its way
};

}  // namespace

StageForm::Turns StageFormula::streams(std::span<const Pass> passes, bool one_by_one) {
  Streams streams(dispatch_, one_by_one, units_.size());
  // What every step reads stays from forward to backward where no other stage comes between (zero.h, stays_gathered).
  const auto stays = [&](const Unit& unit) { return alone_ && unit.steps.begin == range_.begin && unit.steps.end == range_.end; };
  for (std::size_t u = 0; !passes.front().forward && u < units_.size(); ++u)
    if (stays(units_[u])) streams.has(u);
  for (const Pass& pass : passes) {
    std::size_t next = 0;
    const auto begun = [&](std::size_t i) {
      if (pass.forward ? !begins_[i - range_.begin] : !ends_[i - range_.begin]) return;
      for (std::size_t n = 0; n < units_.size(); ++n) {
        const std::size_t u = pass.forward ? n : units_.size() - 1 - n;
        if (pass.forward ? units_[u].steps.begin != i : units_[u].steps.end != i + 1) continue;
        streams.enter(u, units_[u].gather);
        const std::size_t then = pass.forward ? u + 1 : u - 1;  // of the first none
        if (then < units_.size()) streams.ask(then, units_[then].gather);
      }
    };
    const auto done = [&](std::size_t i) {
      const bool over = pass.forward ? ends_[i - range_.begin] : begins_[i - range_.begin];
      for (std::size_t u = 0; over && u < units_.size(); ++u)
        if (pass.forward ? units_[u].steps.end == i + 1 && !stays(units_[u]) : units_[u].steps.begin == i) streams.leave(u);
      if (pass.forward || !pass.weights || !pass.last) return;
      const auto complete = [&](const Message& m) { return i == range_.begin || (m.overlapped && m.step >= i); };
      for (; next < messages_.size() && complete(messages_[next]); ++next) streams.send(messages_[next].seconds);
    };
    each_task(pass, [&](double seconds, int launches) { streams.task(seconds, launches); }, begun, done);
  }
  const StreamsResult result = streams.run(slowdown_);
  return {result.compute_end.value(), result.message_end.value()};
}

StageForm::Turns StageFormula::step(Range range, Recompute recompute, std::int64_t micro_batches) {
  constexpr std::int64_t walked = 4;  // later ones are like the one before
  prepare(range, recompute, false, true);
  const StageForm::Turns most = passes(std::min(micro_batches, walked));
  if (micro_batches <= walked) return most;
  const double more = (most.time - passes(walked - 1).time) * static_cast<double>(micro_batches - walked);
  return {most.time + more, most.messages + more};
}

StageForm::Turns StageFormula::passes(std::int64_t micro_batches) {
  std::vector<Pass> all;
  for (std::int64_t m = 0; m < micro_batches; ++m) {
    all.push_back({.forward = true});
    all.push_back({.forward = false, .first = m == 0, .last = m + 1 == micro_batches});
  }
  Host host;
  double busy = 0, before_last = 0;
  for (const Pass& pass : all) {
    before_last = busy;
    busy += run(pass, host);
  }
  const double waited = host.device - busy;
  const bool waits = waited > negligible * busy;
  if (!units_.empty() || (waits && !messages_.empty())) return streams(all, waits);
  return with_messages(all.back(), before_last, waited);
}

}  // namespace sibyl::closed
