#include "gui/view/canvas/timeline_totals.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QTableWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/view/canvas/timeline_painter.h"
#include "gui/view/canvas/timeline_text.h"

namespace sibyl::gui {
namespace {

enum TotalsColumn { streams_column, category_column, time_column, share_column, spans_column, columns };

}  // namespace

TimelineTotals::TimelineTotals(QWidget* parent)
    : QWidget(parent), area_(new QLabel(this)), table_(new QTableWidget(0, columns, this)) {
  table_->setAccessibleName(tr("Totals of the selected area"));
  table_->setHorizontalHeaderLabels({tr("Stream"), tr("Category"), tr("Time"), tr("Share"), tr("Spans")});
  table_->horizontalHeaderItem(share_column)->setToolTip(tr("Of the area: its duration times its streams"));
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  for (const int wide : {streams_column, category_column})
    table_->horizontalHeader()->setSectionResizeMode(wide, QHeaderView::Stretch);
  for (const int words : {streams_column, category_column})
    table_->horizontalHeaderItem(words)->setTextAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setShowGrid(false);
  table_->setFrameShape(QFrame::NoFrame);
  auto* close = new QToolButton(this);
  close->setText(QStringLiteral("×"));
  close->setAutoRaise(true);
  close->setToolTip(tr("Let go of the area (Esc)"));
  close->setAccessibleName(close->toolTip());
  connect(close, &QToolButton::clicked, this, &TimelineTotals::closed);
  auto* above = new QHBoxLayout;
  above->setContentsMargins(6, 2, 6, 2);
  above->addWidget(area_, 1);
  above->addWidget(close);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addLayout(above);
  layout->addWidget(table_);
  hide();
}

void TimelineTotals::display(const Timeline* timeline, const std::optional<TimelineArea>& area) {
  table_->setRowCount(0);
  setVisible(timeline != nullptr && area);
  if (timeline == nullptr || !area) return;
  const int streams = static_cast<int>(area->last_row - area->first_row + 1);
  area_->setText(tr("%1 to %2, %3 of %n stream(s)", nullptr, streams)
                     .arg(timeText(area->window.begin), timeText(area->window.end), timeText(area->window.width())));
  if (streams > 1) addTotals(*timeline, *area, tr("All %n stream(s)", nullptr, streams));
  for (std::size_t row = area->first_row; row <= area->last_row; ++row) {
    const Timeline::Row& stream = timeline->rows()[row];
    addTotals(*timeline, {area->window, row, row},
              QString::fromStdString(timeline->groups()[stream.group].title + ", " + stream.title));
  }
  constexpr int most_seen = 6;
  table_->setFixedHeight(table_->horizontalHeader()->sizeHint().height() +
                         std::min(table_->rowCount(), most_seen) * table_->verticalHeader()->defaultSectionSize() + 4);
  setFixedHeight(layout()->totalSizeHint().height());
}

void TimelineTotals::addTotals(const Timeline& timeline, const TimelineArea& area, const QString& streams) {
  const double whole = area.window.width() * static_cast<double>(area.last_row - area.first_row + 1);
  const auto share = [whole](double seconds) {
    return QStringLiteral("%1 %").arg(whole > 0 ? 100 * seconds / whole : 0, 0, 'f', 1);
  };
  double left = whole;
  QString name = streams;  // once
  for (const CategoryTotal& total : timeline.totals(area)) {
    const std::string& category = timeline.categories()[total.category];
    addRow(std::exchange(name, {}), categoryTitle(category), spanColour(category, {}, palette()),
           {timeText(total.seconds), share(total.seconds), QStringLiteral("%L1").arg(total.spans)});
    left -= total.seconds;
  }
  if (left > 1e-9 * whole) addRow(name, tr("Nothing runs"), {}, {timeText(left), share(left), {}});
}

void TimelineTotals::addRow(const QString& streams, const QString& category, const QColor& colour,
                            const QStringList& numbers) {
  const int row = table_->rowCount();
  table_->insertRow(row);
  table_->setItem(row, streams_column, new QTableWidgetItem(streams));
  auto* name = new QTableWidgetItem(category);
  if (colour.isValid()) name->setData(Qt::DecorationRole, colour);
  table_->setItem(row, category_column, name);
  for (int n = 0; n < numbers.size(); ++n) {
    auto* item = new QTableWidgetItem(numbers[n]);
    item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    table_->setItem(row, time_column + n, item);
  }
}

}  // namespace sibyl::gui
