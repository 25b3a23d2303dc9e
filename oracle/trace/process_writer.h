// The spans of a timeline's processes, and the chain of what each of them waited for, from which those are marked
// without which the step would be shorter.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/trace.h"
#include "oracle/plan/names.h"
#include "oracle/prediction.h"
#include "oracle/simulate/pipeline.h"
#include "oracle/simulate/step.h"

namespace sibyl {

// A process's, in the order in which they are shown.
inline constexpr std::array shown_tracks{turns_track,         sends_track,  compute_track,
                                         communication_track, copies_track, host_track};
using TrackNumber = std::uint32_t;
inline TrackNumber number_of(std::string_view track) {
  return static_cast<TrackNumber>(std::ranges::find(shown_tracks, track) - shown_tracks.begin());
}

struct SpanPlace {
  static constexpr TrackNumber not_shown = static_cast<TrackNumber>(-1);  // a moment
  std::uint32_t process = 0;
  TrackNumber track = not_shown;
  std::size_t span = 0;
};

// Spans of all processes, and what each of them waited for.
class Chain {
 public:
  static constexpr std::size_t none = NamedSpan::nothing;

  std::size_t add(Seconds end, std::size_t after, SpanPlace place = {}) {
    links_.push_back({end, after, place});
    return links_.size() - 1;
  }
  void follow(std::size_t link, std::size_t after) { links_[link].after = after; }
  void make_room(std::size_t links) { links_.reserve(links_.size() + links); }
  [[nodiscard]] Seconds end(std::size_t link) const { return link == none ? Seconds{} : links_[link].end; }
  [[nodiscard]] std::size_t later(std::size_t a, std::size_t b) const {
    if (a == none || b == none) return a == none ? b : a;
    return links_[b].end > links_[a].end ? b : a;
  }

  void mark(std::vector<TraceProcess>& processes, std::size_t last) const {
    for (std::size_t link = last; link != none; link = links_[link].after) {
      const SpanPlace& place = links_[link].place;
      if (place.track != SpanPlace::not_shown)
        processes[place.process].tracks[place.track].spans[place.span].critical = true;
    }
  }

 private:
  struct Link {
    Seconds end;
    std::size_t after = none;
    SpanPlace place;
  };
  std::vector<Link> links_;
};

// Differences of sums: anything below a nanosecond is rounding.
inline constexpr Seconds negligible{1e-9};

class ProcessWriter {
 public:
  // Ranks that do the same begin with `rank`. `number`: of the process.
  ProcessWriter(int rank, int alike, const std::string& part, std::size_t number, Chain& chain);

  void make_room(TrackNumber track, std::size_t spans) { process_.tracks[track].spans.reserve(spans); }

  // Nobody waits for it.
  void show(std::string_view track, TraceSpan span);

  // The span in the chain.
  std::size_t add(std::string_view track, TraceSpan span, std::size_t after) {
    return add(number_of(track), std::move(span), after);
  }
  std::size_t add(TrackNumber track, TraceSpan span, std::size_t after);

  // What the prediction adds after the rank's own work is done, which began at `begin` and ends with `last`.
  std::size_t add_waits(const Prediction& prediction, std::size_t last, Seconds begin = {});

  TraceProcess finish() { return std::move(process_); }

 private:
  TraceProcess process_;
  std::uint32_t number_;
  Chain* chain_;
};

}  // namespace sibyl
