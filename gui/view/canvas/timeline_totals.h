// What a selected area of a timeline is made of: time by category, and in which nothing runs; of all its streams
// together, and of each.
#pragma once

#include <QWidget>
#include <optional>

#include "gui/view/canvas/timeline_model.h"

class QLabel;
class QTableWidget;

namespace sibyl::gui {

class TimelineTotals : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineTotals(QWidget* parent);

  // Hidden where there is no timeline, or no area of it.
  void display(const Timeline* timeline, const std::optional<TimelineArea>& area);

 signals:
  void closed();

 private:
  // Those of an area, as rows of the table below those that are there.
  void addTotals(const Timeline& timeline, const TimelineArea& area, const QString& streams);
  void addRow(const QString& streams, const QString& category, const QColor& colour, const QStringList& numbers);

  QLabel* area_;
  QTableWidget* table_;
};

}  // namespace sibyl::gui
