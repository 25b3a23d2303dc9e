#include "netmodel/probe/probe.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "netmodel/probe/pace.h"
#include "netmodel/probe/room.h"
#include "netmodel/probe/timing.h"

namespace sibyl {
namespace {

NetworkProbeOptions few() {
  NetworkProbeOptions options;
  options.budget = Seconds{60.0};
  options.batches = 3;
  options.pair_bytes = 0;
  options.message_bytes = {1, 4096};
  options.collective_bytes = {1024, 1 << 20};
  return options;
}

TEST(NetworkProbe, HandsOutEverySampleOnRankZeroOnly) {
  Communicator world = Communicator::world();
  const GroupPlacement placement = world_placement().value();
  ASSERT_EQ(placement.size(), world.size());
  std::vector<PointToPointSample> messages;
  std::vector<CollectiveSample> collectives;
  NetworkProbeSink sink;
  sink.point_to_point = [&](const PointToPointSample& sample) { messages.push_back(sample); };
  sink.collective = [&](const CollectiveSample& sample) { collectives.push_back(sample); };
  ASSERT_TRUE(probe_network(world, few(), sink).has_value());
  if (world.rank() != 0) {
    EXPECT_TRUE(messages.empty());
    EXPECT_TRUE(collectives.empty());
    return;
  }
  std::set<std::tuple<bool, bool, int, double>> kinds;
  for (const PointToPointSample& sample : messages) {
    EXPECT_GT(sample.time.value(), 0.0);
    EXPECT_GE(sample.spread, 0.0);
    kinds.emplace(sample.same_node, sample.both_ways, sample.pairs, sample.bytes.value());
  }
  EXPECT_EQ(kinds.size(), messages.size()) << "a kind of message was timed twice";
  const auto has = [&](bool same_node, int pairs) {
    EXPECT_EQ(kinds.contains({same_node, false, pairs, 4096.0}), kinds.contains({same_node, true, pairs, 4096.0}));
    return kinds.contains({same_node, false, pairs, 4096.0});
  };
  EXPECT_EQ(has(true, 1), placement.ranks_per_node >= 2);
  EXPECT_EQ(has(true, 2), placement.ranks_per_node >= 4);
  EXPECT_EQ(has(false, 1), placement.nodes >= 2);
  EXPECT_EQ(has(false, 2), placement.nodes >= 2 && placement.ranks_per_node >= 2);

  // Both sizes: all_reduce as chosen (handed out twice: as automatic and by name) and by the three other algorithms,
  // reduce_scatter, all_gather, broadcast, reduce, all_to_all and send_receive as chosen (twice each): 2 + 3 + 12 = 17.
  // Where there are several nodes with several ranks, five of them among the ranks of a node, and among those with one
  // place on their nodes: 2 x 2 x 10. On four nodes five of them also among pairs of those, and among all ranks of two
  // nodes.
  const GroupPlacement within{placement.ranks_per_node, 1, 1}, across{1, placement.nodes, placement.ranks_per_node};
  const GroupPlacement pairs{1, 2, placement.ranks_per_node};
  const bool has_groups = placement.nodes > 1 && placement.ranks_per_node > 1, has_pairs = placement.nodes == 4;
  EXPECT_EQ(collectives.size(), (world.size() > 1 ? 34U : 0U) + (has_groups ? 40U : 0U) + (has_pairs ? 20U : 0U) +
                                    (has_groups && has_pairs ? 20U : 0U));
  std::map<GroupPlacement, int> samples;
  for (const CollectiveSample& sample : collectives) {
    ++samples[sample.placement];
    EXPECT_GT(sample.time.value(), 0.0);
  }
  EXPECT_EQ(samples[placement], world.size() > 1 ? 34 : 0);
  if (has_pairs) {
    EXPECT_EQ(samples[pairs], 20);
  }
  if (!has_groups) return;
  EXPECT_EQ(samples[within], 20);
  EXPECT_EQ(samples[across], 20);
  const GroupPlacement whole_nodes{placement.ranks_per_node, 2, 1};
  if (has_pairs) {
    EXPECT_EQ(samples[whole_nodes], 20);
  }
}

// 64 KiB have 16 copies of a buffer, which are 1 MiB, and twice that where results arrive in others; 4 KiB have one.
TEST(NetworkProbe, LeavesOutWhatARankHasNoMemoryFor) {
  Communicator world = Communicator::world();
  const auto kinds_of = [&](Bytes last_rank_has) {
    NetworkProbeOptions options = few();
    options.budget = Seconds{600.0};
    options.message_bytes = options.collective_bytes = {4096, 65536};
    options.memory = world.rank() + 1 == world.size() ? last_rank_has : Bytes{1e12};
    NetworkProbeSink sink;
    std::set<std::pair<bool, double>> kinds;  // of messages or not, bytes
    std::vector<std::string> remarks;
    sink.point_to_point = [&](const PointToPointSample& s) { kinds.emplace(true, s.bytes.value()); };
    sink.collective = [&](const CollectiveSample& s) { kinds.emplace(false, s.bytes.value()); };
    sink.remark = [&](std::string_view remark) { remarks.emplace_back(remark); };
    EXPECT_TRUE(probe_network(world, options, sink).has_value());
    EXPECT_EQ(remarks.size(), world.rank() == 0 && world.size() > 1 && last_rank_has < Bytes{2 << 20} ? 1U : 0U);
    return kinds;
  };
  using Kinds = std::set<std::pair<bool, double>>;
  const Kinds all{{true, 4096}, {true, 65536}, {false, 4096}, {false, 65536}};
  const Kinds none, no_long_messages{{true, 4096}, {false, 4096}, {false, 65536}},
      short_ones{{true, 4096}, {false, 4096}};
  const bool hands_out = world.rank() == 0 && world.size() > 1;
  EXPECT_EQ(kinds_of(Bytes{2 << 20}), hands_out ? all : none);
  EXPECT_EQ(kinds_of(Bytes{1 << 20}), hands_out ? no_long_messages : none);
  EXPECT_EQ(kinds_of(Bytes{(1 << 20) - 1}), hands_out ? short_ones : none);
}

// Of four there are six pairs; of a thousand nodes 499,500, of which any beginning is spread over all.
TEST(NetworkProbe, SamplesPairsWhereThereAreMany) {
  using Pairs = std::vector<std::pair<int, int>>;
  EXPECT_EQ(probe::sampled_pairs(1, 32), Pairs{});
  EXPECT_EQ(probe::sampled_pairs(2, 32), (Pairs{{0, 1}}));
  EXPECT_EQ(probe::sampled_pairs(4, 32), (Pairs{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}));
  const Pairs few = probe::sampled_pairs(1000, 32);
  EXPECT_EQ(few.size(), 32U);
  EXPECT_EQ(std::set(few.begin(), few.end()).size(), 32U);
  for (const auto& pair : few) {
    EXPECT_LT(pair.first, pair.second);
    EXPECT_LT(pair.second, 1000);
  }
  // The lower number of a pair that lies behind x of all is 1000 (1 - sqrt(1 - x)).
  EXPECT_EQ(few[0], std::pair(0, 1));
  EXPECT_NEAR(few[1].first, 1000 * (1 - std::sqrt(0.5)), 1);
  EXPECT_NEAR(few[3].first, 1000 * (1 - std::sqrt(0.25)), 1);
  EXPECT_EQ(probe::sampled_pairs(100'000, 32).size(), 32U);
}

// Of four thousand ranks no more kinds of messages, pairs and collectives than can be timed.
TEST(NetworkProbe, TimesFewKindsHoweverManyRanks) {
  NetworkProbeOptions options;
  options.message_bytes = options.collective_bytes = {1 << 20};
  const GroupPlacement many{64, 64, 1};
  EXPECT_EQ(probe::message_tasks(many, options).size(), 2U * (6 + 7));  // 1 to 32 pairs in a node, 1 to 64 between two
  const std::vector<RankPlace> anywhere(64);
  EXPECT_EQ(probe::pair_tasks(many, options, anywhere).size(), 2U * (32 + 16));
  EXPECT_LT(probe::collective_tasks(many, options).size(), 40U);
  EXPECT_EQ(probe::groups_of(many).size(), 4U);
}

// Two sockets with two memories each, four ranks at each memory: 24 pairs at one memory, 32 at two of a socket and 64
// in two sockets; some of each, in turn.
TEST(NetworkProbe, SamplesPairsOfEachNearness) {
  std::vector<RankPlace> places;
  for (int rank = 0; rank < 16; ++rank) places.push_back({rank / 8, rank / 4});
  std::map<Nearness, int> found;
  for (const auto& [a, b] : probe::sampled_pairs(places, 16))
    ++found[nearness(places[static_cast<std::size_t>(a)], places[static_cast<std::size_t>(b)])];
  EXPECT_EQ(found, (std::map<Nearness, int>{{Nearness::memory, 16}, {Nearness::socket, 16}, {Nearness::node, 16}}));
  EXPECT_EQ(probe::sampled_pairs(std::span(places).first(2), 16), (std::vector<std::pair<int, int>>{{0, 1}}));
  // Who may run anywhere is near nobody in particular; in one socket and at no one memory, not said how near either.
  EXPECT_EQ(nearness({-1, -1}, {0, 0}), Nearness::unknown);
  EXPECT_EQ(nearness({0, -1}, {0, -1}), Nearness::unknown);
  EXPECT_EQ(nearness({0, -1}, {1, -1}), Nearness::node);
}

// All pairs of nodes and of the first node's ranks, there and back.
TEST(NetworkProbe, TimesPairsByThemselves) {
  Communicator world = Communicator::world();
  const GroupPlacement placement = world_placement().value();
  NetworkProbeOptions options = few();
  options.budget = Seconds{600.0};
  options.pair_bytes = 65536;
  std::map<std::pair<int, int>, bool> pairs;
  NetworkProbeSink sink;
  sink.have_point_to_point = [](const PointToPointSample&) { return true; };
  sink.have_collective = [](const CollectiveSample&) { return true; };
  sink.pair = [&](const PairSample& sample) {
    EXPECT_GT(sample.time.value(), 0.0);
    EXPECT_TRUE(pairs.emplace(std::pair(sample.from, sample.to), sample.same_node).second) << "timed twice";
  };
  ASSERT_TRUE(probe_network(world, options, sink).has_value());
  std::map<std::pair<int, int>, bool> expected;
  const int each = placement.ranks_per_node;
  for (int from = 0; from < world.size(); ++from)
    for (int to = 0; to < world.size(); ++to) {
      if (from == to) continue;
      if (from < each && to < each) expected[{from, to}] = true;
      if (from % each == 0 && to % each == 0 && from / each != to / each) expected[{from, to}] = false;
    }
  if (world.rank() == 0)
    EXPECT_EQ(pairs, expected);
  else
    EXPECT_TRUE(pairs.empty());
  sink.have_pair = [](const PairSample& sample) { return sample.from != 0; };
  pairs.clear();
  ASSERT_TRUE(probe_network(world, options, sink).has_value());
  for (const auto& [pair, same_node] : pairs) EXPECT_EQ(pair.first, 0);
}

// What the machine has, or the group of the process, or one around that: the least.
TEST(NetworkProbe, FindsHowMuchMemoryIsFree) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / fmt::format("memory{}", getpid());
  const auto write = [&](const std::filesystem::path& name, std::string_view text) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  };
  EXPECT_FALSE(std::isfinite(probe::free_memory(root).value())) << "nothing is told";
  write("proc/meminfo", "MemTotal:       32768 kB\nMemAvailable:   16384 kB\n");
  EXPECT_EQ(probe::free_memory(root), Bytes{16 << 20});
  write("proc/self/cgroup", "4:memory:/job/step\n3:cpu:/\n0::/all/own\n");
  write("sys/fs/cgroup/all/own/memory.max", "max\n");
  write("sys/fs/cgroup/all/own/memory.current", "1000\n");
  EXPECT_EQ(probe::free_memory(root), Bytes{16 << 20}) << "a group without a limit";
  write("sys/fs/cgroup/all/memory.max", "5000000\n");
  write("sys/fs/cgroup/all/memory.current", "1000000\n");
  EXPECT_EQ(probe::free_memory(root), Bytes{4e6});
  write("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "3000\n");
  write("sys/fs/cgroup/memory/job/step/memory.usage_in_bytes", "1000\n");
  EXPECT_EQ(probe::free_memory(root), Bytes{2000});
  write("sys/fs/cgroup/memory/job/step/memory.usage_in_bytes", "4000\n");
  EXPECT_EQ(probe::free_memory(root), Bytes{0}) << "more is used than may be";
  std::filesystem::remove_all(root);
}

// One size of each kind is sent by itself: at least once to make connections, and five times.
TEST(NetworkProbe, ComputesBetweenLongMessages) {
  Communicator world = Communicator::world();
  NetworkProbeOptions options = few();
  options.message_bytes = {4096, 65536};
  options.collective_bytes = {4096, 65536};
  int computed = 0;
  options.between = [&] { ++computed; };
  NetworkProbeSink sink;
  sink.have_point_to_point = [](const PointToPointSample&) { return true; };
  sink.have_collective = [](const CollectiveSample& sample) { return sample.collective != Collective::all_gather; };
  ASSERT_TRUE(probe_network(world, options, sink).has_value());
  if (world.size() == 1)
    EXPECT_EQ(computed, 0);
  else
    EXPECT_GE(computed, 7);
  const std::vector<double> all = world.gather_doubles(computed);
  EXPECT_EQ(*std::ranges::min_element(all), *std::ranges::max_element(all));
  options.apart_from = 1 << 20;
  computed = 0;
  ASSERT_TRUE(probe_network(world, options, sink).has_value());
  EXPECT_EQ(computed, 0);
}

// One rank is told to stop when it is asked for the fourth time: all end, with what was handed out until then.
TEST(NetworkProbe, StopsWhereOneRankIsToldTo) {
  Communicator world = Communicator::world();
  const auto samples = [&](bool stops) {
    int asked = 0, handed_out = 0;
    NetworkProbeOptions options = few();
    options.message_bytes = {1, 64, 1024, 4096};
    options.collective_bytes = {};
    if (stops && world.rank() + 1 == world.size()) options.stop = [&] { return ++asked > 3; };
    NetworkProbeSink sink;
    sink.point_to_point = [&](const PointToPointSample&) { ++handed_out; };
    EXPECT_TRUE(probe_network(world, options, sink).has_value());
    return handed_out;
  };
  const int stopped = samples(true), all = samples(false);
  if (world.size() == 1 || world.rank() != 0) return;
  EXPECT_EQ(stopped, 2);  // before the first, and after each: the third is not handed out
  EXPECT_GE(all, 8);
}

// Of long messages a run alone may take seconds: the series ends between two of them.
TEST(NetworkProbe, StopsBetweenRuns) {
  Communicator world = Communicator::world();
  int runs = 0;
  const auto stop = [&] { return world.rank() == 0 && runs >= 4; };
  probe::timed_apart(
      world, 0, [] {}, [&] { ++runs; }, 1.0, 15, probe::now, stop);
  EXPECT_EQ(runs, 4);
}

// Half of them a tenth below 1, half a tenth above: a normal distribution's standard deviation would be 0.148, and a
// median of n off by 1.2533 x 0.148 / sqrt(n), which is 0.02 for n = 86.3.
TEST(NetworkProbe, KnowsWhenAMedianIsKnown) {
  const auto known = [](int pairs) {
    std::vector<double> values;
    for (int i = 0; i < pairs; ++i) values.insert(values.end(), {0.9, 1.1});
    return probe::median_is_known(values);
  };
  EXPECT_FALSE(known(43));
  EXPECT_TRUE(known(44));
  EXPECT_TRUE(probe::median_is_known({1.0, 1.0, 5.0, 1.0}));
}

// A ring of 1 MiB that took 10 ms will take 40 of 4 MiB. Of what was never timed the slowest tells: broadcasts took 30
// ms.
TEST(NetworkProbe, ForeseesLongerMessagesFromShorterOnes) {
  const auto task = [](Collective collective, Algorithm algorithm, double bytes) {
    return probe::Task(CollectiveSample{collective, algorithm, {1, 4, 1}, Bytes{bytes}, Seconds{}, 0.0, "test"});
  };
  using enum Algorithm;
  constexpr double mebibyte = 1 << 20;
  const auto all_reduce = [&](Algorithm algorithm, double bytes) {
    return task(Collective::all_reduce, algorithm, bytes);
  };
  probe::Pace pace;
  EXPECT_EQ(pace.foreseen(all_reduce(ring, mebibyte)), 0.0);
  pace.note(all_reduce(ring, 1024), 5.0);  // too short to tell
  EXPECT_EQ(pace.foreseen(all_reduce(ring, mebibyte)), 0.0);
  pace.note(all_reduce(ring, mebibyte), 0.010);
  pace.note(task(Collective::broadcast, automatic, mebibyte), 0.030);
  EXPECT_DOUBLE_EQ(pace.foreseen(all_reduce(ring, 4 * mebibyte)), 0.040);
  EXPECT_DOUBLE_EQ(pace.foreseen(all_reduce(tree, 4 * mebibyte)), 0.120);
  // Twice as slow as what the communicator chooses is as much as may yet be of use.
  EXPECT_FALSE(pace.hopeless(all_reduce(ring, 4 * mebibyte)));
  pace.note(all_reduce(automatic, mebibyte), 0.005);
  EXPECT_FALSE(pace.hopeless(all_reduce(ring, 4 * mebibyte)));
  EXPECT_FALSE(pace.hopeless(all_reduce(tree, 4 * mebibyte)));
  pace.note(all_reduce(tree, mebibyte), 0.011);
  EXPECT_TRUE(pace.hopeless(all_reduce(tree, 4 * mebibyte)));
  EXPECT_FALSE(pace.hopeless(all_reduce(automatic, 4 * mebibyte)));
  // No less than a shorter one took, and beside what the other took of as many bytes.
  pace.note(all_reduce(recursive_doubling, mebibyte / 16), 0.004);
  EXPECT_FALSE(pace.hopeless(all_reduce(recursive_doubling, mebibyte)));
  pace.note(all_reduce(automatic, mebibyte / 16), 0.0035);
  EXPECT_FALSE(pace.hopeless(all_reduce(recursive_doubling, mebibyte)));
  EXPECT_DOUBLE_EQ(pace.foreseen(all_reduce(automatic, mebibyte / 8)), 0.0035);
  EXPECT_DOUBLE_EQ(pace.foreseen(all_reduce(automatic, 4 * mebibyte)), 0.020);
}

// A wire between nodes that is a hundred times as slow as memory: all that is in a node is timed first, up to 16 MiB,
// and then what is between nodes, as far as a budget goes. What is too short to be foreseen comes before both.
TEST(NetworkProbe, TimesWhatIsOverSoonest) {
  constexpr double mebibyte = 1 << 20;
  const auto message = [](bool same_node, double bytes) {
    return probe::Task(PointToPointSample{same_node, 1, Bytes{bytes}, Seconds{}, 0.0, false});
  };
  std::vector<probe::Task> tasks;
  for (const double size : {16 * mebibyte, 1.0, mebibyte, mebibyte / 16, 4 * mebibyte})
    for (const bool same_node : {false, true}) tasks.push_back(message(same_node, size));
  probe::Upcoming upcoming(tasks);
  probe::Pace pace;
  std::vector<std::pair<bool, double>> order;
  while (const std::optional<probe::Upcoming::Next> next = upcoming.take(pace)) {
    const auto& sample = std::get<PointToPointSample>(next->task);
    pace.note(next->task, sample.bytes.value() * (sample.same_node ? 1e-9 : 1e-7));
    order.emplace_back(sample.same_node, sample.bytes.value() / mebibyte);
    EXPECT_EQ(upcoming.left(), tasks.size() - order.size());
  }
  const std::vector<std::pair<bool, double>> expected = {{false, 1 / mebibyte},
                                                         {true, 1 / mebibyte},
                                                         {false, 1.0 / 16},
                                                         {true, 1.0 / 16},
                                                         {true, 1},
                                                         {true, 4},
                                                         {true, 16},
                                                         {false, 1},
                                                         {false, 4},
                                                         {false, 16}};
  EXPECT_EQ(order, expected);
}

// Of sizes by twos every fourth comes first, up to where the next one between takes as long in a quarter or a sixteenth
// of what it counts for: 256 KiB (4 x 4) with 1 MiB (16), 128 KiB (2 x 16), 512 KiB (8 x 16), 4 MiB (64 x 4) with 16
// MiB (256), 2 MiB (32 x 16) and 8 MiB (128 x 16).
TEST(NetworkProbe, RefinesSizesAsTimeAllows) {
  std::vector<probe::Task> tasks;
  for (int doubled = 0; doubled <= 8; ++doubled)
    tasks.emplace_back(PointToPointSample{false, 1, Bytes{65536.0 * (1 << doubled)}, Seconds{}, 0.0, false});
  for (int pair = 0; pair < 3; ++pair)  // of 1 MiB: are none of these sizes
    tasks.emplace_back(PairSample{0, 2, false, Bytes{1 << 20}, Seconds{}, 0.0, Nearness::unknown});
  probe::Upcoming upcoming(tasks);
  probe::Pace pace;
  std::vector<int> order, sparse;  // in 64 KiB
  while (const std::optional<probe::Upcoming::Next> next = upcoming.take(pace)) {
    if (std::holds_alternative<PairSample>(next->task)) {
      EXPECT_FALSE(next->sparse);
      continue;
    }
    const double bytes = std::get<PointToPointSample>(next->task).bytes.value();
    pace.note(next->task, 1e-3 + bytes * 1e-8);
    order.push_back(static_cast<int>(bytes / 65536));
    if (next->sparse) sparse.push_back(order.back());
  }
  EXPECT_EQ(sparse, (std::vector{1, 16, 256}));
  EXPECT_EQ(order, (std::vector{1, 4, 16, 2, 8, 64, 256, 32, 128}));
}

// Ranks 0 and 3 are one group, which begins with 3 at 2 and is done with 0 at 5; 1 and 2 another, from 4 to 8; rank 4
// looks on. The slower counts.
TEST(NetworkProbe, OfAGroupFromTheLastBeginningToTheLastEnd) {
  EXPECT_EQ(probe::time_of_groups({0, 1, 1, 0, -1}, {{1, 5}, {4, 6}, {3, 8}, {2, 4}, {0, 20}}), 4.0);
  EXPECT_EQ(probe::time_of_groups({-1, -1}, {{1, 5}, {1, 4}}), 0.0);
}

// Ranks 0 and 3 are one group, and spend 4 in the mean; 1 and 2 spend 5; rank 4 looks on. The slower counts.
TEST(NetworkProbe, OfGroupsInTheMean) {
  EXPECT_EQ(probe::mean_of_groups({0, 1, 1, 0, -1}, {3, 4, 6, 5, 20}), 5.0);
  EXPECT_EQ(probe::mean_of_groups({-1, -1}, {4, 3}), 0.0);
}

// By a clock that resting (7 s each) and an exchange move on (and each look by 1 ms): alone it takes the last rank as
// many seconds as there are ranks; in a row a rank spends its own number plus 1, in the mean (p + 1)/2.
TEST(NetworkProbe, InTurnWhatEachRankSpends) {
  Communicator world = Communicator::world();
  double time = 100.0;
  int rests = 0;
  const auto rest = [&](Seconds seconds) {
    ++rests;
    time += seconds.value();
  };
  const auto clock = [&] { return time += 1e-3; };
  const double ranks = world.size();
  const double share = probe::share_in_turn(
      world, 0, rest, [&] { time += world.rank() + 1.0; }, 7.0, 2, clock);
  EXPECT_EQ(rests, 2 * (1 + 3));
  EXPECT_NEAR(share, (ranks + 1) / 2 / ranks, 0.02);
}

// What operations exchange is timed in turn, if it is sent by itself; all ranks rest as often.
TEST(NetworkProbe, TimesInTurnWhatOperationsExchange) {
  Communicator world = Communicator::world();
  NetworkProbeOptions options = few();
  options.collective_bytes = {1024, 65536};
  int rests = 0;
  options.rest = [&](Seconds) { ++rests; };
  NetworkProbeSink sink;
  std::vector<CollectiveSample> collectives;
  sink.have_point_to_point = [](const PointToPointSample&) { return true; };
  sink.collective = [&](const CollectiveSample& sample) { collectives.push_back(sample); };
  ASSERT_TRUE(probe_network(world, options, sink).has_value());
  int in_turn = 0;
  for (const CollectiveSample& sample : collectives) {
    if (sample.bytes < Bytes{16384} || sample.collective == Collective::broadcast ||
        sample.collective == Collective::reduce) {
      EXPECT_FALSE(sample.in_turn);
    } else if (sample.algorithm == Algorithm::automatic) {
      ++in_turn;
      ASSERT_TRUE(sample.in_turn);
      EXPECT_GT(*sample.in_turn, 0.0);
    }
  }
  if (world.rank() == 0 && world.size() > 1) {
    EXPECT_GE(in_turn, 5);
  }
  const std::vector<double> all = world.gather_doubles(rests);
  EXPECT_EQ(*std::ranges::min_element(all), *std::ranges::max_element(all));
  EXPECT_EQ(rests > 0, world.size() > 1);
}

// Each rank's clock is 100 s before the next one's.
TEST(NetworkProbe, FindsWhatClocksDiffer) {
  Communicator world = Communicator::world();
  const double ahead = 100.0 * world.rank();
  EXPECT_NEAR(probe::offset_to_first(world, [&] { return probe::now() + ahead; }), -ahead, 0.05);
}

// Clocks of hosts that were started at other times: nobody waits for another's, and no time is counted by two of them.
TEST(NetworkProbe, TimesByOneClock) {
  Communicator world = Communicator::world();
  const double ahead = 100.0 * world.rank(), began = probe::now();
  const auto nothing = [] {};
  const auto clock = [&] { return probe::now() + ahead; };
  const probe::Timing timing = probe::timed_apart(world, 0, nothing, nothing, 0.0, 5, clock);
  EXPECT_LT(std::abs(timing.seconds), 1.0);
  EXPECT_LT(probe::now() - began, 50.0);
}

TEST(NetworkProbe, LeavesOutWhatIsThere) {
  Communicator world = Communicator::world();
  int handed_out = 0;
  NetworkProbeSink sink;
  sink.point_to_point = [&](const PointToPointSample&) { ++handed_out; };
  sink.collective = [&](const CollectiveSample& sample) {
    ++handed_out;
    EXPECT_EQ(sample.collective, Collective::broadcast);
  };
  sink.have_point_to_point = [](const PointToPointSample&) { return true; };
  sink.have_collective = [](const CollectiveSample& sample) { return sample.collective != Collective::broadcast; };
  ASSERT_TRUE(probe_network(world, few(), sink).has_value());
  EXPECT_EQ(handed_out, world.rank() == 0 && world.size() > 1 ? 4 : 0);  // two sizes, automatic and by name
}

TEST(NetworkProbe, NothingFitsIntoNoTime) {
  Communicator world = Communicator::world();
  int handed_out = 0;
  NetworkProbeSink sink;
  sink.point_to_point = [&](const PointToPointSample&) { ++handed_out; };
  sink.collective = [&](const CollectiveSample&) { ++handed_out; };
  NetworkProbeOptions options = few();
  options.budget = Seconds{-1.0};
  int remarks = 0;
  sink.remark = [&](std::string_view) { ++remarks; };
  ASSERT_TRUE(probe_network(world, options, sink).has_value());
  EXPECT_EQ(handed_out, 0);
  EXPECT_EQ(remarks, world.rank() == 0 && world.size() > 1 ? 1 : 0);
}

// Beyond the budget go sizes of which nobody else's tell: of these 1 MiB, the first that is foreseen.
TEST(NetworkProbe, WhatTellsOfLongExchangesMayTakeMore) {
  Communicator world = Communicator::world();
  NetworkProbeOptions options = few();
  options.budget = Seconds{-1.0};
  options.more = Seconds{60.0};
  options.collective_bytes = {1024, 1 << 20, 2 << 20};
  std::set<double> sizes;
  NetworkProbeSink sink;
  sink.point_to_point = [&](const PointToPointSample& sample) { sizes.insert(sample.bytes.value()); };
  sink.collective = [&](const CollectiveSample& sample) { sizes.insert(sample.bytes.value()); };
  ASSERT_TRUE(probe_network(world, options, sink).has_value());
  const std::set<double> expected = {1 << 20};
  EXPECT_EQ(sizes, world.rank() == 0 && world.size() > 1 ? expected : std::set<double>{});
}

TEST(OverlapProbe, CommunicatesEquallyOftenOnAllRanksAndNeverSpeedsUp) {
  Communicator world = Communicator::world();
  Communicator other = Communicator::world();
  std::vector<float> gradients(100'000, 1.0F), values(100'000, 1.0F);
  double sum = 0.0;
  int messages = 0;
  const OverlapMeasurement measured = probe_overlap(
      world, [&] { sum += std::accumulate(values.begin(), values.end(), 0.0); },
      [&] {
        ++messages;
        other.all_reduce(gradients, Algorithm::ring);
      },
      Seconds{0.3});
  EXPECT_GE(measured.compute_slowdown, 1.0);
  EXPECT_GE(measured.communication_slowdown, 1.0);
  EXPECT_GT(measured.compute_alone.value(), 0.0);
  const std::vector<double> all = world.gather_doubles(messages);
  EXPECT_EQ(*std::ranges::min_element(all), *std::ranges::max_element(all));
  EXPECT_GT(sum, 0.0);
}

}  // namespace
}  // namespace sibyl
