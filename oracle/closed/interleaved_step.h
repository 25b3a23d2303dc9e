// A pipeline's interleaved schedule in time, of three coordinates and more: most of the passes that schedule_form.h
// walks, many at once (pass_rows.h).
//
// In round e coordinate i goes forward with its pass e - i, and then backward with its pass e - lead + i: each waits
// for what its neighbour sent in the round before. Of p coordinates' passes of a kind in a round, p numbers in a row,
// those of one chunk follow each other, and from one round to the next one coordinate goes on to its next chunk. So
// rows have what coordinates' passes take at the moment, of which one changes in a round.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "oracle/closed/pass_rows.h"

namespace sibyl::closed {

class InterleavedStep {
 public:
  struct Order {
    int coordinates = 3, chunks = 2, micro_batches = 3;
    int lead = 0;          // passes forward of the first coordinate before its first one backward
    bool sharing = false;  // wires, of twice as many micro-batches as coordinates at least
    bool within = true;    // of these some inside nodes
  };

  void begin(const Order& order);
  void set_stage(std::size_t stage, const StageFacts& facts);
  [[nodiscard]] CoordinateState state(std::size_t coordinate) const;
  void set_state(std::size_t coordinate, const CoordinateState& state);

  [[nodiscard]] int ticks() const { return passes_ + order_.lead; }
  [[nodiscard]] int last_forward() const { return passes_ - 1; }  // of the first coordinate
  [[nodiscard]] static int ticks_of(int passes) { return passes; }

  // All passes of a round but those backward that are a stage's last, and of a coordinate that is ready before `busy`:
  // these are given back.
  std::span<const SinglePass> go(int round, double busy);

 private:
  [[nodiscard]] int passes_of_a_round() const { return order_.coordinates * order_.chunks; }
  [[nodiscard]] StageFacts& forward_stage(int pass, int coordinate);
  [[nodiscard]] StageFacts& backward_stage(int pass, int coordinate);
  void switch_forward(int round);
  void switch_following(int round);
  void switch_backward(int round);
  void forward(int round);
  void forward(int first, int last, const PassRow::Losses& losses, std::size_t next);
  void backward(int round, double busy);
  void backward(int first, int last, const PassRow::Losses& losses);

  Order order_;
  int passes_ = 0;
  std::vector<StageFacts> stages_;
  // By coordinate, as they are at the moment:
  PassRow forwards_, backwards_;
  MessageRow sent_forward_, sent_backward_;
  std::vector<double> ready_, forward_, backward_, arrived_;
  UntilByWire until_;
  PassRow::Losses following_;  // of messages forward, to the pass forward in the next round
  PassRow::Losses nothing_;
  std::vector<SinglePass> singles_;
};

}  // namespace sibyl::closed
