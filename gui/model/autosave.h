// What is not saved yet, kept where a crash does not reach it, and found again by the next start.
//
// Each running program has a file of its own, with a lock beside it that the system frees when the program ends,
// however it ends; one that ends in order removes both. What lies there without a holder was left by a crash. It stays
// until another program has written its content as its own, or nobody wants it; what cannot be read stays for ever.
#pragma once

#include <QLockFile>
#include <QObject>
#include <QString>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "gui/model/session.h"

namespace sibyl::gui {

struct Leftover {
  Session session;
  QString path;  // of the session that it was; empty: it had none yet
};

// What lies there without a holder.
struct Leftovers {
  std::optional<Leftover> newest;  // of those that can be read
  std::vector<Error> unreadable;   // where they lie, and why: a newer Sibyl may have written them
};

class Autosave : public QObject {
  Q_OBJECT

 public:
  // `folder` is made where it is missing.
  explicit Autosave(const QString& folder, QObject* parent = nullptr);
  ~Autosave() override;

  // The program's data folder.
  static QString usualFolder();

  // What crashed programs left. The newest is this program's from now on: its file goes once something is written in
  // its place (flush()), or nothing is unsaved any more (clear()).
  Leftovers takeLeftovers();
  // To be called on every change: writes a moment later, once for all changes of that moment.
  void touch(std::function<Leftover()> content);
  void flush();
  // Nothing is unsaved any more: it was saved, or nobody wants it.
  void clear();

 private:
  [[nodiscard]] QString fileOf(const QString& name) const;
  void forgetOwn();
  void removeTaken();

  QString folder_, own_, taken_;  // names of files, without their ending; taken_: empty where there is none
  std::unique_ptr<QLockFile> lock_, taken_lock_;
  QTimer timer_;
  std::function<Leftover()> content_;
};

}  // namespace sibyl::gui
