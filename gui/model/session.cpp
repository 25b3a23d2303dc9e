#include "gui/model/session.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QSaveFile>
#include <algorithm>
#include <cmath>

#include "calibration/cluster.h"

namespace sibyl::gui {
namespace {

constexpr int version = 1;
const QString schema = QStringLiteral("sibyl-session");

// Where one is in the file: "session.json: $.scenarios[1].model".
class Place {
 public:
  Place(QString file, QString path) : file_(std::move(file)), path_(std::move(path)) {}
  [[nodiscard]] Place operator/(const QString& key) const { return {file_, path_ + "." + key}; }
  [[nodiscard]] Place operator/(qsizetype index) const {
    return {file_, QStringLiteral("%1[%2]").arg(path_).arg(index)};
  }
  [[nodiscard]] Failure wrong(const QString& message, const QString& hint = {}) const {
    return fail(message.toStdString(), QStringLiteral("%1: %2").arg(file_, path_).toStdString(), hint.toStdString());
  }

 private:
  QString file_, path_;
};

Result<QString> text(const QJsonObject& object, const QString& key, const Place& place) {
  const QJsonValue value = object.value(key);
  if (!value.isString())
    return (place / key).wrong(value.isUndefined() ? QStringLiteral("is missing") : QStringLiteral("is not a text"));
  return value.toString();
}

// A number from 0 to 1e18; 0 where it is missing.
Result<double> amount(const QJsonObject& object, const QString& key, const Place& place) {
  const QJsonValue value = object.value(key);
  if (value.isUndefined()) return 0.0;
  constexpr double most = 1e18;
  if (!value.isDouble() || !(value.toDouble() >= 0) || value.toDouble() > most)
    return (place / key).wrong(QStringLiteral("is not a number from 0 to 1e18"));
  return value.toDouble();
}

Result<std::vector<std::string>> texts(const QJsonValue& value, const Place& place) {
  if (!value.isArray()) return place.wrong(QStringLiteral("is not a list of texts"));
  std::vector<std::string> all;
  const QJsonArray array = value.toArray();
  for (qsizetype i = 0; i < array.size(); ++i) {
    if (!array[i].isString()) return (place / i).wrong(QStringLiteral("is not a text"));
    all.push_back(array[i].toString().toStdString());
  }
  return all;
}

QJsonArray array_of(const std::vector<std::string>& list) {
  QJsonArray array;
  for (const std::string& item : list) array.append(QString::fromStdString(item));
  return array;
}

QString relative(const std::string& name, const QString& folder) {
  const QString path = QString::fromStdString(name);
  return folder.isEmpty() || !isPath(name) ? path : QDir(folder).relativeFilePath(QFileInfo(path).absoluteFilePath());
}

std::string absolute(const QString& path, const QString& folder) {
  if (folder.isEmpty() || !isPath(path.toStdString())) return path.toStdString();
  return QDir::cleanPath(QDir(folder).absoluteFilePath(path)).toStdString();
}

// Of a view's state: the file whose runs or real step it shows, which travels with the folder as models do.
const QString shown_file = QStringLiteral("measured");

template <class Convert>
QJsonObject withFile(QJsonObject view, Convert convert) {
  if (const QString file = view[shown_file].toString(); !file.isEmpty()) view[shown_file] = convert(file);
  return view;
}

QJsonObject to_json(const Scenario& scenario, const QString& folder) {
  QJsonObject options;
  for (const auto& [name, values] : scenario.options) options[QString::fromStdString(name)] = array_of(values);
  return {{"name", QString::fromStdString(scenario.name)},
          {"model", relative(scenario.model, folder)},
          {"cluster", relative(scenario.cluster, folder)},
          {"options", options},
          {"changes", array_of(scenario.changes)},
          {"device_hour_price", scenario.device_hour_price},
          {"epoch_samples", static_cast<qint64>(scenario.epoch_samples)}};
}

Result<Scenario> scenario_of(const QJsonValue& value, const QString& folder, const Place& place) {
  if (!value.isObject()) return place.wrong(QStringLiteral("is not an object"));
  const QJsonObject object = value.toObject();
  Scenario scenario;
  SIBYL_TRY(const QString name, text(object, "name", place));
  SIBYL_TRY(const QString model, text(object, "model", place));
  SIBYL_TRY(const QString cluster, text(object, "cluster", place));
  scenario.name = name.toStdString();
  scenario.model = absolute(model, folder);
  scenario.cluster = absolute(cluster, folder);
  if (object.contains("options") && !object["options"].isObject())
    return (place / QStringLiteral("options")).wrong(QStringLiteral("is not an object"));
  const QJsonObject options = object["options"].toObject();
  for (auto option = options.begin(); option != options.end(); ++option) {
    SIBYL_TRY(scenario.options[option.key().toStdString()],
              texts(option.value(), place / QStringLiteral("options") / option.key()));
  }
  if (object.contains("changes")) {
    SIBYL_TRY(scenario.changes, texts(object["changes"], place / QStringLiteral("changes")));
  }
  SIBYL_TRY(scenario.device_hour_price, amount(object, "device_hour_price", place));
  SIBYL_TRY(const double samples, amount(object, "epoch_samples", place));
  if (samples != std::floor(samples))
    return (place / QStringLiteral("epoch_samples")).wrong(QStringLiteral("is not a whole number"));
  scenario.epoch_samples = static_cast<std::int64_t>(samples);
  return scenario;
}

Result<State> state_of(const QJsonObject& root, const QString& folder, const Place& place) {
  State state;
  state.scenarios.clear();
  const Place list = place / QStringLiteral("scenarios");
  const QJsonArray scenarios = root["scenarios"].toArray();
  if (scenarios.isEmpty()) return list.wrong(QStringLiteral("is not a list with at least one scenario"));
  for (qsizetype i = 0; i < scenarios.size(); ++i) {
    SIBYL_TRY(Scenario scenario, scenario_of(scenarios[i], folder, list / i));
    state.scenarios.push_back(std::move(scenario));
  }
  SIBYL_TRY(const double current, amount(root, "current", place));
  if (current != std::floor(current) || current >= static_cast<double>(state.scenarios.size()))
    return (place / QStringLiteral("current")).wrong(QStringLiteral("is not the number of a scenario"));
  state.current = static_cast<int>(current);
  if (root.contains("baseline")) {
    SIBYL_TRY(state.baseline, scenario_of(root["baseline"], folder, place / QStringLiteral("baseline")));
  }
  return state;
}

// "line 3, column 7" of an offset.
QString line_and_column(const QByteArray& text, qsizetype offset) {
  const QByteArray before = text.left(offset);
  return QStringLiteral("line %1, column %2").arg(before.count('\n') + 1).arg(offset - before.lastIndexOf('\n'));
}

}  // namespace

bool isPath(const std::string& name) {
  if (name.empty() || name.starts_with("zoo:")) return false;
  const std::vector<std::string> shipped = shipped_clusters();
  return std::ranges::find(shipped, name) == shipped.end();
}

QByteArray sessionBytes(const Session& session, const QString& folder) {
  QJsonArray scenarios;
  for (const Scenario& scenario : session.state.scenarios) scenarios.append(to_json(scenario, folder));
  QJsonObject views;
  for (auto view = session.viewStates.begin(); view != session.viewStates.end(); ++view)
    views[view.key()] = withFile(view.value(), [&](const QString& f) { return relative(f.toStdString(), folder); });
  QJsonObject root{{"schema", schema},
                   {"version", version},
                   {"scenarios", scenarios},
                   {"current", session.state.current},
                   {"views", views}};
  if (session.state.baseline) root["baseline"] = to_json(*session.state.baseline, folder);
  return QJsonDocument(root).toJson();
}

Result<Session> parseSession(const QByteArray& bytes, const QString& folder, const QString& file) {
  QJsonParseError problem;
  const QJsonDocument json = QJsonDocument::fromJson(bytes, &problem);
  if (json.isNull())
    return fail(problem.errorString().toStdString(),
                QStringLiteral("%1: %2").arg(file, line_and_column(bytes, problem.offset)).toStdString());
  const Place place(file, QStringLiteral("$"));
  const QJsonObject root = json.object();
  if (root["schema"].toString() != schema)
    return (place / QStringLiteral("schema")).wrong(QStringLiteral("is not \"%1\": this is no session").arg(schema));
  if (root["version"].toInt(-1) != version)
    return (place / QStringLiteral("version"))
        .wrong(QStringLiteral("is not %1, the version that this Sibyl reads").arg(version),
               QStringLiteral("a newer Sibyl wrote it"));
  Session session;
  SIBYL_TRY(session.state, state_of(root, folder, place));
  const QJsonObject views = root["views"].toObject();
  for (auto view = views.begin(); view != views.end(); ++view)
    session.viewStates[view.key()] = withFile(
        view.value().toObject(), [&](const QString& shown) { return QString::fromStdString(absolute(shown, folder)); });
  return session;
}

Result<void> writeSession(const Session& session, const QString& path) {
  const QByteArray bytes = sessionBytes(session, QFileInfo(path).absolutePath());
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit())
    return fail("cannot be written: " + file.errorString().toStdString(), path.toStdString());
  return {};
}

Result<Session> readSession(const QString& path) {
  constexpr qint64 most = qint64{64} << 20;
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly))
    return fail("cannot be read: " + file.errorString().toStdString(), path.toStdString());
  if (file.size() > most) return fail("is larger than any session", path.toStdString());
  return parseSession(file.readAll(), QFileInfo(path).absolutePath(), path);
}

}  // namespace sibyl::gui
