// What is not saved yet, kept where a crash does not reach it, and found again by the next start.
//
// Each running program has a file of its own, with a lock beside it that the system frees when the program ends,
// however it ends; one that ends in order removes both. What lies there without a holder was left by a crash.
#pragma once

#include <QLockFile>
#include <QObject>
#include <QString>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>

#include "gui/model/session.h"

namespace sibyl::gui {

struct Leftover {
  Session session;
  QString path;  // of the session that it was; empty: it had none yet
};

class Autosave : public QObject {
  Q_OBJECT

 public:
  // `folder` is made where it is missing.
  explicit Autosave(const QString& folder, QObject* parent = nullptr);
  ~Autosave() override;

  // The program's data folder.
  static QString usualFolder();

  // What a crashed program left, if any; it is removed.
  std::optional<Leftover> takeLeftover();
  // To be called on every change: writes a moment later, once for all changes of that moment.
  void touch(std::function<Leftover()> content);
  void flush();
  // Nothing is unsaved any more.
  void clear();

 private:
  [[nodiscard]] QString fileOf(const QString& name) const;

  QString folder_, own_;
  std::unique_ptr<QLockFile> lock_;
  QTimer timer_;
  std::function<Leftover()> content_;
};

}  // namespace sibyl::gui
