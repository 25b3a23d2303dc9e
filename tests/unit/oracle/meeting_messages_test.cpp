// Messages of a pipeline's stages that meet on the wires of a node.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "oracle/plan/names.h"
#include "oracle/predict.h"
#include "oracle/simulate/meeting_messages.h"
#include "oracle/simulate/schedule_walk.h"
#include "oracle/simulate/timetable.h"
#include "oracle/trace.h"
#include "tests/support/any_plan.h"

namespace sibyl {
namespace {

using test::any, test::one_of;
using Kind = Turn::Kind;

Mesh mesh_of_pipeline(int data, int pipeline) {
  Strategy strategy;
  strategy.data = data;
  strategy.pipeline = pipeline;
  return mesh_of(strategy);
}

std::vector<SharedWire> wires_of(const Mesh& mesh, int per_node, int coordinate, Pass pass, bool around = false) {
  return shared_wires(mesh, around, coordinate, pass, test::cluster(mesh.size() / per_node, per_node));
}

// Two of eight stages on each of four nodes. A node in the middle sends forward with its last stage and backward with
// its first: they share what leaves it, and what the neighbours' send to it share what reaches it. Of what crosses
// between the first two nodes one end alone is shared; nothing else leaves the first node, nothing else reaches it.
TEST(SharedWires, AreThoseOfNodesThatSendBothWays) {
  const Mesh mesh = mesh_of_pipeline(1, 8);
  for (const int stays : {0, 2, 4, 6}) EXPECT_TRUE(wires_of(mesh, 2, stays, Pass::forward).empty());
  const auto first = wires_of(mesh, 2, 1, Pass::forward), second = wires_of(mesh, 2, 3, Pass::forward);
  const auto back = wires_of(mesh, 2, 2, Pass::backward), later = wires_of(mesh, 2, 4, Pass::backward);
  ASSERT_EQ(first.size(), 1U);
  ASSERT_EQ(back.size(), 1U);
  ASSERT_EQ(second.size(), 2U);
  ASSERT_EQ(later.size(), 2U);
  // What stages 3 and 2 send leaves the second node, what stages 1 and 4 send reaches it.
  const auto common = [](const std::vector<SharedWire>& a, const std::vector<SharedWire>& b) {
    return std::ranges::count_if(a, [&](const SharedWire& one) {
      return std::ranges::any_of(b, [&](const SharedWire& other) { return one.wire == other.wire; });
    });
  };
  EXPECT_EQ(common(second, back), 1);
  EXPECT_EQ(common(first, later), 1);
  EXPECT_EQ(common(first, back), 0);
  EXPECT_EQ(common(second, later), 0);
  EXPECT_EQ(second.front().messages, 1);
  EXPECT_EQ(second.front().slowed.size(), 3U);
  EXPECT_NEAR(second.front().slowed[1], 1.0, 1e-12);
  EXPECT_NEAR(second.front().slowed[2], 2.0, 1e-9);
}

// One stage on each node does so, too; on two nodes nothing meets but where stages go around.
TEST(SharedWires, AreThereWithOneStageOnEachNode) {
  EXPECT_EQ(wires_of(mesh_of_pipeline(1, 4), 1, 1, Pass::forward).size(), 2U);
  EXPECT_TRUE(wires_of(mesh_of_pipeline(1, 2), 1, 0, Pass::forward).empty());
  EXPECT_TRUE(wires_of(mesh_of_pipeline(1, 4), 2, 1, Pass::forward).empty());
  EXPECT_FALSE(wires_of(mesh_of_pipeline(1, 2), 1, 0, Pass::forward, true).empty());
  EXPECT_TRUE(wires_of(mesh_of_pipeline(1, 8), 8, 3, Pass::forward).empty());
}

// Two replicas' messages, which go at once, on a node: beside two of another lane each of the four takes twice as long
// as one of two. With a NIC for each nobody is slowed, nor where all are told to have the network to themselves.
TEST(SharedWires, CountReplicasAndNics) {
  const Mesh mesh = mesh_of_pipeline(2, 4);
  const auto shared = wires_of(mesh, 2, 1, Pass::forward);
  ASSERT_EQ(shared.size(), 2U);
  EXPECT_EQ(shared.front().messages, 2);
  EXPECT_NEAR(shared.front().slowed[4], 2.0, 1e-9);
  Cluster cluster = test::cluster(4, 2);
  TopologySpec spec = cluster.network.topology().spec();
  spec.nics_per_node = 4;
  cluster.network = sibyl::Network(*Topology::make(spec), {}, {});
  EXPECT_TRUE(shared_wires(mesh, false, 1, Pass::forward, cluster).empty());
  cluster.network = test::cluster(4, 2).network.uncontended().value();
  EXPECT_TRUE(shared_wires(mesh, false, 1, Pass::forward, cluster).empty());
}

struct Told {
  double start = 0, there = 0;
};

// Sends (lane, time, work, latency), ascending in time, and what becomes of each.
std::vector<Told> told(const std::vector<std::vector<SharedWire>>& lanes,
                       const std::vector<std::array<double, 4>>& sends) {
  MeetingMessages messages(std::vector<std::span<const SharedWire>>(lanes.begin(), lanes.end()));
  std::vector<Told> result(sends.size());
  for (std::size_t i = 0; i < sends.size() || messages.time() < Earliest::never;) {
    if (i < sends.size() && sends[i][1] <= messages.time()) {
      messages.send(static_cast<std::size_t>(sends[i][0]), sends[i][1], sends[i][2], sends[i][3], i);
      ++i;
    } else if (const auto arrived = messages.go_on()) {
      result[arrived->number] = {arrived->start, arrived->there};
    }
  }
  return result;
}

// The second sets out 1 after the first, each 4 long. The first has 3 left, which take 6: it is through at 7. By then
// the second has done 3 of 4, and is through at 8. Their latency comes on top and takes nothing of the wire: where one
// sets out as the other one has left the wire, neither is slowed.
TEST(MeetingMessages, ShareTheWireWhileBothAreThere) {
  const SharedWire wire{0, 1, {1, 1, 2}};
  const std::vector<Told> met = told({{wire}, {wire}}, {{0, 0, 4, 0.5}, {1, 1, 4, 0.5}});
  EXPECT_NEAR(met[0].there, 7.5, 1e-12);
  EXPECT_NEAR(met[1].there, 8.5, 1e-12);
  const std::vector<Told> apart = told({{wire}, {wire}}, {{0, 0, 4, 0.5}, {1, 4, 4, 0.5}});
  EXPECT_NEAR(apart[0].there, 4.5, 1e-12);
  EXPECT_NEAR(apart[1].there, 8.5, 1e-12);
}

// A lane sends one after the other, the next one when the one before is there. The other lane's message, 1 long, is
// beside the second one from 6 to 8, which has then done 1.5 + 1 of its 4, has left the wire at 9.5 and is there at 10.
TEST(MeetingMessages, QueueInTheirLane) {
  const SharedWire wire{0, 1, {1, 1, 2}};
  const std::vector<Told> met = told({{wire}, {wire}}, {{0, 0, 4, 0.5}, {0, 1, 4, 0.5}, {1, 6, 1, 0}});
  EXPECT_NEAR(met[0].there, 4.5, 1e-12);
  EXPECT_NEAR(met[1].start, 4.5, 1e-12);
  EXPECT_NEAR(met[2].there, 8, 1e-12);
  EXPECT_NEAR(met[1].there, 10, 1e-12);
}

// The middle lane shares one wire with each of the others. They set out at 0 and at 3, 2 long, and are through at 4 and
// 7: all the time one of them is beside the middle one, whose other wire is free meanwhile.
TEST(MeetingMessages, WaitForTheFullestOfTheirWires) {
  const SharedWire left{0, 1, {1, 1, 2}}, right{1, 1, {1, 1, 2}};
  const std::vector<Told> met = told({{left}, {left, right}, {right}}, {{0, 0, 2, 0}, {1, 0, 4, 0}, {2, 3, 2, 0}});
  EXPECT_NEAR(met[0].there, 4, 1e-12);   // 2 at half
  EXPECT_NEAR(met[2].there, 7, 1e-12);   // from 3 on, 2 at half
  EXPECT_NEAR(met[1].there, 7.5, 1e-12);  // 3.5 by 7, all at half, and the rest alone
}

// Four messages of one size, three of one lane: where the fourth sets out each has a quarter instead of a third.
TEST(MeetingMessages, CountHowManyAreOnAWire) {
  const SharedWire three{0, 3, {1, 1, 1, 1, 4.0 / 3}}, one{0, 1, {1, 1, 2, 3, 4}};
  const std::vector<Told> met = told({{three}, {one}}, {{0, 0, 3, 0}, {1, 0, 1, 0}});
  EXPECT_NEAR(met[0].there, 4, 1e-12);
  EXPECT_NEAR(met[1].there, 4, 1e-12);
}

// Equal stages, some on each node, messages inside which are free.
struct EvenStages {
  EvenStages(int stages, int per_node, double f, double b, double w, double s) {
    const Mesh mesh = mesh_of_pipeline(1, stages);
    const Cluster cluster = test::cluster((stages + per_node - 1) / per_node, per_node);
    for (int c = 0; c < stages; ++c) {
      forward.push_back(shared_wires(mesh, false, c, Pass::forward, cluster));
      backward.push_back(shared_wires(mesh, false, c, Pass::backward, cluster));
    }
    for (int c = 0; c < stages; ++c) {
      StageTimes& stage = times.emplace_back();
      stage.turns[StageTimes::slot(Kind::forward, {})].total = Seconds{f};
      stage.turns[StageTimes::slot(Kind::backward_input, {})].total = Seconds{b};
      for (const bool first : {true, false})
        for (const bool last : {true, false}) {
          stage.turns[StageTimes::slot(Kind::backward, {first, last})].total = Seconds{b};
          stage.turns[StageTimes::slot(Kind::backward_weight, {first, last})].total = Seconds{w};
        }
      stage.forward_wire = stage.backward_wire = {true, 1.0};
      if (c + 1 < stages && c / per_node != (c + 1) / per_node) stage.send_forward = Seconds{s};
      if (c > 0 && c / per_node != (c - 1) / per_node) stage.send_backward = Seconds{s};
      const auto own = static_cast<std::size_t>(c);
      stage.forward_shared = forward[own];
      stage.backward_shared = backward[own];
    }
  }
  EvenStages(const EvenStages&) = delete;
  EvenStages& operator=(const EvenStages&) = delete;

