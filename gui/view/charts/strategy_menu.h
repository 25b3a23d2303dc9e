// A button whose menu ticks what is to be shown: simple strategies beside the scenario's own, and where a view says so
// the scenario itself, the baseline, and others of the session.
#pragma once

#include <QPushButton>
#include <QStringList>
#include <vector>

namespace sibyl::gui {

class StrategyMenu : public QPushButton {
  Q_OBJECT

 public:
  struct Entry {
    QString key, title;
    bool begins_group = false;  // a line above it
  };

  StrategyMenu(const QString& title, const QString& tip, QWidget* parent);

  void offer(const std::vector<Entry>& entries);
  [[nodiscard]] const QStringList& chosen() const { return chosen_; }  // their keys
  [[nodiscard]] bool has(const QString& key) const { return chosen_.contains(key); }
  void choose(const QStringList& keys) { chosen_ = keys; }  // tells nobody
  void rename(const QString& key, const QString& now);      // of what is offered; chosen or not as before
  [[nodiscard]] QSize sizeHint() const override;

 signals:
  void chosenChanged();

 private:
  QStringList chosen_;
};

}  // namespace sibyl::gui
