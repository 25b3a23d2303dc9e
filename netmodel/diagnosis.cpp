#include "netmodel/diagnosis.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/quantity.h"
#include "base/statistics.h"
#include "netmodel/point_to_point.h"

namespace sibyl {
namespace {

using Kind = Finding::Kind;

// From where on a figure is worth a word.
constexpr double enough_of_rated = 0.75;    // TCP on 1 Gb/s gives 0.94, RDMA 0.92 and more
constexpr double enough_together = 0.80;    // of the rate of one message, by several at once through one adapter
constexpr double too_slow_together = 1.35;  // collectives, of what messages alone foretell
constexpr double much_spread = 0.20;
constexpr double too_slow_pair = 1.35;         // of the median of its kind, and of the same pair the other way
constexpr Seconds kernel_latency{15e-6};       // a message through the kernel's sockets takes longer, RDMA 1 to 5 us
constexpr BytesPerSecond fast_adapter{2.5e9};  // adapters from 25 Gb/s on speak RDMA
constexpr double long_message = 1 << 20;

std::string share(double fraction) { return fmt::format("{:.0f} %", 100 * fraction); }

// Of messages one way at one distance, `pairs` at once.
struct Line {
  // The best of long ones, all pairs together: short ones may pass in a burst that no wire keeps up.
  BytesPerSecond rate{};
  Seconds latency{1e9};  // the least
};

std::map<int, Line> lines_of(const std::vector<PointToPointSample>& samples, bool same_node) {
  std::map<int, Line> lines;
  const auto longest = std::ranges::max_element(samples, {}, &PointToPointSample::bytes);
  const Bytes enough{longest == samples.end() ? 0 : std::min(long_message, longest->bytes.value())};
  for (const PointToPointSample& s : samples) {
    if (s.same_node != same_node || s.both_ways || s.time.value() <= 0 || s.pairs < 1) continue;
    Line& line = lines[s.pairs];
    if (s.bytes >= enough) line.rate = std::max(line.rate, s.bytes * static_cast<double>(s.pairs) / s.time);
    line.latency = std::min(line.latency, s.time);
  }
  return lines;
}

// Single messages at one distance, by who sends to whom; of several the median. Of the longest that there are. Those in
// a node are held against those of their nearness: that others are farther is no fault of one pair.
class SinglePairs {
 public:
  SinglePairs(const std::vector<PairSample>& samples, bool same_node) {
    for (const PairSample& s : samples)
      if (s.same_node == same_node) bytes_ = std::max(bytes_, s.bytes);
    std::map<Way, std::vector<double>> all;
    for (const PairSample& s : samples) {
      if (s.same_node != same_node || s.bytes != bytes_) continue;
      all[{s.from, s.to}].push_back(s.time.value());
      near_[{s.from, s.to}] = s.near;
    }
    std::map<Nearness, std::vector<double>> alike;
    for (const auto& [way, of_way] : all) alike[near_.at(way)].push_back(times_[way] = median(of_way));
    for (const auto& [near, times] : alike) medians_[near] = median(times);
  }

  using Way = std::pair<int, int>;  // from, to
  struct Worst {
    Way way;
    double factor = 1.0;
  };
  [[nodiscard]] bool empty() const { return times_.empty(); }
  [[nodiscard]] std::size_t ways() const { return times_.size(); }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  // The median by nearness, as far as that is known.
  [[nodiscard]] const std::map<Nearness, double>& medians() const { return medians_; }
  // Against the median of all that are as near, if these are three pairs or more.
  [[nodiscard]] Worst slowest() const {
    if (times_.size() < 6) return {};
    return worst([&](const Way& way, double time) { return time / median_of(way); });
  }
  // Against the same two the other way.
  [[nodiscard]] Worst most_lopsided() const {
    return worst([&](const Way& way, double time) {
      const auto back = times_.find({way.second, way.first});
      return back == times_.end() ? 1.0 : time / back->second;
    });
  }
  // Are all messages of that rank slow, and are they several?
  [[nodiscard]] bool always_slow(int rank) const {
    std::set<int> partners;
    for (const auto& [way, time] : times_) {
      if (way.first != rank && way.second != rank) continue;
      if (time <= too_slow_pair * median_of(way)) return false;
      partners.insert(way.first == rank ? way.second : way.first);
    }
    return partners.size() > 1;
  }

 private:
  [[nodiscard]] double median_of(const Way& way) const { return medians_.at(near_.at(way)); }
  template <class Factor>
  [[nodiscard]] Worst worst(const Factor& factor) const {
    Worst result;
    for (const auto& [way, time] : times_)
      if (const double here = factor(way, time); here > result.factor) result = {way, here};
    return result;
  }

  Bytes bytes_;
  std::map<Way, double> times_;
  std::map<Way, Nearness> near_;
  std::map<Nearness, double> medians_;
};

class Doctor {
 public:
  explicit Doctor(const MeasuredNetwork& network)
      : network_(network), inside_(lines_of(network.messages, true)), across_(lines_of(network.messages, false)) {}