  [[nodiscard]] double step(const Turns& turns, int micro_batches) const {
    return walk_schedule(turns, times, micro_batches).step.total.value();
  }

  std::vector<std::vector<SharedWire>> forward, backward;
  std::vector<StageTimes> times;
};

Turns one_for_one(int stages, int micro_batches) { return one_forward_one_backward({stages, 1, micro_batches}); }

// docs/models/step.md derives it: messages of a node forward and backward set out |B - F| apart, and so do those that
// reach one. Where these are S or more nothing changes: a micro-batch more takes F + B + S. Where they are nothing, all
// are there together, and each takes 2 S. Between those fewer meet the farther they are apart.
TEST(MeetingMessages, OfEqualStagesTakeTwiceAsLongWherePassesAreEqual) {
  constexpr double f = 10, s = 2;
  const auto message = [&](double b) {
    const EvenStages stages(8, 2, f, b, 0, s);
    return (stages.step(one_for_one(8, 120), 120) - stages.step(one_for_one(8, 80), 80)) / 40 - f - b;
  };
  EXPECT_NEAR(message(f), 2 * s, 1e-9);
  for (const double apart : {s, 1.5 * s, f}) EXPECT_NEAR(message(f + apart), s, 1e-9) << apart;
  double more = message(f + 0.5 * s);
  EXPECT_LE(more, 2 * s);
  for (const double apart : {0.75 * s, 0.95 * s}) {
    const double fewer = message(f + apart);
    EXPECT_LT(fewer, more - 1e-9) << apart;
    EXPECT_GT(fewer, s + 1e-9) << apart;
    more = fewer;
  }
}

// A step followed tick by tick, on its own terms: who works on what, which messages leave and reach each node, and each
// goes on by a tick over the most that any of its two nodes carries that way.
class Followed {
 public:
  Followed(const Turns& turns, int per_node, std::map<Kind, int> ticks, int message)
      : turns_(turns), per_node_(per_node), ticks_(std::move(ticks)), message_(message), coordinates_(turns.size()) {}

