// What one algorithm's exchange takes by formula, for one group and in one protocol: over messages, over a fabric's
// links, or over the slower of both. All is found beforehand that does not depend on the bytes. Without what a library
// spends on any collective before its first byte moves. For nobody but a Network's model and its groups.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/once.h"
#include "netmodel/network_model.h"
#include "netmodel/ranged.h"

namespace sibyl {

class Network::Model::Formula {
 public:
  // `runs`: not automatic. `speaks`: automatic where the library has no protocols. `ways`: how the messages are asked
  // for of which its rounds consist.
  Formula(const Model& model, Collective collective, Algorithm runs, const GroupPlacement& placement, Protocol speaks,
          collective::Ways ways);

  [[nodiscard]] Algorithm runs() const { return runs_; }
  [[nodiscard]] Protocol speaks() const { return speaks_; }

  // What it consists of: bytes on their way, and what these take both ways, by which chunks of a tree wait at each hop.
  struct Parts {
    Ranged moving, both_ways;
  };
  [[nodiscard]] Parts parts(const Ranged& bytes) const;
  [[nodiscard]] double seconds(double moving, double both_ways) const {
    return waits_ ? moving + waiting_of(both_ways) : moving;
  }
  [[nodiscard]] double seconds(double bytes) const {
    const Parts here = parts(bytes);
    return seconds(here.moving.value(), here.both_ways.value());
  }
  // Of these, what chunks of a tree wait for at each hop.
  [[nodiscard]] double waiting(double bytes) const { return waits_ ? waiting_of(parts(bytes).both_ways.value()) : 0.0; }

 private:
  enum class Over { messages, links, slower, adding };
  [[nodiscard]] Ranged on_the_wire(const Ranged& bytes, const collective::Wire& wire) const;
  [[nodiscard]] Ranged both_ways(const Ranged& bytes) const {
    return on_the_wire(bytes, both_ways_ ? *both_ways_ : wire_);
  }
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

// Of several formulas the fastest for some bytes, the first of those that are as fast. What is asked for once is known
// of all sizes near it: of each eighth of an octave which formulas are in question, and the lines that their parts are
// there. Where one of them bends, its halves are looked at, and theirs; at the bend itself formulas are worked out
// anew. More bytes are never faster, so one that at the beginning of a range is slower than another at its end is out
// of question all through it.
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
  struct Line {
    double begin = 0.0, per_byte = 0.0;
    [[nodiscard]] double at(double bytes) const { return begin + bytes * per_byte; }
  };
  struct Candidate {
    const Formula* formula = nullptr;
    Line moving, both_ways;  // from the range's beginning
    [[nodiscard]] double seconds(double bytes) const { return formula->seconds(moving.at(bytes), both_ways.at(bytes)); }
  };
  struct Range {
    double from = 0.0, to = 0.0;
    bool straight = false;
    std::vector<Candidate> candidates;
    std::array<Once<Range>, 2> halves = {};
  };
  static constexpr std::size_t eighths = 1 + 8 * 64;  // of an octave; the first is what is less than a byte
  using Eight = std::array<Once<Range>, 8>;

  [[nodiscard]] const Range& range(double bytes) const;
  static Range between(double from, double to, std::span<const Candidate> known);

  std::vector<Formula> formulas_;
  Range all_;  // of any size, not straight
  std::array<Once<Eight>, eighths / 8 + 1> eighths_;
};

}  // namespace sibyl
