// Experts dealt out over ranks: what each rank holds and sends, what it keeps, and what cannot be dealt out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "models/onnx/import.h"
#include "models/zoo/families.h"
#include "models/zoo/zoo.h"
#include "oracle/cost/price.h"
#include "oracle/predict.h"
#include "oracle/report/inspection.h"
#include "tests/support/clusters.h"

namespace sibyl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t layers = 4, width = 256, experts = 8, hidden = 352, tokens = 128;  // of mixtral-mini

const Graph& mixtral(std::int64_t batch = 4) {
  static std::map<std::int64_t, Graph> graphs;
  if (const auto known = graphs.find(batch); known != graphs.end()) return known->second;
  ImportOptions options;
  options.batch = batch;
  return graphs[batch] = inspect_onnx_bytes(*zoo_model_bytes("mixtral-mini"), "mixtral-mini", options)->graph;
}

Strategy strategy_of(std::string_view parallel, std::int64_t batch = 4) {
  Strategy strategy;
  EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
  strategy.global_batch = batch;
  return strategy;
}

Plan plan_of(const Strategy& strategy) {
  const auto plan = make_plan(mixtral(strategy.global_batch), strategy);
  EXPECT_TRUE(plan.has_value()) << (plan ? "" : to_string(plan.error()));
  return plan ? *plan : Plan{{}, {}, 1, {Stage{}}, {}};
}

Plan plan_of(std::string_view parallel) { return plan_of(strategy_of(parallel)); }

const LocalTensor& parameter(const Stage& stage, std::string_view name) {
  for (const LocalTensor& tensor : stage.tensors)
    if (tensor.kind == TensorKind::parameter && mixtral()[tensor.origin].name == name) return tensor;
  ADD_FAILURE() << "no parameter " << name;
  return stage.tensors.front();
}

std::vector<const Exchange*> exchanges(const Stage& stage) {
  std::vector<const Exchange*> result;
  for (const Step& step : stage.steps)
    if (const auto* exchange = std::get_if<Exchange>(&step)) result.push_back(exchange);
  return result;
}

// 4 samples of 128 tokens, 2 experts a token: 512 x 2 / 8 = 128 slots for each of 8 experts. A rank's own 2 samples
// fill 64 of each; then it has all 128 of 4 experts. The loss is the mean of the ranks'.
TEST(ExpertParallel, TokensTravelToTheirExpertsAndBack) {
  const Plan plan = plan_of("expert=2");
  const Stage& stage = plan.stages[0];
  const auto sent = exchanges(stage);
  ASSERT_EQ(sent.size(), 2 * layers + 1);
  for (std::size_t i = 0; i < 2 * layers; ++i) {
    EXPECT_EQ(sent[i]->forward.motion, Motion::all_to_all);
    EXPECT_EQ(sent[i]->backward.motion, Motion::all_to_all);
    const bool there = i % 2 == 0;
    EXPECT_EQ(stage[sent[i]->input].shape, (there ? Shape{8, 64, width} : Shape{4, 128, width}));
    EXPECT_EQ(stage[sent[i]->output].shape, (there ? Shape{4, 128, width} : Shape{8, 64, width}));
  }
  EXPECT_EQ(sent.back()->forward.motion, Motion::all_reduce);
  EXPECT_EQ(sent.back()->backward.motion, Motion::none);
  EXPECT_EQ(parameter(stage, "layers.0.mlp.experts.gate_proj.weight").shape, (Shape{4, hidden, width}));
  EXPECT_EQ(parameter(stage, "layers.0.mlp.gate.weight").shape, (Shape{width, 8}));
  for (const LocalTensor& tensor : stage.tensors)
    if (tensor.kind == TensorKind::input) {
      EXPECT_EQ(tensor.shape, (Shape{2, tokens}));
    }
}

