// Words and lists that every spelling of a report shares.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "oracle/bottleneck_kind.h"
#include "oracle/closed/first_answer.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl {

std::string_view to_string(Scaling scaling) { return scaling == Scaling::weak ? "weak" : "strong"; }

const std::vector<MemoryPart>& memory_parts() {
  static const std::vector<MemoryPart> parts = {
      {"weights", "weights", &MemoryBreakdown::weights, 'w'},
      {"gradients", "gradients", &MemoryBreakdown::gradients, 'g'},
      {"optimizer", "optimizer state", &MemoryBreakdown::optimizer, 'o'},
      {"activations", "activations", &MemoryBreakdown::activations, 'a'},
      {"workspace", "workspace", &MemoryBreakdown::workspace, 's'},
      {"communication", "communication", &MemoryBreakdown::communication, 'c'},
      {"framework", "framework", &MemoryBreakdown::framework, 'f'}};
  return parts;
}

std::vector<MemorySlice> memory_slices(const MemoryBreakdown& memory) {
  std::vector<MemorySlice> slices;
  for (const MemoryPart& part : memory_parts())
    if (const Bytes bytes = memory.*part.value; bytes.value() > 0)
      slices.push_back({part.key, part.title, bytes, part.letter});
  if (const Bytes cached = memory.cached(); cached.value() > 0)
    slices.push_back({cache_key, "allocator's cache", cached, '/'});
  return slices;
}

const std::vector<TimePart>& time_parts() {
  static const std::vector<TimePart> parts = {
      {"forward", "forward", &TimeBreakdown::forward, true},
      {"backward", "backward", &TimeBreakdown::backward, true},
      {"optimizer", "optimizer", &TimeBreakdown::optimizer, true},
      {"communication_exposed", "communication, waited for", &TimeBreakdown::communication_exposed, true},
      {"communication_total", "communication, in all", &TimeBreakdown::communication_total, false},
      {"bubble", "pipeline idle", &TimeBreakdown::bubble, true},
      {"host", "host dispatch, waited for", &TimeBreakdown::host, true},
      {"io", "data, waited for", &TimeBreakdown::io, true},
      {"io_total", "data, reading in all", &TimeBreakdown::io_total, false},
      {"offload_exposed", "offloaded, waited for", &TimeBreakdown::offload_exposed, true, false},
      {"offload_total", "offloaded, copying in all", &TimeBreakdown::offload_total, false, false}};
  return parts;
}

std::string percent(double fraction) {
  const double p = 100 * fraction;
  if (p == 0) return "0 %";
  if (p > 0 && p < 0.1) return "<0.1 %";
  return fmt::format("{:.{}f} %", p, p < 9.95 ? 1 : 0);
}

std::string signed_percent(double fraction) {
  const double p = 100 * fraction;
  if (p > -0.05 && p < 0.05) return "0 %";
  return fmt::format("{:+.{}f} %", p, p < 9.95 && p > -9.95 ? 1 : 0);
}

std::string ratio_text(double ratio) {
  constexpr double many = 10;  // from here on a percentage says little
  if (!(ratio < 1e15 && ratio > 1e-15)) return signed_percent(ratio - 1);
  if (ratio >= many) return fmt::format("× {}", grouped(std::llround(ratio)));
  if (ratio > 0 && ratio <= 1 / many) return fmt::format("÷ {}", grouped(std::llround(1 / ratio)));
  return signed_percent(ratio - 1);
}

Cell percent_cell(double fraction) { return {fmt::format("{:.1f}", 100 * fraction), plain_number(fraction)}; }
Cell count_cell(std::size_t count) { return {grouped(static_cast<std::int64_t>(count)), fmt::format("{}", count)}; }

std::string grouped(std::int64_t value) {
  const std::string digits = fmt::format("{}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const bool boundary = i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-';
    if (boundary) text += ',';
    text += digits[i];
  }
  return text;
}

std::string samples_per_second(double throughput) {
  return throughput >= 100 ? grouped(static_cast<std::int64_t>(throughput + 0.5)) + " samples/s"
                           : with_prefix(throughput, "samples/s");
}

std::string plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string splitting(const Prediction& p) {
  std::string text = p.parallel;
  if (p.zero > 0) text += fmt::format(", ZeRO {}", p.zero);
  if (p.zero_ranks > 0) text += fmt::format(" among {}", p.zero_ranks);
  if (p.reduce_each) text += ", each micro-batch's gradients reduced";
  if (p.gather_late) text += ", blocks gathered late";
  if (!p.offload.empty()) text += fmt::format(", offload {}", p.offload);
  if (!p.recompute.empty()) text += fmt::format(", recompute {}", p.recompute);
  if (!p.order.empty()) text += fmt::format(", order {}", p.order);
  if (!p.split_until.empty()) text += fmt::format(", split until {}", p.split_until);
  if (!p.batch_norm.empty()) text += fmt::format(", batch-norm {}", p.batch_norm);
  if (!p.compress.empty()) text += fmt::format(", gradients as {}", p.compress);
  if (p.half_weights) text += p.fp32_gradients ? ", weights of two bytes, gradients of four" : ", weights of two bytes";
  if (!p.context_exchange.empty()) text += fmt::format(", context by {}", p.context_exchange);
  if (p.overlap_tensor) text += ", exchanges beside products";
  if (p.dropless) text += ", experts without slots";
  if (p.whole_experts) text += ", whole experts";
  if (p.fused_update) text += ", fused update";
  if (p.written_update) text += ", update by operators";
  if (p.fused_norms) text += ", fused norms";
  if (p.fused_pointwise) text += ", fused elementwise operations";
  if (p.converted_images) text += ", converted images";
  if (p.converted_norms) text += ", converted norms";
  if (!p.attention.empty()) text += fmt::format(", attention by {}", p.attention);
  return text;
}

