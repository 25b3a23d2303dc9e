// sibyl-gui [session.json | model.onnx | zoo:NAME]
#include <fmt/format.h>

#include <QApplication>
#include <QIcon>
#include <QLocale>
#include <QSettings>
#include <QTranslator>
#include <exception>

#include "base/files.h"
#include "gui/app/headless.h"
#include "gui/app/main_window.h"
#include "gui/app/text.h"
#include "gui/app/theme.h"
#include "oracle/cli/arguments.h"

namespace sibyl::gui {
namespace {

cli::Command command() {
  cli::Command c;
  c.name = "gui";
  c.program = "sibyl-gui";
  c.summary = "ask what if about a model on a cluster, and see the answer move while the slider does";
  c.operands = "[SESSION.json | MODEL]";
  c.most_operands = 1;
  c.examples = {
      {"sibyl-gui", "an empty session"},
      {"sibyl-gui zoo:resnet50", "a model of the zoo; a path to an ONNX file as well"},
      {"sibyl-gui --export-to out session.json", "all views of a session as PNG, SVG, CSV and HTML, without a window"}};
  c.options = {{.name = "--export-to",
                .value = "DIR",
                .help = "render all views into that folder, replacing files of their names, and end"},
               {.name = "--light", .help = "light colours, whatever the desktop's are"},
               {.name = "--dark", .help = "dark colours"},
               {.name = "--version", .help = "say which version this is"}};
  return c;
}

int report(const Error& error) {
  fmt::print(stderr, "{}\n", to_string(error));
  return exit_code(error.code);
}

Theme themeOf(const cli::Arguments& arguments) {
  if (arguments.has("--dark")) return Theme::dark;
  if (arguments.has("--light")) return Theme::light;
  const int chosen = QSettings().value(QStringLiteral("window/theme"), 0).toInt();
  return chosen == static_cast<int>(Theme::dark)    ? Theme::dark
         : chosen == static_cast<int>(Theme::light) ? Theme::light
                                                    : Theme::system;
}

int runWindow(QApplication& application, const cli::Arguments& arguments) {
  MainWindow window;
  window.begin(Autosave::usualFolder(), arguments.operands().empty() ? QString() : text(arguments.operands().front()));
  window.QWidget::show();
  return application.exec();
}

int run(int count, char** words) {
  const auto arguments = cli::Arguments::parse(command(), std::vector<std::string>(words + 1, words + count));
  if (!arguments) return report(arguments.error());
  if (arguments->help() || arguments->has("--version")) {
    const auto printed = print(arguments->help() ? cli::help_text(command()) : "sibyl-gui " SIBYL_VERSION "\n");
    return printed ? 0 : report(printed.error());
  }
  const auto folder = arguments->text("--export-to");
  if (folder && arguments->operands().empty())
    return report(
        {ErrorCode::usage, "--export-to needs a session or a model", {}, "`sibyl-gui --help` shows an example"});
  // Nothing is shown then, and there may be no display.
  if (folder && !qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  int one = 1;
  QApplication application(one, words);
  QApplication::setOrganizationName(QStringLiteral("sibyl"));
  QApplication::setApplicationName(QStringLiteral("sibyl-gui"));
  QApplication::setApplicationDisplayName(QStringLiteral("Sibyl"));
  QApplication::setApplicationVersion(QStringLiteral(SIBYL_VERSION));
  QApplication::setDesktopFileName(QStringLiteral("sibyl-gui"));
  QApplication::setWindowIcon(QIcon(QStringLiteral(":/sibyl-gui.svg")));
  QTranslator translator;
  // English for languages that are not there: its plurals.
  if (translator.load(QLocale(), QStringLiteral("sibyl"), QStringLiteral("_"), QStringLiteral(":/translations")) ||
      translator.load(QStringLiteral(":/translations/sibyl_en.qm")))
    QApplication::installTranslator(&translator);
  applyTheme(application, themeOf(*arguments));
  if (!folder) return runWindow(application, *arguments);
  const auto exported = exportHeadless(text(arguments->operands().front()), text(*folder));
  return exported ? *exported : report(exported.error());
}

}  // namespace
}  // namespace sibyl::gui

int main(int count, char** words) {
  try {
    return sibyl::gui::run(count, words);
  } catch (const std::exception& bug) {
    fmt::print(stderr, "sibyl-gui: this is a bug in Sibyl: {}\n", bug.what());
    return 70;
  }
}
