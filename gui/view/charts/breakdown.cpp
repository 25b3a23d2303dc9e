#include "gui/view/charts/breakdown.h"

#include "base/quantity.h"
#include "gui/view/words.h"
#include "oracle/report/format.h"
#include "oracle/report/report.h"

namespace sibyl::gui {

BarRow breakdownRow(const QString& name, const Prediction& prediction) {
  BarRow row{name, {}, {}, {}};
  for (const TimePart& part : time_parts())
    if (part.on_critical_path)
      row.parts.push_back({QString::fromUtf8(part.key.data(), static_cast<qsizetype>(part.key.size())),
                           titled(part.title), (prediction.breakdown.*part.value).value()});
  row.parts.push_back({"idle", QObject::tr("Slowest rank, waited for"), slowest_rank_wait(prediction).value()});
  row.beside.push_back(
      {"communication", QObject::tr("Communication, hidden behind compute"), hidden_communication(prediction).value()});
  row.note = QString::fromStdString(time_words(prediction));
  return row;
}

}  // namespace sibyl::gui
