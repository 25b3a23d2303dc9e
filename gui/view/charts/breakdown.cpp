#include "gui/view/charts/breakdown.h"

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "gui/view/charts/words.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

Seconds time_of(const OperationCost& operation) { return operation.forward.time + operation.backward.time; }

// Of the passes that run at all, the one that is less sure.
Provenance worse_provenance(const OperationCost& operation) {
  if (operation.backward.time.value() == 0) return operation.forward.provenance;
  return std::max(operation.forward.provenance, operation.backward.provenance);
}

// Both passes err alike: they are of one family.
double error_of(const OperationCost& o) {
  const double time = time_of(o).value();
  if (time == 0) return 0;
  return (o.forward.time.value() * o.forward.relative_error + o.backward.time.value() * o.backward.relative_error) /
         time;
}

Cell seconds_cell(Seconds t) { return {t.value() == 0 ? "" : to_string(t), plain_number(t.value())}; }

}  // namespace

BarRow breakdownRow(const QString& name, const Prediction& prediction) {
  BarRow row{name, {}, {}, {}};
  for (const TimePart& part : time_parts())
    if (part.on_critical_path)
      row.parts.push_back({QString::fromUtf8(part.key.data(), static_cast<qsizetype>(part.key.size())),
                           titled(part.title), (prediction.breakdown.*part.value).value()});
  row.parts.push_back({"idle", QObject::tr("Slowest rank, waited for"), slowest_rank_wait(prediction).value()});
  const Seconds hidden = prediction.breakdown.communication_total - prediction.breakdown.communication_exposed;
  row.beside.push_back(
      {"communication", QObject::tr("Communication, hidden behind compute"), std::max(0.0, hidden.value())});
  const Seconds half = (prediction.interval_high - prediction.interval_low) / 2;
  row.note = QString::fromStdString(to_string(prediction.step_time) + " ± " + to_string(half));
  return row;
}

Table layerTable(const Prediction& prediction) {
  using enum Column::Align;
  Table table{.columns = {{"Layer", "operation", left},
                          {"Kind", "kind", left},
                          {"Known", "provenance", left},
                          {"Forward", "forward_s"},
                          {"Backward", "backward_s"},
                          {"Share", "share"},
                          {"Error", "relative_error"},
                          {"FLOP", "flops"},
                          {"Bytes", "bytes"}},
              .rows = {}};
  Seconds all;
  for (const OperationCost& o : prediction.operations) all += time_of(o);
  for (const OperationCost& o : prediction.operations) {
    const double share = all.value() > 0 ? time_of(o) / all : 0;
    const bool runs = time_of(o).value() > 0;  // a view does not
    table.rows.push_back({o.name, o.kind, runs ? Cell(std::string(to_string(worse_provenance(o)))) : Cell(""),
                          seconds_cell(o.forward.time), seconds_cell(o.backward.time),
                          Cell(percent(share), plain_number(share)),
                          runs ? Cell("± " + percent(error_of(o)), plain_number(error_of(o))) : Cell(""),
                          Cell(o.flops.value() == 0 ? "" : to_string(o.flops), plain_number(o.flops.value())),
                          Cell(o.traffic.value() == 0 ? "" : to_string(o.traffic), plain_number(o.traffic.value()))});
  }
  return table;
}

}  // namespace sibyl::gui