// In each layer, though no rank splits tensors, four all-to-alls of a rank's slots, of which half stays; a loss of 4
// bytes.
TEST(ExpertParallel, BytesOfATrip) {
  const BytesSent sent = bytes_by_kind(plan_of("expert=2"), 0, Algorithm::ring);
  EXPECT_EQ(sent.exchanges, layers * 4 * (8 * 64 * width * 4) / 2 + 4);
  // Of what is no expert's weight the sum is taken: a ring of two sends each element once there and once back, halved.
  const std::int64_t others = mixtral().parameter_count() - layers * experts * 3 * hidden * width;
  EXPECT_EQ(sent.gradients, others * 4);
}

// Experts' gradients meet those of other replicas alone, everything else those of all ranks.
TEST(ExpertParallel, GradientsAreSummedWhereTheyBelong) {
  const Stage stage = plan_of("data=2,expert=2").stages[0];
  ASSERT_EQ(stage.gradients.size(), 2U);
  for (const GradientSync& sync : stage.gradients) {
    const bool all = sync.axes == std::vector{MeshAxis::expert, MeshAxis::data};
    if (!all) {
      EXPECT_THAT(sync.axes, ElementsAre(MeshAxis::data));
    }
    std::int64_t elements = 0;
    for (const Bucket& bucket : sync.buckets) elements += bucket.elements;
    const std::int64_t of_experts = layers * 3 * experts / 2 * hidden * width;
    EXPECT_EQ(elements, all ? mixtral().parameter_count() - 2 * of_experts : of_experts);
  }
  EXPECT_EQ(plan_of("expert=2").stages[0].gradients.size(), 1U) << "experts have nobody to meet";
}

TEST(ExpertParallel, TensorRanksCutEachExpert) {
  const Stage stage = plan_of("tensor=2,expert=2").stages[0];
  EXPECT_EQ(parameter(stage, "layers.0.mlp.experts.gate_proj.weight").shape, (Shape{4, hidden / 2, width}));
  EXPECT_EQ(parameter(stage, "layers.0.mlp.experts.down_proj.weight").shape, (Shape{4, width, hidden / 2}));
  EXPECT_EQ(parameter(stage, "layers.0.self_attn.q_proj.weight").shape, (Shape{width, width / 2}));
  // Alone, tensor ranks have all experts, and two sums a layer.
  const Stage alone = plan_of("tensor=2").stages[0];
  EXPECT_EQ(parameter(alone, "layers.0.mlp.experts.gate_proj.weight").shape, (Shape{8, hidden / 2, width}));
}

std::vector<const Compute*> dispatches(const Stage& stage) {
  std::vector<const Compute*> result;
  for (const Step& step : stage.steps)
    if (const auto* compute = std::get_if<Compute>(&step);
        compute && std::holds_alternative<Dispatch>(compute->attributes))
      result.push_back(compute);
  return result;
}

// Two ranks share each of 4 sequences of 128 tokens: a rank's 64 of a sequence are a group by themselves, with 16 of
// its 32 slots of each expert. Nothing travels for it: only attention's four tensors a layer do, and the loss.
TEST(ExpertParallel, TokensOfASharedSequenceChooseByThemselves) {
  const Stage stage = plan_of("context=2").stages[0];
  const auto groups = dispatches(stage);
  ASSERT_EQ(groups.size(), static_cast<std::size_t>(layers));
  for (const Compute* compute : groups) {
    EXPECT_EQ(std::get<Dispatch>(compute->attributes), (Dispatch{64, 16}));
    EXPECT_EQ(stage[compute->inputs[0]].shape, (Shape{4 * 64, width}));
    EXPECT_EQ(stage[compute->outputs[0]].shape, (Shape{8, 4 * 16, width}));
  }
  EXPECT_EQ(exchanges(stage).size(), 4 * layers + 1);
  EXPECT_EQ(parameter(stage, "layers.0.mlp.experts.gate_proj.weight").shape, (Shape{8, hidden, width}));
  EXPECT_EQ(dispatches(plan_of("context=2,data=4").stages[0]).front()->attributes, Attributes(Dispatch{64, 16}))
      << "of one sequence as of several";
}

