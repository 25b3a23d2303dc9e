#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <vector>

#include "netmodel/collective/algorithms.h"
#include "netmodel/collective/partition.h"

namespace sibyl {
namespace {

using collective::part;
using collective::TreePlace;
using Counts = std::vector<std::int64_t>;

// Of 7 elements of 1 byte, for every rank.
Counts sent(Collective collective, Algorithm algorithm, int size, std::int64_t elements = 7) {
  Counts counts;
  for (int rank = 0; rank < size; ++rank)
    counts.push_back(bytes_sent(collective, algorithm, elements, 1, size, rank));
  return counts;
}

TEST(Partition, LongerPartsFirst) {
  EXPECT_EQ(part(7, 3, 0), (collective::Range{0, 3}));
  EXPECT_EQ(part(7, 3, 1), (collective::Range{3, 5}));
  EXPECT_EQ(part(7, 3, 2), (collective::Range{5, 7}));
  EXPECT_EQ(part(1, 3, 2), (collective::Range{1, 1}));
}

// All parts but the own one (3, 2, 2), then all but the next rank's (2, 2, 3): 14 - 3 - 2, 14 - 2 - 2, 14 - 2 - 3.
TEST(BytesSent, Ring) {
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::ring, 3), (Counts{9, 10, 9}));
  EXPECT_EQ(sent(Collective::reduce_scatter, Algorithm::ring, 3), (Counts{4, 5, 5}));
  EXPECT_EQ(sent(Collective::all_gather, Algorithm::ring, 3), (Counts{5, 5, 4}));
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::ring, 2), (Counts{7, 7}));  // 14 - 4 - 3
}

// Parts of 3, 2 and 2 in halves of 2 + 1, 1 + 1 and 1 + 1. Scattered: all but the own part. Gathered: all but the first
// half of the next rank's part and the second half of that before.
TEST(BytesSent, BidirectionalRing) {
  EXPECT_EQ(sent(Collective::reduce_scatter, Algorithm::bidirectional_ring, 3), (Counts{4, 5, 5}));
  EXPECT_EQ(sent(Collective::all_gather, Algorithm::bidirectional_ring, 3), (Counts{5, 5, 4}));
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::bidirectional_ring, 3), (Counts{9, 10, 9}));
}

// Gathered by three: the own part twice, at distance 1 and, as only one is lacking then, at 2; by four (2, 2, 2, 1):
// the own one, then that and the next rank's. To all, of three: the parts of ranks 1 and 2 further on, once each. Of
// four: those 1 and 3 further on leave at distance 1; at distance 2 go the own part for the rank 2 further on, and that
// which the rank before has for the rank 3 further on, which is the same one.
TEST(BytesSent, Bruck) {
  EXPECT_EQ(sent(Collective::all_gather, Algorithm::bruck, 3), (Counts{6, 4, 4}));
  EXPECT_EQ(sent(Collective::all_gather, Algorithm::bruck, 4), (Counts{6, 6, 5, 4}));
  EXPECT_EQ(sent(Collective::all_to_all, Algorithm::bruck, 3), (Counts{4, 5, 5}));
  EXPECT_EQ(sent(Collective::all_to_all, Algorithm::bruck, 4), (Counts{7, 6, 7, 8}));
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::bruck, 3), (Counts{9, 10, 9}));  // offers none: the ring's
}

// Three ranks: 0 hands its vector to 1 and waits; 1 and 2 exchange; 1 hands the sum back.
TEST(BytesSent, RecursiveDoubling) {
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::recursive_doubling, 2), (Counts{7, 7}));
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::recursive_doubling, 3), (Counts{7, 14, 7}));
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::recursive_doubling, 4), (Counts{14, 14, 14, 14}));
}

// Four ranks, parts 2 2 2 1. Rank 0 gives parts 2, 3 (3), then part 1 (2); gives back part 0 (2), then parts 0, 1
// (4): 11. Rank 1 gives parts 0, 1 (4), then part 3 (1); back part 2 (2), then 2, 3 (3): 10. Rank 2: 3 + part 0 (2);
// back part 1 (2) + 4: 11. Rank 3: 4 + part 2 (2); back part 3 (1) + 3: 10.
TEST(BytesSent, Rabenseifner) {
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::rabenseifner, 4), (Counts{11, 10, 11, 10}));
  // Three ranks: 0 hands over 7; 1 gives the upper 3, gives back its 4, and returns 7; 2 gives 4 and gives back 3.
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::rabenseifner, 3), (Counts{7, 14, 7}));
}

