// Every motion against what it should be, cut from a tensor all ranks know; and that backward is its transpose: with
// forward y = A x (all ranks' parts stacked) and gradients g, <g, A x> = <A' g, x>.
#include "trainer/exchange.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "aten/memory.h"
#include "tests/support/graphs.h"
#include "trainer/bare_messages.h"
#include "trainer/parts.h"
#include "trainer/replica.h"

namespace sibyl::trainer {
namespace {

Communicator& ranks() {
  static Communicator world = Communicator::world();
  return world;
}

// 0, 1, 2, ... in the shape.
at::Tensor counted(const Shape& shape) {
  return at::arange(element_count(shape), at::TensorOptions().dtype(at::kFloat)).view(shape);
}

// The ranks share dimension 1 of [2, 3 p, 2], or dimension 0 of [2 p, 3].
const Shape inner_shape() { return {2, 3 * ranks().size(), 2}; }
const Shape outer_shape() { return {2 * ranks().size(), 3}; }

at::Tensor part(const at::Tensor& whole, std::size_t dim, const Ints& pieces = {}, int rank = ranks().rank()) {
  return part_of(whole, {dim, pieces, ranks().size()}, rank);
}

at::Tensor moved(const Transfer& transfer, const at::Tensor& x) {
  const at::Tensor kept = x.clone();
  const std::int64_t before = ranks().bytes_sent();
  const at::Tensor y = perform(transfer, x, ranks(), false);
  EXPECT_TRUE(at::equal(x, kept)) << "the operand was not to be overwritten";
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_EQ(y.sizes().vec(), result_shape(transfer, x.sizes().vec(), ranks().size()));
  if (const auto collective = collective_of(transfer.motion); collective && *collective != Collective::send_receive) {
    const std::int64_t elements = buffer_elements(transfer, x.sizes().vec(), y.sizes().vec());
    EXPECT_EQ(ranks().bytes_sent() - before,
              bytes_sent(*collective, Algorithm::automatic, elements, static_cast<std::int64_t>(x.itemsize()),
                         ranks().size(), ranks().rank()));
  }
  const std::int64_t sent = ranks().bytes_sent() - before;
  BareMessages().send(transfer, x.sizes().vec(), x.itemsize(), ranks());
  EXPECT_EQ(ranks().bytes_sent() - before, 2 * sent) << "an emulated device sends as much";
  return y;
}

TEST(Parts, AreCutFromEachPiece) {
  // 2 ranks, pieces 4 | 2: rank 0 has 0 1 | 4, rank 1 has 2 3 | 5.
  const at::Tensor whole = counted({6});
  EXPECT_TRUE(at::equal(part_of(whole, {0, {4, 2}, 2}, 0), at::tensor({0.0F, 1.0F, 4.0F})));
  EXPECT_TRUE(at::equal(part_of(whole, {0, {4, 2}, 2}, 1), at::tensor({2.0F, 3.0F, 5.0F})));
}

TEST(Exchange, GathersAlongAnyDimension) {
  const int p = ranks().size();
  const Ints pieces = {2 * p, p};
  for (const auto& [whole, dim, cut] : std::vector<std::tuple<at::Tensor, std::size_t, Ints>>{
           {counted(outer_shape()), 0, {}}, {counted(inner_shape()), 1, {}}, {counted(inner_shape()), 1, pieces}}) {
    EXPECT_TRUE(at::equal(moved({Motion::all_gather, dim, 0, cut, {}, {}}, part(whole, dim, cut)), whole));
    EXPECT_TRUE(at::equal(moved({Motion::slice, dim, 0, cut, {}, {}}, whole), part(whole, dim, cut)));
  }
  const at::Tensor ids = counted(inner_shape()).to(at::kLong);
  EXPECT_TRUE(at::equal(moved({Motion::all_gather, 1, 0, {}, {}, {}}, part(ids, 1)), ids)) << "not of floats alone";
}

// 3 p - 1 of a dimension in parts of 3: the last rank has 2, and zeros beyond.
TEST(Exchange, RoundsUpToEqualParts) {
  const int p = ranks().size();
  const at::Tensor whole = counted({2, 3 * p - 1, 2}), padded = at::constant_pad_nd(whole, {0, 0, 0, 1});
  const Transfer gather{Motion::all_gather, 1, 0, {}, {}, {}, 1}, slice{Motion::slice, 1, 0, {}, {}, {}, 1};
  const Transfer scatter{Motion::reduce_scatter, 1, 0, {}, {}, {}, 1};
  EXPECT_TRUE(at::equal(moved(slice, whole), part(padded, 1)));
  EXPECT_TRUE(at::equal(moved(gather, part(padded, 1)), whole));
  EXPECT_TRUE(at::equal(moved(scatter, whole), part(padded * p, 1)));
  Transfer fill{Motion::fill, 1, 0, {}, {}, {}, 1};
  fill.value = 7.0;
  EXPECT_TRUE(at::equal(moved(fill, part(padded, 1)), part(at::constant_pad_nd(whole, {0, 0, 0, 1}, 7.0), 1)));
}

// Each rank has 3 things; what is none stays none.
TEST(Exchange, CountsFromTheRanksOwnThings) {
  const std::int64_t p = ranks().size(), first = 3 * ranks().rank();
  const at::Tensor numbers = at::arange(-1, 3 * p, at::kLong);
  at::Tensor own = at::full({3 * p + 1}, -1, at::kLong);
  for (std::int64_t i = 0; i < 3; ++i) own[1 + first + i] = i;
  EXPECT_TRUE(at::equal(moved({Motion::own_numbers, 0, 0, {}, {}, {}, 0, 3}, numbers), own));
}

TEST(Exchange, KeepsTheGreatest) {
  const at::Tensor own = counted({4}) * (ranks().rank() + 1), greatest = counted({4}) * ranks().size();
  EXPECT_TRUE(at::equal(moved({Motion::maximum, 0, 0, {}, {}, {}}, own), greatest));
}

// Rank r's summand is (r + 1) times the counted tensor: together p (p + 1) / 2 times.
TEST(Exchange, SumsAndScatters) {
  const int p = ranks().size();
  const float all = static_cast<float>(p * (p + 1)) / 2.0F;
  for (const auto& [whole, dim] :
       std::vector<std::pair<at::Tensor, std::size_t>>{{counted(outer_shape()), 0}, {counted(inner_shape()), 1}}) {
    const at::Tensor summand = whole * (ranks().rank() + 1), sum = whole * all;
    EXPECT_TRUE(at::equal(moved({Motion::all_reduce, 0, 0, {}, {}, {}}, summand), sum));
    EXPECT_TRUE(at::equal(moved({Motion::reduce_scatter, dim, 0, {}, {}, {}}, summand), part(sum, dim)));
    const at::Tensor own = summand.clone();
    EXPECT_TRUE(at::equal(perform({Motion::reduce_scatter, dim, 0, {}, {}, {}}, own, ranks(), true), part(sum, dim)));
    const at::Tensor in_place = perform({Motion::all_reduce, 0, 0, {}, {}, {}}, own.copy_(summand), ranks(), true);
    EXPECT_TRUE(in_place.data_ptr() == own.data_ptr() && at::equal(in_place, sum));
  }
}

// Of small numbers, which sums in two bytes are exact of.
TEST(Exchange, SumsNumbersOfTwoBytes) {
  const int p = ranks().size();
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor whole = counted({2, 3 * p, 3}).remainder(4).to(type);
    const at::Tensor summand = whole * (ranks().rank() + 1), sum = whole * (p * (p + 1) / 2);
    EXPECT_TRUE(at::equal(moved({Motion::all_reduce, 0, 0, {}, {}, {}}, summand), sum));
    EXPECT_TRUE(at::equal(moved({Motion::reduce_scatter, 1, 0, {}, {}, {}}, summand), part(sum, 1)));
    EXPECT_TRUE(at::equal(moved({Motion::maximum, 0, 0, {}, {}, {}}, summand), whole * p));
    const at::Tensor odd = counted({7}).remainder(4).to(type);  // of two bytes each rank has other parts than of four
    EXPECT_TRUE(at::equal(moved({Motion::all_reduce, 0, 0, {}, {}, {}}, odd), odd * p));
  }
}

// [2 p, 3 p]: rows split, then columns split, in two pieces of 2 p and p.
TEST(Exchange, TransposesASplit) {
  const int p = ranks().size();
  const Ints pieces = {2 * p, p};
  const at::Tensor whole = counted({2 * p, 3 * p});
  const Transfer there{Motion::all_to_all, 0, 1, {}, pieces, {}}, back{Motion::all_to_all, 1, 0, pieces, {}, {}};
  EXPECT_TRUE(at::equal(moved(there, part(whole, 0)), part(whole, 1, pieces)));
  EXPECT_TRUE(at::equal(moved(back, part(whole, 1, pieces)), part(whole, 0)));
}

// Rows before and after come from the neighbours; at the rim they are the fill.
TEST(Exchange, PutsHalosBesideTheOwnRows) {
  const double low = -std::numeric_limits<double>::infinity();
  for (const Halo& halo : {Halo{1, 1, 0.0}, Halo{2, 0, 0.0}, Halo{0, 1, low}, Halo{1, 2, low}}) {
    const at::Tensor whole = counted(inner_shape());
    const at::Tensor padded = at::constant_pad_nd(whole, {0, 0, halo.before, halo.after}, halo.fill);
    const at::Tensor expected = padded.narrow(1, 3 * ranks().rank(), 3 + halo.before + halo.after);
    const Transfer transfer{Motion::halo, 1, 0, {}, {}, halo};
    EXPECT_TRUE(at::equal(moved(transfer, part(whole, 1)), expected)) << halo.before << " and " << halo.after;
  }
}

// Each rank has 3 rows and its halos, (r + 1) times what all count: rows that several ranks have are added, and beyond the rim
// nobody has any.
TEST(Exchange, AddsHalosToTheirOwners) {
  const std::int64_t p = ranks().size(), r = ranks().rank();
  for (const Halo& halo : {Halo{1, 1, 0.0}, Halo{2, 0, 0.0}, Halo{0, 1, 0.0}, Halo{1, 2, 0.0}}) {
    const std::int64_t rows = 3 + halo.before + halo.after;
    const at::Tensor counts = counted({2, rows, 2}) + 1;
    at::Tensor sum = at::zeros({2, 3 * p + halo.before + halo.after, 2});
    for (std::int64_t rank = 0; rank < p; ++rank) sum.narrow(1, 3 * rank, rows).add_(counts * (rank + 1));
    const Transfer transfer{Motion::halo_sum, 1, 0, {}, {}, halo};
    EXPECT_TRUE(at::equal(moved(transfer, counts * (r + 1)), sum.narrow(1, 3 * r + halo.before, 3)))
        << halo.before << " and " << halo.after;
  }
}

double total(double own) {
  double sum = 0.0;
  for (const double value : ranks().gather_doubles(own)) sum += value;
  return sum;
}

TEST(Exchange, BackwardIsTheTransposeOfForward) {
  const int p = ranks().size();
  const Layout split = Layout::split(1, {2 * p, p}), other = Layout::split(0);
  struct Case {
    Layout have;
    Need need;
  };
  const std::vector<Case> cases = {{split, {other, false, {}}},
                                   {Layout::split(1), {Layout::split(1), false, {1, 2, 0.0}}},
                                   {Layout::split(1), {Layout::split(1), false, {0, 1, 0.0}}},
                                   {split, {Layout::whole(), true, {}}},
                                   {Layout::partial(1), {split, false, {}}}};
  for (const Case& one : cases) {
    const Shape whole = {2 * p, 3 * p};
    at::manual_seed(static_cast<std::uint64_t>(ranks().rank()));
    const std::vector<Conversion> conversions = convert(one.have, one.need, true);
    ASSERT_EQ(conversions.size(), 1U);
    const Exchange exchange{MeshAxis::tensor, {}, {}, conversions[0].forward, conversions[0].backward};
    const at::Tensor start = at::randn(part_of(whole, one.have, p)).requires_grad_();
    const at::Tensor x = start * 1.0;  // what an operation made: exchanges may overwrite it
    const at::Tensor operand = x.detach().clone();
    const at::Tensor y = run_exchange(exchange, x, ranks(), true);
    const at::Tensor g = at::randn(y.sizes());
    const double forward = total((g * y.detach()).sum().item<double>());
    y.backward(g.clone());
    const double backward = total((start.grad() * operand).sum().item<double>());
    EXPECT_NEAR(forward, backward, 1e-3) << to_string(conversions[0].forward.motion);
  }
}

// fc2 is split by rows, so that the ranks' summands are added up behind it.
struct SplitByRows {
  SplitByRows() {
    Strategy strategy;
    strategy.global_batch = 8;
    strategy.tensor = ranks().size();
    plan = *make_plan(graph, strategy);
    const auto adds_up = [](const Step& step) {
      const auto* exchange = std::get_if<Exchange>(&step);
      return exchange != nullptr && exchange->forward.motion == Motion::all_reduce;
    };
    sum = static_cast<std::size_t>(std::ranges::find_if(stage().steps, adds_up) - stage().steps.begin());
  }
  Stage& stage() { return plan.stages.front(); }

