// A sequence that ranks share: what each of them computes, what attention makes them send, and which models it is not
// for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/onnx/import.h"
#include "models/zoo/families.h"
#include "models/zoo/zoo.h"
#include "oracle/plan/attention_cores.h"
#include "oracle/plan/context.h"
#include "oracle/plan/plan.h"
#include "oracle/predict.h"
#include "tests/support/clusters.h"
#include "tests/support/stages.h"
#include "tests/support/transformers.h"

namespace sibyl {
namespace {

using test::count;
using test::exchanges;
using test::local;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Graph graph_of(const std::function<void(zoo::Builder&)>& build, std::int64_t batch = 2) {
  zoo::Builder builder("model");
  build(builder);
  ImportOptions options;
  options.batch = batch;
  return inspect_onnx_bytes(builder.bytes(), "model", options)->graph;
}

// 2 layers of width 64, 4 heads of 16; 16 tokens; 50 words.
Graph small_gpt2(std::int64_t batch = 2) {
  return graph_of([](zoo::Builder& b) { zoo::gpt2(b, {2, 64, 4, 16, 16, 50}); }, batch);
}
Graph small_bert(zoo::BertHead head = zoo::BertHead::pooler, bool with_mask = false) {
  return graph_of([&](zoo::Builder& b) { zoo::bert(b, {2, 64, 4, 16, head, 0, 50, 16, 0, with_mask}); });
}
// 2 layers, 4 heads of queries, 2 of keys and values.
Graph small_llama() {
  return graph_of([](zoo::Builder& b) { zoo::llama(b, {2, 64, 4, 2, 128, 16, 50}); });
}

Result<Plan> try_plan(const Graph& graph, std::string_view parallel,
                      ContextExchange exchange = ContextExchange::automatic) {
  Strategy strategy;
  strategy.context_exchange = exchange;
  EXPECT_TRUE(parse_parallel(parallel, strategy).has_value());
  strategy.global_batch = graph.batch() * strategy.data;
  return make_plan(graph, strategy);
}

std::vector<std::string> context_exchanges(const Stage& stage) { return exchanges(stage, MeshAxis::context); }

// The signatures of all computations that are of one kind.
template <class Op>
std::vector<std::string> locals(const Stage& stage) {
  std::vector<std::string> result;
  for (const Step& step : stage.steps)
    if (const auto* compute = std::get_if<Compute>(&step); compute && std::holds_alternative<Op>(compute->attributes)) {
      Signature s = signature(stage, *compute);
      s.attributes = Copy{};
      result.push_back(to_string(s).substr(4));
    }
  return result;
}

const LocalTensor& source(const Graph& graph, const Stage& stage, std::string_view name) {
  for (const LocalTensor& tensor : stage.tensors)
    if (tensor.kind != TensorKind::activation && graph[tensor.origin].name == name) return tensor;
  ADD_FAILURE() << "no source " << name;
  return stage.tensors.front();
}

Error refusal(const Graph& graph, std::string_view parallel, ContextExchange exchange = ContextExchange::automatic) {
  const auto plan = try_plan(graph, parallel, exchange);
  EXPECT_FALSE(plan.has_value()) << parallel;
  const Error error = plan ? Error{} : plan.error();
  EXPECT_EQ(error.code, ErrorCode::infeasible) << parallel;
  return error;
}

const PartOf quarter_of_tokens = {MeshAxis::context, Layout::split(1)};

// 1024 tokens over 4 ranks are 256 each; 12 heads are 3. Of each of 12 layers q, k and v go to the heads and the result
// comes back: 4 all-to-alls, and as many backward. The loss is one all-reduce of a number.
TEST(Context, SharesTokensOfGpt2AndHeadsOfItsAttention) {
  ImportOptions options;
  options.batch = 2;
  const Graph graph = inspect_onnx_bytes(*zoo_model_bytes("gpt2"), "gpt2", options)->graph;
  const Plan plan = *try_plan(graph, "context=4");
  const Stage& stage = plan.stages[0];
  const std::vector<std::string> all = context_exchanges(stage);
  EXPECT_EQ(count(all, "all-to-all/all-to-all"), 12 * 4);
  EXPECT_EQ(count(all, "all-reduce/none"), 1);
  EXPECT_EQ(all.size(), 12U * 4 + 1);
  EXPECT_EQ(local(graph, stage, "h.5.ln_1"), "[2x256x768,768,768]->[2x256x768]:f32");
  EXPECT_EQ(local(graph, stage, "h.5.attn.c_attn"), "[2x256x768,768x2304,2304]->[2x256x2304]:f32");
  EXPECT_EQ(local(graph, stage, "h.5.mlp.c_fc"), "[2x256x768,768x3072,3072]->[2x256x3072]:f32");
  EXPECT_EQ(locals<Attention>(stage),
            std::vector<std::string>(12, "[2x3x1024x64,2x3x1024x64,2x3x1024x64]->[2x3x1024x64]:f32"));
  EXPECT_EQ(local(graph, stage, "loss"), "[2x256x50257,2x256]->[scalar]:f32");
  EXPECT_THAT(source(graph, stage, "input_ids").cuts, ElementsAre(quarter_of_tokens));
  EXPECT_THAT(source(graph, stage, "targets").cuts, ElementsAre(quarter_of_tokens));
  EXPECT_EQ(source(graph, stage, "wpe.weight").shape, (Shape{1024, 768})) << "tables are whole, places are looked up";
}

// A rank's q is 2 samples x 12 heads x 256 tokens x 64: 1.5 MiB, of which three quarters leave it. Four tensors in each
// of 12 layers, both ways. Gradients of all weights are summed over the ranks.
TEST(Context, BytesOfGpt2) {
  ImportOptions options;
  options.batch = 2;
  const Graph graph = inspect_onnx_bytes(*zoo_model_bytes("gpt2"), "gpt2", options)->graph;
  const Plan plan = *try_plan(graph, "context=4");
  const std::int64_t tensor = 2 * 12 * 256 * 64 * 4,
                     loss = bytes_sent(Collective::all_reduce, Algorithm::ring, 1, 4, 4, 1);
  const BytesSent sent = bytes_by_kind(plan, 1, Algorithm::ring);
  EXPECT_EQ(sent.exchanges, tensor * 3 / 4 * 4 * 2 * 12 + loss);
  EXPECT_EQ(sent.links + sent.parameters + sent.norms, 0);
  ASSERT_EQ(plan.stages[0].gradients.size(), 1U);
  EXPECT_THAT(plan.stages[0].gradients[0].axes, ElementsAre(MeshAxis::context));
  std::int64_t elements = 0, parameters = 0;
  for (const Bucket& bucket : plan.stages[0].gradients[0].buckets) elements += bucket.elements;
  for (const LocalTensor& t : plan.stages[0].tensors)
    if (t.kind == TensorKind::parameter) parameters += element_count(t.shape);
  EXPECT_EQ(elements, parameters);
  EXPECT_EQ(parameters, 124'439'808);
}

// The first token's state is wanted by all ranks alike: gathered once, behind the last attention. What reads it then is
// the same everywhere, and its weights have nothing to sum.
TEST(Context, BertGathersItsFirstToken) {
  const Graph graph = small_bert();
  const Stage stage = try_plan(graph, "context=2")->stages[0];
  const std::vector<std::string> all = context_exchanges(stage);
  EXPECT_EQ(count(all, "all-to-all/all-to-all"), 2 * 4);
  EXPECT_EQ(count(all, "all-gather/slice"), 1);
  EXPECT_EQ(all.size(), 9U);
  EXPECT_EQ(all.back(), "all-gather/slice");
  EXPECT_THAT(source(graph, stage, "pooler.dense.weight").summed_over, IsEmpty());
  EXPECT_THAT(source(graph, stage, "encoder.layer.1.output.dense.weight").summed_over, ElementsAre(MeshAxis::context));
}

// A mask of samples and keys is read whole by every rank's heads: it is an input, and nothing is sent for it.
TEST(Context, MasksOfSamplesAreWhole) {
  const Graph graph = small_bert(zoo::BertHead::masked_language_model, true);
  const Stage stage = try_plan(graph, "context=2")->stages[0];
  const std::vector<std::string> all = context_exchanges(stage);
  EXPECT_EQ(count(all, "all-to-all/all-to-all"), 2 * 4);
  EXPECT_EQ(count(all, "all-reduce/none"), 1);
  EXPECT_EQ(all.size(), 9U);
  EXPECT_THAT(source(graph, stage, "attention_mask").cuts, IsEmpty());
}

// Grouped queries: 4 heads look at 2 of keys and values, so a rank of two has 2 and 1. Rotary tables are cut to its
// places.
TEST(Context, GroupedQueriesShareTheirKeys) {
  const Graph graph = small_llama();
  const Stage stage = try_plan(graph, "context=2")->stages[0];
  EXPECT_EQ(locals<Attention>(stage), std::vector<std::string>(2, "[2x2x16x16,2x1x16x16,2x1x16x16]->[2x2x16x16]:f32"));
  EXPECT_EQ(count(context_exchanges(stage), "all-to-all/all-to-all"), 2 * 4);
  EXPECT_EQ(context_exchanges(stage).size(), 9U);
}

// 16 tokens, 4 heads (2 of keys and values) and more ranks than these: each keeps its queries and gathers keys and
// values, whose gradients are scattered. What it asks for outright it gets where heads could be shared, too.
TEST(Context, SharesKeysWhereHeadsCannotBe) {
  struct Asked {
    Graph graph;
    std::string_view parallel;
    ContextExchange exchange;
    std::string attention;
  };
  using enum ContextExchange;
  for (const Asked& asked :
       {Asked{small_gpt2(), "context=8", automatic, "[2x4x2x16,2x4x16x16,2x4x16x16]->[2x4x2x16]:f32"},
        Asked{small_gpt2(), "context=2", keys, "[2x4x8x16,2x4x16x16,2x4x16x16]->[2x4x8x16]:f32"},
        Asked{small_gpt2(), "context=4,tensor=2", automatic, "[2x2x4x16,2x2x16x16,2x2x16x16]->[2x2x4x16]:f32"},
        Asked{small_llama(), "context=4", automatic, "[2x4x4x16,2x2x16x16,2x2x16x16]->[2x4x4x16]:f32"}}) {
    const auto plan = try_plan(asked.graph, asked.parallel, asked.exchange);
    ASSERT_TRUE(plan) << asked.parallel << ": " << to_string(plan.error());
    const Stage& stage = plan->stages[0];
    EXPECT_EQ(locals<Attention>(stage), std::vector<std::string>(2, asked.attention));
    std::vector<std::string> all = context_exchanges(stage);
    std::erase(all, "slice/none");  // of targets that tensor's ranks count from their own first word: nothing is sent
    EXPECT_EQ(count(all, "all-gather/reduce-scatter"), 2 * 2);
    EXPECT_EQ(count(all, "all-reduce/none"), 1);
    EXPECT_EQ(all.size(), 5U) << asked.parallel << ": " << testing::PrintToString(all);
  }
}

// Of 2 samples a rank of 8 has 2 tokens: gathered, k is 2 x 16 x 64 f32, 8 KiB, and it sends 7/8 of that; so it does of
// the gradient. k and v in each of two layers.
TEST(Context, BytesOfKeys) {
  const Graph graph = small_gpt2();
  const Plan plan = *try_plan(graph, "context=8");
  std::int64_t around = 0;
  for (const Step& step : plan.stages[0].steps)
    if (const auto* exchange = std::get_if<Exchange>(&step); exchange && exchange->forward.motion == Motion::all_gather)
      for (const Pass pass : {Pass::forward, Pass::backward})
        around += bytes_sent(plan, plan.stages[0], *exchange, 0, pass, Algorithm::automatic);
  EXPECT_EQ(around, 2 * 2 * 2 * 8192 * 7 / 8);
}

// Taken apart: scores of a rank's own rows, of which the mask is cut as it is.
TEST(Context, KeysOfAttentionThatIsTakenApart) {
  const Graph graph = graph_of([](zoo::Builder& b) { test::apart(b); });
  const Stage stage = try_plan(graph, "context=2", ContextExchange::keys)->stages[0];
  EXPECT_EQ(locals<MatMul>(stage), std::vector<std::string>(4, "[2x4x8x16,2x4x16x16]->[2x4x8x16]:f32"));
  EXPECT_EQ(locals<Softmax>(stage), std::vector<std::string>(2, "[2x4x8x16]->[2x4x8x16]:f32"));
  EXPECT_EQ(count(context_exchanges(stage), "all-gather/reduce-scatter"), 2 * 2);
  EXPECT_EQ(count(context_exchanges(stage), "all-to-all/all-to-all"), 0);
}

// A rank keeps its part of keys and values, which goes round forward, and backward once more beside the sums of its
// gradients: of 2 samples, 2 heads of keys, 4 of 16 tokens and 16 features, 1 KiB a tensor and 3 KiB to three other
// ranks.
TEST(Context, KeysThatGoRound) {
  const Graph graph = small_llama();
  const Plan plan = *try_plan(graph, "context=4", ContextExchange::ring);
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(locals<Attention>(stage), std::vector<std::string>(2, "[2x4x4x16,2x2x4x16,2x2x4x16]->[2x4x4x16]:f32"));
  const std::vector<std::string> all = context_exchanges(stage);
  EXPECT_EQ(count(all, "pass round/sum round"), 2 * 2);
  EXPECT_EQ(count(all, "all-reduce/none"), 1);
  EXPECT_EQ(all.size(), 5U);
  for (const Step& step : stage.steps) {
    const auto* exchange = std::get_if<Exchange>(&step);
    if (exchange == nullptr || exchange->forward.motion != Motion::pass_round) continue;
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_EQ(bytes_sent(plan, stage, *exchange, rank, Pass::forward, Algorithm::automatic), 3 * 1024);
      EXPECT_EQ(bytes_sent(plan, stage, *exchange, rank, Pass::backward, Algorithm::automatic), 2 * 3 * 1024);
    }
  }
}

// Attention with a mask, or taken apart, gathers its keys instead, and that is said.
TEST(Context, GathersKeysThatCannotGoRound) {
  const Graph masked = small_bert(zoo::BertHead::masked_language_model, true);
  const Graph apart = graph_of([](zoo::Builder& b) { test::apart(b); });
  for (const Graph* graph : {&masked, &apart}) {
    const auto plan = try_plan(*graph, "context=2", ContextExchange::ring);
    ASSERT_TRUE(plan) << to_string(plan.error());
    EXPECT_EQ(count(context_exchanges(plan->stages[0]), "all-gather/reduce-scatter"), 2 * 2);
    EXPECT_EQ(count(context_exchanges(plan->stages[0]), "pass round/sum round"), 0);
    const std::optional<std::string> told = gathered_instead(*graph, *plan);
    ASSERT_TRUE(told);
    EXPECT_THAT(*told, HasSubstr(" and 1 more are gathered"));
    const auto prediction = predict(*graph, plan->strategy, test::cluster(2, 1));
    ASSERT_TRUE(prediction) << to_string(prediction.error());
    EXPECT_THAT(prediction->assumed, Contains(*told));
  }
}

TEST(Context, SaysNothingOfKeysThatGoRoundOrWereToBeGathered) {
  const Graph llama = small_llama(), apart = graph_of([](zoo::Builder&b) { test::apart(b); });
  EXPECT_FALSE(gathered_instead(llama, *try_plan(llama, "context=2", ContextExchange::ring)));
  EXPECT_FALSE(gathered_instead(apart, *try_plan(apart, "context=2", ContextExchange::keys)));
}

// Products, mask and softmax of their own: scores of half of the heads, with the causal mask whole, and half of the
// values.
TEST(Context, AttentionThatIsTakenApart) {
  for (const bool features : {false, true}) {
    const Graph graph = graph_of([&](zoo::Builder& b) { test::apart(b, {.features = features}); });
    const Stage stage = try_plan(graph, "context=2")->stages[0];
    EXPECT_EQ(locals<MatMul>(stage), std::vector<std::string>(4, "[2x2x16x16,2x2x16x16]->[2x2x16x16]:f32"));
    EXPECT_EQ(locals<Softmax>(stage), std::vector<std::string>(2, "[2x2x16x16]->[2x2x16x16]:f32"));
    EXPECT_EQ(count(context_exchanges(stage), "all-to-all/all-to-all"), 2 * 4);
    EXPECT_EQ(context_exchanges(stage).size(), 9U);
    EXPECT_EQ(local(graph, stage, "layer.1.norm"), "[2x8x64,64,64]->[2x8x64]:f32");
  }
}

TEST(Context, FindsTheCoresOfAttentionThatIsTakenApart) {
  const Graph graph = graph_of([](zoo::Builder& b) { test::apart(b); });
  const Stage stage = try_plan(graph, "data=1")->stages[0];
  std::vector<std::string> names;
  for (const AttentionCore& core : attention_cores(stage))
    for (const std::size_t step : {core.scores, core.mix})
      names.push_back(graph[std::get<Compute>(stage.steps[step]).operation].name);
  EXPECT_THAT(names, ElementsAre("layer.0.attention.scores", "layer.0.attention.mix", "layer.1.attention.scores",
                                 "layer.1.attention.mix"));
}

// Tensor's ranks have 2 of 4 heads each; context's share those. A weight is cut by tensor, its gradient summed over
// context.
TEST(Context, SharesTheHeadsThatTensorLeaves) {
  const Graph graph = small_gpt2();
  const Plan plan = *try_plan(graph, "context=2,tensor=2");
  const Stage& stage = plan.stages[0];
  EXPECT_EQ(locals<Attention>(stage), std::vector<std::string>(2, "[2x1x16x16,2x1x16x16,2x1x16x16]->[2x1x16x16]:f32"));
  const LocalTensor& joint = source(graph, stage, "h.1.attn.c_attn.weight");
  EXPECT_THAT(joint.cuts, ElementsAre(PartOf{MeshAxis::tensor, Layout::split(1, {64, 64, 64})}));
  EXPECT_THAT(joint.summed_over, ElementsAre(MeshAxis::context));
  EXPECT_EQ(plan.mesh.group(0, MeshAxis::tensor), (std::vector<int>{0, 1})) << "tensor's ranks are nearest";
  EXPECT_EQ(plan.mesh.group(0, MeshAxis::context), (std::vector<int>{0, 2}));
  EXPECT_EQ(exchanges(stage, MeshAxis::tensor), exchanges(try_plan(graph, "tensor=2")->stages[0], MeshAxis::tensor));
}

// One head of two samples: each of two ranks has it of one.
TEST(Context, SharesSamplesWhereARankHasOneHead) {
  const Stage stage = try_plan(small_gpt2(), "context=2,tensor=4")->stages[0];
  EXPECT_EQ(locals<Attention>(stage), std::vector<std::string>(2, "[1x1x16x16,1x1x16x16,1x1x16x16]->[1x1x16x16]:f32"));
  EXPECT_EQ(count(context_exchanges(stage), "all-to-all/all-to-all"), 2 * 4);
}

// Between weights tensor's ranks split the tokens that a rank of context has: 4 of 8 of 16. Nothing else is sent than
// by either alone: context's ranks never put the sequence together.
TEST(Context, TensorSplitsTheSequenceWithin) {
  const Graph graph = small_gpt2();
  const Stage stage = try_plan(graph, "context=2,sequence=2")->stages[0];
  EXPECT_EQ(local(graph, stage, "h.1.ln_1"), "[2x4x64,64,64]->[2x4x64]:f32");
  EXPECT_EQ(exchanges(stage, MeshAxis::tensor), exchanges(try_plan(graph, "sequence=2")->stages[0], MeshAxis::tensor));
  EXPECT_EQ(count(context_exchanges(stage), "all-to-all/all-to-all"), 2 * 4);
  EXPECT_EQ(count(context_exchanges(stage), "all-gather/slice"), 0);
  EXPECT_EQ(count(context_exchanges(stage), "all-gather/reduce-scatter"), 0);
}

// 16 tokens in 2 pieces, each shared by the ranks of another axis: one of two ranks has one piece, and there it is one.
TEST(Context, PiecesOfASequenceAreItsParts) {
  const Transfer gather{Motion::all_gather, 1, 0, {8, 8}, {}, {}};
  EXPECT_TRUE(in_equal_pieces(gather, 1, 2));
  EXPECT_FALSE(in_equal_pieces(gather, 1, 4));
  EXPECT_FALSE(in_equal_pieces({Motion::all_gather, 1, 0, {8, 4}, {}, {}}, 1, 2));
  EXPECT_EQ(within_part(gather, 1, 2), (Transfer{Motion::all_gather, 1, 0, {}, {}, {}}));
  const Transfer of_four{Motion::slice, 1, 0, {4, 4, 4, 4}, {}, {}};
  EXPECT_EQ(within_part(of_four, 1, 2).pieces, (Ints{4, 4}));
}

TEST(Context, SaysWhatCannotBeDivided) {
  const Graph gpt2 = small_gpt2();  // 16 tokens, 4 heads
  Error error = refusal(gpt2, "context=3");
  EXPECT_EQ(error.message, "'input_ids' is a sequence of 16 tokens, which 3 ranks of context= cannot share evenly");
  EXPECT_THAT(error.hint, HasSubstr("context=2 or context=4"));
  EXPECT_THAT(refusal(gpt2, "context=32", ContextExchange::keys).hint, HasSubstr("context=16"));
  constexpr auto heads = ContextExchange::heads;
  error = refusal(gpt2, "context=8", heads);
  EXPECT_THAT(error.message, testing::MatchesRegex("attention '.+' has 4 heads, which 8 ranks of context= cannot share "
                                                   "evenly"));
  EXPECT_THAT(error.hint, HasSubstr("keys, which need no heads; the nearest that can: context=4"));
  error = refusal(small_gpt2(1), "context=2,tensor=4", heads);
  EXPECT_THAT(error.message, HasSubstr("1 head on a rank, which 2 ranks"));
  EXPECT_THAT(error.hint, testing::Not(HasSubstr("nearest")));
  error = refusal(small_llama(), "context=4", heads);
  EXPECT_THAT(error.message, HasSubstr("2 heads of keys and values, which 4 ranks"));
  EXPECT_THAT(error.hint, HasSubstr("context=2"));
  const Graph images = graph_of([](zoo::Builder& b) { zoo::lenet(b); });
  EXPECT_THAT(refusal(images, "context=2").message, HasSubstr("no sequence"));
}

// A layer over the sequence stands before the next attention; behind the last one it may.
TEST(Context, OnlyAttentionMixesPositions) {
  const auto mixing = [](std::int64_t layers) {
    return graph_of([&](zoo::Builder& b) { test::apart(b, {.layers = layers, .mixes_tokens = true}); });
  };
  EXPECT_THAT(refusal(mixing(2), "context=2").message, HasSubstr("layer.0.mixer' wants all "));
  const auto last = try_plan(mixing(1), "context=2");
  ASSERT_TRUE(last.has_value()) << to_string(last.error());
  EXPECT_EQ(count(context_exchanges(last->stages[0]), "all-to-all/all-to-all"), 4);
}

#ifdef SIBYL_EXPORTED_MODELS
// Files that torch.onnx wrote, of two layers: masks in buffers or from inputs, one product for q, k and v or three, heads in a
// dimension of their own or with the samples, tables of places or rotary ones.
TEST(Context, FindsTheSequenceInExportedFiles) {
  for (const std::string name : {"gpt_o11_train_b1", "gpt_o17_train_b8", "encoder_o13_train_b1", "encoder_o17_train_b4",
                                 "llama_o17_train_dynamic", "llama_pairs_o11_eval_b1", "padded_o9_train_b1",
                                 "padded_o13_train_b2"}) {
    ImportOptions options;
    options.batch = 4;
    const auto imported = inspect_onnx(std::string(SIBYL_EXPORTED_MODELS) + "/" + name + ".onnx", options);
    ASSERT_TRUE(imported) << name;
    const auto plan = try_plan(imported->graph, "context=2");
    ASSERT_TRUE(plan) << name << ": " << to_string(plan.error());
    std::vector<std::string> all = context_exchanges(plan->stages[0]);
    std::erase(all, "slice/none");  // of masks and rotary tables: nothing is sent
    EXPECT_EQ(count(all, "all-to-all/all-to-all"), 2 * 4) << name;
    EXPECT_EQ(all.size(), 9U) << name << " sends more than its attention and its loss or first token want: "
                              << testing::PrintToString(all);
  }
}
#endif

TEST(Context, IsSaidAndPrinted) {
  Strategy s;
  ASSERT_TRUE(parse_parallel("context=4,tensor=2,data=3", s).has_value());
  EXPECT_EQ(s.devices(), 24);
  EXPECT_EQ(parallel_text(s), "data=3,tensor=2,context=4");
  Strategy other = s;
  other.context = 2;
  EXPECT_NE(program_key(s), program_key(other));
  other = s;
  other.context_exchange = ContextExchange::keys;
  EXPECT_NE(program_key(s), program_key(other));
}

}  // namespace
}  // namespace sibyl
