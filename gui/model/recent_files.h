// The files that were opened or saved last, newest first, kept in the program's settings.
#pragma once

#include <QString>
#include <QStringList>

namespace sibyl::gui {

class RecentFiles {
 public:
  explicit RecentFiles(QString key) : key_(std::move(key)) {}  // of QSettings: "recent/sessions"

  [[nodiscard]] QStringList list() const;  // those that exist
  void add(const QString& path);
  void clear();

 private:
  QString key_;
};

}  // namespace sibyl::gui