  std::vector<Finding> examine() {
    if (across_.empty())
      say(Kind::unknown, "no message between nodes was timed",
          "mpirun over two nodes or more: sibyl calibrate network");
    else
      between_nodes();
    if (!inside_.empty() && !across_.empty()) inside_against_across();
    together();
    over_many_nodes();
    steadiness();
    single_pairs(false);
    single_pairs(true);
    nearness();
    std::ranges::stable_sort(findings_, {}, [](const Finding& f) { return order_of(f.kind); });
    return std::move(findings_);
  }

 private:
  static int order_of(Kind kind) { return kind == Kind::limit ? 0 : kind == Kind::unknown ? 1 : 2; }
  void say(Kind kind, std::string what, std::string advice) {
    findings_.push_back({kind, std::move(what), std::move(advice)});
  }

  void between_nodes() {
    const Line& one = across_.begin()->second;
    if (!network_.rated) {
      say(Kind::unknown,
          fmt::format("messages between nodes reach {}, after {}; no cluster file says what adapters are rated at",
                      to_string(one.rate), to_string(one.latency)),
          "give the cluster file that names this calibration");
    } else {
      const double reached = one.rate / *network_.rated;
      const std::string what =
          fmt::format("one message between nodes reaches {}, {} of the {} that an adapter is rated at",
                      to_string(one.rate), share(reached), to_string(*network_.rated));
      if (reached < enough_of_rated)
        say(Kind::limit, what,
            "another interface than meant (btl_tcp_if_include, NCCL_SOCKET_IFNAME, UCX_NET_DEVICES), a link that came "
            "up slower, or sockets where RDMA was meant");
      else
        say(Kind::fine, what, "");
    }
    const BytesPerSecond rate = network_.rated.value_or(one.rate);
    if (rate >= fast_adapter && one.latency > kernel_latency)
      say(Kind::limit,
          fmt::format("the shortest message between nodes takes {}; RDMA on such an adapter takes a few microseconds",
                      to_string(one.latency)),
          "messages go through the kernel's sockets: UCX, libfabric or the adapter's driver is missing or not chosen");
  }

  void inside_against_across() {
    const Line &in = inside_.begin()->second, &out = across_.begin()->second;
    if (in.rate < out.rate)
      say(Kind::limit,
          fmt::format("inside a node messages reach {}, between nodes {}", to_string(in.rate), to_string(out.rate)),
          "ranks of a node do not share memory (btl vader or sm, UCX shm, a container with its own /dev/shm), or GPUs "
          "have no peer access (NCCL_P2P_DISABLE, IOMMU)");
    else if (in.latency > out.latency)
      say(Kind::limit,
          fmt::format("inside a node the shortest message takes {}, between nodes {}", to_string(in.latency),
                      to_string(out.latency)),
          "ranks of a node talk over the network, or wait for processors that they share");
    else
      say(Kind::fine,
          fmt::format("inside a node messages reach {} after {}, faster than between nodes", to_string(in.rate),
                      to_string(in.latency)),
          "");
  }

  // Several messages through one node's adapters.
  void together() {
    if (across_.size() < 2) return;
    const auto& [few, one] = *across_.begin();
    const auto& [many, all] = *across_.rbegin();
    const std::string what =
        fmt::format("{} messages of a node at once reach {} together, {} alone {}", many, to_string(all.rate),
                    few == 1 ? "one" : std::to_string(few), to_string(one.rate));
    if (all.rate < one.rate * enough_together)
      say(Kind::limit, what,
          "too few processors for so many ranks, or losses and retransmissions (ethtool -S, flow control)");
    else
      say(Kind::fine, what, "");
  }

  // Long all-reduces over all nodes, as the library runs them, against what messages between two of them foretell:
  // every node sends and receives as fast as it can.
  void over_many_nodes() {
    if (across_.empty()) return;
    auto topology = Topology::make(network_.machine);
    if (!topology) return;
    std::vector<PointToPointSample> one_way = network_.messages;
    std::erase_if(one_way, [](const PointToPointSample& s) { return s.both_ways; });
    const Network by_messages(std::move(*topology), std::move(one_way), {});
    const CollectiveSample* worst = nullptr;
    double most = 0.0;
    for (const CollectiveSample& s : network_.collectives) {
      if (s.placement.nodes < 2 || s.bytes.value() < long_message || s.collective != Collective::all_reduce ||
          s.algorithm != Algorithm::automatic)
        continue;
      const double factor = s.time / by_messages.collective(s.collective, s.bytes, s.placement, s.algorithm).time.time;
      if (factor > most) most = factor, worst = &s;
    }
    if (worst == nullptr) {
      say(Kind::unknown, "no all-reduce of 1 MiB or more over several nodes was timed", "sibyl calibrate network");
      return;
    }
    const std::string what =
        fmt::format("{} of {} over {} nodes takes {:.2f} times what single messages foretell",
                    to_string(worst->collective), to_string(worst->bytes), worst->placement.nodes, most);
    if (most <= too_slow_together)
      say(Kind::fine, what + ", the worst of all", "");
    else if (worst->placement.nodes == 2)
      say(Kind::limit, what,
          "both ways at once are slower than one: half duplex, or too few processors for sending and adding");
    else
      say(Kind::limit, what,
          "switches carry less than all adapters send (oversubscription), or one node or pair is slow: time halves of "
          "the nodes by themselves");
  }

