// Numbers over a range of sizes, and formulas reckoned in them.
#include "netmodel/ranged.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <ostream>

#include "netmodel/collective/algorithms.h"
#include "netmodel/topology.h"
#include "tests/unit/netmodel/machine.h"

namespace sibyl {
namespace {

bool same(const Ranged& a, double begin, double end, bool straight) {
  return a.begin == begin && a.end == end && a.straight == straight;
}

TEST(Ranged, IsReckonedAtBothEnds) {
  const Ranged bytes{2, 6};
  EXPECT_TRUE(same(1 + 3 * bytes / 2, 4, 10, true));
  EXPECT_TRUE(same(10 - bytes, 8, 4, true));
  EXPECT_TRUE(same(bytes + Ranged(1, 2, false), 3, 8, false));
  EXPECT_EQ(Ranged(7).value(), 7);
}

// 2 to 6 meets 4 half-way, and neither 6 at its end nor 2 at its beginning.
TEST(Ranged, OfTwoThatCrossTheLargerIsBent) {
  const Ranged bytes{2, 6};
  EXPECT_TRUE(same(max(bytes, 4), 4, 6, false));
  EXPECT_TRUE(same(min(bytes, 4), 2, 4, false));
  EXPECT_TRUE(same(max(bytes, 6), 6, 6, true));
  EXPECT_TRUE(same(max(bytes, 2), 2, 6, true));
  EXPECT_TRUE(same(min(2, bytes), 2, 2, true));
  EXPECT_TRUE(same(max(bytes, Ranged(7, 7, false)), 7, 7, false)) << "who knows what that is in between";
}

struct Asked {
  Collective collective;
  Algorithm algorithm;
};

std::ostream& operator<<(std::ostream& out, const Asked& it) {
  return out << to_string(it.collective) << " " << to_string(it.algorithm);
}

constexpr std::array everything{Collective::all_reduce,  Collective::reduce_scatter, Collective::all_gather,
                                Collective::broadcast,   Collective::reduce,         Collective::all_to_all,
                                Collective::send_receive};

std::vector<Asked> all_formulas() {
  std::vector<Asked> result;
  for (const Collective collective : everything)
    for (int algorithm = 1; algorithm <= static_cast<int>(Algorithm::gloo); ++algorithm)
      if (collective::runs(collective, static_cast<Algorithm>(algorithm)))
        result.push_back({collective, static_cast<Algorithm>(algorithm)});
  return result;
}

// A wire with a token bucket and a protocol that changes at 3,000 bytes; two pairs at once timed as well.
std::vector<PointToPointSample> bent_messages() {
  std::vector<PointToPointSample> samples;
  for (double bytes = 1; bytes <= 1 << 24; bytes *= 2)
    for (const int pairs : {1, 2}) {
      const double start = bytes < 3000 ? 10e-6 : 30e-6;
      samples.push_back({false, pairs, Bytes{bytes}, Seconds{start + std::max(0.0, bytes - 4e4) * 1e-8 * pairs}, 0.0});
      samples.push_back({true, pairs, Bytes{bytes}, Seconds{start / 10 + bytes / 1e9}, 0.0});
    }
  return samples;
}

// What formulas call straight over a range is what they say of each size in it.
TEST(Ranged, FormulasAreStraightWhereTheySaySo) {
  const Topology topology = Topology::make(test::cpu_spec(12, 6)).value();
  const PointToPoint messages(topology, bent_messages());
  const std::vector<Asked> formulas = all_formulas();
  int straight = 0, bent = 0;
  const auto check_one = [&] {
    const Asked asked = *rc::gen::elementOf(formulas);
    const GroupPlacement placement{*rc::gen::inRange(1, 7), *rc::gen::inRange(1, 13), *rc::gen::inRange(1, 3)};
    const collective::Wire wire(topology, messages);
    const auto seconds = [&](const Ranged& bytes) {
      return collective::seconds({asked.collective, bytes, placement}, asked.algorithm, wire);
    };
    const double from = std::pow(2.0, *rc::gen::inRange(0, 240) / 10.0);
    const double to = from * (1 + *rc::gen::inRange(1, 50) / 100.0);
    const Ranged all = seconds({from, to});
    RC_ASSERT(all.begin == seconds(from).value() && all.end == seconds(to).value());
    ++(all.straight ? straight : bent);
    for (const double part : {0.1, 0.25, 0.5, 0.9}) {
      const double between = std::lerp(all.begin, all.end, part);
      if (all.straight) RC_ASSERT(std::abs(seconds(std::lerp(from, to, part)).value() - between) <= 1e-12 * between);
    }
  };
  EXPECT_TRUE(rc::check("of any algorithm over any wire", [&] {
    for (int i = 0; i < 20; ++i) check_one();
  }));
  EXPECT_GT(straight, 10);
  EXPECT_GT(bent, 10);
}

}  // namespace
}  // namespace sibyl
