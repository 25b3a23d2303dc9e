#include "gui/view/charts/measured_runs.h"

#include <fmt/format.h>

#include <QStringList>
#include <algorithm>
#include <array>
#include <system_error>

#include "base/files.h"
#include "gui/model/study.h"
#include "oracle/cli/options.h"
#include "oracle/validate/process.h"

namespace sibyl::gui {
namespace {

namespace fs = std::filesystem;

bool isSame(const fs::path& one, const fs::path& other) {
  std::error_code first, second;
  const fs::path left = fs::weakly_canonical(one, first), right = fs::weakly_canonical(other, second);
  return !first && !second && left == right;
}

bool isModel(const std::string& said, const std::string& model, const std::string& file) {
  if (said == model) return true;
  if (said.starts_with("zoo:") || model.starts_with("zoo:")) return false;
  return isSame(fs::path(file).parent_path() / said, model) || isSame(said, model);
}

// What makes it another training, rather than another way of splitting it over devices.
QString differences(const cli::Arguments& run, const cli::Arguments& scenario) {
  QStringList all;
  for (const char* option : {"--precision", "--optimizer", "--loss"})
    if (run.text(option) != scenario.text(option))
      all << QString::fromStdString(fmt::format("{} {}", option, run.text(option).value_or("")));
  auto dims = run.all("--dim"), others = scenario.all("--dim");
  std::ranges::sort(dims);
  std::ranges::sort(others);
  if (dims == others) return all.join(' ');
  if (dims.empty()) all << QStringLiteral("no --dim");
  for (const std::string& dim : dims) all << QString::fromStdString("--dim " + dim);
  return all.join(' ');
}

}  // namespace

Result<std::vector<MeasuredPoint>> measuredPoints(const Runs& runs, const std::string& file, const Scenario& scenario) {
  SIBYL_TRY(const cli::Arguments asked, read_question(words(scenario)));
  std::vector<MeasuredPoint> points;
  for (const auto& [name, run] : runs) {
    SIBYL_TRY(const std::vector<std::string> said, split_words(name));
    const auto names = [&](const std::string& word) { return isModel(word, scenario.model, file); };
    if (std::ranges::none_of(said, names)) continue;
    const auto trained = read_question(said);
    if (!trained) return fail(fmt::format("case '{}': {}", name, trained.error().message), file);
    // Each rank tells what it sent.
    const int devices = std::max<int>(1, static_cast<int>(run.bytes_sent.size()));
    SIBYL_TRY(const cli::BatchSize batch, cli::parse_batch(trained->text("--batch").value_or("")));
    points.push_back({QString::fromStdString(name), QString::fromStdString(run.emulated), differences(*trained, asked),
                      devices, static_cast<double>(batch.global(devices)), run.step_time, run.spread});
  }
  if (points.empty()) return fail(fmt::format("none of its cases trains {}", scenario.model), file);
  return points;
}

Result<std::vector<MeasuredPoint>> MeasuredFile::points(const Scenario& scenario) {
  if (path_.isEmpty()) return std::vector<MeasuredPoint>{};
  const std::string file = path_.toStdString();
  std::error_code unwritten, unsized;
  const auto time = fs::last_write_time(file, unwritten);
  const auto size = fs::file_size(file, unsized);
  const State now = unwritten || unsized ? State() : State(std::pair(time, size));
  if (!now || now != state_ || path_ != read_) {
    runs_ = read_file(file).and_then([&](const std::string& json) { return parse_measurements(json, file); });
    read_ = path_;
    state_ = now;
  }
  return runs_.and_then([&](const Runs& runs) { return measuredPoints(runs, file, scenario); });
}

}  // namespace sibyl::gui
