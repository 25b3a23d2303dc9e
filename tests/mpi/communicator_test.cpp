// Sums are of small integers, exact in f32 whatever the order: rank r holds (r + 1) * (i % 13 + 1) at i, so the sum
// over p ranks is p (p + 1) / 2 * (i % 13 + 1).
#include "comm/communicator.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "comm/half.h"
#include "comm/messages.h"
#include "comm/processors.h"
#include "comm/waiting.h"

namespace sibyl {
namespace {

constexpr std::int64_t sizes[] = {0, 1, 7, 1000, 5000, 1'000'000};

float pattern(std::int64_t i) { return static_cast<float>(i % 13 + 1); }

std::vector<float> mine(std::int64_t elements, int rank) {
  std::vector<float> data(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i)
    data[static_cast<std::size_t>(i)] = static_cast<float>(rank + 1) * pattern(i);
  return data;
}

// The first wrong element, or -1.
std::int64_t first_wrong(const std::vector<float>& data, std::int64_t begin, std::int64_t end, int ranks) {
  const float factor = static_cast<float>(ranks * (ranks + 1)) / 2.0F;
  for (std::int64_t i = begin; i < end; ++i)
    if (data[static_cast<std::size_t>(i)] != factor * pattern(i)) return i;
  return -1;
}

class AllReduce : public testing::TestWithParam<Algorithm> {};

TEST_P(AllReduce, SumsAndSendsExactlyTheBytesPredicted) {
  Communicator world = Communicator::world();
  for (const std::int64_t elements : sizes) {
    std::vector<float> data = mine(elements, world.rank());
    const std::int64_t before = world.bytes_sent();
    world.all_reduce(data, GetParam());
    EXPECT_EQ(first_wrong(data, 0, elements, world.size()), -1) << elements << " elements, rank " << world.rank();
    EXPECT_EQ(world.bytes_sent() - before,
              bytes_sent(Collective::all_reduce, GetParam(), elements, 4, world.size(), world.rank()))
        << elements << " elements, rank " << world.rank();
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AllReduce,
                         testing::Values(Algorithm::automatic, Algorithm::ring, Algorithm::recursive_doubling,
                                         Algorithm::rabenseifner, Algorithm::tree, Algorithm::hierarchical),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

// The same in two bytes: whole numbers to 256 are exact in both types, and the greatest is 15 * 13.
TEST_P(AllReduce, SumsNumbersOfTwoBytes) {
  Communicator world = Communicator::world();
  const float factor = static_cast<float>(world.size() * (world.size() + 1)) / 2.0F;
  for (const Element type : {Element::bf16, Element::f16})
    for (const std::int64_t elements : sizes) {
      const auto stored = [&](float value) {
        return type == Element::bf16 ? comm::to_bf16(value) : comm::to_f16(value);
      };
      std::vector<std::uint16_t> data;
      for (const float value : mine(elements, world.rank())) data.push_back(stored(value));
      std::vector<std::uint16_t> greatest = data;
      const std::int64_t before = world.bytes_sent();
      world.all_reduce(Elements{std::as_writable_bytes(std::span(data)), type}, GetParam());
      EXPECT_EQ(world.bytes_sent() - before,
                bytes_sent(Collective::all_reduce, GetParam(), elements, 2, world.size(), world.rank()));
      world.all_reduce(Elements{std::as_writable_bytes(std::span(greatest)), type}, GetParam(), Reduction::maximum);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < elements; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (data[at] != stored(factor * pattern(i)) ||
            greatest[at] != stored(static_cast<float>(world.size()) * pattern(i)))
          ++wrong;
      }
      EXPECT_EQ(wrong, 0) << elements << " elements, rank " << world.rank();
    }
}

// At every place some rank has the greatest of p numbers, p - 101, whatever the place.
TEST_P(AllReduce, KeepsTheGreatest) {
  Communicator world = Communicator::world();
  for (const std::int64_t elements : sizes) {
    std::vector<float> data(static_cast<std::size_t>(elements));
    for (std::int64_t i = 0; i < elements; ++i)
      data[static_cast<std::size_t>(i)] = static_cast<float>((i + world.rank()) % world.size()) - 100.0F;
    world.all_reduce(data, GetParam(), Reduction::maximum);
    const auto wrong = std::find_if(data.begin(), data.end(),
                                    [&](float value) { return value != static_cast<float>(world.size()) - 101.0F; });
    EXPECT_EQ(wrong, data.end()) << elements << " elements, rank " << world.rank();
  }
}

// After 1 comes 1 + 2^-7 in bf16 (0x3f81) and 1 + 2^-10 in f16 (0x3c01); what is halfway goes to the even one. The
// largest of f16 is 65504 (0x7bff), the least 2^-24, the least with all its digits 2^-14.
TEST(Half, RoundsToTheNearest) {
  EXPECT_EQ(comm::to_bf16(1 + 0x1p-8F), 0x3f80);
  EXPECT_EQ(comm::to_bf16(1 + 0x1p-8F + 0x1p-20F), 0x3f81);
  EXPECT_EQ(comm::to_bf16(1 + 0x1p-7F + 0x1p-8F), 0x3f82);
  EXPECT_EQ(comm::to_bf16(-3.4e38F), 0xff80) << "minus infinity";
  EXPECT_EQ(comm::to_f16(1 + 0x1p-11F), 0x3c00);
  EXPECT_EQ(comm::to_f16(1 + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(comm::to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(comm::to_f16(65520.0F), 0x7c00) << "infinity";
  EXPECT_EQ(comm::to_f16(-0x1p-24F), 0x8001);
  EXPECT_EQ(comm::to_f16(0x1p-25F), 0x0000);
  EXPECT_EQ(comm::to_f16(3 * 0x1p-25F), 0x0002);
  EXPECT_EQ(comm::to_f16(0x1p-14F), 0x0400);
  EXPECT_TRUE(std::isnan(comm::from_bf16(comm::to_bf16(NAN))) && std::isnan(comm::from_f16(comm::to_f16(NAN))));
}

TEST(Half, IsItselfInF32) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!std::isnan(comm::from_bf16(half))) {
      ASSERT_EQ(comm::to_bf16(comm::from_bf16(half)), half);
    }
    if (!std::isnan(comm::from_f16(half))) {
      ASSERT_EQ(comm::to_f16(comm::from_f16(half)), half);
    }
  }
  EXPECT_EQ(comm::from_f16(0x3555), 0x1.554p-2F);  // the nearest to a third
}

TEST(Communicator, ReduceScatterLeavesTheSumInTheOwnPart) {
  Communicator world = Communicator::world();
  for (const std::int64_t elements : sizes) {
    std::vector<float> data = mine(elements, world.rank());
    const std::int64_t before = world.bytes_sent();
    world.reduce_scatter(data, Algorithm::automatic);
    const auto [begin, end] = Communicator::part(elements, world.size(), world.rank());
    EXPECT_EQ(first_wrong(data, begin, end, world.size()), -1) << elements;
    EXPECT_EQ(world.bytes_sent() - before,
              bytes_sent(Collective::reduce_scatter, Algorithm::automatic, elements, 4, world.size(), world.rank()));
  }
}

TEST(Communicator, AllGatherFillsEveryPart) {
  Communicator world = Communicator::world();
  for (const std::int64_t elements : sizes) {
    std::vector<float> data(static_cast<std::size_t>(elements), -1.0F);
    const auto [begin, end] = Communicator::part(elements, world.size(), world.rank());
    for (std::int64_t i = begin; i < end; ++i) data[static_cast<std::size_t>(i)] = pattern(i);
    const std::int64_t before = world.bytes_sent();
    world.all_gather(data, Algorithm::automatic);
    EXPECT_EQ(first_wrong(data, 0, elements, 1), -1) << elements;
    EXPECT_EQ(world.bytes_sent() - before,
              bytes_sent(Collective::all_gather, Algorithm::automatic, elements, 4, world.size(), world.rank()));
  }
}

// Elements of 3 bytes, 5 for each rank: no part of a float is a part of these.
TEST(Communicator, AllGatherTakesElementsOfAnyWidth) {
  Communicator world = Communicator::world();
  constexpr std::size_t width = 3, own = 5;
  std::vector<std::byte> data(width * own * static_cast<std::size_t>(world.size()), std::byte{0xff});
  for (std::size_t i = 0; i < width * own; ++i)
    data[static_cast<std::size_t>(world.rank()) * width * own + i] = static_cast<std::byte>(world.rank());
  const std::int64_t before = world.bytes_sent();
  world.all_gather(data, width);
  for (std::size_t i = 0; i < data.size(); ++i) EXPECT_EQ(data[i], static_cast<std::byte>(i / (width * own)));
  const auto elements = static_cast<std::int64_t>(own) * world.size();
  EXPECT_EQ(world.bytes_sent() - before,
            bytes_sent(Collective::all_gather, Algorithm::ring, elements, width, world.size(), world.rank()));
}

// Rank r gives rank s the number 100 r + s, `part` times.
TEST(Communicator, AllToAllGivesEveryRankItsPart) {
  Communicator world = Communicator::world();
  for (const std::size_t part : {std::size_t{0}, std::size_t{1}, std::size_t{300}, std::size_t{200'000}}) {
    std::vector<float> out(part * static_cast<std::size_t>(world.size())), in(out.size(), -1.0F), expected(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto other = static_cast<int>(i / part);
      out[i] = static_cast<float>(100 * world.rank() + other);
      expected[i] = static_cast<float>(100 * other + world.rank());
    }
    const std::int64_t before = world.bytes_sent();
    world.all_to_all(std::as_bytes(std::span(out)), std::as_writable_bytes(std::span(in)));
    EXPECT_EQ(in, expected) << "parts of " << part;
    EXPECT_EQ(world.bytes_sent() - before,
              bytes_sent(Collective::all_to_all, Algorithm::ring, static_cast<std::int64_t>(out.size()), 4,
                         world.size(), world.rank()));
  }
}

// Each rank gives the next 3 numbers and the one before it 100,000, at once; the first and the last have one neighbour.
TEST(Communicator, SwapsWithBothNeighboursAtOnce) {
  Communicator world = Communicator::world();
  constexpr std::size_t few = 3, many = 100'000;
  const int rank = world.rank(), last = world.size() - 1;
  const std::vector<float> up(few, static_cast<float>(rank)), down(many, static_cast<float>(-rank));
  std::vector<float> from_below(few), from_above(many);
  std::vector<Communicator::Swap> swaps;
  if (rank > 0)
    swaps.push_back({rank - 1, std::as_bytes(std::span(down)), std::as_writable_bytes(std::span(from_below))});
  if (rank < last)
    swaps.push_back({rank + 1, std::as_bytes(std::span(up)), std::as_writable_bytes(std::span(from_above))});
  const std::int64_t before = world.bytes_sent();
  world.swap(swaps);
  if (rank > 0) {
    EXPECT_EQ(from_below, std::vector<float>(few, static_cast<float>(rank - 1)));
  }
  if (rank < last) {
    EXPECT_EQ(from_above, std::vector<float>(many, static_cast<float>(-rank - 1)));
  }
  EXPECT_EQ(world.bytes_sent() - before,
            static_cast<std::int64_t>(4 * ((rank < last ? few : 0) + (rank > 0 ? many : 0))));
}

// By the one clock of the machine that all hosts are on. Over TCP the library would have taken both chunks at once.
TEST(Communicator, SwapsOfMoreThanAChunkAreDoneWhenTheyAreTaken) {
  Communicator world = Communicator::world();
  if (world.size() < 2) GTEST_SKIP() << "needs two ranks";
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  std::vector<std::byte> data(2 * comm::chunk_bytes);
  double given = 0, taken_from = 0;
  world.barrier();
  if (world.rank() == 0) {
    world.swap(std::vector<Communicator::Swap>{{1, data, {}}});
    given = now();
  } else if (world.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    taken_from = now();
    world.swap(std::vector<Communicator::Swap>{{0, {}, data}});
  }
  EXPECT_GE(world.gather_doubles(given).front(), world.gather_doubles(taken_from).at(1));
}

TEST(Communicator, BroadcastReachesAllFromAnyRoot) {
  Communicator world = Communicator::world();
  for (int root = 0; root < world.size(); ++root) {
    std::vector<float> data = world.rank() == root ? mine(300'007, 0) : std::vector<float>(300'007);
    const std::int64_t before = world.bytes_sent();
    world.broadcast(std::as_writable_bytes(std::span(data)), root);
    EXPECT_EQ(first_wrong(data, 0, 300'007, 1), -1) << "root " << root;
    const int relative = (world.rank() - root + world.size()) % world.size();
    EXPECT_EQ(world.bytes_sent() - before,
              bytes_sent(Collective::broadcast, Algorithm::tree, 300'007, 4, world.size(), relative));
  }
}

// 300,007 numbers are twenty chunks, 7 a part of one.
TEST(Communicator, ReducesToAnyRoot) {
  Communicator world = Communicator::world();
  for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{7}, std::int64_t{300'007}})
    for (int root = 0; root < world.size(); ++root) {
      std::vector<float> data = mine(elements, world.rank());
      const std::int64_t before = world.bytes_sent();
      world.reduce(data, root);
      if (world.rank() == root) {
        EXPECT_EQ(first_wrong(data, 0, elements, world.size()), -1) << elements << " elements, root " << root;
      }
      const int relative = (world.rank() - root + world.size()) % world.size();
      EXPECT_EQ(world.bytes_sent() - before,
                bytes_sent(Collective::reduce, Algorithm::tree, elements, 4, world.size(), relative));
    }
}

TEST(Communicator, SendsAndReceives) {
  Communicator world = Communicator::world();
  if (world.size() < 2) GTEST_SKIP() << "needs two ranks";
  std::vector<float> data = mine(300'000, 4);
  std::vector<float> other(data.size());
  const std::int64_t before = world.bytes_sent();
  if (world.rank() == 0) world.send(std::as_bytes(std::span(data)), world.size() - 1);
  if (world.rank() == world.size() - 1) {
    world.receive(std::as_writable_bytes(std::span(other)), 0);
    EXPECT_EQ(other, data);
  }
  EXPECT_EQ(world.bytes_sent() - before, world.rank() == 0 ? 1'200'000 : 0);
}

TEST(Communicator, SubgroupsWorkAtTheSameTime) {
  Communicator world = Communicator::world();
  // Even and odd ranks, each in reverse order.
  std::vector<int> ranks;
  for (int rank = world.size() - 1; rank >= 0; --rank)
    if (rank % 2 == world.rank() % 2) ranks.push_back(rank);
  Communicator group = world.subgroup(ranks);
  ASSERT_EQ(group.size(), static_cast<int>(ranks.size()));
  EXPECT_EQ(ranks[static_cast<std::size_t>(group.rank())], world.rank());
  std::vector<float> data = mine(1000, group.rank());
  group.all_reduce(data, Algorithm::ring);
  EXPECT_EQ(first_wrong(data, 0, 1000, group.size()), -1);
  EXPECT_EQ(world.bytes_sent(), 0) << "each communicator counts its own";
}

TEST(Communicator, GathersDoublesInRankOrderUncounted) {
  Communicator world = Communicator::world();
  const std::vector<double> all = world.gather_doubles(10.0 * world.rank());
  ASSERT_EQ(all.size(), static_cast<std::size_t>(world.size()));
  for (int rank = 0; rank < world.size(); ++rank) EXPECT_EQ(all[static_cast<std::size_t>(rank)], 10.0 * rank);
  world.barrier();
  EXPECT_EQ(world.bytes_sent(), 0);
}

// Held to one processor, those that share it have none of their own; each held to another, all have.
TEST(Waiting, KnowsWhetherRanksHaveAProcessorEach) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  std::vector<std::size_t> processors;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &before)) processors.push_back(i);
  const auto held_to = [](std::size_t processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_setaffinity(0, sizeof one, &one);
    return comm::processor_each(MPI_COMM_WORLD);
  };
  Communicator world = Communicator::world();
  const auto first = static_cast<double>(processors.front());
  const std::vector<double> firsts = world.gather_doubles(first);  // other ones on other hosts (tools/hosts.sh)
  EXPECT_EQ(held_to(processors.front()), std::ranges::count(firsts, first) == 1);
  const double fewest = std::ranges::min(world.gather_doubles(static_cast<double>(processors.size())));
  if (fewest >= world.size()) {
    EXPECT_TRUE(held_to(processors[static_cast<std::size_t>(world.rank())]));
  }
  sched_setaffinity(0, sizeof before, &before);
}

TEST(Waiting, LooksWhereNothingElseRuns) {
  comm::let_ranks_look(true);
  EXPECT_TRUE(comm::may_look());
  std::atomic<bool> compute_runs = true;
  std::thread([&] {
    comm::wait_beside(compute_runs);
    EXPECT_FALSE(comm::may_look());
    compute_runs = false;
    EXPECT_TRUE(comm::may_look());
    comm::let_ranks_look(false);
    EXPECT_FALSE(comm::may_look());
  }).join();
  EXPECT_FALSE(comm::may_look());
}

// The same sums whichever way ranks wait, and however far apart they begin.
TEST(Waiting, ExchangesTheSameEitherWay) {
  Communicator world = Communicator::world();
  for (const bool look : {false, true}) {
    comm::let_ranks_look(look);
    std::vector<float> data = mine(150'000, world.rank());
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * world.rank()));
    world.all_reduce(data, Algorithm::ring);
    EXPECT_EQ(first_wrong(data, 0, 150'000, world.size()), -1) << look;
  }
}

}  // namespace
}  // namespace sibyl