// Where experts are dealt out, too, a rank's slots travel: 2 sequences' 16 of 8 experts, and 4 sequences' of 4.
TEST(ExpertParallel, SlotsOfSharedSequencesTravel) {
  const Stage stage = plan_of("context=2,expert=2").stages[0];
  std::size_t trips = 0;
  for (const Exchange* exchange : exchanges(stage)) {
    if (exchange->axis != MeshAxis::expert || exchange->forward.motion != Motion::all_to_all) continue;
    const bool there = trips++ % 2 == 0;
    EXPECT_EQ(stage[exchange->input].shape, (there ? Shape{8, 32, width} : Shape{4, 64, width}));
    EXPECT_EQ(stage[exchange->output].shape, (there ? Shape{4, 64, width} : Shape{8, 32, width}));
  }
  EXPECT_EQ(trips, static_cast<std::size_t>(2 * layers));
}

// Along one axis, by layer: attention's and the experts'.
std::vector<const Exchange*> along(const Stage& stage, MeshAxis axis, Motion motion) {
  std::vector<const Exchange*> result;
  for (const Exchange* exchange : exchanges(stage))
    if (exchange->axis == axis && exchange->forward.motion == motion) result.push_back(exchange);
  return result;
}

// As in Megatron-LM ranks that share sequences between weights dispatch their own 64 of each 128 tokens, to 16 of 32
// slots, gather all slots for their part of every expert, and scatter its sums. Routers are whole, and so chosen by.
TEST(ExpertParallel, RanksOfSplitSequencesDispatchTheirOwn) {
  const Stage stage = plan_of("sequence=2").stages[0];
  const auto groups = dispatches(stage);
  ASSERT_EQ(groups.size(), static_cast<std::size_t>(layers));
  for (const Compute* compute : groups) {
    EXPECT_EQ(std::get<Dispatch>(compute->attributes), (Dispatch{64, 16}));
    EXPECT_EQ(stage[compute->outputs[0]].shape, (Shape{8, 4 * 16, width}));
  }
  EXPECT_EQ(parameter(stage, "layers.0.mlp.gate.weight").shape, (Shape{width, 8}));
  EXPECT_THAT(parameter(stage, "layers.0.mlp.gate.weight").summed_over, ElementsAre(MeshAxis::tensor));
  std::size_t gathered = 0, scattered = 0;
  for (const Exchange* exchange : along(stage, MeshAxis::tensor, Motion::all_gather))
    if (stage[exchange->input].shape == Shape{8, 64, width}) {
      ++gathered;
      EXPECT_EQ(stage[exchange->output].shape, (Shape{8, 128, width}));
      EXPECT_EQ(exchange->forward.pieces, Ints(4, 32)) << "of each sample's slots a part";
      EXPECT_EQ(exchange->backward.motion, Motion::reduce_scatter);
    }
  for (const Exchange* exchange : along(stage, MeshAxis::tensor, Motion::reduce_scatter))
    scattered += stage[exchange->output].shape == Shape{8, 64, width} ? 1 : 0;
  EXPECT_EQ(gathered, static_cast<std::size_t>(layers));
  EXPECT_EQ(scattered, static_cast<std::size_t>(layers));
}

// With experts dealt out a rank's slots travel before they are gathered: of 2 samples 2 x 16, then of all 4.
TEST(ExpertParallel, SlotsOfSplitSequencesTravelBeforeTheyAreGathered) {
  const Stage stage = plan_of("sequence=2,expert=2").stages[0];
  const auto trips = along(stage, MeshAxis::expert, Motion::all_to_all);
  ASSERT_EQ(trips.size(), static_cast<std::size_t>(2 * layers));
  EXPECT_EQ(stage[trips[0]->input].shape, (Shape{8, 32, width}));
  EXPECT_EQ(stage[trips[0]->output].shape, (Shape{4, 64, width}));
  EXPECT_EQ(stage[trips[1]->input].shape, (Shape{4, 64, width}));
  const auto gathers = along(stage, MeshAxis::tensor, Motion::all_gather);
  EXPECT_TRUE(std::ranges::any_of(gathers, [&](const Exchange* exchange) {
    return exchange->input == trips[0]->output && stage[exchange->output].shape == Shape{4, 128, width};
  }));
}

