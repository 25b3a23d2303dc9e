// The layers of a prediction as a table.
#include <algorithm>

#include "base/quantity.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl {
namespace {

Seconds layer_time(const OperationCost& operation) { return operation.forward.time + operation.backward.time; }

// Of the passes that run at all, the one that is less sure.
Provenance worse_of(const OperationCost& operation) {
  if (operation.backward.time.value() == 0) return operation.forward.provenance;
  return std::max(operation.forward.provenance, operation.backward.provenance);
}

// Both passes err alike: they are of one family.
double layer_error(const OperationCost& o) {
  const double time = layer_time(o).value();
  if (time == 0) return 0;
  return (o.forward.time.value() * o.forward.relative_error + o.backward.time.value() * o.backward.relative_error) /
         time;
}

Cell time_cell(Seconds t) { return {t.value() == 0 ? "" : to_string(t), plain_number(t.value())}; }

}  // namespace

Table layer_table(const Prediction& prediction) {
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
  for (const OperationCost& o : prediction.operations) all += layer_time(o);
  for (const OperationCost& o : prediction.operations) {
    const double share = all.value() > 0 ? layer_time(o) / all : 0;
    const bool runs = layer_time(o).value() > 0;  // a view does not
    table.rows.push_back({o.name, o.kind, runs ? Cell(std::string(to_string(worse_of(o)))) : Cell(""),
                          time_cell(o.forward.time), time_cell(o.backward.time),
                          Cell(percent(share), plain_number(share)),
                          runs ? Cell("± " + percent(layer_error(o)), plain_number(layer_error(o))) : Cell(""),
                          Cell(o.flops.value() == 0 ? "" : to_string(o.flops), plain_number(o.flops.value())),
                          Cell(o.traffic.value() == 0 ? "" : to_string(o.traffic), plain_number(o.traffic.value()))});
  }
  return table;
}

}  // namespace sibyl
