#include "trainer/recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "oracle/plan/names.h"

namespace sibyl::trainer {

void Recorder::start() {
  for (std::vector<TraceSpan>& spans : spans_) spans.clear();
  start_ = std::chrono::steady_clock::now();
}

Seconds Recorder::now() const {
  return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count()};
}

void Recorder::add(Track track, TraceSpan span) {
  const std::lock_guard lock(mutex_);
  spans_[static_cast<std::size_t>(track)].push_back(std::move(span));
}

TraceProcess Recorder::process(int rank, std::string_view source) const {
  constexpr std::array names{turns_track,         sends_track,  compute_track,
                             communication_track, copies_track, host_track};  // by Track
  TraceProcess process{TraceSource::measured, rank, fmt::format("rank {}, {}", rank, source), {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (spans_[i].empty()) continue;
    std::vector<TraceSpan> spans = spans_[i];
    std::ranges::stable_sort(spans, {}, [](const TraceSpan& span) { return span.start.value(); });
    process.tracks.push_back({std::string(names[i]), std::move(spans)});
  }
  return process;
}

}  // namespace sibyl::trainer
