#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "base/quantity.h"
#include "oracle/report/format.h"
#include "oracle/report/paint.h"
#include "oracle/report/report.h"

namespace sibyl {
namespace {

constexpr std::size_t bar_cells = 48;
constexpr std::size_t shown_operations = 6;
constexpr double visible_share = 1e-6;  // of the step; less is rounding

std::string heading(const PredictionReport& r, Paint paint) {
  const Prediction& p = r.prediction;
  std::string text = paint.bold(fmt::format("{} on {} of {} ({})", r.model, plural(p.devices, "device"), r.cluster,
                                            plural(p.nodes, "node"))) +
                     "\n";
  const auto along = [&](std::string_view axis) { return p.parallel.find(axis) != std::string::npos; };
  const bool shares_samples = along("expert=") || along("table=");
  text += fmt::format("{}, batch {} ({} per {}", splitting(p), grouped(p.global_batch),
                      grouped(p.micro_batch * p.micro_batches),
                      !p.stages.empty() ? "pipeline"
                      : shares_samples  ? "replica"
                                        : "device");
  if (p.micro_batches > 1) text += fmt::format(" in {} micro-batches of {}", p.micro_batches, grouped(p.micro_batch));
  text += fmt::format("), {}, {}", p.precision, p.optimizer);
  if (!p.framework.empty()) text += fmt::format(", trained by {}", p.framework);
  if (!p.stages.empty()) text += fmt::format(", {} stages by {}", p.stages.size(), p.schedule);
  if (p.devices > 1 && p.buckets > 0) text += fmt::format(", gradients in {}", plural(p.buckets, "bucket"));
  text += "\n";
  for (const std::string& line : p.without_effect) text += "has no effect here: " + line + "\n";
  return text + "\n";
}

std::string answer(const Prediction& p, Paint paint) {
  const std::string ends = fmt::format("{} to {}", to_string(p.interval_low), to_string(p.interval_high));
  const std::string half = interval_words(p);
  std::string text = fmt::format("  step time   {}{}   (90 %: {})\n", paint.bold(to_string(p.step_time)),
                                 half == ends ? "" : " " + half, ends);
  text += fmt::format("  throughput  {}", paint.bold(samples_per_second(p.throughput)));
  if (p.devices > 1) text += fmt::format("   ({} per device)", samples_per_second(throughput_per_device(p)));
  return text + "\n\n";
}

std::string share_bar(double share) {
  const double cells = std::clamp(share, 0.0, 1.0) * 30;
  return std::string(static_cast<std::size_t>(std::lround(cells)), '#');
}

std::string time_row(std::string_view title, Seconds time, Seconds step, Paint paint) {
  const double share = step.value() > 0 ? time / step : 0;
  const std::string bar = share_bar(share);
  return fmt::format("  {:<26} {:>9}  {:>6}{}\n", title, to_string(time), percent(share),
                     bar.empty() ? "" : "  " + paint.bar(bar));
}

std::string time_section(const Prediction& p, Paint paint) {
  std::string text = paint.heading("Time") + "\n";
  for (const TimePart& part : time_parts())
    if (part.on_critical_path && (p.breakdown.*part.value).value() > 0)
      text += time_row(part.title, p.breakdown.*part.value, p.step_time, paint);
  if (const Seconds wait = slowest_rank_wait(p); wait.value() > 0)
    text += time_row("slowest rank, waited for", wait, p.step_time, paint);
  if (const Seconds hidden = hidden_communication(p); hidden > visible_share * p.step_time)
    text += fmt::format("  {:<26} {:>9}  of {} of communication\n", "hidden behind compute", to_string(hidden),
                        to_string(p.breakdown.communication_total));
  if (const Seconds read = p.breakdown.io_total - p.breakdown.io; read > visible_share * p.step_time)
    text += fmt::format("  {:<26} {:>9}  of {} of reading samples\n", "hidden behind the step", to_string(read),
                        to_string(p.breakdown.io_total));
  if (const Seconds copied = p.breakdown.offload_total - p.breakdown.offload_exposed;
      copied > visible_share * p.step_time)
    text += fmt::format("  {:<26} {:>9}  of {} of copying what is offloaded\n", "hidden beside kernels",
                        to_string(copied), to_string(p.breakdown.offload_total));
  return text + "\n";
}

// A model's names are long where its blocks are nested, and tell apart at their end.
std::string shortened(const std::string& name) {
  constexpr std::size_t most = 40;
  return name.size() <= most ? name : "…" + name.substr(name.size() - most + 1);
}

std::string stages_section(const Prediction& p, Paint paint) {
  if (p.stages.empty()) return "";
  using enum Column::Align;
  Table table{.columns = {{"stage", ""},
                          {"device", ""},
                          {"begins with", "", left},
                          {"forward", ""},
                          {"backward", ""},
                          {"sends", ""},
                          {"idle in a step", ""},
                          {"memory", ""}},
              .rows = {}};
  for (std::size_t i = 0; i < p.stages.size(); ++i) {
    const StageCost& s = p.stages[i];
    table.rows.push_back({grouped(static_cast<std::int64_t>(i)), grouped(s.coordinate), shortened(s.first),
                          to_string(s.forward), to_string(s.backward),
                          to_string(Bytes{static_cast<double>(s.bytes_sent)}), to_string(s.bubble),
                          to_string(s.memory)});
  }
  return paint.heading("Stages") + " (times and bytes of one micro-batch)\n" + indented(aligned_text(table)) + "\n";
}

// One cell a 48th of the capacity; a kind that is there at all gets no cell unless it fills half of one.
std::string memory_bar(const Prediction& p, Paint paint) {
  const double scale = std::max(p.memory_capacity.value(), p.memory.needed().value());
  if (scale <= 0) return "";
  std::string bar;
  double sum = 0;
  std::size_t drawn = 0;
  for (const MemorySlice& part : memory_slices(p.memory)) {
    sum += part.value.value();
    const auto end = std::min(bar_cells, static_cast<std::size_t>(std::lround(sum / scale * bar_cells)));
    if (end > drawn) bar += paint.kind(part.letter, std::string(end - drawn, part.letter));
    drawn = std::max(drawn, end);
  }
  return fmt::format("  [{}{}]\n", bar, std::string(bar_cells - drawn, '.'));
}

std::string memory_section(const Prediction& p, Paint paint) {
  const bool known = p.memory_capacity.value() > 0;
  const Bytes needed = p.memory.needed();
  std::string text = paint.heading("Memory") + fmt::format("  {}", to_string(needed));
  if (known) text += fmt::format(" of {} ({})", to_string(p.memory_capacity), percent(needed / p.memory_capacity));
  text += p.fits ? ", fits\n" : ", " + paint.alarm("does not fit") + "\n";
  if (known) text += memory_bar(p, paint);
  for (const MemorySlice& part : memory_slices(p.memory))
    text += fmt::format("  {}  {:<17} {:>9}  {:>6}{}\n", paint.kind(part.letter, std::string(1, part.letter)),
                        part.title, to_string(part.value), percent(part.value / needed),
                        part.key == cache_key ? "  held and free: by the process, for what comes next" : "");
  if (p.host_memory.value() > 0)
    text += fmt::format("     {:<17} {:>9}  of each node's host, for what is offloaded\n", "host memory",
                        to_string(p.host_memory));
  if (p.storage.value() > 0)
    text += fmt::format("     {:<17} {:>9}  of each node's, for what is offloaded\n", "storage", to_string(p.storage));
  return text + "\n";
}

// Of the passes that run at all.
Provenance worse_provenance(const OperationCost& operation) {
  if (operation.backward.time.value() == 0) return operation.forward.provenance;
  return std::max(operation.forward.provenance, operation.backward.provenance);
}

// Operations of one kind that take the same time, as the layers of a repeated block do.
struct AlikeCosts {
  const OperationCost* first = nullptr;
  std::int64_t count = 0;

