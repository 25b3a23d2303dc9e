// What a probe of so many ranks times: lists of samples whose times are not set.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "netmodel/probe/probe.h"

namespace sibyl::probe {

using Task = std::variant<PointToPointSample, CollectiveSample, PairSample>;
double bytes_of(const Task& task);
std::string text_of(const Task& task);

// One pair, and as many as a node can have; inside nodes and between them, one way and both, where there are such.
std::vector<Task> message_tasks(const GroupPlacement& world, const NetworkProbeOptions& options);

// Pairs by themselves, there and back: of nodes (their first ranks), and of the first node's ranks, some of each
// nearness that two of them have. `places`: of these, in order.
std::vector<Task> pair_tasks(const GroupPlacement& world, const NetworkProbeOptions& options,
                             std::span<const RankPlace> places);

std::vector<Task> collective_tasks(const GroupPlacement& world, const NetworkProbeOptions& options);

// Groups beside the world over which collectives are timed.
std::vector<GroupPlacement> groups_of(const GroupPlacement& world);

// Is it what ranks that split one model's operations send each other?
bool among_operations(const CollectiveSample& sample);

// Of all pairs of `count`, at most `most` (a power of two), the same each time: the first so many of them are spread
// over all, however many these are.
std::vector<std::pair<int, int>> sampled_pairs(int count, int most);
// Of pairs of each nearness so many, one of each in turn.
std::vector<std::pair<int, int>> sampled_pairs(std::span<const RankPlace> places, int most);

}  // namespace sibyl::probe
