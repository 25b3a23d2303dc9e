// What is to be exported, and where to. Before files are replaced it asks, and stays where they are not to be.
#pragma once

#include <QCheckBox>
#include <QDialog>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <vector>

#include "gui/app/exporter.h"

namespace sibyl::gui {

class ExportDialog : public QDialog {
  Q_OBJECT

 public:
  // `current` is marked alone; no others are, until they are wanted.
  ExportDialog(const std::vector<View*>& views, const View* current, const QString& folder, QWidget* parent);

  [[nodiscard]] std::vector<View*> views() const;
  [[nodiscard]] ExportRequest request() const;

  void accept() override;

 private:
  void check();

  std::vector<View*> all_;
  QListWidget* list_;
  QCheckBox *png_, *svg_, *pdf_, *csv_, *html_;
  QSpinBox *width_, *height_;
  QLineEdit* folder_;
  QPushButton* export_;
};

}  // namespace sibyl::gui
