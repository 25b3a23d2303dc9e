// What attention in a ring hides of the messages that go round.
#include <gtest/gtest.h>

#include "oracle/cost/ring_overlap.h"

namespace sibyl {
namespace {

// Keys and values of four ranks go round, 2 s each, beside a kernel of 4 s, of which the last quarter waits for the
// last part: 3 s are there for 4 s of messages.
struct Rounds {
  Rounds() {
    for (int i = 0; i < 2; ++i) {
      Exchange exchange;
      exchange.forward.motion = Motion::pass_round, exchange.backward.motion = Motion::sum_round;
      stage.steps.push_back(exchange);
      PricedExchange one;
      one.forward.emplace(), one.backward.emplace();
      one.forward->time.time = one.backward->time.time = Seconds{2};
      priced.exchanges.push_back(one);
    }
    Compute attention;
    attention.attributes = Attention{.ring = 4};
    stage.steps.push_back(attention);
    priced.exchanges.emplace_back();
    priced.prices.resize(1);
    priced.prices[0].estimate.time.time = Seconds{4};
    priced.kernels.steps.resize(3);
    priced.kernels.steps[2].forward = 0;
  }
  [[nodiscard]] Seconds waited(std::size_t i) const { return priced.exchanges[i].forward->time.time; }

  Stage stage;
  PricedStage priced;
};

// Keys are hidden whole, and of values what there is a kernel for. Nothing computes backward here: all of it is waited
// for.
TEST(RingOverlap, HidesWhatThereAreKernelsFor) {
  Rounds r;
  hide_behind_attention(r.stage, {}, r.priced);
  EXPECT_DOUBLE_EQ(r.waited(0).value(), 0);
  EXPECT_DOUBLE_EQ(r.waited(1).value(), 1);
  EXPECT_DOUBLE_EQ(r.priced.exchanges[1].hidden_forward.value(), 1);
  EXPECT_DOUBLE_EQ(r.priced.exchanges[0].backward->time.time.value(), 2);
  EXPECT_DOUBLE_EQ(r.priced.exchanges[1].backward->time.time.value(), 2);
}

// Where kernels and messages take turns on one processor nothing is gained. Where either takes 1.25 times as long
// beside the other the keys are there after 2.5 s, in which the kernel does 2 s of its work: 0.5 s are lost. Of the
// values 1.25 s go beside the kernel's last second: it loses 0.25 s, they have 1 s to go.
TEST(RingOverlap, LosesWhatTheySlowEachOther) {
  Rounds turns;
  hide_behind_attention(turns.stage, {2, 2}, turns.priced);
  EXPECT_DOUBLE_EQ(turns.waited(0).value(), 2);
  EXPECT_DOUBLE_EQ(turns.waited(1).value(), 2);
  Rounds slowed;
  hide_behind_attention(slowed.stage, {1.25, 1.25}, slowed.priced);
  EXPECT_NEAR(slowed.waited(0).value(), 0.5, 1e-12);
  EXPECT_NEAR(slowed.waited(1).value(), 1.25, 1e-12);
  EXPECT_NEAR(slowed.priced.exchanges[1].hidden_forward.value(), 0.75, 1e-12);
}

}  // namespace
}  // namespace sibyl
