// Hears what a walk of a step takes and gives back: how much there is at each place of the step, and, at one moment,
// what.
//
// A walk is deterministic, so a second one can be asked what was alive when the first one found its peak.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "oracle/plan/plan.h"

namespace sibyl {

enum class MemoryKind { weights, gradients, optimizer, activations, workspace, communication, framework };
inline constexpr std::size_t memory_kinds = 7;
using LiveBytes = std::array<double, memory_kinds>;  // by kind
std::string_view to_string(MemoryKind kind);         // as prediction.md's keys: "weights"

// Whose a piece of memory is. `index`: of the stage's tensor, step, unit or bucket.
struct MemoryOwner {
  enum class What {
    framework,    // what the process holds before the model
    tensor,       // of the program
    gradient,     // of a tensor
    addend,       // a gradient that is being added to another
    kept,         // that a step keeps for backward beside operands and results: masks, statistics
    state,        // of the optimizer, of a parameter
    block,        // of such states, here for its update
    bucket,       // gradients on their way
    shard,        // the rank's part of a bucket's parameters, of its gradients, of its state
    buffer,       // that buckets take turns in
    residual,     // what a bucket did not send, for the next step
    compressed,   // a bucket in the form it travels in; of such buffers one
    compressing,  // room for a bucket while it is compressed
    unit,         // parameters gathered
    packing,      // what an exchange puts in order
    message,      // room for what a neighbour sends
    direction,    // of an update, before it is scaled
    workspace,    // of a kernel
  } what = What::framework;
  const Stage* stage = nullptr;
  std::size_t index = 0;

  auto operator<=>(const MemoryOwner&) const = default;
};

// Where in the step: before it, in a pass over a step of the program, in the update.
struct StepPlace {
  enum class What { before, pass, update } what = What::before;
  const Stage* stage = nullptr;
  Turn::Kind kind = Turn::Kind::forward;
  int micro_batch = 0;
  std::size_t step = 0;

  bool operator==(const StepPlace&) const = default;
};

class MemoryRecorder {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  // The most there is at a place.
  struct Most {
    StepPlace place;
    LiveBytes live{};
    double total = 0;
    double reserved = 0;  // by a caching allocator, which may be most at another moment of the place; 0 without one
  };
  using Alive = std::map<std::tuple<MemoryKind, MemoryOwner, double>, int>;  // kind, owner and bytes; how many

  // What is alive after `list_at` changes is listed.
  explicit MemoryRecorder(std::size_t list_at = never) : list_at_(list_at) {}

  void begin(const StepPlace& place) {
    if (!places_.empty() && places_.back().place == place) return;
    places_.push_back(now_);
    places_.back().place = place;
  }
  // `bytes` are more, or fewer where they are negative; `live` is what there is then.
  void changed(MemoryKind kind, double bytes, const MemoryOwner& owner, const LiveBytes& live);
  // So much a caching allocator holds of the device by now.
  void reserved(double bytes);

  [[nodiscard]] const std::vector<Most>& places() const { return places_; }
  [[nodiscard]] std::size_t peak_place() const { return peak_place_; }
  [[nodiscard]] std::size_t peak_change() const { return peak_change_; }  // changes until the peak was first reached
  [[nodiscard]] const Alive& alive() const { return alive_; }

 private:
  std::size_t list_at_, changes_ = 0, peak_change_ = 0, peak_place_ = 0;
  double peak_ = 0;
  Most now_;
  std::vector<Most> places_;
  Alive alive_;
};

}  // namespace sibyl
