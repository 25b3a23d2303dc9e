// One collective among one group, as a Network's model answers it: what is asked again and again with other bytes, so
// all else is found once: which samples answer, carried to this placement; the formulas, and which of them the library
// would take. Pure and thread-safe. For nobody but a Network's model.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/once.h"
#include "netmodel/formula.h"
#include "netmodel/network_model.h"

namespace sibyl {

class Network::Model::Group {
 public:
  Group(const Model& model, Collective collective, const GroupPlacement& placement);

  // `asked`: automatic where the network's own choice is. What links that were changed add to the error is not in it.
  [[nodiscard]] CollectiveEstimate answer(double bytes, Algorithm asked) const;

  // By formula, launch and all; automatic: as the library chooses.
  [[nodiscard]] double formula(Algorithm chosen, double bytes, Talk talk = Talk::in_protocol) const;
  [[nodiscard]] Algorithm fastest(double bytes, Talk talk = Talk::in_protocol) const;
  // Of an algorithm (not automatic) that formula which is the quickest, each being in another protocol.
  [[nodiscard]] Fastest::Pick quickest(Algorithm runs, double bytes, Talk talk = Talk::in_protocol) const {
    return formulas(runs, talk).at(bytes);
  }
  // Whose samples answer, where the library chooses: its own as far as they reach, then perhaps others.
  [[nodiscard]] Algorithm known_beyond(double bytes) const;

 private:
  // What is measured of an algorithm, carried to this group; nothing where nothing of this class of placements was.
  struct Samples {
    const MeasuredPlacement* nearest = nullptr;
    MeasuredPlacement here;
    double reach = 0.0;          // bytes of the longest that was measured
    bool of_this_group = false;  // and not carried
    bool far = false;            // from placements that are so unlike that nothing is measured any more
    double error_of_count = 0.0;
    double error = 0.0;                // of a size that was measured
    std::vector<double> error_in_gap;  // between a point and the one before
    std::vector<double> formula;       // at each point, where it shapes what lies between them
  };
  // What continues samples beyond their sizes.
  struct Ends {
    double formula_of_first = 0.0, formula_of_last = 0.0;
    std::optional<double> pace;  // of the last octave, seconds a byte
  };
  // A choice by size may be late: where the next algorithm is faster, the time before the change is held.
  struct Held {
    double bytes = 0.0, seconds = 0.0;
  };
  struct Rule {
    std::int64_t up_to = 0;
    Algorithm runs = Algorithm::automatic;
  };
  template <class Value>
  using ByAlgorithm = std::array<Once<Value>, static_cast<std::size_t>(Algorithm::gloo) + 1>;

  [[nodiscard]] static std::vector<Rule> rules_for(collective::Rules rules, Collective collective, int ranks);
  [[nodiscard]] static Algorithm first(const std::vector<Rule>& rules, double bytes);
  [[nodiscard]] const Fastest& formulas(Algorithm runs, Talk talk) const;
  void add_formulas(Algorithm runs, Talk talk, std::vector<Formula>& formulas) const;
  // By rules; automatic where the library weighs.
  [[nodiscard]] Algorithm by_size(double bytes) const;
  [[nodiscard]] double seconds(Algorithm runs, double bytes, Talk talk) const {
    return model_.launch + formulas(runs, talk).at(bytes).seconds;
  }
  // Of what by_size() says.
  [[nodiscard]] double chosen_by_size(Algorithm runs, double bytes, Talk talk) const;

  [[nodiscard]] CollectiveEstimate chosen(double bytes, Algorithm wanted) const;
  [[nodiscard]] CollectiveEstimate chosen_by_rules(double bytes) const;
  [[nodiscard]] CollectiveEstimate by_rule(double bytes) const;
  [[nodiscard]] Estimate estimate(Algorithm chosen, double bytes) const;
  [[nodiscard]] Estimate estimated(double seconds, double bytes) const;

  [[nodiscard]] const Samples& samples(Algorithm of) const;
  [[nodiscard]] Samples carried(Algorithm of) const;
  [[nodiscard]] MeasuredPlacement carried_from(const MeasuredPlacement& there, Algorithm of) const;
  [[nodiscard]] const Ends& ends(const Samples& samples, Algorithm of) const;
  [[nodiscard]] Estimate from_samples(const Samples& samples, Algorithm of, double bytes) const;
  [[nodiscard]] double between(const Samples& samples, Algorithm of, std::size_t above, double bytes) const;
  [[nodiscard]] Estimate outside(const Samples& samples, Algorithm of, double bytes) const;
  [[nodiscard]] double beyond(const Samples& samples, Algorithm of, double bytes) const;

  const Model& model_;
  Collective collective_;
  GroupPlacement placement_;
  std::vector<Rule> told_, usual_;  // by the library that was named, and by the communicator
  bool weighs_ = false;             // the library takes the fastest, as NCCL does
  bool library_timed_ = false, timed_ = false;
  bool shaped_ = false;                               // by messages that were timed, between samples
  double error_ = 0.0, error_below_full_rate_ = 0.0;  // of formulas
  std::array<ByAlgorithm<Fastest>, 2> formulas_;      // by Talk; automatic: of those that NCCL weighs
  ByAlgorithm<Samples> samples_;
  ByAlgorithm<Ends> ends_;
  std::array<Once<std::vector<Held>>, 2> held_;
  Once<std::vector<Held>> held_by_rules_;
};

}  // namespace sibyl
