#include "gui/view/charts/scaling_series.h"

#include <QObject>
#include <algorithm>

#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

Strategy whole(const Strategy& from) {
  Strategy strategy = from;
  strategy.data = strategy.tensor = strategy.filter = strategy.channel = 1;
  strategy.depth = strategy.height = strategy.width = strategy.context = strategy.expert = strategy.table =
      strategy.pipeline = 1;
  strategy.order.clear();
  strategy.stage_starts.clear();
  strategy.schedule = PipelineSchedule::one_forward_one_backward;
  strategy.chunks = 1;
  strategy.sequence = false;
  strategy.accumulation = 1;
  strategy.zero = strategy.zero_ranks = 0;
  strategy.reduce_each = false;
  return strategy;
}

// The replicas and the batch that make it the same work: a device's samples stay (weak), or a step's (strong).
Strategy with_batch(Strategy strategy, const Strategy& own, Scaling scaling) {
  const std::int64_t per_device = std::max<std::int64_t>(1, own.global_batch / own.devices());
  strategy.data = std::max(1, own.devices() / strategy.devices_per_replica());
  strategy.global_batch = scaling == Scaling::weak ? per_device * strategy.devices() : own.global_batch;
  return strategy;
}

// Four for every stage, or as many as the batch can be parted into.
void part_for_pipeline(Strategy& strategy) {
  const std::int64_t batch = std::max<std::int64_t>(1, strategy.global_batch / strategy.data);
  for (std::int64_t parts = std::min<std::int64_t>(batch, 4 * strategy.pipeline); parts >= 1; --parts)
    if (batch % parts == 0) {
      strategy.accumulation = parts;
      return;
    }
}

}  // namespace

std::vector<SimpleStrategy> simpleStrategies(const Study& study, Scaling scaling) {
  const Strategy& own = study.strategy;
  std::vector<SimpleStrategy> list;
  const auto add = [&](const QString& key, const QString& title, auto change) {
    Strategy strategy = whole(own);
    change(strategy);
    list.push_back({key, title, with_batch(strategy, own, scaling)});
  };
  add("data", QObject::tr("Data parallel"), [](Strategy&) {});
  add("zero1", QObject::tr("Data parallel, ZeRO 1"), [](Strategy& s) { s.zero = 1; });
  add("zero3", QObject::tr("Data parallel, ZeRO 3"), [](Strategy& s) { s.zero = 3; });
  const int node = study.cluster->devices_per_node;
  if (node < 2) return list;
  add("tensor", QObject::tr("Tensor parallel in a node (%1)").arg(node), [&](Strategy& s) { s.tensor = node; });
  add("pipeline", QObject::tr("Pipeline in a node (%1)").arg(node), [&](Strategy& s) { s.pipeline = node; });
  part_for_pipeline(list.back().strategy);
  return list;
}

std::vector<int> scalingCounts(const Study& study, int most) {
  std::vector<int> counts = {study.strategy.devices()};
  for (int n = 1; n <= most; n *= 2) counts.push_back(n);
  std::ranges::sort(counts);
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

ScalingSeries worked_out(ScalingSeries series, StudyReader& reader, int most, Scaling scaling,
                         const std::function<void(std::size_t, std::size_t)>& told, const Cancelled& cancelled) {
  if (!series.study) {
    auto study = reader.read(series.scenario, cancelled);
    if (!study) {
      series.failure = std::move(study).error();
      return series;
    }
    series.study = std::move(*study);
    series.strategy = series.study->strategy;
  }
  const std::vector<int> counts = scalingCounts(*series.study, most);
  std::size_t done = 0;
  series.points = scale(
      *series.study->graph, series.strategy, *series.study->cluster, counts, scaling,
      [&](const ScalePoint&) { told(++done, counts.size()); }, cancelled);
  return series;
}

Measure measureOf(ScaleQuantity quantity) {
  switch (quantity) {
    case ScaleQuantity::throughput: return Measure::samples_per_second;
    case ScaleQuantity::step_time: return Measure::seconds;
    case ScaleQuantity::efficiency: return Measure::share;
  }
  return Measure::share;
}

Table scalingTable(const std::vector<ScalingSeries>& series, Scaling scaling) {
  Table all;
  for (const ScalingSeries& each : series) {
    Table own = to_table(ScaleReport{"", "", scaling, each.points});
    if (all.columns.empty()) {
      all.columns = std::move(own.columns);
      all.columns.insert(all.columns.begin(), {"", "series", Column::Align::left});
    }
    for (std::vector<Cell>& row : own.rows) {
      row.insert(row.begin(), Cell(each.name.toStdString()));
      all.rows.push_back(std::move(row));
    }
  }
  return all;
}

}  // namespace sibyl::gui
