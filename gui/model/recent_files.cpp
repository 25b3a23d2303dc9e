#include "gui/model/recent_files.h"

#include <QFileInfo>
#include <QSettings>

namespace sibyl::gui {
namespace {
constexpr int most = 10;
}

QStringList RecentFiles::list() const {
  QStringList existing;
  for (const QString& path : QSettings().value(key_).toStringList())
    if (QFileInfo::exists(path)) existing.append(path);
  return existing;
}

void RecentFiles::add(const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  QStringList all = list();
  all.removeAll(absolute);
  all.prepend(absolute);
  QSettings().setValue(key_, QStringList(all.mid(0, most)));
}

void RecentFiles::clear() { QSettings().remove(key_); }

}  // namespace sibyl::gui
