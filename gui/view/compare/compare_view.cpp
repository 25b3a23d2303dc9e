#include "gui/view/compare/compare_view.h"

#include <QFontInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <limits>

#include "gui/view/words.h"
#include "oracle/report/report.h"

namespace sibyl::gui {
namespace {

// Beside the scenarios' names: what they are called in a choice. The first is what is chosen until somebody chooses.
constexpr int usual = -1;

QString text(const std::string& utf8) { return QString::fromStdString(utf8); }

}  // namespace

CompareView::CompareView(Document& document, QWidget* parent)
    : View(parent),
      document_(document),
      first_(makeChoice(tr("First scenario"), tr("The baseline"))),
      second_(makeChoice(tr("Second scenario"), tr("The current one"))),
      verdict_(new QLabel(this)),
      model_(new TableModel(this)),
      table_(new WideTable(model_, false, tr("Differences"), this)),
      answers_(this) {
  verdict_->setWordWrap(true);
  verdict_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  QFont font = verdict_->font();
  font.setBold(true);
  verdict_->setFont(font);
  table_->setFrameShape(QFrame::NoFrame);
  constexpr double airy = 1.6;
  table_->verticalHeader()->setDefaultSectionSize(static_cast<int>(airy * fontMetrics().height()));
  auto* choices = new QHBoxLayout;
  choices->addWidget(first_, 1);
  choices->addWidget(new QLabel(tr("against"), this));
  choices->addWidget(second_, 1);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(choices);
  layout->addWidget(verdict_);
  layout->addWidget(table_, 1);
  layout->addStretch(0);
  connect(&answers_, &Answers::answered, this, &CompareView::display);
  connect(&answers_, &Answers::staleChanged, this, [this](bool stale) {
    table_->setEnabled(!stale);
    verdict_->setEnabled(!stale);
    emit busyChanged();
    if (!stale) emit settled();
  });
  connect(&document_, &Document::changed, this, &CompareView::follow);
  follow();
}

QComboBox* CompareView::makeChoice(const QString& name, const QString& usual_text) {
  auto* choice = new QComboBox(this);
  choice->setAccessibleName(name);
  choice->setToolTip(name);
  choice->addItem(usual_text, usual);
  connect(choice, &QComboBox::activated, this, [this] {
    ask();
    emit viewStateChanged();
  });
  return choice;
}

// The names there are now. What is chosen stays, wherever it stands by now; of as many as before that one was renamed
// which stands where it did.
void CompareView::fill(QComboBox& choice) const {
  const QSignalBlocker quiet(&choice);
  const int row = choice.currentData().toInt();
  const QString name = choice.currentText();
  const bool as_many = choice.count() == document_.count() + 1;
  while (choice.count() > 1) choice.removeItem(1);
  int now = usual;
  for (int i = 0; i < document_.count(); ++i) {
    choice.addItem(text(document_.state().scenarios[static_cast<std::size_t>(i)].name), i);
    if (row != usual && choice.itemText(i + 1) == name) now = i;
  }
  if (row != usual && now == usual && as_many) now = row;
  choice.setCurrentIndex(choice.findData(now));
}

const Scenario* CompareView::chosen(const QComboBox& choice) const {
  const State& state = document_.state();
  const int row = choice.currentData().toInt();
  if (row != usual) return &state.scenarios[static_cast<std::size_t>(row)];
  if (&choice == second_) return &document_.current();
  return state.baseline ? &*state.baseline : nullptr;
}

void CompareView::follow() {
  fill(*first_);
  fill(*second_);
  if (isVisible())
    ask();
  else
    waiting_ = true;
}

void CompareView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  prepare();
}

void CompareView::prepare() {
  if (waiting_) ask();
}

void CompareView::stop() {
  if (!answers_.stale()) return;
  answers_.drop();
  clear();
  verdict_->setText(stoppedText());
}

void CompareView::forget() {
  answers_.forget();
  follow();
}

void CompareView::ask() {
  waiting_ = false;
  const Scenario *first = chosen(*first_), *second = chosen(*second_);
  if (first == nullptr) {
    answers_.drop();
    clear();
    verdict_->setText(tr("Nothing is pinned: choose a scenario on the left, or pin one as the baseline (Ctrl+B)."));
    return;
  }
  answers_.ask(*second, *first);
}