// Halves of 4 and 3. First tree: 0 - 2 - {1, 3}; second, mirrored: 3 - 1 - {2, 0}. Rank 0: to its child 4, to its
// parent 3. Rank 1: to its parent 4; parent and two children 9. Rank 2: 12 and 3. Rank 3: 4 and 3.
TEST(BytesSent, Tree) {
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::tree, 4), (Counts{7, 13, 15, 7}));
  EXPECT_EQ(sent(Collective::broadcast, Algorithm::tree, 4), (Counts{7, 0, 14, 0}));
  EXPECT_EQ(sent(Collective::reduce, Algorithm::tree, 4), (Counts{0, 7, 7, 7}));
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::tree, 2), (Counts{7, 7}));
  // First tree 0 - 2 - 1; second, one further on: 1 - 0 - 2. Rank 0: 4 down; 3 up, 3 down. Rank 1: 4 up; 3 down. Rank
  // 2: 4 up, 4 down; 3 up.
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::tree, 3), (Counts{10, 7, 11}));
}

// Gloo cuts 7 elements for 3 ranks into 2 segments of 2 for each: chunks of 4, 3 and 0. Each rank sends all but its own, then
// all but the one before: 14 - 4 - 0, 14 - 3 - 4, 14 - 0 - 3. A broadcast to 5: rank 0 sends to 1, 2 and 4, rank 1 to 3.
TEST(BytesSent, Gloo) {
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::gloo, 3), (Counts{10, 7, 11}));
  EXPECT_EQ(sent(Collective::broadcast, Algorithm::gloo, 5), (Counts{21, 7, 0, 0, 0}));
  EXPECT_EQ(sent(Collective::all_gather, Algorithm::gloo, 3), (Counts{5, 5, 4}));  // offers none: the ring's
  // 5 MiB and 4 B of f32 are 6 segments of a MiB at most, 3 a rank: chunks of 655,362 and 655,359 elements.
  EXPECT_EQ(bytes_sent(Collective::all_reduce, Algorithm::gloo, 1310721, 4, 2, 0), 4 * 1310721);
  EXPECT_EQ(bytes_sent(Collective::all_reduce, Algorithm::gloo, 1310721, 4, 3, 0), 4 * (2 * 1310721 - 436908 - 436905));
}

// Of four ranks (2, 2, 2, 1): scattered all but the own part; gathered the own one, then that of the pair. To five
// ranks as gloo's broadcast, summed the same way back. A root to all, and all to it.
TEST(BytesSent, OfOtherLibraries) {
  EXPECT_EQ(sent(Collective::reduce_scatter, Algorithm::halving_doubling, 4), (Counts{5, 5, 5, 6}));
  EXPECT_EQ(sent(Collective::all_gather, Algorithm::halving_doubling, 4), (Counts{6, 6, 5, 4}));
  EXPECT_EQ(sent(Collective::reduce_scatter, Algorithm::halving_doubling, 3), (Counts{4, 5, 5}));  // a ring
  EXPECT_EQ(sent(Collective::all_gather, Algorithm::halving_doubling, 3), (Counts{6, 4, 4}));      // Bruck's
  EXPECT_EQ(sent(Collective::broadcast, Algorithm::binomial, 5), (Counts{21, 7, 0, 0, 0}));
  EXPECT_EQ(sent(Collective::reduce, Algorithm::binomial, 5), (Counts{0, 7, 7, 7, 7}));
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::binomial, 5), (Counts{21, 14, 7, 7, 7}));
  EXPECT_EQ(sent(Collective::broadcast, Algorithm::linear, 3), (Counts{14, 0, 0}));
  EXPECT_EQ(sent(Collective::reduce, Algorithm::linear, 3), (Counts{0, 7, 7}));
  EXPECT_EQ(sent(Collective::all_to_all, Algorithm::pairwise, 3), (Counts{4, 5, 5}));
}

TEST(BytesSent, Others) {
  EXPECT_EQ(sent(Collective::all_to_all, Algorithm::automatic, 3), (Counts{4, 5, 5}));
  EXPECT_EQ(sent(Collective::all_to_all, Algorithm::hierarchical, 3), (Counts{4, 5, 5}));  // knows no placement
  EXPECT_EQ(bytes_sent(Collective::send_receive, Algorithm::automatic, 7, 4, 2, 0), 28);
  EXPECT_EQ(sent(Collective::all_reduce, Algorithm::ring, 1), (Counts{0}));
  EXPECT_EQ(bytes_sent(Collective::all_reduce, Algorithm::ring, 7, 4, 3, 1), 40);  // elements, not bytes, are cut
}

