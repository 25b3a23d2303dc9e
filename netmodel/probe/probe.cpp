#include "netmodel/probe/probe.h"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>
#include <variant>

#include "base/quantity.h"
#include "comm/prompt_thread.h"
#include "netmodel/collective/algorithms.h"
#include "netmodel/probe/pace.h"
#include "netmodel/probe/room.h"
#include "netmodel/probe/tasks.h"
#include "netmodel/probe/timing.h"

namespace sibyl {
namespace {

using probe::Task;

// Exchanges between operations are timed in turn, too: what takes longer than this has the share of the longest.
constexpr double longest_in_turn = 0.05;
constexpr int runs_in_turn = 3;

constexpr double most_for_pairs = 0.1;  // of the budget: no prediction waits for them

// Results arrive in buffers of their own; else in those that are sent.
bool has_results(Collective collective) {
  return collective == Collective::all_to_all || collective == Collective::send_receive;
}

void keep_processor(Seconds time) {
  const double until = probe::now() + time.value();
  while (probe::now() < until) std::this_thread::yield();
}

class Probe {
 public:
  Probe(Communicator& world, const GroupPlacement& placement, const NetworkProbeOptions& options,
        const NetworkProbeSink& sink)
      : world_(world), placement_(placement), options_(options), sink_(sink) {
    for (const GroupPlacement& group : probe::groups_of(placement)) groups_.emplace(group, world.subgroup(own(group)));
  }

  void run(std::vector<Task> tasks);

 private:
  [[nodiscard]] bool have(const Task& task) const;
  [[nodiscard]] bool known(const PointToPointSample& s) const {
    return sink_.have_point_to_point && sink_.have_point_to_point(s);
  }
  [[nodiscard]] bool known(const CollectiveSample& s) const {
    return sink_.have_collective && sink_.have_collective(s);
  }
  [[nodiscard]] bool known(const PairSample& s) const { return sink_.have_pair && sink_.have_pair(s); }
  [[nodiscard]] std::vector<int> own(const GroupPlacement& group) const;
  [[nodiscard]] std::pair<int, int> partner(const PointToPointSample& sample) const;
  probe::Timing time(const PointToPointSample& sample, double allowance);
  probe::Timing time(const PairSample& sample, double allowance);
  probe::Timing time(CollectiveSample& sample, double allowance);  // and its share in turn
  // `once` of the n-th copy of its buffers.
  probe::Timing time(Bytes bytes, int group, std::size_t copies, const std::function<void(std::size_t)>& once,
                     double allowance);
  [[nodiscard]] std::size_t copies(Bytes of) const;
  [[nodiscard]] Bytes buffers(const Task& task) const;
  void keep_within_memory(std::vector<Task>& tasks) const;
  void hand_out(const PointToPointSample& sample) const;
  void hand_out(const PairSample& sample) const;
  void hand_out(const CollectiveSample& sample) const;