  double run() {
    int now = 0;
    for (; !done(); ++now) {
      start();
      move();
      work();
    }
    return now;
  }

 private:
  struct Coordinate {
    std::size_t next = 0;
    int left = 0;  // ticks of the turn at hand
    std::array<std::deque<std::pair<Turn, double>>, 2> sends;  // forward, backward: ticks of each that are left
  };
  [[nodiscard]] int node(std::size_t c) const { return static_cast<int>(c) / per_node_; }
  [[nodiscard]] static std::size_t to(std::size_t c, std::size_t way) { return way == 0 ? c + 1 : c - 1; }
  static std::pair<bool, std::pair<int, int>> key(const Turn& turn) {
    return {turn.kind == Kind::forward, {turn.stage, turn.micro_batch}};
  }
  [[nodiscard]] bool done() const {
    for (std::size_t c = 0; c < coordinates_.size(); ++c)
      if (coordinates_[c].next < turns_[c].size()) return false;
    return true;
  }
  [[nodiscard]] bool ready(const Turn& turn) const {
    const int last = static_cast<int>(coordinates_.size()) - 1;
    if (turn.kind == Kind::forward) return turn.stage == 0 || there_.count({true, {turn.stage - 1, turn.micro_batch}}) > 0;
    if (turn.kind == Kind::backward_weight || turn.stage == last) return true;
    return there_.count({false, {turn.stage + 1, turn.micro_batch}}) > 0;
  }
  void start() {
    for (std::size_t c = 0; c < coordinates_.size(); ++c) {
      Coordinate& own = coordinates_[c];
      if (own.left == 0 && own.next < turns_[c].size() && ready(turns_[c][own.next]))
        own.left = ticks_.at(turns_[c][own.next].kind);
    }
  }
  void move() {
    std::map<int, int> leave, reach;
    const auto each = [&](auto visit) {
      for (std::size_t c = 0; c < coordinates_.size(); ++c)
        for (const std::size_t way : {0U, 1U})
          if (!coordinates_[c].sends[way].empty()) visit(c, way);
    };
    each([&](std::size_t c, std::size_t way) { ++leave[node(c)], ++reach[node(to(c, way))]; });
    each([&](std::size_t c, std::size_t way) {
      auto& [turn, left] = coordinates_[c].sends[way].front();
      left -= 1.0 / std::max(leave[node(c)], reach[node(to(c, way))]);
      if (left > 1e-9) return;
      there_[key(turn)] = true;
      coordinates_[c].sends[way].pop_front();
    });
  }
  void work() {
    for (std::size_t c = 0; c < coordinates_.size(); ++c) {
      Coordinate& own = coordinates_[c];
      if (own.left == 0 || --own.left > 0) continue;
      const Turn& turn = turns_[c][own.next++];
      const std::size_t way = turn.kind == Kind::forward ? 0 : 1;
      if (turn.kind == Kind::backward_weight || (way == 0 ? c + 1 == coordinates_.size() : c == 0)) continue;
      if (node(c) == node(to(c, way)))
        there_[key(turn)] = true;
      else
        own.sends[way].emplace_back(turn, message_);
    }
  }