// Ranks of context have 64 tokens of each sequence, of which those of tensor have 32 each between weights.
TEST(ExpertParallel, SplitSequencesMayBeSharedAsWell) {
  for (const auto& [parallel, samples] :
       {std::pair("sequence=2,context=2", 4), std::pair("sequence=2,context=2,expert=2", 2)}) {
    const Stage stage = plan_of(parallel).stages[0];
    const auto groups = dispatches(stage);
    ASSERT_EQ(groups.size(), static_cast<std::size_t>(layers)) << parallel;
    EXPECT_EQ(std::get<Dispatch>(groups[0]->attributes), (Dispatch{32, 8}));
    EXPECT_EQ(stage[groups[0]->outputs[0]].shape, (Shape{8, samples * 8, width}));
    const Shape slots = {samples == 4 ? 8 : 4, 64, width};
    std::int64_t gathered = 0;
    for (const Exchange* exchange : along(stage, MeshAxis::tensor, Motion::all_gather))
      gathered += stage[exchange->output].shape == slots ? 1 : 0;
    EXPECT_EQ(gathered, layers) << parallel;
    for (const Exchange* exchange : along(stage, MeshAxis::context, Motion::all_gather))
      EXPECT_EQ(stage[exchange->output].shape.size(), 4U) << "of keys and values alone, " << parallel;
  }
}

// Two ranks of tensor have four experts each, whole, as those of expert= would; with both, two each. Slots of split
// sequences travel to them once more, 4 x 16 (of two sequences 2 x 16, then of four) becoming 4 x 32; where every rank
// dispatches all tokens it takes the slots of its experts, and results are gathered.
TEST(ExpertParallel, WholeExpertsAreDealtOutOverTensorRanks) {
  const auto whole = [](std::string_view parallel) {
    Strategy strategy = strategy_of(parallel);
    strategy.whole_experts = true;
    return plan_of(strategy).stages[0];
  };
  Stage stage = whole("sequence=2");
  const LocalTensor& weight = parameter(stage, "layers.0.mlp.experts.gate_proj.weight");
  EXPECT_EQ(weight.shape, (Shape{4, hidden, width}));
  EXPECT_TRUE(weight.summed_over.empty());
  auto trips = along(stage, MeshAxis::tensor, Motion::all_to_all);
  ASSERT_EQ(trips.size(), static_cast<std::size_t>(2 * layers));
  EXPECT_EQ(stage[trips[0]->input].shape, (Shape{8, 64, width}));
  EXPECT_EQ(stage[trips[0]->output].shape, (Shape{4, 128, width}));
  EXPECT_EQ(stage[trips[1]->output].shape, (Shape{8, 64, width}));

  stage = whole("sequence=2,expert=2");
  EXPECT_EQ(parameter(stage, "layers.0.mlp.experts.gate_proj.weight").shape, (Shape{2, hidden, width}));
  trips = along(stage, MeshAxis::tensor, Motion::all_to_all);
  ASSERT_EQ(trips.size(), static_cast<std::size_t>(2 * layers));
  EXPECT_EQ(stage[trips[0]->input].shape, (Shape{4, 64, width}));
  EXPECT_EQ(stage[trips[0]->output].shape, (Shape{2, 128, width}));

  stage = whole("tensor=2");
  EXPECT_TRUE(along(stage, MeshAxis::tensor, Motion::all_to_all).empty());
  EXPECT_EQ(std::get<Dispatch>(dispatches(stage)[0]->attributes), (Dispatch{tokens, 32}));
  EXPECT_EQ(std::ranges::count_if(exchanges(stage),
                                  [&](const Exchange* exchange) {
                                    return exchange->forward.motion == Motion::all_gather &&
                                           stage[exchange->output].shape == Shape{8, 128, width};
                                  }),
            layers);

  Strategy strategy = strategy_of("tensor=2,expert=8", 8);
  strategy.whole_experts = true;
  const auto plan = make_plan(mixtral(8), strategy);
  ASSERT_FALSE(plan.has_value());
  EXPECT_THAT(plan.error().message, HasSubstr("16 ranks of tensor= and expert="));
}