// A baseline has its scenario's name, and is not the same.
std::string CompareView::titleOf(const QComboBox& choice, const Answer& answer) const {
  const bool pinned = &choice == first_ && choice.currentData().toInt() == usual;
  return pinned ? tr("%1, as pinned").arg(text(answer.scenario.name)).toStdString() : answer.scenario.name;
}

void CompareView::clear() {
  model_->setTable({});
  table_->hide();
}

void CompareView::display(const AnswerPointer& second, const AnswerPointer& first) {
  for (const AnswerPointer& answer : {first, second})
    if (answer && !answer->report) {
      clear();
      return verdict_->setText(
          tr("%1 cannot be priced: %2").arg(text(answer->scenario.name), text(answer->report.error().message)));
    }
  if (!first || !second) return;
  Table table = comparison_table(*first->report, *second->report);
  table.columns[1].title = titleOf(*first_, *first);
  table.columns[2].title = titleOf(*second_, *second);
  for (std::vector<Cell>& row : table.rows) row[0].text = titled(row[0].text).toStdString();
  model_->setTable(std::move(table));
  table_->show();
  table_->fit();
  verdict_->setText(text(comparison_verdict(*first->report, *second->report)));
}

// What it compares it asks itself.
void CompareView::showAnswer(const AnswerPointer&, const AnswerPointer&) {}
void CompareView::setStale(bool) {}

std::optional<Table> CompareView::table() const {
  if (model_->table().columns.empty()) return std::nullopt;
  return model_->table();
}

// How it lies in a picture. Letters are measured in its pixels, not in points: a PDF has others of these than the
// screen, and would have room for fewer lines than were counted.
struct CompareView::Figure {
  QFont font;
  int line, words;  // heights: of a row, of the verdict with the space below it
  int height;
};

CompareView::Figure CompareView::figureOf(int width) const {
  Figure figure{font(), 0, 0, 0};
  figure.font.setPixelSize(QFontInfo(font()).pixelSize());
  const QFontMetrics metrics(figure.font);
  figure.line = metrics.height() * 5 / 4;
  const QRect room(0, 0, width - 2 * figure.line, std::numeric_limits<int>::max() / 2);
  figure.words = metrics.boundingRect(room, Qt::TextWordWrap, verdict_->text()).height() + figure.line / 2;
  const Table& table = model_->table();
  const int rows = table.columns.empty() ? 0 : static_cast<int>(table.rows.size()) + 1;
  figure.height = figure.words + (rows + 2) * figure.line;  // a line above and below all of it
  return figure;
}

QSize CompareView::figureSize(const QSize& offered) const {
  return offered.expandedTo({0, figureOf(offered.width()).height});
}

void CompareView::renderFigure(QPainter& painter, const QSize& size) {
  const Figure figure = figureOf(size.width());
  painter.setPen(palette().color(QPalette::Text));
  painter.setFont(figure.font);
  const Table& table = model_->table();
  const int line = figure.line;
  int y = line;
  painter.drawText(QRect(line, y, size.width() - 2 * line, figure.words), Qt::TextWordWrap, verdict_->text());
  y += figure.words;
  if (table.columns.empty()) return;
  const int columns = static_cast<int>(table.columns.size()), width = (size.width() - 2 * line) / columns;
  const auto cell = [&](int column, int top, const std::string& words, bool left) {
    const QRect box(line + column * width, top, width - line / 2, line);
    painter.drawText(box, static_cast<int>((left ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter),
                     QFontMetrics(figure.font).elidedText(text(words), Qt::ElideRight, box.width()));
  };
  for (int column = 0; column < columns; ++column)
    cell(column, y, table.columns[static_cast<std::size_t>(column)].title, column == 0);
  y += line;
  painter.drawLine(line, y, size.width() - line, y);
  for (const std::vector<Cell>& row : table.rows) {
    for (int column = 0; column < columns; ++column)
      cell(column, y, row[static_cast<std::size_t>(column)].text, column == 0);
    y += line;
  }
}

QJsonObject CompareView::viewState() const {
  return {{"first", first_->currentData().toInt()}, {"second", second_->currentData().toInt()}};
}

void CompareView::restoreViewState(const QJsonObject& state) {
  for (const auto& [choice, name] : {std::pair{first_, "first"}, std::pair{second_, "second"}}) {
    const int row = choice->findData(state[QLatin1String(name)].toInt(usual));
    choice->setCurrentIndex(std::max(0, row));
  }
  if (isVisible())
    ask();
  else
    waiting_ = true;
}

}  // namespace sibyl::gui
