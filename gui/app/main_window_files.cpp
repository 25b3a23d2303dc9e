#include <QApplication>
#include <QCloseEvent>
#include <QDragEnterEvent>
#include <QDropEvent>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QMimeData>
#include <QProgressDialog>
#include <QSettings>
#include <QStatusBar>
#include <algorithm>

#include "calibration/cluster.h"
#include "gui/app/export_dialog.h"
#include "gui/app/main_window.h"
#include "gui/app/text.h"
#include "gui/app/wait.h"
#include "gui/model/recent_files.h"

namespace sibyl::gui {
namespace {

const QString window_state = QStringLiteral("window"), recent_sessions = QStringLiteral("recent/sessions");

enum class Kind { session, model, cluster };

// By its name; of JSON files, which may be sessions or calibrations, by what stands at their beginning.
Kind kindOf(const QString& path) {
  const QString suffix = QFileInfo(path).suffix().toLower();
  if (suffix == QLatin1String("yaml") || suffix == QLatin1String("yml")) return Kind::cluster;
  if (suffix != QLatin1String("json")) return Kind::model;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return Kind::session;
  // Qt writes keys in the order of the alphabet, and "schema" may be far from the beginning.
  constexpr qint64 most = 1 << 20;
  const QByteArray text = file.read(most);
  return text.contains("sibyl.calibration") ? Kind::cluster : Kind::session;
}

// What a model is priced on until somebody says otherwise.
std::string usualCluster() {
  const std::vector<std::string> all = shipped_clusters();
  const auto found = std::ranges::find(all, "dgx-a100");
  return found != all.end() ? *found : all.empty() ? "" : all.front();
}

QString absolute(const QString& path) { return QFileInfo(path).absoluteFilePath(); }

}  // namespace

Session MainWindow::session() const {
  Session session{document_.state(), document_.viewStates()};
  for (const View* view : views_) session.viewStates[view->key()] = view->viewState();
  if (const View* view = currentView()) session.viewStates[window_state] = {{"view", view->key()}};
  return session;
}

void MainWindow::load(Session session, const QString& path, bool unsaved) {
  path_ = path.isEmpty() ? path : absolute(path);
  unsaved_ = unsaved;
  const QMap<QString, QJsonObject> states = session.viewStates;
  document_.load(std::move(session.state), std::move(session.viewStates));
  for (View* view : views_) view->restoreViewState(states.value(view->key()));
  showView(states.value(window_state)[QLatin1String("view")].toString());
  views_changed_ = false;
  rememberUnsaved();
  showTitle();
}

void MainWindow::remember(const QString& key, const QString& path) const {
  if (autosave_) RecentFiles(key).add(path);
}

Result<void> MainWindow::openSession(const QString& path) {
  SIBYL_TRY(Session session, readSession(path));
  load(std::move(session), path, false);
  remember(recent_sessions, path);
  return {};
}

Result<void> MainWindow::open(const QString& path) {
  if (path.startsWith(QLatin1String("zoo:"))) {
    setModel(path);
    return {};
  }
  if (!QFileInfo::exists(path)) return fail("there is no such file", path.toStdString());
  switch (kindOf(path)) {
    case Kind::session: return openSession(path);
    case Kind::model: setModel(path); break;
    case Kind::cluster: setCluster(path); break;
  }
  return {};
}

void MainWindow::setModel(const QString& model) {
  if (model.isEmpty()) return;
  const QString whole = model.startsWith(QLatin1String("zoo:")) ? model : absolute(model);
  if (whole != model || isPath(model.toStdString())) remember(QStringLiteral("recent/models"), whole);
  document_.change(tr("Open model"), [&](Scenario& scenario) {
    if (scenario.model == whole.toStdString()) return;
    scenario.model = whole.toStdString();
    scenario.clear("--dim");  // the other model's
    scenario.clear("--stages");
    if (scenario.cluster.empty()) scenario.cluster = usualCluster();
  });
}

void MainWindow::setCluster(const QString& cluster) {
  if (cluster.isEmpty()) return;
  const bool file = isPath(cluster.toStdString());
  const QString whole = file ? absolute(cluster) : cluster;
  if (file) remember(QStringLiteral("recent/clusters"), whole);
  document_.change(tr("Change cluster"), [&](Scenario& scenario) {
    if (scenario.cluster == whole.toStdString()) return;
    scenario.cluster = whole.toStdString();
    scenario.clear("--devices-per-node");  // the other cluster's
    scenario.clear("--device-type");
  });
}

void MainWindow::tell(const Result<void>& result) {
  if (!result) notice_->say(errorText(result.error()), true);
}

void MainWindow::newSession() {
  if (mayDiscard()) load({}, {}, false);
}

void MainWindow::chooseFile() {
  const QString path =
      QFileDialog::getOpenFileName(this, tr("Open"), QFileInfo(path_).absolutePath(),
                                   tr("Sessions, models and clusters (*.json *.onnx *.yaml *.yml);;All files (*)"));
  if (path.isEmpty() || (kindOf(path) == Kind::session && !mayDiscard())) return;
  tell(open(path));
}

void MainWindow::chooseModel() {
  const QString path =
      QFileDialog::getOpenFileName(this, tr("Open a model"), {}, tr("ONNX models (*.onnx);;All files (*)"));
  if (!path.isEmpty()) setModel(path);
}

void MainWindow::chooseCluster() {
  const QString path = QFileDialog::getOpenFileName(
      this, tr("Open a cluster"), {}, tr("Clusters and calibrations (*.yaml *.yml *.json);;All files (*)"));
  if (!path.isEmpty()) setCluster(path);
}

Result<void> MainWindow::saveTo(const QString& path) {
  SIBYL_CHECK(writeSession(session(), path));
  path_ = absolute(path);
  unsaved_ = views_changed_ = false;
  document_.undoStack().setClean();
  if (autosave_) autosave_->clear();
  remember(recent_sessions, path_);
  showTitle();
  statusBar()->showMessage(tr("Saved %1").arg(path_), message_ms);
  return {};
}

bool MainWindow::save() {
  if (path_.isEmpty()) return saveAs();
  const auto saved = saveTo(path_);
  tell(saved);
  return saved.has_value();
}

bool MainWindow::saveAs() {
  QFileDialog dialog(this, tr("Save the session"), QFileInfo(path_).absolutePath(), tr("Sessions (*.json)"));
  dialog.setAcceptMode(QFileDialog::AcceptSave);
  dialog.setDefaultSuffix(QStringLiteral("json"));  // before it asks whether a file is to be replaced
  dialog.selectFile(path_.isEmpty() ? QStringLiteral("session.json") : path_);
  if (dialog.exec() != QDialog::Accepted) return false;
  const auto saved = saveTo(dialog.selectedFiles().front());
  tell(saved);
  return saved.has_value();
}

// Asks what is to become of what is unsaved; false: it is still wanted.
bool MainWindow::mayDiscard() {
  if (!unsaved()) return true;
  const auto answer =
      QMessageBox::question(this, tr("Unsaved changes"), tr("The session has changes that are not saved."),
                            QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
  return answer == QMessageBox::Discard || (answer == QMessageBox::Save && save());
}

void MainWindow::exportViews() {
  if (!answer_) return;
  const QString folder =
      path_.isEmpty() ? QStringLiteral("export") : QFileInfo(path_).absolutePath() + QStringLiteral("/export");
  ExportDialog dialog(views_, currentView(), absolute(folder), this);
  if (dialog.exec() != QDialog::Accepted) return;
  const ExportRequest request = dialog.request();
  // Stands before the window from the first moment: what is exported is not to change meanwhile.
  QProgressDialog progress(tr("What is exported is worked out…"), tr("Cancel"), 0, 0, this);
  progress.setWindowTitle(tr("Export"));
  progress.setWindowModality(Qt::WindowModal);
  progress.show();
  const auto written = exportTo(dialog.views(), request, [&progress] { return progress.wasCanceled(); });
  progress.hide();
  if (!written)
    notice_->say(errorText(written.error()), written.error().code != ErrorCode::interrupted);
  else
    notice_->say(tr("%n file(s) written to %1", nullptr, static_cast<int>(written->size())).arg(request.folder), false);
}

Result<QStringList> MainWindow::exportTo(const std::vector<View*>& views, const ExportRequest& request,
                                         const std::function<bool()>& cancelled) {
  const auto busy = [](const View* view) { return view->busy(); };
  const auto given_up = [] { return fail(ErrorCode::interrupted, tr("the export was cancelled").toStdString()); };
  if (stopped_) ask();
  if (!waitUntil([this] { return answer_ && !answers_.stale(); }, cancelled)) return given_up();
  for (View* view : views) view->prepare();
  if (!waitUntil([&] { return std::ranges::none_of(views, busy); }, cancelled)) {
    for (View* view : views)
      if (view->busy()) view->stop();
    return given_up();
  }
  return exportAll(views, *answer_, request);
}

void MainWindow::reload() {
  answers_.forget();
  for (View* view : views_) view->forget();
  ask();
}

void MainWindow::fillRecent() {
  recent_menu_->clear();
  for (const QString& path : RecentFiles(recent_sessions).list()) {
    QAction* action = recent_menu_->addAction(QFileInfo(path).fileName(), this, [this, path] {
      if (mayDiscard()) tell(openSession(path));
    });
    action->setToolTip(path);
  }
  recent_menu_->setToolTipsVisible(true);
  if (recent_menu_->isEmpty()) recent_menu_->addAction(tr("None yet"))->setEnabled(false);
}

void MainWindow::showTitle() {
  const QString name = path_.isEmpty() ? tr("Untitled") : QFileInfo(path_).fileName();
  setWindowTitle(QStringLiteral("%1[*] – Sibyl").arg(name));
  setWindowModified(unsaved());
}

// Written at once as this program's own: what was left goes only then.
void MainWindow::restore(Leftover leftover) {
  load(std::move(leftover.session), leftover.path, true);
  autosave_->flush();
}

void MainWindow::begin(const QString& folder, const QString& path) {
  autosave_ = std::make_unique<Autosave>(folder);
  Leftovers left = autosave_->takeLeftovers();
  QStringList words;
  bool wrong = !left.unreadable.empty();
  if (left.newest) {
    restore(std::move(*left.newest));
    words << (path_.isEmpty() ? tr("Sibyl ended unexpectedly. What was not saved is here again.")
                              : tr("Sibyl ended unexpectedly. What was not saved of %1 is here again.").arg(path_));
    if (!path.isEmpty() && absolute(path) != path_) words << tr("%1 was not opened in its place.").arg(path);
  } else if (!path.isEmpty()) {
    const auto opened = open(path);
    if (!opened) words << errorText(opened.error());
    wrong = wrong || !opened;
  }
  for (const Error& error : left.unreadable)
    words << tr("Sibyl ended unexpectedly before, and what was not saved cannot be read. It stays where it is: %1")
                 .arg(errorText(error));
  if (!words.isEmpty()) notice_->say(words.join('\n'), wrong);
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!mayDiscard()) return event->ignore();
  QSettings settings;
  settings.setValue(QStringLiteral("window/geometry"), saveGeometry());
  settings.setValue(QStringLiteral("window/layout"), saveState());
  if (autosave_) autosave_->clear();
  event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  for (const QUrl& url : event->mimeData()->urls()) {
    const QString path = url.toLocalFile();
    if (kindOf(path) == Kind::session && !mayDiscard()) continue;
    tell(open(path));
  }
}

}  // namespace sibyl::gui