  Graph graph = test::mlp({4, 12, 24, 5}, 8);
  Plan plan;
  std::size_t sum = 0;  // the step
};

// A segment that begins there keeps them and adds them up again before its backward: gradients are those without it,
// bit for bit.
TEST(Exchange, LeavesWhatASegmentKeeps) {
  SplitByRows split;
  ASSERT_LT(split.sum, split.stage().steps.size());
  const MeshGroups groups = MeshGroups::create(split.plan, ranks()).value();
  const auto gradients = [&] {
    const Stage& stage = split.stage();
    Replica replica = Replica::create(split.graph, stage, groups, 1).value();
    for (const LocalTensorId id : replica.inputs())
      if (replica[id].is_floating_point()) replica[id].copy_(counted(stage[id].shape).remainder(7) - 3);
    replica.forward().backward();
    std::map<std::string, at::Tensor> result;
    for (const LocalTensorId id : replica.parameters()) result[split.graph[stage[id].origin].name] = replica[id].grad();
    return result;
  };
  const std::map<std::string, at::Tensor> without = gradients();
  EXPECT_GT(without.at("fc3.weight").abs().max().item<double>(), 0.0) << "or this tests nothing";
  split.stage().recomputed = {Segment{split.sum, split.stage().steps.size() - 1}};
  for (const auto& [name, gradient] : gradients()) EXPECT_TRUE(at::equal(gradient, without.at(name))) << name;
}

// As is predicted (Footprint.SumsBesideWhatASegmentKeeps): one tensor more than where nothing runs again, and the sum
// is made where the summands lie.
TEST(Exchange, SumsBesideWhatASegmentKeeps) {
  SplitByRows split;
  ASSERT_LT(split.sum, split.stage().steps.size());
  aten::MemoryMeter::install();
  const MeshGroups groups = MeshGroups::create(split.plan, ranks()).value();
  const auto most_in_forward = [&] {
    Replica replica = Replica::create(split.graph, split.stage(), groups, 1).value();
    aten::MemoryMeter::reset_peak();
    const std::int64_t before = aten::MemoryMeter::live();
    const at::Tensor loss = replica.forward();
    return aten::MemoryMeter::peak() - before;
  };
  const std::int64_t in_place = most_in_forward();
  split.stage().recomputed = {Segment{split.sum, split.sum + 1}};
  const auto& exchange = std::get<Exchange>(split.stage().steps[split.sum]);
  EXPECT_EQ(most_in_forward() - in_place, 4 * element_count(split.stage()[exchange.output].shape));
}

// Megatron's f: nothing moves forward; backward sums, on every rank alike. A rank that has no gradient takes part.
TEST(Exchange, GradientsMeetWhereTheTensorWasWhole) {
  const Transfer none{}, sum{Motion::all_reduce, 0, 0, {}, {}, {}};
  const Exchange exchange{MeshAxis::tensor, {}, {}, none, sum};
  const at::Tensor x = counted({4}).requires_grad_();
  const at::Tensor y = run_exchange(exchange, x, ranks(), true);
  EXPECT_EQ(y.data_ptr(), x.data_ptr());
  (y * (ranks().rank() + 1)).sum().backward();
  const int p = ranks().size();
  EXPECT_TRUE(at::equal(x.grad(), at::full({4}, p * (p + 1) / 2.0F)));
}

}  // namespace
}  // namespace sibyl::trainer