  void single_pairs(bool same_node) {
    const SinglePairs pairs(network_.pairs, same_node);
    if (pairs.empty()) {
      if (!same_node && !across_.empty() && network_.machine.nodes > 2)
        say(Kind::unknown,
            "messages were timed between two nodes only: a single slow pair, or a way that is slower back than forth, "
            "shows in collectives alone",
            "sibyl calibrate network once more: it times what is lacking");
      return;
    }
    const char* where = same_node ? "in a node" : "between nodes";
    const auto [slow, by] = pairs.slowest();
    const auto [lopsided, by_back] = pairs.most_lopsided();
    if (by <= too_slow_pair && by_back <= too_slow_pair)
      say(Kind::fine,
          fmt::format("{} single messages of {} {}: the slowest takes {:.2f} times the median, {:.2f} times what it "
                      "takes back",
                      pairs.ways(), to_string(pairs.bytes()), where, by, by_back),
          "");
    if (by_back > too_slow_pair)
      say(Kind::limit,
          fmt::format("{}, a message of {} takes {:.2f} times as long from rank {} to rank {} as back", where,
                      to_string(pairs.bytes()), by_back, lopsided.first, lopsided.second),
          "one way is worse: a cable or a port with errors (ethtool -S), duplex, or another route than back");
    if (by <= too_slow_pair) return;
    const bool first = pairs.always_slow(slow.first);
    const std::string what = fmt::format("{}, a message of {} from rank {} to rank {} takes {:.2f} times the median",
                                         where, to_string(pairs.bytes()), slow.first, slow.second, by);
    if (first || pairs.always_slow(slow.second))
      say(Kind::limit,
          what + fmt::format(", and all others of rank {} are slow, too", first ? slow.first : slow.second),
          same_node ? "that rank's processor is far from the others' memory, or busy with something else"
                    : "that node's adapter, cable or processors: leave it out, or mend it");
    else
      say(Kind::limit, what,
          same_node ? "sockets, or groups of cores, between them: numactl -H, lstopo"
                    : "the way between these two: a switch or a cable that others do not use, or a farther one");
  }

  // What it costs to be far from each other in a node.
  void nearness() {
    const SinglePairs pairs(network_.pairs, true);
    std::vector<std::string> kinds;
    double least = 0.0, most = 0.0;
    for (const auto& [near, what] :
         {std::pair{Nearness::memory, "at one memory"}, std::pair{Nearness::socket, "at two of a socket"},
          std::pair{Nearness::node, "in two sockets"}}) {
      const auto found = pairs.medians().find(near);
      if (found == pairs.medians().end()) continue;
      least = kinds.empty() ? found->second : std::min(least, found->second);
      most = std::max(most, found->second);
      kinds.push_back(fmt::format("{} between ranks {}", to_string(Seconds{found->second}), what));
    }
    if (kinds.size() < 2) return;
    say(most > too_slow_pair * least ? Kind::limit : Kind::fine,
        fmt::format("in a node, a message of {} takes {}", to_string(pairs.bytes()), fmt::join(kinds, ", ")),
        most > too_slow_pair * least ? "keep ranks that talk most in one socket: mpirun --map-by slot --bind-to core"
                                     : "");
  }

  void steadiness() {
    std::vector<double> spreads;
    for (const PointToPointSample& s : network_.messages)
      if (!s.same_node) spreads.push_back(s.spread);
    for (const CollectiveSample& s : network_.collectives)
      if (s.placement.nodes > 1) spreads.push_back(s.spread);
    if (spreads.empty()) return;
    std::sort(spreads.begin(), spreads.end());
    const double middle = spreads[spreads.size() / 2];
    const std::string what = fmt::format("times between nodes vary by {} in the median", share(middle));
    if (middle > much_spread)
      say(Kind::limit, what, "others use the network or the processors; measure again when they do not");
    else
      say(Kind::fine, what, "");
  }

  const MeasuredNetwork& network_;
  std::map<int, Line> inside_, across_;  // by pairs
  std::vector<Finding> findings_;
};

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::limit: return "limit";
    case Kind::fine: return "fine";
    case Kind::unknown: return "unknown";
  }
  return "unknown";
}

std::vector<Finding> diagnose(const MeasuredNetwork& network) { return Doctor(network).examine(); }

}  // namespace sibyl
