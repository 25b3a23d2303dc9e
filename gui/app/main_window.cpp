#include "gui/app/main_window.h"

#include <QApplication>
#include <QEvent>
#include <QSettings>
#include <QStatusBar>
#include <QTabBar>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/app/text.h"
#include "gui/view/canvas/views.h"
#include "gui/view/charts/views.h"
#include "gui/view/compare/compare_view.h"

namespace sibyl::gui {
namespace {

constexpr int scenario_buttons = 4;  // of the actions: new, duplicate, delete, pin

}  // namespace

MainWindow::MainWindow()
    : answers_(this), tabs_(new QTabWidget(this)), answer_bar_(new AnswerBar(this)), notice_(new Notice(this)) {
  setObjectName(QStringLiteral("window"));
  setAcceptDrops(true);
  setDockNestingEnabled(true);
  auto* centre = new QWidget(this);
  auto* layout = new QVBoxLayout(centre);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  layout->addWidget(answer_bar_);
  layout->addWidget(notice_);
  layout->addWidget(tabs_, 1);
  notice_->setParent(centre);
  notice_->hide();
  setCentralWidget(centre);
  tabs_->setDocumentMode(true);
  tabs_->setAccessibleName(tr("Views"));
  tabs_->setUsesScrollButtons(true);
  makeViews();
  setup_ = new SetupDock(document_, this);
  addDockWidget(Qt::LeftDockWidgetArea, setup_);
  makeFileMenu();
  makeEditMenu();
  makeScenarioMenu();
  scenarios_ = new ScenarioDock(document_, scenario_actions_, scenario_buttons, this);
  addDockWidget(Qt::LeftDockWidgetArea, scenarios_);
  makeViewMenu();
  makeHelpMenu();
  makeToolBar();
  statusBar()->setSizeGripEnabled(false);
  makeStop();
  resize(1280, 800);
  constexpr int setup_width = 350, setup_height = 560, scenarios_height = 150;
  resizeDocks({setup_}, {setup_width}, Qt::Horizontal);
  resizeDocks({setup_, scenarios_}, {setup_height, scenarios_height}, Qt::Vertical);
  usual_layout_ = saveState();
  const QSettings settings;
  restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
  restoreState(settings.value(QStringLiteral("window/layout")).toByteArray());

  connect(&setup_->model(), &ModelSection::openRequested, this, &MainWindow::chooseModel);
  connect(&setup_->model(), &ModelSection::modelChosen, this, &MainWindow::setModel);
  connect(&setup_->cluster(), &ClusterSection::openRequested, this, &MainWindow::chooseCluster);
  connect(&setup_->cluster(), &ClusterSection::clusterChosen, this, &MainWindow::setCluster);
  connect(answer_bar_, &AnswerBar::remedyChosen, this, [this](const QString& option, const QString& value) {
    document_.change(tr("Make it fit"),
                     [&](Scenario& scenario) { scenario.set(option.toStdString(), value.toStdString()); });
  });
  connect(&document_, &Document::renamed, this, [this](const QString& before, const QString& after) {
    for (View* view : views_) view->followRename(before, after);
  });
  connect(&document_, &Document::changed, this, &MainWindow::follow);
  connect(&document_.undoStack(), &QUndoStack::cleanChanged, this, &MainWindow::showTitle);
  connect(&document_.undoStack(), &QUndoStack::indexChanged, this, &MainWindow::rememberUnsaved);
  connect(&answers_, &Answers::foreseen, answer_bar_, &AnswerBar::foresee);
  connect(&answers_, &Answers::answered, this, &MainWindow::display);
  connect(&answers_, &Answers::staleChanged, this, [this](bool stale) {
    answer_bar_->setStale(stale);
    for (View* view : views_) view->setStale(stale);
  });
  follow();
}

// Views end their jobs when they are destroyed, which is after everything here; and the document clears its steps after
// what keeps them aside is gone.
MainWindow::~MainWindow() {
  document_.undoStack().disconnect(this);
  for (View* view : views_) disconnect(view, nullptr, this, nullptr);
}

void MainWindow::makeViews() {
  views_ = chartViews(tabs_);
  std::ranges::copy(canvasViews(tabs_), std::back_inserter(views_));
  views_.push_back(new CompareView(document_, tabs_));
  for (View* view : views_) {
    tabs_->addTab(view, view->title());
    connect(view, &View::scenarioProposed, this,
            [this](const Scenario& scenario, const QString& why) { document_.propose(scenario, why); });
    connect(view, &View::viewStateChanged, this, [this] {
      views_changed_ = true;
      showTitle();
      rememberUnsaved();
    });
    // By itself it is nothing to come back to after a crash, but it goes with what is.
    connect(view, &View::lookedElsewhere, this, [this] {
      if (unsaved()) rememberUnsaved();
    });
    connect(view, &View::operationPointedAt, this, [this, view](const QString& operation) {
      for (View* other : views_)
        if (other != view) other->pointAtOperation(operation);
    });
  }
}

void MainWindow::makeStop() {
  stop_ = new QToolButton(this);
  stop_->setObjectName(QStringLiteral("stop"));
  stop_->setText(tr("Stop"));
  stop_->setAutoRaise(true);
  stop_->setToolTip(tr("Give up what is being worked out (Ctrl+.)"));
  stop_->setAccessibleName(tr("Stop what is being worked out"));
  statusBar()->addPermanentWidget(stop_);
  stop_->hide();
  constexpr int long_ms = 400;  // what is done before that needs no button
  stop_soon_.setSingleShot(true);
  stop_soon_.setInterval(long_ms);
  connect(&stop_soon_, &QTimer::timeout, stop_, &QWidget::show);
  connect(stop_, &QToolButton::clicked, this, &MainWindow::stopWork);
  for (const View* view : views_) connect(view, &View::busyChanged, this, &MainWindow::showWork);
  connect(&answers_, &Answers::staleChanged, this, &MainWindow::showWork);
}

bool MainWindow::working() const {
  return answers_.stale() || std::ranges::any_of(views_, [](const View* view) { return view->busy(); });
}

void MainWindow::showWork() {
  if (working()) {
    if (!stop_soon_.isActive()) stop_soon_.start();
    return;
  }
  stop_soon_.stop();
  stop_->hide();
}

void MainWindow::stopWork() {
  stopAnswer();
  fit_.cancel();
  for (View* view : views_) view->stop();
  if (setup_->strategy().searching()) setup_->strategy().findBest();
}

// The answer before comes back in the place of a formula's figures. It is of another question, and stays dimmed.
void MainWindow::stopAnswer() {
  if (!answers_.stale()) return;
  answers_.drop();
  stopped_ = true;
  answer_bar_->showAnswer(answer_, baseline_);
  answer_bar_->showStopped(answer_ != nullptr);
  for (View* view : views_) view->setStale(true);
}

void MainWindow::ask() {
  stopped_ = false;
  answer_bar_->setStale(true);  // a formula's figures may be of the question before: they are not dimmed yet
  answers_.ask(document_.current(), document_.state().baseline);
}

// Whatever of the document changed: all of it is shown again, which is little.
void MainWindow::follow() {
  ask();  // in other threads, while this one shows the rest
  setup_->showScenario(document_.current());
  std::vector<Scenario> others = document_.state().scenarios;
  others.erase(others.begin() + document_.state().current);
  for (View* view : views_) view->showOthers(others);
  showTitle();
}

void MainWindow::rememberUnsaved() {
  if (!autosave_) return;
  if (unsaved())
    autosave_->touch([this] { return Leftover{session(), path_}; });
  else
    autosave_->clear();
}

void MainWindow::display(const AnswerPointer& current, const AnswerPointer& baseline) {
  answer_ = current;
  baseline_ = baseline;
  answer_bar_->showAnswer(current, baseline);
  setup_->showAnswer(*current);
  for (View* view : views_) view->showAnswer(current, baseline);
  askWhatFits();
  emit answered();
}

// Dozens of predictions, so beside the window; only where the answer that is shown does not fit.
void MainWindow::askWhatFits() {
  fit_.cancel();
  if (!answer_->report || answer_->report->prediction.fits) return;
  fit_.ask(
      [study = answer_->study](const Ticket& ticket) {
        return nearest_fit(*study->graph, study->strategy, *study->cluster, ticket.cancelled());
      },
      [this, study = answer_->study](const NearestFit& fit) { answer_bar_->offer(fit, study->strategy); },
      [this](const Error& error) { notice_->say(errorText(error), true); });
}

bool MainWindow::settled() const { return !working() && !fit_.busy(); }

View* MainWindow::currentView() const { return qobject_cast<View*>(tabs_->currentWidget()); }

void MainWindow::showView(const QString& key) {
  for (View* view : views_)
    if (view->key() == key) tabs_->setCurrentWidget(view);
}

// Colours that depend on the palette are taken anew, once the children have theirs.
void MainWindow::changeEvent(QEvent* event) {
  QMainWindow::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  QTimer::singleShot(0, this, [this] {
    if (!answer_) return;
    answer_bar_->showAnswer(answer_, baseline_);
    askWhatFits();
    setup_->showAnswer(*answer_);
  });
}

}  // namespace sibyl::gui