// Where slots cannot be shared tokens are gathered, and every rank dispatches all: 128 x 2 / 8 x 1.03 are 33 slots.
TEST(ExpertParallel, SlotsThatCannotBeSplitAreDispatchedByAll) {
  ImportOptions options;
  options.batch = 4;
  options.capacity_factor = 1.03;
  const Graph graph = inspect_onnx_bytes(*zoo_model_bytes("mixtral-mini"), "mixtral-mini", options)->graph;
  const Stage stage = make_plan(graph, strategy_of("sequence=2")).value().stages[0];
  EXPECT_EQ(std::get<Dispatch>(dispatches(stage)[0]->attributes), (Dispatch{128, 33}));
}

// 32 slots cannot be shared by 64 ranks, though 128 tokens can.
TEST(ExpertParallel, SlotsThatCannotBeSharedKeepASequenceTogether) {
  const auto plan = make_plan(mixtral(), strategy_of("context=64"));
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::infeasible);
  EXPECT_THAT(plan.error().message, HasSubstr("wants all 128 tokens"));
}

// ZeRO shares among all who hold the same: of experts replicas, of the rest expert ranks, too.
TEST(ExpertParallel, ZeroSharesAmongThoseWhoHoldTheSame) {
  Strategy strategy = strategy_of("data=2,expert=2");
  strategy.zero = 1;
  Stage stage = plan_of(strategy).stages[0];
  ASSERT_EQ(stage.gradients.size(), 2U);
  for (const GradientSync& sync : stage.gradients) EXPECT_EQ(sync.parts, sync.axes.size() == 1 ? 2 : 4);
  strategy = strategy_of("expert=2");
  strategy.zero = 3;
  stage = plan_of(strategy).stages[0];
  ASSERT_EQ(stage.gradients.size(), 1U);
  EXPECT_EQ(stage.gradients[0].parts, 2);
  EXPECT_FALSE(stage.units.empty());
}

TEST(ExpertParallel, SaysWhatCannotBeDealtOut) {
  const auto refused = [](const Graph& graph, const Strategy& strategy) {
    const auto plan = make_plan(graph, strategy);
    EXPECT_FALSE(plan.has_value());
    return plan ? Error{} : plan.error();
  };
  const Error three = refused(mixtral(), strategy_of("expert=3", 6));
  EXPECT_EQ(three.code, ErrorCode::infeasible);
  EXPECT_THAT(three.message, HasSubstr("8 experts cannot be dealt out evenly to 3 ranks"));
  EXPECT_THAT(three.hint, HasSubstr("expert=2 or expert=4"));
  EXPECT_THAT(refused(mixtral(), strategy_of("expert=16", 16)).hint, testing::EndsWith("expert=8"));
  const Error few = refused(mixtral(), strategy_of("data=2,expert=2", 6));
  EXPECT_THAT(few.message, HasSubstr("6 cannot be divided over 2 replicas of 2 ranks"));
  EXPECT_THAT(few.hint, HasSubstr("4 or 8"));
  ImportOptions options;
  options.batch = 4;
  const Graph dense = inspect_onnx_bytes(*zoo_model_bytes("llama-mini"), "llama-mini", options)->graph;
  EXPECT_THAT(refused(dense, strategy_of("expert=2")).message, HasSubstr("no experts"));
  Strategy without_slots = strategy_of("data=2");
  without_slots.dropless = true;
  EXPECT_EQ(refused(dense, without_slots).where, "--dropless");
}

