// Messages of a pipeline that leave a node, or reach one, by the same wire at the same time.
//
// Each lane (cost/shared_wires.h) hands its messages over one by one. A message keeps its wires busy for `work` seconds
// if it is alone; beside others it goes on at 1/slowed of its speed, whichever of its wires is the fullest: with one
// other that is as large at half, until either ends. That is max-min fairness where two lanes cross a wire; where more
// do, one that is held up elsewhere leaves the others nothing of its share. Then it is on its way for its `latency`,
// which takes no wire. So a message that another meets d after it set out, both of them S long, takes 2 S - d, and so
// does the other.
//
// Told in the order of time: sends must not lie before what has been told. Seconds.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "oracle/cost/shared_wires.h"
#include "oracle/simulate/earliest.h"

namespace sibyl {

class MeetingMessages {
 public:
  // By lane the wires that it shares, which must outlive this.
  explicit MeetingMessages(std::vector<std::span<const SharedWire>> lanes);

  void send(std::size_t lane, double now, double work, double latency, std::size_t number);

  // When something happens next; Earliest::never where nothing is on its way.
  [[nodiscard]] double time() const { return next_.time(); }
  struct Arrived {
    std::size_t lane = 0, number = 0;
    double start = 0, there = 0;  // the latter may be yet to come
  };
  // Goes on to then. A message if one has left its wire.
  std::optional<Arrived> go_on();

  // Until when the lane keeps its wire busy, if nothing else comes.
  [[nodiscard]] double until(std::size_t lane) const;

 private:
  struct Message {
    double work = 0, latency = 0;
    std::size_t number = 0;
  };
  struct Lane {
    std::span<const SharedWire> wires;
    std::vector<Message> queue;  // the first `gone` of it have left the wire
    std::size_t gone = 0;
    bool sending = false;
    double start = 0, rest = 0, slowed = 1, since = 0;  // of what it sends: `rest` seconds of work were left then
    double left = 0, free = 0;                          // when the last one had left the wire, and was there
  };
  void begin(std::size_t lane, double now);
  Arrived end(std::size_t lane, double now);
  void share(std::size_t lane, double now);  // its wires anew among all that are on them
  void set_pace(std::size_t lane, double now);

  std::vector<Lane> lanes_;
  std::vector<std::vector<std::size_t>> crossing_;  // by wire: lanes
  std::vector<int> on_wire_;                        // messages
  std::vector<std::vector<std::size_t>> wires_of_;  // by lane, of its wires: their place in those two
  Earliest next_;                                   // by lane: it begins to send, or has sent
};

}  // namespace sibyl
