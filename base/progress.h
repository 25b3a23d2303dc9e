// Says on standard error how far a long job is and when it will end: a bar that moves on a terminal, a line for every
// tenth elsewhere, or nothing. Never writes to standard output. Not for use from several threads at once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/units.h"

namespace sibyl {

enum class ProgressStyle { bar, lines, silent };

// A bar where standard error is a terminal that can move its cursor, else lines.
ProgressStyle progress_style_for_stderr();

class Progress {
 public:
  // Lines are printed once it has taken `short_time`: nobody waits for less.
  Progress(std::string what, std::size_t total, ProgressStyle style = progress_style_for_stderr(), FILE* out = stderr,
           Seconds short_time = Seconds{1});
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `done` of the total are done; `detail` says what is under way.
  void report(std::size_t done, std::string_view detail = {});

 private:
  void clear();

  std::string what_;
  std::size_t total_;
  ProgressStyle style_;
  FILE* out_;
  Seconds short_time_;
  std::chrono::steady_clock::time_point start_, last_;
  std::size_t tenths_ = 0;
  bool drawn_ = false;
};

// "measuring [=====>     ]  42 %  312/743  ETA 1.2 min  conv3x3": at most `width` characters.
std::string progress_bar(std::string_view what, std::size_t done, std::size_t total, Seconds elapsed,
                         std::string_view detail, std::size_t width);

}  // namespace sibyl