Seconds slowest_rank_wait(const Prediction& p) {
  Seconds rest = p.step_time;
  for (const TimePart& part : time_parts())
    if (part.on_critical_path) rest -= p.breakdown.*part.value;
  constexpr double rounding = 1e-6;
  return p.devices > 1 && rest > rounding * p.step_time ? rest : Seconds{};
}

Seconds half_interval(const Evaluation& evaluation) { return (evaluation.interval_high - evaluation.interval_low) / 2; }

namespace {

bool is_even(Seconds time, Seconds low, Seconds high) {
  constexpr double even = 0.1;  // of the whole: what one side may be longer than the other
  return std::abs((high + low - 2.0 * time).value()) <= even * (high - low).value();
}

}  // namespace

std::string interval_words(Seconds time, Seconds low, Seconds high) {
  return is_even(time, low, high) ? fmt::format("± {}", to_string((high - low) / 2))
                                  : fmt::format("{} to {}", to_string(low), to_string(high));
}

std::string interval_words(const Evaluation& e) { return interval_words(e.step_time, e.interval_low, e.interval_high); }

std::string time_words(Seconds time, Seconds low, Seconds high) {
  const std::string interval = interval_words(time, low, high);
  return to_string(time) + (is_even(time, low, high) ? " " + interval : " (" + interval + ")");
}

std::string time_words(const Evaluation& e) { return time_words(e.step_time, e.interval_low, e.interval_high); }

Seconds hidden_communication(const Prediction& p) {
  return std::max(Seconds{}, p.breakdown.communication_total - p.breakdown.communication_exposed);
}

double throughput_per_device(const Prediction& p) { return p.throughput / p.devices; }

Ratios ratios(const Evaluation& now, const Evaluation& then) {
  return {now.step_time / then.step_time, now.throughput / then.throughput, now.memory.needed() / then.memory.needed()};
}

Ratios ratios(const closed::FirstAnswer& now, const Evaluation& then) {
  return {now.step_time / then.step_time, now.throughput / then.throughput, now.memory / then.memory.total};
}

std::string bottleneck_sentence(const Bottleneck& bottleneck) {
  if (bottleneck.name.empty()) return "none found";
  // What idles in a pipeline is no resource that could be twice as fast (oracle/bottleneck.h).
  const auto parts = parts_of_bottleneck(bottleneck.name);
  const auto is = [&](BottleneckKind kind) { return parts && parts->kind == kind; };
  const std::string_view change = is(BottleneckKind::imbalance) ? "with even stages"
                                  : is(BottleneckKind::bubble)  ? "with twice as many micro-batches"
                                                                : "twice as fast";
  return fmt::format("{} is {} of the step; {}, the step would be {} shorter", bottleneck.name,
                     percent(bottleneck.share), change, percent(bottleneck.relief));
}

std::string relief_clause(const Bottleneck& bottleneck) {
  constexpr std::string_view between = "; ";
  std::string parts = bottleneck.relieved_by;
  if (parts.empty()) return "";
  std::size_t last = parts.rfind(between);
  if (last != parts.npos) parts.replace(last, between.size(), " or ");
  while ((last = parts.rfind(between)) != parts.npos) parts.replace(last, between.size(), ", ");
  return "relieved by " + parts;
}

std::string provenance_sentence(const ProvenanceShares& provenance) {
  return fmt::format("{} measured, {} interpolated, {} estimated", percent(provenance.measured),
                     percent(provenance.interpolated), percent(provenance.estimated));
}

Table limits_table(const std::vector<Limit>& limits) {
  constexpr double visible = 0.01;
  using enum Column::Align;
  Table table{
      .columns = {{"limit", "", left}, {"number", ""}, {"used", ""}, {"of", "", left}, {"relieved by", "", left}},
      .rows = {}};
  for (const Limit& l : limits) {
    if (l.share < visible) continue;
    std::string number, of = l.where;
    if (l.unit == "s")
      number = to_string(Seconds{l.value}), of = "the step" + (l.where.empty() ? "" : ", " + l.where);
    else if (l.unit == "bytes")
      number = to_string(Bytes{l.value}), of = "the device" + (l.where.empty() ? "" : ", " + l.where);
    else
      number = fmt::format("{} {}", grouped(static_cast<std::int64_t>(l.value)), l.unit);
    table.rows.push_back({l.name, std::move(number), percent(l.share), std::move(of), l.relief});
  }
  return table;
}

std::vector<std::string> assumptions(const Prediction& p) {
  std::vector<std::string> list = p.assumed;
  if (p.breakdown.io_total.value() == 0)
    list.emplace_back("training data are at hand: reading and preparing them costs no step time");
  else
    list.emplace_back("samples lie in storage as the model takes them; a loader prefetches, and decoding is free");
  if (p.devices > 1 && !p.algorithm.empty())
    list.push_back(fmt::format("the library runs {} for the gradients' {}", p.algorithm,
                               p.compress.empty() ? "all-reduce" : "exchange"));
  if (!p.compress.empty())
    list.emplace_back("gradients are compressed in every step; that training then needs more steps is not counted");
  if (p.provenance.estimated > 0)
    list.push_back(
        fmt::format("{} of compute and communication time is a roofline or datasheet estimate, not a measurement",
                    percent(p.provenance.estimated)));
  return list;
}

}  // namespace sibyl
