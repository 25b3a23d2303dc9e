// One option of `sibyl predict` as a control, made from what the command line says of it: a check box for a flag, a
// list for choices, else a line of text, with suggestions where there are any. What holds without the option is shown,
// and choosing it takes the option away.
#pragma once

#include <QStringList>
#include <QWidget>
#include <functional>

#include "gui/model/document.h"
#include "oracle/cli/arguments.h"

namespace sibyl::gui {

class OptionField : public QWidget {
  Q_OBJECT

 public:
  // `label`: as the form calls it. The control gets the accessible name. `usual`: what holds without the option, where
  // the command line has no word for it.
  OptionField(const cli::Option& option, const QString& label, Document& document, QWidget* parent,
              const QStringList& suggestions = {}, const QString& usual = {});

  void showScenario(const Scenario& scenario) { show_(scenario); }
  [[nodiscard]] QString label() const { return label_; }

 private:
  void makeFlag();
  void makeChoice(const QStringList& choices, bool editable);
  void makeLine();
  [[nodiscard]] QString placeholder() const;
  void take(const QString& value);  // empty, or what holds anyway: the option goes
  void adopt(QWidget* control);

  cli::Option option_;
  QString label_, usual_;
  Document& document_;
  std::function<void(const Scenario&)> show_;
};

}  // namespace sibyl::gui
