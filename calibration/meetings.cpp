#include "calibration/meetings.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace sibyl {

Meetings::Meetings(const std::vector<MeetingSample>& samples) {
  for (const MeetingSample& s : samples) ranks_ = std::max(ranks_, s.windows.empty() ? 0 : s.ranks);
  double series = 0;
  for (const MeetingSample& s : samples) {
    if (s.ranks != ranks_ || s.windows.empty()) continue;
    windows_.resize(series == 0 ? s.windows.size() : std::min(windows_.size(), s.windows.size()));
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      windows_[i].computing += s.windows[i].computing;
      windows_[i].late += s.windows[i].late;
    }
    longer_ += s.longer;
    ++series;
  }
  if (series == 0) return;
  longer_ = longer_ / series;
  for (MeetingSample::Window& w : windows_) w = {w.computing / series, w.late / series};
}

// In logarithms, where ranks drift at all.
double Meetings::drift(double computing) const {
  if (!(computing > 0)) return 0.0;
  const auto after = std::ranges::find_if(windows_, [&](const auto& w) { return w.computing.value() >= computing; });
  if (after == windows_.end()) return windows_.back().late.value();
  const bool before_all = after == windows_.begin();
  if (before_all && windows_.size() == 1) return after->late.value() * computing / after->computing.value();
  const auto low = before_all ? after : std::prev(after), high = std::next(low);
  if (!(low->late.value() > 0 && high->late.value() > 0)) return 0.0;
  const double growth = std::log(high->late / low->late) / std::log(high->computing / low->computing);
  const double power = before_all ? std::clamp(growth, 0.5, 1.0) : growth;
  return low->late.value() * std::pow(computing / low->computing.value(), power);
}

Seconds Meetings::late(Seconds computing) const {
  if (!known() || computing >= windows_.back().computing) return {};
  const double shared = windows_.back().late.value() * (computing / windows_.back().computing);
  return Seconds{std::max(0.0, drift(computing.value()) - shared)};
}

Seconds Meetings::longer(Seconds computing) const {
  if (!known()) return {};
  const double first = windows_.front().late.value();
  return first > 0 ? longer_ * std::min(1.0, drift(computing.value()) / first) : longer_;
}

}  // namespace sibyl
