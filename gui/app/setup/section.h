// A part of the setup: a heading that folds it away, what is wrong with it, and its controls.
#pragma once

#include <QLabel>
#include <QVBoxLayout>
#include <QWidget>

#include "gui/app/setup/disclosure.h"
#include "gui/model/document.h"
#include "gui/model/study.h"

namespace sibyl::gui {

class Section : public QWidget {
  Q_OBJECT

 public:
  Section(const QString& title, QWidget* parent);

  // Beneath the heading, in sight even where the rest is folded away; empty: nothing is wrong.
  void setError(const QString& message);

 protected:
  QVBoxLayout& body() { return *body_; }

 private:
  QWidget* content_;
  Disclosure* heading_;
  QLabel* error_;
  QVBoxLayout* body_;
};

// A section that is about the current scenario.
class ScenarioSection : public Section {
  Q_OBJECT

 public:
  ScenarioSection(const QString& title, Document& document, QWidget* parent)
      : Section(title, parent), document_(document) {}

  virtual void showScenario(const Scenario& scenario) = 0;
  virtual void showAnswer(const Answer&) {}

 protected:
  Document& document() { return document_; }

 private:
  Document& document_;
};

// Leaves the wheel to whatever scrolls around a control, unless it has the focus.
void guardWheel(QWidget* control);

}  // namespace sibyl::gui
