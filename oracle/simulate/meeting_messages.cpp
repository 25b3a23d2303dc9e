#include "oracle/simulate/meeting_messages.h"

#include <algorithm>
#include <map>

namespace sibyl {

MeetingMessages::MeetingMessages(std::vector<std::span<const SharedWire>> lanes)
    : lanes_(lanes.size()), wires_of_(lanes.size()), next_(lanes.size()) {
  std::map<int, std::size_t> places;
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    lanes_[lane].wires = lanes[lane];
    for (const SharedWire& shared : lanes[lane]) {
      const auto [place, added] = places.try_emplace(shared.wire, places.size());
      if (added) crossing_.emplace_back();
      crossing_[place->second].push_back(lane);
      wires_of_[lane].push_back(place->second);
    }
  }
  on_wire_.assign(places.size(), 0);
}

void MeetingMessages::send(std::size_t lane, double now, double work, double latency, std::size_t number) {
  Lane& own = lanes_[lane];
  own.queue.push_back({work, latency, number});
  if (own.queue.size() - own.gone > 1) return;
  if (own.free <= now)
    begin(lane, now);
  else
    next_.set(lane, own.free);
}

std::optional<MeetingMessages::Arrived> MeetingMessages::go_on() {
  const std::size_t lane = next_.which();
  const double now = next_.time();
  if (lanes_[lane].sending) return end(lane, now);
  begin(lane, now);
  return std::nullopt;
}

void MeetingMessages::begin(std::size_t lane, double now) {
  Lane& own = lanes_[lane];
  own.sending = true;
  own.start = own.since = now;
  own.rest = own.queue[own.gone].work;
  own.slowed = 0;  // none yet
  for (std::size_t i = 0; i < own.wires.size(); ++i) on_wire_[wires_of_[lane][i]] += own.wires[i].messages;
  set_pace(lane, now);
  share(lane, now);
}

MeetingMessages::Arrived MeetingMessages::end(std::size_t lane, double now) {
  Lane& own = lanes_[lane];
  const Message sent = own.queue[own.gone];
  const Arrived arrived{lane, sent.number, own.start, now + sent.latency};
  own.sending = false;
  own.left = now;
  own.free = arrived.there;
  if (++own.gone == own.queue.size()) own.queue.clear(), own.gone = 0;
  for (std::size_t i = 0; i < own.wires.size(); ++i) on_wire_[wires_of_[lane][i]] -= own.wires[i].messages;
  next_.set(lane, own.queue.empty() ? Earliest::never : own.free);
  share(lane, now);
  return arrived;
}

void MeetingMessages::share(std::size_t lane, double now) {
  for (const std::size_t wire : wires_of_[lane])
    for (const std::size_t other : crossing_[wire])
      if (other != lane && lanes_[other].sending) set_pace(other, now);
}

void MeetingMessages::set_pace(std::size_t lane, double now) {
  Lane& own = lanes_[lane];
  double slowed = 1;
  for (std::size_t i = 0; i < own.wires.size(); ++i)
    slowed = std::max(slowed, own.wires[i].slowed[static_cast<std::size_t>(on_wire_[wires_of_[lane][i]])]);
  if (slowed == own.slowed) return;
  if (own.slowed > 0) own.rest = std::max(0.0, own.rest - (now - own.since) / own.slowed);
  own.since = now;
  own.slowed = slowed;
  next_.set(lane, now + own.rest * slowed);
}

double MeetingMessages::until(std::size_t lane) const {
  const Lane& own = lanes_[lane];
  if (own.queue.empty()) return own.left;
  double until = next_.of(lane) + (own.sending ? 0.0 : own.queue[own.gone].work);
  for (std::size_t i = own.gone + 1; i < own.queue.size(); ++i) until += own.queue[i - 1].latency + own.queue[i].work;
  return until;
}

}  // namespace sibyl