TEST(ExpertParallel, ProgramsOfOtherDegreesAreOthers) {
  EXPECT_NE(program_key(strategy_of("expert=2")), program_key(strategy_of("expert=4")));
  EXPECT_EQ(program_key(strategy_of("expert=2")), program_key(strategy_of("data=2,expert=2", 8)));
}

// Each trip costs what the network says of an all-to-all of the slots between ranks on nodes of their own.
TEST(ExpertParallel, TripsArePricedAsAllToAlls) {
  const Plan plan = plan_of("expert=2");
  const Cluster cluster = test::cluster(2, 1);
  const PricedStage priced = price(plan, plan.stages[0], cluster);
  const Seconds each =
      cluster.network.collective(Collective::all_to_all, Bytes{8.0 * 64 * width * 4}, {1, 2, 1}).time.time;
  int trips = 0;
  for (std::size_t i = 0; i < plan.stages[0].steps.size(); ++i) {
    const auto* exchange = std::get_if<Exchange>(&plan.stages[0].steps[i]);
    if (!exchange || exchange->forward.motion != Motion::all_to_all) continue;
    EXPECT_EQ(priced.exchanges[i].forward->time.time, each);
    EXPECT_EQ(priced.exchanges[i].backward->time.time, each);
    ++trips;
  }
  EXPECT_EQ(trips, 2 * layers);
  EXPECT_GT(each.value(), 0);
}

// Twice the slots, half of which are empty. Of 64 slots of each expert, twice as many, 64 tokens are sent, of which the
// busiest rank gets twice its share: half of what it has room for comes from each rank.
TEST(ExpertParallel, WithoutSlotsTripsAreUnevenAllToAlls) {
  ImportOptions options;
  options.batch = 4;
  options.capacity_factor = 2;
  const Graph twice = inspect_onnx_bytes(*zoo_model_bytes("mixtral-mini"), "mixtral-mini", options)->graph;
  Strategy strategy = strategy_of("expert=4");
  const Cluster cluster = test::cluster(4, 1);
  const auto first_trip = [&](const Plan& plan) {
    const PricedStage priced = price(plan, plan.stages[0], cluster);
    const auto trip =
        std::ranges::find_if(priced.exchanges, [](const PricedExchange& it) { return it.forward.has_value(); });
    EXPECT_EQ(trip->forward->time.time, trip->backward->time.time);
    return trip->forward->time.time;
  };
  const Bytes even{8.0 * 32 * width * 4};
  const Plan with_slots = *make_plan(twice, strategy);
  EXPECT_EQ(first_trip(with_slots), cluster.network.collective(Collective::all_to_all, 2 * even, {1, 4, 1}).time.time);
  strategy.dropless = true;
  const Plan without = *make_plan(twice, strategy);
  EXPECT_EQ(first_trip(without), cluster.network.uneven_all_to_all(even, {1, 4, 1}, 2.0).time.time);
  const auto sends = [](const Plan& plan) { return bytes_by_kind(plan, 0, Algorithm::ring).exchanges; };
  // Beside the trips the mean of the loss is sent, a number each way of a ring of four.
  EXPECT_NEAR(static_cast<double>(sends(without)) / static_cast<double>(sends(with_slots)), 0.5, 1e-4);
  // Where no slot is empty nothing is uneven.
  EXPECT_EQ(first_trip(plan_of(strategy)),
            cluster.network.collective(Collective::all_to_all, even, {1, 4, 1}).time.time);
}

TEST(ExpertParallel, IsLimitedByTheNumberOfExperts) {
  const auto prediction = predict(mixtral(), strategy_of("expert=4"), test::cluster(4, 1));
  ASSERT_TRUE(prediction.has_value()) << to_string(prediction.error());
  const auto found = std::ranges::find(prediction->limits, "number of experts", &Limit::name);
  ASSERT_NE(found, prediction->limits.end());
  EXPECT_EQ(found->value, 8);
  EXPECT_DOUBLE_EQ(found->share, 0.5);
}

