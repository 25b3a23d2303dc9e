#include "base/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/quantity.h"
#include "base/table.h"

namespace sibyl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto redraw_interval = std::chrono::milliseconds(100);

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col - std::size_t{1} : 79;
}

std::string ending(std::size_t done, std::size_t total, Seconds elapsed) {
  if (done == 0 || total == 0) return "";
  if (done >= total) return "in " + to_string(elapsed);
  const double rest = static_cast<double>(total - done) / static_cast<double>(done);
  return "ETA " + to_string(elapsed * rest);
}

int percent(std::size_t done, std::size_t total) {
  return total == 0 ? 100
                    : static_cast<int>(100.0 * static_cast<double>(std::min(done, total)) / static_cast<double>(total));
}

}  // namespace

ProgressStyle progress_style_for_stderr() {
  const char* terminal = std::getenv("TERM");
  const bool moves = terminal != nullptr && std::string_view(terminal) != "dumb";
  return isatty(STDERR_FILENO) != 0 && moves ? ProgressStyle::bar : ProgressStyle::lines;
}

std::string progress_bar(std::string_view what, std::size_t done, std::size_t total, Seconds elapsed,
                         std::string_view detail, std::size_t width) {
  constexpr int cells = 24;
  const int filled = cells * percent(done, total) / 100;
  std::string bar(static_cast<std::size_t>(filled), '=');
  if (filled < cells) bar += '>';
  std::string line = fmt::format("{} [{:<{}}] {:3d} %  {}/{}", what, bar, cells, percent(done, total), done, total);
  if (const std::string end = ending(done, total, elapsed); !end.empty()) line += "  " + end;
  if (!detail.empty()) line += fmt::format("  {}", detail);
  while (display_width(line) > width) line.pop_back();
  return line;
}

Progress::Progress(std::string what, std::size_t total, ProgressStyle style, FILE* out, Seconds short_time)
    : what_(std::move(what)),
      total_(total),
      style_(style),
      out_(out),
      short_time_(short_time),
      start_(Clock::now()),
      last_(start_ - redraw_interval) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (drawn_) fmt::print(out_, "\r\033[K"), std::fflush(out_);
  drawn_ = false;
}

void Progress::report(std::size_t done, std::string_view detail) {
  const Clock::time_point now = Clock::now();
  const Seconds elapsed{std::chrono::duration<double>(now - start_).count()};
  if (style_ == ProgressStyle::bar) {
    if (now - last_ < redraw_interval && done < total_) return;
    last_ = now;
    fmt::print(out_, "\r\033[K{}", progress_bar(what_, done, total_, elapsed, detail, terminal_width()));
    std::fflush(out_);
    drawn_ = true;
  } else if (style_ == ProgressStyle::lines) {
    const std::size_t tenths = static_cast<std::size_t>(percent(done, total_)) / 10;
    if (tenths <= tenths_ || elapsed < short_time_) return;
    tenths_ = tenths;
    fmt::print(out_, "{}: {} % ({}/{}) {}\n", what_, tenths * 10, done, total_, ending(done, total_, elapsed));
    std::fflush(out_);
  }
}

}  // namespace sibyl
