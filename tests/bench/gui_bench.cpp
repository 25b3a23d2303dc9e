// How fast the window is: from its start to its first picture, and from a slider's move to the answer being painted (a
// formula's, and the exact one), for ResNet-50 on 1,024 devices and GPT-3 on 16,384. Batches differ at every move, so
// that no answer is known already.
//
//   cmake --preset release -DSIBYL_BENCH=ON && cmake --build --preset release --target gui_bench &&
//   build/release/bin/gui_bench
#include <fmt/format.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTimer>
#include <QWindow>
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gui/app/main_window.h"

using namespace sibyl;
using namespace sibyl::gui;

namespace {

constexpr int moves = 40;

// Lets events pass until it is so.
void wait(const std::function<bool()>& so) {
  QTimer often;
  often.start(5);
  while (!so()) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

double milliseconds(const QElapsedTimer& timer) { return static_cast<double>(timer.nsecsElapsed()) / 1e6; }

Scenario question(const char* model, int devices, const char* parallel) {
  Scenario s;
  s.model = model;
  s.cluster = "dgx-a100";
  s.set("--nodes", std::to_string(devices / 8));
  s.set("--devices", std::to_string(devices));
  s.set("--precision", "bf16");
  s.set("--optimizer", "adam");
  if (*parallel != 0) s.set("--parallel", parallel);
  return s;
}

void report(const char* what, std::vector<double> times) {
  std::ranges::sort(times);
  fmt::print("{:<58} median {:8.2f} ms   slowest of {} {:8.2f} ms\n", what, times[times.size() / 2], times.size(),
             times.back());
}

// `batch` of the n-th move.
void slide(MainWindow& window, const char* what, const Scenario& first, const std::function<std::string(int)>& batch) {
  window.document().propose(first, what);
  wait([&] { return window.settled() && window.answer(); });
  bool answered = false;
  const auto connection = QObject::connect(&window, &MainWindow::answered, [&] { answered = true; });
  std::vector<double> formulas, times;
  QElapsedTimer timer;
  bool seen = false;
  const auto foreseen =
      QObject::connect(window.findChild<Answers*>({}, Qt::FindDirectChildrenOnly), &Answers::foreseen, &window, [&] {
        if (std::exchange(seen, true)) return;
        window.answerBar().repaint();
        formulas.push_back(milliseconds(timer));
      });
  for (int n = 0; n < moves; ++n) {
    answered = seen = false;
    timer.start();
    window.document().change(
        "batch", [&](Scenario& s) { s.set("--batch", batch(n)); }, "slider");
    while (!answered) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
    window.answerBar().repaint();
    times.push_back(milliseconds(timer));
  }
  QObject::disconnect(connection);
  QObject::disconnect(foreseen);
  if (!window.answer()->report) fmt::print("{}\n", to_string(window.answer()->report.error()));
  if (!formulas.empty()) report((std::string(what) + ", by formula").c_str(), formulas);
  report((std::string(what) + ", exact").c_str(), times);
}

}  // namespace

int main(int count, char** words) {
  QElapsedTimer start;
  start.start();
  QApplication application(count, words);
  const QTemporaryDir folder;
  QStandardPaths::setTestModeEnabled(true);
  QSettings::setDefaultFormat(QSettings::IniFormat);
  QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder.path());
  applyTheme(application, Theme::light);
  MainWindow window;
  window.QWidget::show();
  wait([&] { return window.windowHandle() != nullptr && window.windowHandle()->isExposed(); });
  window.repaint();
  report("start to first picture", {milliseconds(start)});
  slide(window, "ResNet-50, 1,024 devices: slider to picture", question("zoo:resnet50", 1024, ""),
        [](int n) { return fmt::format("{}/device", 32 + n); });
  slide(
      window, "GPT-3, 16,384 devices: slider to picture",
      [] {
        Scenario s = question("zoo:gpt3-175b", 16384, "tensor=8,pipeline=8");
        s.set("--micro-batches", "8");
        s.set("--batch", "2048");
        return s;
      }(),
      [](int n) { return fmt::format("{}", 2048 * (n + 2)); });
  return 0;
}
