// What one algorithm's exchange takes by formula, for one group and in one protocol: over messages, over a fabric's
// links, or over the slower of both. All is found beforehand that does not depend on the bytes. Without what a library
// spends on any collective before its first byte moves. For nobody but a Network's model and its groups.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "netmodel/network_model.h"

namespace sibyl {

class Network::Model::Formula {
 public:
  // `runs`: not automatic. `speaks`: automatic where the library has no protocols. `ways`: how the messages are asked
  // for of which its rounds consist.
  Formula(const Model& model, Collective collective, Algorithm runs, const GroupPlacement& placement, Protocol speaks,
          collective::Ways ways);

  [[nodiscard]] Algorithm runs() const { return runs_; }
  [[nodiscard]] Protocol speaks() const { return speaks_; }
  [[nodiscard]] double seconds(double bytes) const;
  // Of these, what chunks of a tree wait for at each hop.
  [[nodiscard]] double waiting(double bytes) const { return waits_ ? waiting_of(both_ways(bytes)) : 0.0; }

 private:
  enum class Over { messages, links, slower, adding };
  [[nodiscard]] double on_the_wire(double bytes, const collective::Wire& wire) const;
  [[nodiscard]] double both_ways(double bytes) const { return on_the_wire(bytes, both_ways_ ? *both_ways_ : wire_); }
  [[nodiscard]] double waiting_of(double both_ways) const;

  Collective collective_;
  Algorithm runs_;
  GroupPlacement placement_;
  Protocol speaks_;
  Over over_ = Over::messages;
  bool waits_ = false;
  collective::ProtocolCost cost_;
  collective::Wire wire_;
  std::optional<collective::Wire> both_ways_;  // for what is waited, where the messages are asked for one way
  fabric::Compiled links_;                     // of switches that add: what the ranks take between nodes
  double empty_ = 0.0;                         // no bytes, where chunks wait
};

// Of several formulas the fastest for some bytes, the first of those that are as fast. More bytes are never faster, so
// one that at the beginning of an eighth of an octave is slower than another at its end is out of question all through
// it: which are not is found once for each eighth.
class Network::Model::Fastest {
 public:
  explicit Fastest(std::vector<Formula> formulas);

  struct Pick {
    const Formula* formula = nullptr;
    double seconds = 0.0;
  };
  [[nodiscard]] Pick at(double bytes) const;
  [[nodiscard]] Algorithm algorithm(double bytes) const;

 private:
  using Set = std::uint8_t;  // by place in the list
  static constexpr std::size_t eighths = 1 + 8 * 64;
  [[nodiscard]] Set in_question(double bytes) const;
  [[nodiscard]] Set in_question_between(double from, double to) const;

  std::vector<Formula> formulas_;
  std::unique_ptr<std::atomic<Set>[]> known_;  // by eighth; empty sets are not known yet
};

}  // namespace sibyl
