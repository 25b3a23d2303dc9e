#include "calibration/program/cudnn_records.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "base/table.h"

namespace sibyl {
namespace {

std::filesystem::path beside(std::filesystem::path calibration, const char* what) {
  calibration += std::string(".") + what + ".csv";
  return calibration;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

Table error_table(const std::vector<SweepError>& errors) {
  using enum Column::Align;
  Table table{{{"family", "family", left},
               {"points", "points"},
               {"checks", "checks"},
               {"median", "median_error"},
               {"90 %", "p90_error"},
               {"greatest", "greatest_error"}},
              {}};
  for (const SweepError& e : errors) {
    if (e.points == 0) continue;
    const bool known = e.checks > 0;
    const auto share = [&](double value) { return known ? Cell(percent(value), plain_number(value)) : Cell("", ""); };
    table.rows.push_back({e.family, std::to_string(e.points), std::to_string(e.checks), share(e.median), share(e.p90),
                          share(e.greatest)});
  }
  return table;
}

}  // namespace

Result<void> append_condition(const std::filesystem::path& calibration, const cudnn::Timing& timing) {
  const std::filesystem::path path = beside(calibration, "conditions");
  std::error_code error;
  const bool fresh = !std::filesystem::exists(path, error);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) return fail(fmt::format("cannot be written: {}", std::strerror(errno)), path.string());
  std::string text;
  if (fresh) text = "key,time_s,best_s,best,clock_hz,memory_clock_hz,temperature_c,power_w\n";
  const cudnn::Condition& c = timing.condition;
  const auto number = [](double value) { return value > 0 ? plain_number(value) : std::string(); };
  text += fmt::format("\"{}\",{},{},\"{}\",{},{},{},{}\n", to_string(timing.sample.key),
                      plain_number(timing.sample.time.value()), number(timing.best.value()), timing.best_engine,
                      number(c.clock_hz), number(c.memory_clock_hz), number(c.temperature_c), number(c.power_w));
  return write_and_sync(file, text, path);
}

Result<void> write_transfers(const std::filesystem::path& calibration, const std::vector<cudnn::Transfer>& transfers) {
  Table table{{{"direction", "direction"}, {"bytes", "bytes"}, {"time", "time_s"}}, {}};
  for (const cudnn::Transfer& t : transfers)
    table.rows.push_back({t.direction, plain_number(t.bytes.value()), plain_number(t.time.value())});
  return replace_file(beside(calibration, "transfers"), csv(table));
}

Result<void> write_launches(const std::filesystem::path& calibration, Seconds launch) {
  Table table{{{"launch", "launch"}, {"time", "time_s"}}, {}};
  table.rows.push_back({"empty", plain_number(launch.value())});
  return replace_file(beside(calibration, "launches"), csv(table));
}

Result<void> write_sweep_errors(const std::filesystem::path& calibration, const std::vector<SweepError>& errors) {
  return replace_file(beside(calibration, "interpolation"), csv(error_table(errors)));
}

std::string sweep_errors_text(const std::vector<SweepError>& errors) { return aligned_text(error_table(errors)); }

}  // namespace sibyl
