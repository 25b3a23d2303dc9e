#include "oracle/memory/recorder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sibyl {

std::string_view to_string(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::weights: return "weights";
    case MemoryKind::gradients: return "gradients";
    case MemoryKind::optimizer: return "optimizer";
    case MemoryKind::activations: return "activations";
    case MemoryKind::workspace: return "workspace";
    case MemoryKind::communication: return "communication";
    case MemoryKind::framework: return "framework";
  }
  return "";
}

void MemoryRecorder::changed(MemoryKind kind, double bytes, const MemoryOwner& owner, const LiveBytes& live) {
  if (places_.empty()) begin({});
  now_.live = live;
  now_.total = std::accumulate(live.begin(), live.end(), 0.0);
  if (++changes_ <= list_at_ && list_at_ != never && bytes != 0) {
    int& count = alive_[{kind, owner, std::abs(bytes)}];
    count += bytes > 0 ? 1 : -1;
    if (count == 0) alive_.erase({kind, owner, std::abs(bytes)});
  }
  Most& most = places_.back();
  if (now_.total > most.total) most.live = now_.live, most.total = now_.total;
  if (now_.total <= peak_) return;
  peak_ = now_.total;
  peak_change_ = changes_;
  peak_place_ = places_.size() - 1;
}

void MemoryRecorder::reserved(double bytes) {
  if (places_.empty()) begin({});
  now_.reserved = bytes;
  places_.back().reserved = std::max(places_.back().reserved, bytes);
}

}  // namespace sibyl
