// What the timeline shows, without widgets: rows of spans sorted by time, and what must be known of them fast at any
// zoom: which are seen, what a pixel's worth of them is made of, which lies under the pointer, the totals of an area.
//
// Spans that overlap on one track go to rows below each other. Narrow neighbours are merged by binary search and sums
// over all spans before: w pixels of a row of n spans cost O(w log n). Immutable once built; any thread. Times are
// seconds since the step began.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/trace.h"

namespace sibyl::gui {

// The times that are seen.
struct TimeWindow {
  double begin = 0, end = 1;

  [[nodiscard]] double width() const { return end - begin; }
  // `factor` below 1 shows less; the time `anchor` stays where it is.
  [[nodiscard]] TimeWindow zoomed(double factor, double anchor) const;
  [[nodiscard]] TimeWindow panned(double seconds) const { return {begin + seconds, end + seconds}; }
  // Within a step of `total`, with a little margin, and no narrower than a nanosecond.
  [[nodiscard]] TimeWindow limited(double total) const;
  bool operator==(const TimeWindow&) const = default;
};

// Round times within the window, `most` of them or fewer, and how they are written ("12.5 ms").
struct TimeTicks {
  double step = 0;
  std::vector<double> times;
  std::vector<std::string> labels;
};
TimeTicks ticks_of(const TimeWindow& window, int most);

struct SpanPlace {
  std::size_t row = 0, span = 0;
  bool operator==(const SpanPlace&) const = default;
};

// Spans [first, last) of a row, drawn as one: several where each is narrower than a pixel.
struct Piece {
  double begin = 0, end = 0;
  std::size_t first = 0, last = 0;
  std::size_t category = 0;  // that of most of its time
  double covered = 1;        // share of it in which anything runs
};

struct CategoryTotal {
  std::size_t category = 0;
  std::size_t spans = 0;
  double seconds = 0;  // within the area
};

// An area of the timeline: times, and rows [first_row, last_row].
struct TimelineArea {
  TimeWindow window;
  std::size_t first_row = 0, last_row = 0;
};

class Timeline {
 public:
  using Processes = std::shared_ptr<const std::vector<TraceProcess>>;

  struct Group {  // a process
    std::string title;
    TraceSource source = TraceSource::predicted;
    int rank = 0;
    std::size_t first_row = 0, rows = 0;
  };
  struct Row {
    std::string title;
    std::size_t group = 0;
    std::vector<const TraceSpan*> spans;
    std::vector<double> starts, ends;
    std::vector<std::uint8_t> categories;
    std::vector<std::uint32_t> names;     // into names()
    std::vector<double> sums;             // by span and category: seconds in all spans before
    std::vector<std::uint32_t> critical;  // by span: critical ones before
  };

  // Ranks in order; of each the predicted process first. Either may be null.
  Timeline(Processes predicted, Processes measured);

  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] const std::vector<std::string>& categories() const { return categories_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }  // each once
  [[nodiscard]] const TraceSpan& at(SpanPlace place) const { return *rows_[place.row].spans[place.span]; }
  [[nodiscard]] double end() const { return end_; }  // of the last span
  [[nodiscard]] double end(TraceSource source) const { return source_ends_[static_cast<std::size_t>(source)]; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool has_critical_path() const { return has_critical_path_; }

  // In the window, in order; `pixel`: seconds.
  [[nodiscard]] std::vector<Piece> pieces(std::size_t row, const TimeWindow& window, double pixel) const;
  [[nodiscard]] bool any_critical(std::size_t row, const Piece& piece) const;
  // The span at this time, or the nearest one within `tolerance` seconds.
  [[nodiscard]] std::optional<SpanPlace> span_at(std::size_t row, double time, double tolerance) const;
  // By category, those with the most time first.
  [[nodiscard]] std::vector<CategoryTotal> totals(const TimelineArea& area) const;

 private:
  void add_process(const TraceProcess& process);
  void add_track(const TraceTrack& track);
  void index(Row& row);
  std::size_t category_of(const TraceSpan& span);

  Processes predicted_, measured_;
  std::vector<Group> groups_;
  std::vector<Row> rows_;
  std::vector<std::string> categories_, names_;
  double end_ = 0;
  std::array<double, 2> source_ends_ = {};
  std::size_t size_ = 0;
  bool has_critical_path_ = false;
};

// The spans whose names are wanted, in order of time.
class SpanMatches {
 public:
  SpanMatches() = default;
  SpanMatches(const Timeline& timeline, const std::function<bool(const std::string&)>& wanted);

  [[nodiscard]] const std::vector<SpanPlace>& places() const { return places_; }
  [[nodiscard]] bool any(std::size_t row, const Piece& piece) const;
  // The first match that begins at `time` or later; where there is none, the first of all.
  [[nodiscard]] std::size_t first_from(const Timeline& timeline, double time) const;

 private:
  std::vector<SpanPlace> places_;
  std::vector<std::vector<std::uint32_t>> before_;  // by row and span: matches before it
};

// The operation whose pass the span is; empty where it is none's.
std::string operation_of(const TraceSpan& span);

}  // namespace sibyl::gui
