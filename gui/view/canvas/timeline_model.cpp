#include "gui/view/canvas/timeline_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace sibyl::gui {
namespace {

constexpr double least_width = 1e-9;
constexpr double margin = 0.02;  // of a step, on either side of it

}  // namespace

TimeWindow TimeWindow::zoomed(double factor, double anchor) const {
  return {anchor - (anchor - begin) * factor, anchor + (end - anchor) * factor};
}

TimeWindow TimeWindow::limited(double total) const {
  const double low = -margin * total, high = (1 + margin) * total;
  const double wide = std::clamp(width(), least_width, std::max(least_width, high - low));
  // A window too narrow or too wide keeps its middle.
  double from = begin + (width() - wide) / 2;
  from = std::clamp(from, low, std::max(low, high - wide));
  return {from, from + wide};
}

TimeTicks ticks_of(const TimeWindow& window, int most) {
  TimeTicks ticks;
  if (!(window.width() > 0) || most < 1) return ticks;
  const double rough = window.width() / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double round : {1.0, 2.0, 5.0, 10.0})
    if (ticks.step == 0 && round * power >= rough * (1 - 1e-9)) ticks.step = round * power;
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr std::array<Unit, 4> units = {{{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  const double largest = std::max(std::abs(window.begin), std::abs(window.end));
  const auto unit = std::find_if(units.begin(), units.end() - 1, [&](const Unit& u) { return largest >= u.seconds; });
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(ticks.step / unit->seconds) - 1e-9)));
  for (double n = std::ceil(window.begin / ticks.step - 1e-9); n * ticks.step <= window.end; n += 1) {
    ticks.times.push_back(n * ticks.step);
    ticks.labels.push_back(fmt::format("{:.{}f} {}", n * ticks.step / unit->seconds + 0.0, decimals, unit->name));
  }
  return ticks;
}

Timeline::Timeline(Processes predicted, Processes measured)
    : predicted_(std::move(predicted)), measured_(std::move(measured)) {
  std::vector<const TraceProcess*> all;
  for (const Processes& some : {predicted_, measured_})
    if (some)
      for (const TraceProcess& process : *some) all.push_back(&process);
  std::stable_sort(all.begin(), all.end(),
                   [](const TraceProcess* a, const TraceProcess* b) { return a->rank < b->rank; });
  categories_ = {"forward", "backward", "optimizer", "communication", "wait", "data", "turn"};
  for (const TraceProcess* process : all) add_process(*process);
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (Row& row : rows_)
    for (const TraceSpan* span : row.spans) {
      const auto [place, added] = known.try_emplace(span->name(), static_cast<std::uint32_t>(names_.size()));
      if (added) names_.push_back(span->name());
      row.names.push_back(place->second);
    }
  for (Row& row : rows_) index(row);
}

void Timeline::add_process(const TraceProcess& process) {
  groups_.push_back({process.name, process.source, process.rank, rows_.size(), 0});
  for (const TraceTrack& track : process.tracks) add_track(track);
  groups_.back().rows = rows_.size() - groups_.back().first_row;
}

// Each span goes to the first row whose last one has ended; rounding to the nanosecond is no overlap.
void Timeline::add_track(const TraceTrack& track) {
  constexpr double rounding = 2e-9;
  std::vector<const TraceSpan*> spans;
  for (const TraceSpan& span : track.spans) spans.push_back(&span);
  // Of those that begin at once, ones that take no time come first, and then what holds the others.
  std::stable_sort(spans.begin(), spans.end(), [](const TraceSpan* a, const TraceSpan* b) {
    if (a->start != b->start) return a->start < b->start;
    const bool moment_a = a->end == a->start, moment_b = b->end == b->start;
    return moment_a != moment_b ? moment_a : a->end > b->end;
  });
  const std::size_t first = rows_.size();
  for (const TraceSpan* span : spans) {
    std::size_t r = first;
    while (r < rows_.size() && rows_[r].ends.back() > span->start.value() + rounding) ++r;
    if (r == rows_.size())
      rows_.push_back({r == first ? track.name : fmt::format("{} ({})", track.name, r - first + 1),
                       groups_.size() - 1,
                       {},
                       {},
                       {},
                       {},
                       {},
                       {},
                       {}});
    Row& row = rows_[r];
    const double start = row.ends.empty() ? span->start.value() : std::max(span->start.value(), row.ends.back());
    row.spans.push_back(span);
    row.starts.push_back(start);
    row.ends.push_back(std::max(start, span->end.value()));
    row.categories.push_back(static_cast<std::uint8_t>(category_of(*span)));
    end_ = std::max(end_, row.ends.back());
    double& of_source = source_ends_[static_cast<std::size_t>(groups_.back().source)];
    of_source = std::max(of_source, row.ends.back());
    has_critical_path_ = has_critical_path_ || span->critical;
    ++size_;
  }
}

std::size_t Timeline::category_of(const TraceSpan& span) {
  const auto found = std::find(categories_.begin(), categories_.end(), span.category());
  if (found != categories_.end()) return static_cast<std::size_t>(found - categories_.begin());
  constexpr std::size_t most = 64;  // a file may have any number; the last stands for all others
  if (categories_.size() == most) return most - 1;
  categories_.push_back(span.category());
  return categories_.size() - 1;
}

void Timeline::index(Row& row) {
  const std::size_t width = categories_.size();
  row.sums.assign((row.spans.size() + 1) * width, 0.0);
  row.critical.assign(row.spans.size() + 1, 0);
  for (std::size_t i = 0; i < row.spans.size(); ++i) {
    const double* before = row.sums.data() + i * width;
    double* after = row.sums.data() + (i + 1) * width;
    std::copy(before, before + width, after);
    after[row.categories[i]] += row.ends[i] - row.starts[i];
    row.critical[i + 1] = row.critical[i] + (row.spans[i]->critical ? 1U : 0U);
  }
}

