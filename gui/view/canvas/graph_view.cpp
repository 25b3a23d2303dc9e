#include "gui/view/canvas/graph_view.h"

#include <QJsonArray>
#include <QLabel>
#include <QSplitter>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "gui/view/canvas/timeline_text.h"
#include "gui/view/colours.h"
#include "gui/view/progress_line.h"

namespace sibyl::gui {

GraphView::GraphView(QWidget* parent) : View(parent) {
  setAccessibleName(tr("Graph of the model"));
  message_ = new QLabel(tr("Open a model to see its graph."), this);
  message_->setWordWrap(true);
  message_->setAlignment(Qt::AlignCenter);
  message_->setMargin(24);
  splitter_ = new QSplitter(this);
  splitter_->setChildrenCollapsible(false);
  canvas_ = new GraphCanvas(splitter_);
  auto* side = new QWidget(splitter_);
  details_ = new QTextBrowser(side);
  details_->setFrameShape(QFrame::NoFrame);
  details_->setAccessibleName(tr("Details of the node"));
  details_->document()->setDocumentMargin(12);
  legend_ = new QLabel(side);
  legend_->setTextFormat(Qt::RichText);
  legend_->setWordWrap(true);
  legend_->setMargin(12);
  legend_->setBackgroundRole(QPalette::Base);
  legend_->setAutoFillBackground(true);
  legend_->setAccessibleName(tr("Colours of the graph"));
  auto* words = new QVBoxLayout(side);
  words->setContentsMargins(0, 0, 0, 0);
  words->setSpacing(0);
  words->addWidget(details_, 1);
  words->addWidget(legend_);
  splitter_->setStretchFactor(0, 1);
  splitter_->setSizes({780, 300});
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(makeProgress(work_, tr("Progress of the graph"), this));
  layout->addWidget(message_, 1);
  layout->addWidget(splitter_, 1);
  splitter_->hide();
  connect(&work_, &LatestSignals::busyChanged, this, &GraphView::dim);
  connect(&work_, &LatestSignals::busyChanged, this, &View::busyChanged);
  connect(canvas_, &GraphCanvas::hoveredChanged, this, &GraphView::showNode);
  connect(canvas_, &GraphCanvas::placeChanged, this, &View::lookedElsewhere);
  connect(canvas_, &GraphCanvas::selectedChanged, this, [this] {
    showNode();
    const auto node = canvas_->selected();
    if (node && canvas_->scene().nodes[*node].kind == GraphNode::Kind::operation)
      emit operationPointedAt(
          QString::fromStdString(canvas_->model()->name(canvas_->scene().nodes[*node].operations.front())));
  });
}

void GraphView::showAnswer(const AnswerPointer& current, const AnswerPointer&) {
  answer_ = current;
  pending_ = true;
  if (isVisible()) work();
}

void GraphView::setStale(bool stale) {
  stale_ = stale;
  dim();
}

// Until what is asked for has come, and until it is worked out here.
void GraphView::dim() { canvas_->setStale(stale_ || work_.busy()); }

void GraphView::showEvent(QShowEvent* event) {
  View::showEvent(event);
  prepare();
}

void GraphView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && canvas_) showLegend();
}

void GraphView::prepare() {
  if (pending_) work();
}

GraphView::Outcome GraphView::study(const AnswerPointer& answer, const Cancelled& cancelled) {
  if (!answer) return {nullptr, tr("Open a model to see its graph.")};
  if (!answer->report) return {nullptr, errorSentence(answer->report.error())};
  auto wired = wiring(*answer->study->graph, answer->study->strategy, *answer->study->cluster, cancelled);
  if (!wired) return {nullptr, errorSentence(wired.error())};
  return {std::make_shared<const GraphModel>(answer, std::move(*wired)), {}};
}

void GraphView::work() {
  pending_ = false;
  work_.ask([answer = answer_](const Ticket& ticket) { return study(answer, ticket.cancelled()); },
            [this](Outcome outcome) { deliver(outcome); },
            [this](const Error& error) {
              deliver({nullptr, errorSentence(error)});
            });
}

void GraphView::stop() {
  if (!work_.busy()) return;
  work_.cancel();
  deliver({nullptr, stoppedText()});
}

void GraphView::deliver(const Outcome& outcome) {
  message_->setText(outcome.failure);
  message_->setVisible(!outcome.model);
  splitter_->setVisible(outcome.model != nullptr);
  canvas_->setModel(outcome.model);
  showLegend();
  if (outcome.model && restored_) canvas_->place(restored_->first, restored_->second);
  if (outcome.model) restored_.reset();
  emit settled();
}

QString GraphView::message() const { return canvas_->model() ? QString() : message_->text(); }

void GraphView::showNode() {
  if (!canvas_->model()) return details_->clear();
  const auto node = canvas_->hovered() ? canvas_->hovered() : canvas_->selected();
  if (node) {
    details_->setHtml(canvas_->model()->details(canvas_->scene().nodes[*node]));
    return;
  }
  const QString keys = tr("Ctrl+wheel or W S zoom · drag moves · F shows all.");
  const QString opens = canvas_->model()->folds() ? tr("A double click opens a block.") : QString();
  details_->setHtml(QString("<p>%1</p><p>%2<br>%3</p>").arg(canvas_->model()->summary(), keys, opens));
}

void GraphView::showLegend() {
  const GraphModel* model = canvas_->model();
  if (!model) return;
  QStringList lines;
  const auto add = [&](const QColor& colour, const QString& words) {
    lines += QString("<span style='color:%1'>■</span>&nbsp; %2").arg(colour.name(), words);
  };
  for (const MeshAxis axis : model->axes()) add(axisColour(axis, palette()), tr("split over %1").arg(axisName(axis)));
  if (model->sends()) add(colourOf("communication", palette()), tr("sent between ranks: ↓ forward, ↑ backward"));
  legend_->setText(lines.join("<br>"));
  legend_->setVisible(!lines.isEmpty());
}

void GraphView::pointAtOperation(const QString& operation) {
  if (!canvas_->model()) return;
  const OperationId id = canvas_->model()->find(operation.toStdString());
  if (!id.valid()) return;
  const QSignalBlocker quiet(this);
  canvas_->reveal(id);
}

void GraphView::renderFigure(QPainter& painter, const QSize& size) {
  if (canvas_->model())
    canvas_->draw(painter, size);
  else
    painter.drawText(QRect(QPoint(0, 0), size), Qt::AlignCenter | Qt::TextWordWrap, message_->text());
}

std::optional<Table> GraphView::table() const {
  if (!canvas_->model()) return {};
  return canvas_->model()->table();
}

QJsonObject GraphView::viewState() const {
  QJsonArray opened;
  for (const std::string& key : canvas_->opened()) opened.append(QString::fromStdString(key));
  const auto [scale, origin] = restored_.value_or(std::pair(canvas_->scale(), canvas_->origin()));
  return {{"scale", scale}, {"x", origin.x()}, {"y", origin.y()}, {"opened", opened}};
}

void GraphView::restoreViewState(const QJsonObject& state) {
  std::set<std::string> opened;
  for (const QJsonValue& key : state["opened"].toArray()) opened.insert(key.toString().toStdString());
  canvas_->setOpened(std::move(opened));
  restored_.reset();
  if (const double scale = state["scale"].toDouble(); scale > 0) {
    const QPointF origin(state["x"].toDouble(), state["y"].toDouble());
    if (canvas_->model())
      canvas_->place(scale, origin);
    else
      restored_ = {scale, origin};
  }
}

}  // namespace sibyl::gui
