// A session as one JSON file: scenarios, baseline, and how the views were looked at. Format: docs/formats/session.md.
//
// Paths of models and clusters are kept relative to the file, so that a folder can be moved as a whole; in memory they
// are absolute. zoo:NAME and shipped clusters stay names. A file is replaced in one move or not at all; one that a
// newer Sibyl wrote is refused, never half read. An Error's `where` is the file and the JSON path.
#pragma once

#include <QByteArray>
#include <QJsonObject>
#include <QMap>
#include <QString>

#include "base/result.h"
#include "gui/model/document.h"

namespace sibyl::gui {

struct Session {
  State state;
  QMap<QString, QJsonObject> viewStates;
};

Result<void> writeSession(const Session& session, const QString& path);
Result<Session> readSession(const QString& path);

// As bytes; `folder` is what paths are relative to (empty: they stay absolute), `file` names the text in errors.
QByteArray sessionBytes(const Session& session, const QString& folder);
Result<Session> parseSession(const QByteArray& text, const QString& folder, const QString& file);

// A path on this machine, rather than zoo:NAME or a shipped cluster's name?
bool isPath(const std::string& modelOrCluster);

}  // namespace sibyl::gui