  const Turns& turns_;
  int per_node_;
  std::map<Kind, int> ticks_;
  int message_;
  std::vector<Coordinate> coordinates_;
  std::map<std::pair<bool, std::pair<int, int>>, bool> there_;
};

TEST(MeetingMessages, AreThoseOfAStepFollowedTickByTick) {
  constexpr int f = 1000, s = 230;
  const auto compare = [&](const Turns& turns, int per_node, int b, int w, int micro_batches, const char* what) {
    const std::map<Kind, int> ticks{
        {Kind::forward, f}, {Kind::backward, b}, {Kind::backward_input, b}, {Kind::backward_weight, w}};
    const double followed = Followed(turns, per_node, ticks, s).run();
    const EvenStages stages(8, per_node, f, b, w, s);
    EXPECT_NEAR(stages.step(turns, micro_batches) / followed, 1.0, 0.002) << what << ", " << per_node << ", " << b;
  };
  for (const int per_node : {1, 2})
    for (const int micro_batches : {8, 16}) {
      for (const int b : {1000, 1300, 1500, 2000})
        compare(one_for_one(8, micro_batches), per_node, b, 0, micro_batches, "1f1b");
      compare(zero_bubble({8, 1, micro_batches}), per_node, 1000, 1000, micro_batches, "zero-bubble");
      compare(gpipe({8, 1, micro_batches}), per_node, 1500, 0, micro_batches, "gpipe");
    }
}

// Whatever the pipeline: no turn and no message sooner than where nobody meets, none later than where all messages are
// slowed throughout; and so a wire twice as fast is never slower.
RC_GTEST_PROP(MeetingMessages, TakeNoLessThanAloneNorMoreThanBesideAllOthers, ()) {
  const int stages = any(3, 8), per_node = any(1, 3), micro_batches = any(1, 24);
  const bool split = any(0, 1) == 1;
  const Turns turns = split ? zero_bubble({stages, 1, micro_batches}) : one_for_one(stages, micro_batches);
  const double f = any(1, 20), b = any(1, 20), w = any(1, 20), s = 0.5 * any(1, 40);
  const auto table = [&](double send, bool meet) {
    EvenStages drawn(stages, per_node, f, b, w, send);
    if (!meet)
      for (StageTimes& stage : drawn.times) stage.forward_shared = stage.backward_shared = {};
    return timetable(turns, drawn.times, micro_batches);
  };
  const Timetable alone = table(s, false), met = table(s, true), slowed = table(2 * s, false), fast = table(s / 2, true);
  for (std::size_t c = 0; c < turns.size(); ++c)
    for (std::size_t i = 0; i < turns[c].size(); ++i) {
      const Seconds rounding{1e-9};
      RC_ASSERT(met[c][i].span.end >= alone[c][i].span.end - rounding);
      RC_ASSERT(met[c][i].span.end <= slowed[c][i].span.end + rounding);
      RC_ASSERT(fast[c][i].span.end <= met[c][i].span.end + rounding);
      RC_ASSERT(met[c][i].sends >= alone[c][i].sends - rounding);
      RC_ASSERT(met[c][i].sends <= slowed[c][i].sends + rounding);
    }
}

// In a prediction: the step is as long as its pipeline's, and the trace shows messages of the length that they have.
TEST(MeetingMessages, AreAsLongInTheTrace) {
  const Graph graph = test::mlp(std::vector<std::int64_t>(5, 512), 64);
  Strategy strategy;
  strategy.pipeline = 4;
  strategy.schedule = PipelineSchedule::zero_bubble;
  strategy.accumulation = 8;
  strategy.global_batch = 64 * 8;
  const auto sends = [&](int nics) {
    Cluster cluster = test::cluster(4, 1, BytesPerSecond{2e8});
    TopologySpec spec = cluster.network.topology().spec();
    spec.nics_per_node = nics;
    cluster.network = sibyl::Network(*Topology::make(spec), {}, {});
    const PredictedTrace trace = trace_step(graph, strategy, cluster, 100000).value();
    std::vector<double> lengths;
    for (const TraceProcess& process : trace.processes)
      for (const TraceTrack& track : process.tracks)
        if (track.name == sends_track)
          for (const TraceSpan& span : track.spans) lengths.push_back((span.end - span.start).value());
    return std::pair{lengths, trace.prediction.step_time.value()};
  };
  const auto [met, step] = sends(1);
  const auto [alone, shorter] = sends(2);
  ASSERT_EQ(met.size(), 6U * 8);
  ASSERT_EQ(alone.size(), met.size());
  const double one = *std::ranges::max_element(alone), longest = *std::ranges::max_element(met);
  EXPECT_NEAR(*std::ranges::min_element(alone), one, 1e-9);
  EXPECT_GT(longest, 1.2 * one);
  EXPECT_LE(longest, 2 * one);
  EXPECT_GT(step, shorter);
}

}  // namespace
}  // namespace sibyl