  [[nodiscard]] Seconds total() const {
    return static_cast<double>(count) * (first->forward.time + first->backward.time);
  }
};

std::vector<AlikeCosts> longest_groups(const std::vector<OperationCost>& operations) {
  std::vector<AlikeCosts> groups;
  std::map<std::tuple<std::string, Seconds, Seconds>, std::size_t> index;
  for (const OperationCost& o : operations) {
    const auto [at, added] = index.try_emplace({o.kind, o.forward.time, o.backward.time}, groups.size());
    if (added) groups.push_back({&o, 0});
    ++groups[at->second].count;
  }
  std::ranges::stable_sort(groups, [](const AlikeCosts& a, const AlikeCosts& b) { return a.total() > b.total(); });
  groups.resize(std::min(groups.size(), shown_operations));
  return groups;
}

std::string operations_section(const Prediction& p, Paint paint) {
  if (p.operations.empty()) return "";
  using enum Column::Align;
  Table table{.columns = {{"operation", "", left},
                          {"kind", "", left},
                          {"alike", ""},
                          {"forward", ""},
                          {"backward", ""},
                          {"all", ""},
                          {"known", "", left}},
              .rows = {}};
  for (const AlikeCosts& group : longest_groups(p.operations)) {
    const OperationCost& o = *group.first;
    table.rows.push_back({o.name, o.kind, grouped(group.count), to_string(o.forward.time), to_string(o.backward.time),
                          to_string(group.total()), std::string(to_string(worse_provenance(o)))});
  }
  std::string text = paint.heading("Operations that take longest") + fmt::format(" (of {})\n", p.operations.size());
  return text + indented(aligned_text(table)) + "\n";
}

std::string sureness_section(const Prediction& p, Paint paint) {
  std::string text = paint.heading("Bottleneck") + "\n  " + bottleneck_sentence(p.bottleneck) + "\n";
  if (const std::string relief = relief_clause(p.bottleneck); !relief.empty()) text += "  " + relief + "\n";
  text += "\n";
  if (const Table limits = limits_table(p.limits); !limits.rows.empty())
    text += paint.heading("Limits") + "\n" + indented(aligned_text(limits)) + "\n";
  text += paint.heading("Where the time comes from") + "\n  " + provenance_sentence(p.provenance) + "\n";
  if (p.provenance.estimated >= 0.05)
    text += "  " + paint.alarm("estimated") +
            " parts are guesses: `sibyl calibrate compute --for MODEL` on the machine replaces them\n";
  text += "\n" + paint.heading("Assumed") + "\n";
  for (const std::string& line : assumptions(p)) text += "  - " + line + "\n";
  return text;
}

}  // namespace

std::string to_text(const PredictionReport& report, TextStyle style) {
  const Paint paint(style);
  const Prediction& p = report.prediction;
  return heading(report, paint) + answer(p, paint) + time_section(p, paint) + stages_section(p, paint) +
         memory_section(p, paint) + operations_section(p, paint) + sureness_section(p, paint);
}

Table to_table(const PredictionReport& report) {
  const Prediction& p = report.prediction;
  Table table{.columns = {{"quantity", "quantity", Column::Align::left}, {"value", "value"}}, .rows = {}};
  auto row = [&](std::string_view title, std::string text, std::string value) {
    table.rows.push_back({std::string(title), Cell(std::move(text), std::move(value))});
  };
  row("step_time_s", to_string(p.step_time), plain_number(p.step_time.value()));
  row("interval_low_s", to_string(p.interval_low), plain_number(p.interval_low.value()));
  row("interval_high_s", to_string(p.interval_high), plain_number(p.interval_high.value()));
  row("throughput_samples_per_s", samples_per_second(p.throughput), plain_number(p.throughput));
  for (const TimePart& part : time_parts())
    if (part.always || (p.breakdown.*part.value).value() > 0)
      row(fmt::format("breakdown_{}_s", part.key), to_string(p.breakdown.*part.value),
          plain_number((p.breakdown.*part.value).value()));
  row("memory_needed_bytes", to_string(p.memory.needed()), plain_number(p.memory.needed().value()));
  row("memory_total_bytes", to_string(p.memory.total), plain_number(p.memory.total.value()));
  for (const MemoryPart& part : memory_parts())
    row(fmt::format("memory_{}_bytes", part.key), to_string(p.memory.*part.value),
        plain_number((p.memory.*part.value).value()));
  if (p.memory.reserved.value() > 0)
    row("memory_reserved_bytes", to_string(p.memory.reserved), plain_number(p.memory.reserved.value()));
  row("memory_capacity_bytes", to_string(p.memory_capacity), plain_number(p.memory_capacity.value()));
  for (const auto& [key, bytes] :
       {std::pair{"host_memory_bytes", p.host_memory}, std::pair{"storage_bytes", p.storage}})
    if (bytes.value() > 0) row(key, to_string(bytes), plain_number(bytes.value()));
  row("fits", p.fits ? "yes" : "no", p.fits ? "true" : "false");
  row("bottleneck", p.bottleneck.name, p.bottleneck.name);
  row("bottleneck_share", percent(p.bottleneck.share), plain_number(p.bottleneck.share));
  row("bottleneck_relief", percent(p.bottleneck.relief), plain_number(p.bottleneck.relief));
  row("bottleneck_relieved_by", p.bottleneck.relieved_by, p.bottleneck.relieved_by);
  row("provenance_measured", percent(p.provenance.measured), plain_number(p.provenance.measured));
  row("provenance_interpolated", percent(p.provenance.interpolated), plain_number(p.provenance.interpolated));
  row("provenance_estimated", percent(p.provenance.estimated), plain_number(p.provenance.estimated));
  row("devices", grouped(p.devices), fmt::format("{}", p.devices));
  row("global_batch", grouped(p.global_batch), fmt::format("{}", p.global_batch));
  return table;
}

}  // namespace sibyl
