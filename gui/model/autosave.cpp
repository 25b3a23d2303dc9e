#include "gui/model/autosave.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QJsonDocument>
#include <QSaveFile>
#include <QStandardPaths>
#include <QUuid>

namespace sibyl::gui {
namespace {

constexpr int delay_ms = 1000;
const QString session_ending = QStringLiteral(".json"), lock_ending = QStringLiteral(".lock");

// {"path": …, "session": {…}}, with absolute paths.
QByteArray bytes_of(const Leftover& leftover) {
  const QJsonObject session = QJsonDocument::fromJson(sessionBytes(leftover.session, {})).object();
  return QJsonDocument(QJsonObject{{"path", leftover.path}, {"session", session}}).toJson();
}

Result<Leftover> read(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly))
    return fail("cannot be read: " + file.errorString().toStdString(), path.toStdString());
  QJsonParseError problem;
  const QJsonObject root = QJsonDocument::fromJson(file.readAll(), &problem).object();
  if (problem.error != QJsonParseError::NoError) return fail(problem.errorString().toStdString(), path.toStdString());
  SIBYL_TRY(Session session, parseSession(QJsonDocument(root["session"].toObject()).toJson(), {}, path));
  return Leftover{std::move(session), root["path"].toString()};
}

}  // namespace

QString Autosave::usualFolder() {
  return QDir(QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation))
      .filePath(QStringLiteral("unsaved"));
}

QString Autosave::fileOf(const QString& name) const { return QDir(folder_).filePath(name); }

Autosave::Autosave(const QString& folder, QObject* parent)
    : QObject(parent), folder_(folder), own_(QUuid::createUuid().toString(QUuid::WithoutBraces)) {
  QDir().mkpath(folder_);
  lock_ = std::make_unique<QLockFile>(fileOf(own_ + lock_ending));
  lock_->setStaleLockTime(0);  // held until freed, or until its program is gone
  lock_->tryLock(0);
  timer_.setSingleShot(true);
  timer_.setInterval(delay_ms);
  connect(&timer_, &QTimer::timeout, this, &Autosave::flush);
}

Autosave::~Autosave() { forgetOwn(); }

Leftovers Autosave::takeLeftovers() {
  Leftovers found;
  const QStringList files = QDir(folder_).entryList({"*" + session_ending}, QDir::Files, QDir::Time);
  for (const QString& file : files) {
    const QString name = file.chopped(session_ending.size());
    if (name == own_) continue;
    auto lock = std::make_unique<QLockFile>(fileOf(name + lock_ending));
    lock->setStaleLockTime(0);
    if (!lock->tryLock(0)) continue;             // its program runs
    if (!QFile::exists(fileOf(file))) continue;  // another one has just taken it
    auto leftover = read(fileOf(file));
    if (!leftover) {
      found.unreadable.push_back(std::move(leftover).error());
    } else if (!found.newest) {
      found.newest = std::move(*leftover);
      taken_ = name;
      taken_lock_ = std::move(lock);
    }
  }
  return found;
}

void Autosave::touch(std::function<Leftover()> content) {
  content_ = std::move(content);
  if (!timer_.isActive()) timer_.start();
}

void Autosave::flush() {
  timer_.stop();
  if (!content_) return;
  const QByteArray bytes = bytes_of(content_());
  content_ = nullptr;
  QSaveFile file(fileOf(own_ + session_ending));
  // What cannot be kept aside is still in the window; there is nobody to tell who could do more than save it.
  if (file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit()) removeTaken();
}

void Autosave::clear() {
  forgetOwn();
  removeTaken();
}

void Autosave::forgetOwn() {
  timer_.stop();
  content_ = nullptr;
  QFile::remove(fileOf(own_ + session_ending));
}

void Autosave::removeTaken() {
  if (taken_.isEmpty()) return;
  QFile::remove(fileOf(taken_ + session_ending));
  taken_.clear();
  taken_lock_.reset();
}

}  // namespace sibyl::gui