std::vector<Piece> Timeline::pieces(std::size_t r, const TimeWindow& window, double pixel) const {
  const Row& row = rows_[r];
  const std::size_t width = categories_.size();
  std::vector<Piece> result;
  const auto from = [&](std::size_t i, double time) {  // the first span from i on that begins at `time` or later
    return static_cast<std::size_t>(
        std::lower_bound(row.starts.begin() + static_cast<std::ptrdiff_t>(i), row.starts.end(), time) -
        row.starts.begin());
  };
  auto i =
      static_cast<std::size_t>(std::upper_bound(row.ends.begin(), row.ends.end(), window.begin) - row.ends.begin());
  while (i < row.spans.size() && row.starts[i] < window.end) {
    // Cells begin at multiples of a pixel wherever the window lies, so that what is merged does not flicker.
    const double cell = (std::floor(row.starts[i] / pixel) + 1) * pixel;
    std::size_t last = std::max(i + 1, from(i, cell));
    if (last > i + 1 && row.ends[last - 1] - row.starts[last - 1] >= pixel) --last;
    Piece piece{row.starts[i], row.ends[last - 1], i, last, row.categories[i], 1};
    if (last > i + 1) {
      double most = 0, sum = 0;
      for (std::size_t c = 0; c < width; ++c) {
        const double seconds = row.sums[last * width + c] - row.sums[i * width + c];
        if (seconds > most) piece.category = c;
        most = std::max(most, seconds);
        sum += seconds;
      }
      piece.covered = std::clamp(sum / std::max(piece.end - piece.begin, 1e-15), 0.0, 1.0);
    }
    result.push_back(piece);
    i = last;
  }
  return result;
}

bool Timeline::any_critical(std::size_t row, const Piece& piece) const {
  return rows_[row].critical[piece.last] > rows_[row].critical[piece.first];
}

std::optional<SpanPlace> Timeline::span_at(std::size_t r, double time, double tolerance) const {
  if (r >= rows_.size()) return {};
  const Row& row = rows_[r];
  const auto next =
      static_cast<std::size_t>(std::upper_bound(row.starts.begin(), row.starts.end(), time) - row.starts.begin());
  std::optional<SpanPlace> nearest;
  double distance = tolerance;
  if (next > 0 && time - row.ends[next - 1] <= distance) {
    nearest = SpanPlace{r, next - 1};
    distance = time - row.ends[next - 1];
  }
  if (next < row.spans.size() && distance > 0 && row.starts[next] - time < distance) nearest = SpanPlace{r, next};
  return nearest;
}

std::vector<CategoryTotal> Timeline::totals(const TimelineArea& area) const {
  std::vector<CategoryTotal> all(categories_.size());
  for (std::size_t c = 0; c < all.size(); ++c) all[c].category = c;
  for (std::size_t r = area.first_row; r <= area.last_row && r < rows_.size(); ++r) {
    const Row& row = rows_[r];
    auto i = static_cast<std::size_t>(std::upper_bound(row.ends.begin(), row.ends.end(), area.window.begin) -
                                      row.ends.begin());
    for (; i < row.spans.size() && row.starts[i] < area.window.end; ++i) {
      CategoryTotal& total = all[row.categories[i]];
      ++total.spans;
      total.seconds += std::min(row.ends[i], area.window.end) - std::max(row.starts[i], area.window.begin);
    }
  }
  std::erase_if(all, [](const CategoryTotal& total) { return total.spans == 0; });
  std::stable_sort(all.begin(), all.end(),
                   [](const CategoryTotal& a, const CategoryTotal& b) { return a.seconds > b.seconds; });
  return all;
}

SpanMatches::SpanMatches(const Timeline& timeline, const std::function<bool(const std::string&)>& wanted) {
  std::vector<bool> names;
  for (const std::string& name : timeline.names()) names.push_back(wanted(name));
  for (std::size_t r = 0; r < timeline.rows().size(); ++r) {
    const Timeline::Row& row = timeline.rows()[r];
    before_.emplace_back(row.spans.size() + 1, 0U);
    for (std::size_t i = 0; i < row.spans.size(); ++i) {
      const bool match = names[row.names[i]];
      before_[r][i + 1] = before_[r][i] + (match ? 1U : 0U);
      if (match) places_.push_back({r, i});
    }
  }
  std::stable_sort(places_.begin(), places_.end(), [&](const SpanPlace& a, const SpanPlace& b) {
    return timeline.rows()[a.row].starts[a.span] < timeline.rows()[b.row].starts[b.span];
  });
}

bool SpanMatches::any(std::size_t row, const Piece& piece) const {
  return row < before_.size() && before_[row][piece.last] > before_[row][piece.first];
}

std::size_t SpanMatches::first_from(const Timeline& timeline, double time) const {
  const auto found = std::lower_bound(places_.begin(), places_.end(), time, [&](const SpanPlace& place, double t) {
    return timeline.rows()[place.row].starts[place.span] < t;
  });
  return found == places_.end() ? 0 : static_cast<std::size_t>(found - places_.begin());
}

std::string operation_of(const TraceSpan& span) {
  std::string_view name = span.name();
  for (const std::string_view before : {"launch ", "recompute "})
    if (name.starts_with(before)) name.remove_prefix(before.size());
  if (span.category() != "forward" && span.category() != "backward" && span.category() != "wait") return {};
  for (const std::string_view after : {" forward", " backward", " backward input", " backward weight"})
    if (name.ends_with(after)) return std::string(name.substr(0, name.size() - after.size()));
  return {};
}

}  // namespace sibyl::gui
