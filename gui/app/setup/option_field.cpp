#include "gui/app/setup/option_field.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QSignalBlocker>

#include "gui/app/setup/section.h"
#include "gui/app/text.h"

namespace sibyl::gui {

OptionField::OptionField(const cli::Option& option, const QString& label, Document& document, QWidget* parent,
                         const QStringList& suggestions, const QString& usual)
    : QWidget(parent), option_(option), label_(label), usual_(usual), document_(document) {
  QStringList choices;
  for (const std::string& choice : option_.choices) choices.append(text(choice));
  if (option_.value.empty())
    makeFlag();
  else if (!choices.isEmpty() || !suggestions.isEmpty())
    makeChoice(choices.isEmpty() ? suggestions : choices, choices.isEmpty());
  else
    makeLine();
}

void OptionField::adopt(QWidget* control) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(control);
  control->setObjectName(text(option_.name));
  control->setAccessibleName(label_);
  control->setToolTip(tip(option_));
  setFocusProxy(control);
  guardWheel(control);
}

void OptionField::take(const QString& value) {
  const std::string wanted = value.trimmed().toStdString();
  document_.change(tr("Change %1").arg(label_), [&](Scenario& scenario) {
    const bool as_usual = wanted == option_.fallback || wanted == usual_.toStdString();
    if (wanted.empty() || (as_usual && !option_.value.empty()))
      scenario.clear(option_.name);
    else
      scenario.set(option_.name, wanted);
  });
}

void OptionField::makeFlag() {
  auto* box = new QCheckBox(label_, this);
  adopt(box);
  connect(box, &QCheckBox::toggled, this, [this](bool on) {
    document_.change(tr("Change %1").arg(label_), [&](Scenario& scenario) {
      if (on)
        scenario.set(option_.name, "");
      else
        scenario.clear(option_.name);
    });
  });
  show_ = [this, box](const Scenario& scenario) {
    const QSignalBlocker quiet(box);
    box->setChecked(scenario.option(option_.name).has_value());
  };
}

void OptionField::makeChoice(const QStringList& choices, bool editable) {
  auto* box = new QComboBox(this);
  if (!usual_.isEmpty()) box->addItem(usual_);
  box->addItems(choices);
  box->setEditable(editable);
  box->setInsertPolicy(QComboBox::NoInsert);
  if (editable) box->lineEdit()->setPlaceholderText(placeholder());
  adopt(box);
  connect(box, &QComboBox::textActivated, this, &OptionField::take);
  if (editable)
    connect(box->lineEdit(), &QLineEdit::editingFinished, this, [this, box] {
      if (box->currentText() != text(document_.current().option(option_.name).value_or(option_.fallback)))
        take(box->currentText());
    });
  show_ = [this, box, editable](const Scenario& scenario) {
    const QSignalBlocker quiet(box);
    const QString value = text(scenario.option(option_.name).value_or(option_.fallback));
    if (editable) {
      box->setEditText(value);
      return;
    }
    // What is no choice (a session written by hand) is shown all the same; the message says what is wrong with it.
    if (box->findText(value) < 0) box->addItem(value);
    box->setCurrentText(value);
  };
}

// What holds as it is, or how it is written.
QString OptionField::placeholder() const {
  return !usual_.isEmpty() ? usual_ : text(option_.fallback.empty() ? option_.value : option_.fallback);
}

void OptionField::makeLine() {
  auto* line = new QLineEdit(this);
  line->setPlaceholderText(placeholder());
  line->setMinimumWidth(60);
  adopt(line);
  connect(line, &QLineEdit::editingFinished, this, [this, line] {
    if (line->text().trimmed() != text(document_.current().option(option_.name).value_or(""))) take(line->text());
  });
  show_ = [this, line](const Scenario& scenario) { line->setText(text(scenario.option(option_.name).value_or(""))); };
}

}  // namespace sibyl::gui
