// The rounds of one group's exchange, one algorithm a file: what schedule.cpp puts together. Of this folder alone.
//
// `share`: of the buffer. `at`: the device of a rank.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "netmodel/collective/partition.h"
#include "netmodel/fabric/schedule.h"

namespace sibyl::fabric {

// Rounds of one group; the others' are alike and join them.
class Rounds {
 public:
  Round& add(const std::string& what, int times = 1, Round::Kind kind = Round::Kind::exchange,
             Round::Of of = Round::Of::whole) {
    if (next_ == rounds.size()) rounds.push_back({what, times, kind, of, {}});
    return rounds[next_++];
  }
  Round& last() { return rounds[next_ - 1]; }
  void next_group() { next_ = 0; }

  std::vector<Round> rounds;

 private:
  std::size_t next_ = 0;
};

using At = std::function<int(int rank)>;

// A ring's messages, each of which waits for the one before it in the list.
void add_ring(Round& round, const std::vector<Message>& ring);
// All of another round at once with it.
void join(Round& round, const Round& other);

// What a ring does in its rounds.
const char* halves(Collective collective);
std::vector<int> in_order(int size);
// The ring over the node's ranks, of which it may lack the last ones, from where it enters the node.
std::vector<int> from_gate(std::vector<int> ring, int ranks, int gate);

// Ranks of one node, or single ranks of several: `share` of the bytes goes round over each order of them.
void flat_ring(Rounds& rounds, Collective collective, double share, int size, const At& at,
               const std::vector<std::vector<int>>& orders);
void ring(Rounds& rounds, Collective collective, const Layout& layout, int group);
void bidirectional_ring(Rounds& rounds, Collective collective, const Layout& layout, int group);
void recursive_doubling(Rounds& rounds, int size, const At& at);
void rabenseifner(Rounds& rounds, double share, int size, const At& at);
void tree(Rounds& rounds, Collective collective, const Layout& layout, int group, bool chains);
// `padded`: how much longer parts are than their mean.
void bruck(Rounds& rounds, Collective collective, int size, const At& at, double padded = 1.0);
void binomial(Rounds& rounds, Collective collective, int size, const At& at);
void linear(Rounds& rounds, Collective collective, int size, const At& at);
// Of a power of two.
void halving_doubling(Rounds& rounds, Collective collective, int size, const At& at);
void hierarchical(Rounds& rounds, Collective collective, const Layout& layout, int group, Algorithm between);
void hierarchical_all_to_all(Rounds& rounds, const Layout& layout, int group, const collective::Imbalance& imbalance);
void multi_dimensional(Rounds& rounds, Collective collective, const Layout& layout, int group);
// `groups`: that do it at once.
void all_to_all(Rounds& rounds, int size, const At& at, int groups, const collective::Imbalance& imbalance);
void pair_by_pair(Rounds& rounds, int size, const At& at, int groups, const collective::Imbalance& imbalance);
void with_neighbours(Rounds& rounds, int size, const At& at);

// Before and after what wants a power of two (collective::Fold).
void fold(Rounds& rounds, const collective::Fold& fold, double bytes, const At& at, bool back);
void exchange(Rounds& rounds, const std::string& what, const collective::Fold& fold, int distance,
              const std::function<double(int number)>& bytes, const At& at);

}  // namespace sibyl::fabric