  Communicator& world_;
  GroupPlacement placement_;
  const NetworkProbeOptions& options_;
  const NetworkProbeSink& sink_;
  std::map<GroupPlacement, Communicator> groups_;  // of this rank
};

// The ranks of this rank's group.
std::vector<int> Probe::own(const GroupPlacement& group) const {
  const int node = world_.rank() / placement_.ranks_per_node, place = world_.rank() % placement_.ranks_per_node;
  const int first = node - node % group.nodes, place_of_first = place - place % group.ranks_per_node;
  std::vector<int> ranks;
  for (int i = 0; i < group.size(); ++i)
    ranks.push_back((first + i / group.ranks_per_node) * placement_.ranks_per_node + place_of_first +
                    i % group.ranks_per_node);
  return ranks;
}

// Only rank 0 knows what is there already; all must agree.
bool Probe::have(const Task& task) const {
  const bool here = world_.rank() == 0 && std::visit([&](const auto& sample) { return known(sample); }, task);
  return probe::slowest(world_, here ? 1.0 : 0.0) > 0.0;
}

// {the rank this one talks with, 0 if it starts or 1 if it answers}; {-1, 0} where it only looks on. Pairs inside a
// node are neighbours; pairs between nodes join ranks of one place on two nodes. Of one way on the first node, or the
// first two; both ways on all nodes, as they all are busy in a collective (but for the last of an odd number).
std::pair<int, int> Probe::partner(const PointToPointSample& sample) const {
  const int rank = world_.rank(), ranks = placement_.ranks_per_node;
  const int node = rank / ranks, place = rank % ranks;
  const std::pair<int, int> looks_on{-1, 0};
  if (sample.same_node) {
    if (place >= 2 * sample.pairs || (node > 0 && !sample.both_ways)) return looks_on;
    return {place % 2 == 0 ? rank + 1 : rank - 1, place % 2};
  }
  if (place >= sample.pairs || (node > 1 && !sample.both_ways) || (node ^ 1) >= placement_.nodes) return looks_on;
  return {node % 2 == 0 ? rank + ranks : rank - ranks, node % 2};
}

// Of buffers, so that when one has its turn again the caches have seen many times what a core's own hold.
std::size_t Probe::copies(Bytes of) const {
  constexpr double lap = 64 << 20;
  constexpr std::size_t most = 16;
  if (of.value() < static_cast<double>(options_.apart_from)) return 1;
  return std::clamp<std::size_t>(static_cast<std::size_t>(lap / of.value()), 1, most);
}

// Of a rank's memory.
Bytes Probe::buffers(const Task& task) const {
  const Bytes bytes{probe::bytes_of(task)};
  const auto* sample = std::get_if<CollectiveSample>(&task);
  const bool two =
      std::holds_alternative<PointToPointSample>(task) || (sample != nullptr && has_results(sample->collective));
  return bytes * static_cast<double>(copies(bytes)) * (two ? 2.0 : 1.0);
}

void Probe::keep_within_memory(std::vector<Task>& tasks) const {
  const Bytes own = options_.memory ? *options_.memory : probe::room_of_rank(world_);
  const Bytes least{-probe::slowest(world_, -own.value())};
  const std::size_t before = tasks.size();
  std::erase_if(tasks, [&](const Task& task) { return buffers(task) > least; });
  if (tasks.size() < before && sink_.remark && world_.rank() == 0)
    sink_.remark(fmt::format("{} exchanges are left out: of the memory that is free a rank's buffers may take {}",
                             before - tasks.size(), to_string(least)));
}

probe::Timing Probe::time(Bytes bytes, int group, std::size_t copies, const std::function<void(std::size_t)>& once,
                          double allowance) {
  if (bytes.value() < static_cast<double>(options_.apart_from))
    return probe::timed(
        world_, [&] { once(0); }, allowance, options_.batches);
  std::size_t next = 0;
  const auto between = [&] {
    if (options_.between) options_.between();
    next = (next + 1) % copies;
  };
  return probe::timed_apart(
      world_, group, between, [&] { once(next); }, allowance, options_.batches, probe::now, options_.stop);
}

probe::Timing Probe::time(const PointToPointSample& sample, double allowance) {
  const auto [other, answers] = partner(sample);
  const auto bytes = static_cast<std::size_t>(other < 0 ? 0.0 : sample.bytes.value());
  const std::size_t copies = this->copies(sample.bytes);
  // What is sent on is not what has just arrived.
  std::vector<std::vector<std::byte>> out(copies, std::vector<std::byte>(bytes)), in = out;
  const auto exchange = [&, other = other, answers = answers](std::size_t copy) {
    if (other < 0) return;
    if (sample.both_ways) {
      const Communicator::Swap swap{other, out[copy], in[copy]};
      world_.swap({&swap, 1});
    } else if (answers == 0) {
      world_.send(out[copy], other);
      world_.receive(in[copy], other);
    } else {
      world_.receive(in[copy], other);
      world_.send(out[copy], other);
    }
  };
  const int group = other < 0 ? -1 : std::min(other, world_.rank());
  probe::Timing timing = time(sample.bytes, group, copies, exchange, allowance);
  if (!sample.both_ways) timing.seconds /= 2;  // there and back
  return timing;
}

probe::Timing Probe::time(const PairSample& sample, double allowance) {
  const bool sends = world_.rank() == sample.from, receives = world_.rank() == sample.to;
  const std::size_t copies = this->copies(sample.bytes);
  const auto bytes = static_cast<std::size_t>(sends || receives ? sample.bytes.value() : 0.0);
  std::vector<std::vector<std::byte>> data(copies, std::vector<std::byte>(bytes));
  const auto once = [&](std::size_t copy) {
    if (sends) world_.send(data[copy], sample.to);
    if (receives) world_.receive(data[copy], sample.from);
  };
  return time(sample.bytes, sends || receives ? 0 : -1, copies, once, allowance);
}

// As much of it as divides among them.
template <class Byte>
std::span<Byte> parts(std::span<Byte> data, const Communicator& ranks) {
  const auto size = static_cast<std::size_t>(ranks.size());
  return data.first(data.size() / size * size);
}

// As halos are exchanged: ranks in a line, each with its neighbours. All of `out` goes to the only one, half of it to
// each of two.
void swap_with_neighbours(Communicator& ranks, std::span<const std::byte> out, std::span<std::byte> in) {
  const std::size_t each = ranks.size() > 2 ? out.size() / 2 : out.size();
  std::vector<Communicator::Swap> swaps;
  if (ranks.rank() > 0) swaps.push_back({ranks.rank() - 1, out.first(each), in.first(each)});
  if (ranks.rank() + 1 < ranks.size()) swaps.push_back({ranks.rank() + 1, out.last(each), in.last(each)});
  ranks.swap(swaps);
}

probe::Timing Probe::time(CollectiveSample& sample, double allowance) {
  const std::size_t copies = this->copies(sample.bytes),
                    elements = static_cast<std::size_t>(sample.bytes.value()) / sizeof(float);
  std::vector<std::vector<float>> sent(copies, std::vector<float>(elements)),
      results(copies, std::vector<float>(has_results(sample.collective) ? elements : 0));
  const bool of_world = sample.placement == placement_;
  Communicator& ranks = of_world ? world_ : groups_.at(sample.placement);
  // Back to back from one root, or to it, ranks would be several exchanges apart, and only the rate would be timed.
  const bool back_to_back = sample.bytes.value() < static_cast<double>(options_.apart_from);
  int begun = 0;
  const auto root = [&] { return back_to_back && begun++ % 2 == 1 ? ranks.size() - 1 : 0; };
  const auto once = [&](std::size_t copy) {
    std::span<float> data(sent[copy]);
    const auto out = std::as_bytes(data);
    const auto in = std::as_writable_bytes(std::span(results[copy]));
    switch (sample.collective) {
      case Collective::reduce_scatter: return ranks.reduce_scatter(data, sample.algorithm);
      case Collective::all_gather: return ranks.all_gather(data, sample.algorithm);
      case Collective::all_to_all: return ranks.all_to_all(parts(out, ranks), parts(in, ranks));
      case Collective::send_receive: return swap_with_neighbours(ranks, out, in);
      case Collective::broadcast: return ranks.broadcast(std::as_writable_bytes(data), root());
      case Collective::reduce: return ranks.reduce(data, root());
      default: return ranks.all_reduce(data, sample.algorithm);
    }
  };
  const int group = of_world ? 0 : own(sample.placement).front();
  const probe::Timing timing = time(sample.bytes, group, copies, once, allowance);
  const bool between_operations = probe::among_operations(sample) && sample.algorithm == Algorithm::automatic;
  // Two ranks that keep a processor each are done at once, and a share of theirs would be noise.
  const bool alike = ranks.size() == 2 && !options_.rest;
  if (between_operations && !alike && sample.bytes.value() >= static_cast<double>(options_.apart_from) &&
      timing.seconds < longest_in_turn) {
    std::size_t next = 0;
    sample.in_turn = probe::share_in_turn(
        world_, group, options_.rest ? options_.rest : keep_processor, [&] { once(next = (next + 1) % copies); },
        timing.seconds, runs_in_turn);
  }
  return timing;
}

void Probe::hand_out(const PointToPointSample& sample) const {
  if (sink_.point_to_point) sink_.point_to_point(sample);
}

void Probe::hand_out(const PairSample& sample) const {
  if (sink_.pair) sink_.pair(sample);
}

// What the communicator chose is also a sample of the algorithm that it chose.
void Probe::hand_out(const CollectiveSample& sample) const {
  if (!sink_.collective) return;
  sink_.collective(sample);
  CollectiveSample named = sample;
  named.algorithm = collective::resolve(sample.collective, sample.algorithm,
                                        static_cast<std::int64_t>(sample.bytes.value()), sample.placement.size());
  if (named.algorithm != sample.algorithm) sink_.collective(named);
}

void Probe::run(std::vector<Task> tasks) {
  const double budget = options_.budget.value(), more = options_.more.value();
  std::erase_if(tasks, [&](const Task& task) { return have(task); });
  keep_within_memory(tasks);
  const std::size_t all = tasks.size();
  probe::Upcoming upcoming(std::move(tasks));
  const double begin = probe::now();
  probe::Pace pace;
  bool stopped = probe::any_stops(world_, options_.stop);
  double left = budget, on_pairs = 0.0;
  bool was_pair = false;
  std::size_t too_long = 0;
  while (std::optional<probe::Upcoming::Next> next = stopped ? std::nullopt : upcoming.take(pace)) {
    Task& task = next->task;
    const double before = std::exchange(left, budget - probe::slowest(world_, probe::now() - begin));
    if (was_pair) on_pairs += before - left;
    was_pair = std::holds_alternative<PairSample>(task);
    if (was_pair && on_pairs > most_for_pairs * budget) continue;
    const std::size_t done = all - upcoming.left() - 1;
    if (sink_.progress && world_.rank() == 0)
      sink_.progress(static_cast<int>(done), static_cast<int>(all), probe::text_of(task));
    if (left + more < 0) {
      too_long += all - done;
      break;
    }
    if (pace.hopeless(task)) continue;
    const double room = next->sparse ? left + more : left, once = pace.foreseen(task);
    if (room < 0 || once * probe::least_runs(once) > room) {
      ++too_long;
      continue;
    }
    const double allowance = std::max(0.0, left) / static_cast<double>(all - done);
    std::visit(
        [&](auto& sample) {
          const probe::Timing timing = time(sample, allowance);
          stopped = probe::any_stops(world_, options_.stop);
          if (stopped) return;  // of too few runs
          sample.time = Seconds{timing.seconds};
          sample.spread = timing.spread;
          // Equal on all ranks, for `timed` gives all the slowest rank's time.
          pace.note(sample, timing.seconds);
          if (world_.rank() == 0) hand_out(sample);
        },
        task);
  }
  if (world_.rank() != 0 || stopped) return;
  if (sink_.progress) sink_.progress(static_cast<int>(all), static_cast<int>(all), "network measured");
  if (sink_.remark && too_long > 0)
    sink_.remark(fmt::format("{} of {} exchanges are left out: they did not fit into {}", too_long, all,
                             to_string(Seconds{budget + more})));
}

}  // namespace

Result<GroupPlacement> world_placement() {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0, size = 1, first = 0, local = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &local);
  MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, node);
  MPI_Comm_free(&node);
  // Regular: every node holds as many ranks as the first, and its ranks are the next ones in order.
  int most = local, least = local;
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  int in_order = first == rank / local * local ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &in_order, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (most != least)
    return fail(fmt::format("some nodes hold {} ranks and others {}", least, most), "MPI_COMM_WORLD",
                "start the same number of ranks on every node");
  if (in_order == 0)
    return fail("ranks of a node are not consecutive", "MPI_COMM_WORLD", "map ranks by slot: mpirun --map-by slot");
  return GroupPlacement{local, size / local, 1};
}

namespace {

// Of the first node's ranks, on every rank.
std::vector<RankPlace> places_of_first_node(const RankPlace& own, const GroupPlacement& placement) {
  std::vector<RankPlace> places(static_cast<std::size_t>(placement.size()));
  MPI_Allgather(&own, sizeof(RankPlace), MPI_BYTE, places.data(), sizeof(RankPlace), MPI_BYTE, MPI_COMM_WORLD);
  places.resize(static_cast<std::size_t>(placement.ranks_per_node));
  return places;
}

}  // namespace

Result<void> probe_network(Communicator& world, const NetworkProbeOptions& options, const NetworkProbeSink& sink) {
  SIBYL_TRY(const GroupPlacement placement, world_placement());
  comm::run_promptly();  // as the threads that communicate in training
  std::vector<Task> tasks = probe::message_tasks(placement, options);
  std::ranges::move(probe::pair_tasks(placement, options, places_of_first_node(options.place, placement)),
                    std::back_inserter(tasks));
  std::ranges::move(probe::collective_tasks(placement, options), std::back_inserter(tasks));
  Probe(world, placement, options, sink).run(std::move(tasks));
  return {};
}

}  // namespace sibyl