// T = 2 x 6 tokens of width 8, 3 of 4 experts each, F = 5; a group of 6 tokens has ceil(6 * 3 / 4 * 1.5) = 7, at most 6
// slots an expert: R = 4 * 2 * 6 = 48 rows of slots.
constexpr double rows = 48, f32 = 4, i64 = 8;

Inspection small_mixture(double factor) {
  zoo::Builder b("mixture");
  const zoo::Value input = b.input("x", {zoo::batch_extent, 6, 8}), before = b.parameter("before", {8, 8});
  const zoo::Value x = b.apply("MatMul", {}, {input, before}, input.shape);
  const zoo::Value gate = b.parameter("gate", {8, 4});
  const zoo::Value scores = b.apply("MatMul", {}, {x, gate}, {zoo::batch_extent, 6, 4});
  const zoo::Value flat = b.apply("Reshape", {}, {scores, b.ints({-1, 4})}, {zoo::batch_extent, 4});
  const zoo::Value first = b.parameter("fc1", {4, 5, 8}), none, second = b.parameter("fc2", {4, 8, 5});
  const zoo::Value third = b.parameter("fc3", {4, 5, 8});
  b.output(b.apply("com.microsoft:MoE", "moe", {x, flat, first, none, second, none, third}, x.shape,
                   {{"k", std::int64_t{3}},
                    {"activation_type", std::string("silu")},
                    {"normalize_routing_weights", std::int64_t{1}}}));
  ImportOptions options;
  options.batch = 2;
  options.capacity_factor = factor;
  options.loss = LossKind::mean_squared_error;
  return inspect(*inspect_onnx_bytes(b.bytes(), "mixture", options), "mixture", DType::f32, Backend::cuda);
}

double kept_by(const Inspection& of, std::string_view kind) {
  return std::accumulate(
      of.operations.begin(), of.operations.end(), 0.0,
      [&](double sum, const InspectedOperation& row) { return sum + (row.kind == kind ? row.kept.value() : 0); });
}

TEST(ExpertMemory, OfALayerByHand) {
  const Inspection of = small_mixture(1.5);
  EXPECT_EQ(kept_by(of, "linear"), 2 * 12 * 8 * f32);  // the operands of the router and of the layer before
  EXPECT_EQ(kept_by(of, "softmax"), 12 * 4 * f32);     // its result
  // What was chosen: for backward of the choice its numbers, of the division its numerators.
  EXPECT_EQ(kept_by(of, "top_k"), 12 * 3 * i64 + 12 * 3 * f32);
  EXPECT_EQ(kept_by(of, "reduce"), 12 * f32);  // the division's denominators
  // The slots, which two layers read; of each slot its token; of each choice its place, for the way back.
  EXPECT_EQ(kept_by(of, "dispatch"), rows * 8 * f32 + rows * i64 + 12 * 3 * i64);
  // Of the first and third layer what the gate reads; of the last what is combined.
  EXPECT_EQ(kept_by(of, "grouped_linear"), 2 * rows * 5 * f32 + rows * 8 * f32);
  EXPECT_EQ(kept_by(of, "unary"), rows * 5 * f32);  // silu's result, for the product
  // The product, for the last layer; the weights, to combine with.
  EXPECT_EQ(kept_by(of, "binary"), rows * 5 * f32 + 12 * 3 * f32);
}

// Whoever comes, memory follows the slots.
TEST(ExpertMemory, FollowsTheCapacityFactor) {
  const double even = kept_by(small_mixture(1.0), "grouped_linear"),
               most = kept_by(small_mixture(1.5), "grouped_linear");
  EXPECT_DOUBLE_EQ(even / most, 5.0 / 6.0);  // ceil(4.5) and 6 slots
}

}  // namespace
}  // namespace sibyl