// 16 KiB, and 64 KiB for each of more than 4 ranks.
TEST(Choice, OfTheCommunicatorBySize) {
  const auto chosen = [](std::int64_t bytes, int ranks) {
    return collective::resolve(Collective::all_reduce, Algorithm::automatic, bytes, ranks);
  };
  EXPECT_EQ(chosen(16384, 8), Algorithm::recursive_doubling);
  EXPECT_EQ(chosen(16388, 8), Algorithm::rabenseifner);
  EXPECT_EQ(chosen(8 * 65536, 8), Algorithm::rabenseifner);
  EXPECT_EQ(chosen(8 * 65536 + 4, 8), Algorithm::ring);
  EXPECT_EQ(chosen(16388, 4), Algorithm::ring);
  EXPECT_EQ(collective::resolve(Collective::all_gather, Algorithm::tree, 100, 8), Algorithm::ring);
  EXPECT_EQ(collective::resolve(Collective::broadcast, Algorithm::ring, 100, 8), Algorithm::tree);
}

// What is sent is received: an all-reduce by ring or trees moves 2 (p - 1) m in all, for every rank but one must give
// its vector away and get the sum.
TEST(BytesSent, AddUpOverRanks) {
  EXPECT_TRUE(rc::check("ring and trees move 2 (p - 1) m", [] {
    const int size = *rc::gen::inRange(1, 40);
    const std::int64_t elements = *rc::gen::inRange(0, 1000);
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::bidirectional_ring, Algorithm::tree, Algorithm::gloo}) {
      std::int64_t total = 0;
      for (const std::int64_t bytes : sent(Collective::all_reduce, algorithm, size, elements)) total += bytes;
      RC_ASSERT(total == 2 * (size - 1) * elements);
    }
  }));
}

// Each rank lacks all parts but its own; and a part that goes to the rank i further on travels as often as i has bits.
TEST(BytesSent, OfBruckAddUpOverRanks) {
  EXPECT_TRUE(rc::check("(p - 1) m gathered, and every part its hops", [] {
    const int size = *rc::gen::inRange(1, 70);
    const std::int64_t elements = *rc::gen::inRange(0, 1000);
    std::int64_t gathered = 0, exchanged = 0, hops = 0;
    for (const std::int64_t bytes : sent(Collective::all_gather, Algorithm::bruck, size, elements)) gathered += bytes;
    for (const std::int64_t bytes : sent(Collective::all_to_all, Algorithm::bruck, size, elements)) exchanged += bytes;
    for (int i = 1; i < size; ++i) hops += std::popcount(static_cast<unsigned>(i));
    RC_ASSERT(gathered == (size - 1) * elements);
    RC_ASSERT(exchanged == hops * elements);
  }));
}

// So that no rank passes on more than all bytes once each way.
TEST(TreePlace, OfTwoTreesARankHasTwoChildrenAtMost) {
  for (int size = 1; size <= 70; ++size)
    for (int rank = 0; rank < size; ++rank)
      EXPECT_LE(TreePlace::of(size, rank).child_count() + TreePlace::second(size, rank).child_count(), 2)
          << rank << " of " << size;
}

TEST(TreePlace, EveryRankHangsUnderOneRoot) {
  for (int size = 1; size <= 70; ++size)
    for (const auto& place_of : {TreePlace::of, TreePlace::second}) {
      int roots = 0;
      for (int rank = 0; rank < size; ++rank) {
        const TreePlace place = place_of(size, rank);
        roots += place.parent < 0 ? 1 : 0;
        for (const int child : place.children)
          if (child >= 0) {
            ASSERT_LT(child, size);
            EXPECT_EQ(place_of(size, child).parent, rank) << size;
          }
        int depth = 0;
        for (int at = rank; at >= 0 && depth <= 8; ++depth) at = place_of(size, at).parent;
        EXPECT_LE(depth, 8) << "rank " << rank << " of " << size;  // at most ceil(log2 70) + 1 ranks to the root
      }
      EXPECT_EQ(roots, 1) << size;
    }
}

}  // namespace
}  // namespace sibyl
