// The zoo's files against what is published about the models, and against ONNX's own checker and shape inference.
#include "models/zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/checker.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

namespace sibyl {
namespace {

using testing::HasSubstr;

// Counts: torchvision's model pages, and timm's results for Swin-L and the mixers (B by hand: 12 blocks of 2 * 2 * 768
// + 196 * 384 * 2 + 384 + 196 + 768 * 3072 * 2 + 3072 + 768 = 4876612, patches 590592, norm 1536, head 769000); BERT's
// and GPT-2's as Hugging Face's checkpoints have them; the small BERTs from Turc et al.'s list (4.4 M and 11.2 M);
// MLCommons's table for CosmoFlow. By hand: LeNet: (25+1)*6 + (25*6+1)*16 + (400+1)*120 + (120+1)*84 + (84+1)*10 = 156
// + 2416 + 48120 + 10164 + 850 = 61706. small-cnn: (9+1)*16 + (9*16+1)*32 + (32*16+1)*64 + (64+1)*10 = 160 + 4640 +
// 32832 + 650 = 38282; with batch-norm the
//   biases (48) become scales and shifts (96): 38330.
// GPT of Megatron-LM (Narayanan et al., SC21, table 1, to four digits), width e, l layers: (51200+2048)e + l(12e^2 +
// 13e) + 2e. gpt2-mini, width e = 256: (50257+1024)e + 4(12e^2 + 13e) + 2e = 13127936 + 3159040 + 512 = 16287488.
// Llama 3: as Meta's checkpoints on Hugging Face say (8,030,261,248 and 70,553,706,496), TinyLlama as its own does:
// width e = 2048, key
//   width 256, inner width 5632: 2 * 32000 e + 22(2e^2 + 2 * 256e + 3 * 5632e + 2e) + e = 1,100,048,384. llama-mini by
//   the same
// formula, width e
//   = 256, key width 64, inner width 704: 2 * 32000 e + 4(2e^2 + 2 * 64e + 3 * 704e + 2e) + e = 16384000 + 4 * 705024 +
//   256 = 19204352.
// 3D U-Net: "19069955 parameters in total" (Cicek et al., section 3): convolutions with bias, up-convolutions without,
//   batch-norm without scale and shift. MLPerf publishes none; its reference by hand, down, up, scales and shifts,
//   up-convolutions with bias, output: 27(1*32 + 32*32 + 32*64 + 64*64 + 64*128 + 128*128 + 128*256 + 256*256 + 256*320
//   + 3*320*320) + 27(640*320 + 320*320 + 512*256 + 256*256 + 256*128 + 128*128 + 128*64 + 64*64 + 64*32 + 32*32) +
//   4(32 + 64 + 128 + 256 + 320 + 320) + 4(320 + 256 + 128 + 64 + 32) + 8(320*320 + 320*256 + 256*128 + 128*64 + 64*32)
//   + (320 + 256 + 128 + 64 + 32) + 99 = 14018400 + 15344640 + 7680 + 1819424 + 99 = 31190243.
// ResNeXt-50 and -101 32x8d, EfficientNet: torchvision's pages. ResNeXt-101 32x4d: timm's results, and with gates of
//   channels (2 C^2/16 + C + C/16 a block): 44177704 + 3 * 8464 + 4 * 33312 + 23 * 132160 + 3 * 526464 = 48955416.
// ResNets: v1 moves a stride, which costs no parameter; tf_cnn_benchmarks leaves out the batch-norms of the four
// shortcuts,
//   2 * (256 + 512 + 1024 + 2048) = 7680. v2 of MXNet, stage by stage (three norms of the block's input, w and w; 1x1,
//   3x3, 1x1; the first block's shortcut): 3 + 9408 + 128 + (74112 + 2 * 70400) + (377856 + 3 * 280064) + (1509376 + 5
//   * 1117184) + (6033408 + 2 * 4462592) + 4096 + 2049000 = 25549483.
// AlexNet of tf_cnn_benchmarks: 364 * 64 + 1601 * 192 + 1729 * 384 + 3457 * 384 + 3457 * 256 + 9217 * 4096 + 4097 *
// 4096 +
//   4097 * 1000 = 61838248. Of MXNet (203 MB in its README): 364 * 96 + 2401 * 256 + 2305 * 384 + 3457 * 384 + 3457 *
//   256 + 6401 * 4096 + 4097 * 4096 + 4097 * 1000 = 50844008. Inception v3 without its auxiliary classifier: 3326696
//   fewer.
// SSD300: the backbones without last stage and classifier (25557032 - 14964736 - 2049000 = 8543296; 21797672 - 13114368
// -
//   513000 = 8170304); five blocks with batch-norm 1443328 + 1312256 + 361216 + 2 * 328448 = 3773696, with biases
//   1245952 + 1311488 + 360832 + 2 * 328064 = 3574400; heads of 85 numbers a box, (9 * C + 1) * 85 * boxes: on 1024,
//   512, 512, 256, 256, 256 channels with 4, 6, 6, 6, 4, 4 boxes 10577910, with 256 first 8227830.
// U-Net: 3 x 3 with bias, down 640 + 36928 + 73856 + 147584 + 295168 + 590080 + 1180160 + 2359808, bottom 4719616 +
// 9438208
//   + 4719104, up 4719104 + 2359808 + 1179904 + 1179904 + 590080 + 295040 + 295040 + 147584 + 73792, out 73792 + 36928
//   + 130 = 34512258. TinyUNet: 320 + 9248 + 2 * 9248 + 18496 + 36928 + 73856 + 147584, bottom 295168 + 590080 +
//   131200, up 295040 + 73792 + 16448 + 73792 + 18464 + 4128 + 18464 + 4624 + 1040, out 13856 + 9248 + 33 = 1850305.
// nnU-Net, 3 x 3 without bias and 2 C for each norm: down 9 * (4*32 + 32*32 + 32*64 + 64*64 + 64*128 + 128*128 +
// 128*256 +
//   256*256 + 256*512 + 3*512*512) + 4 * 1504 = 9435136, transposed 4 * (512*512 + 512*256 + 256*128 + 128*64 + 64*32)
//   + 992 = 1745888, up 9 * 3 * (512^2 + 256^2 + 128^2 + 64^2 + 32^2) + 4 * 992 = 9431936, out 132: 20613092. In 3-D it
//   is MLPerf's of 31190243 with 3 more channels (27 * 3 * 32) and one more class (33): 31192868; with an output of
//   3^3, as NVIDIA's for BraTS, 27 * 128 + 4 for 132: 31196196.
// InsightFace's ResNet-100: 65,156,160 by its authors' PyTorch model, of which 512 are a scale that is not trained, and
//   512 * 85742 of the classifier. Y1: 1920 + 768 + 18432 + 4 * 18432 + 53248 + 6 * 69632 + 139008 + 2 * 69632 + 67072
//   + 26112 + 262656 + 512 = 1200512 and the classifier.
// Qwen 2.5 (the cards of its models: 0.49 B, 7.61 B, 72.7 B), by hand: a layer has e^2 + e (q), 2 (e k + k) (k, v), e^2
// (o), 3 e f and 2 e, an embedding and a head V e each (0.5B: one for both) and a norm e. 0.5B: 24 * 14912384 + 151936
// * 896 + 896; 7B: 28 * 233057792 + 2 * 152064 * 3584 + 3584; 72B: 80 * 877684736 + 2 * 152064 * 8192 + 8192. T5: as
// its checkpoints have them; by hand, table V d, and with l layers of encoder and decoder l(4d^2 + 2d f + 2d) + l(8d^2
// + 2d f + 3d) + two tables of 32 heads and two norms of d: 12 * (2359296 + 4718592 + 1536) + 12 * (4718592 + 4718592 +
// 2304) + 32128 * 768 + 64 * 12 + 1536 = 222903552. Stable Diffusion 1.5's U-Net: what diffusers' documentation prints.
// DLRM on Criteo's terabyte: 187,767,399 rows in all (NVIDIA's HugeCTR says so, too) of 128, below 14 * 512 + 513 * 256
// + 257 * 128 = 171392, above 27 * 26 / 2 + 128 = 479 features: 480 * 1024 + 1025 * 1024 + 1025 * 512 + 513 * 256 + 257
// = 2197505. On Kaggle's: 33,762,577 rows of 16, 14 * 512 + 513 * 256 + 257 * 64 + 65 * 16 = 155984, 367 features: 368
// * 512 + 513 * 256 + 257 = 320001. dlrm-mini: 8 * 1000 * 16 + 14 * 64 + 65 * 16 + (9 * 8 / 2 + 16 + 1) * 32 + 33 =
// 131665. Mixtral
// 8x7B (46.7 B by its authors, the exact number from its checkpoint on Hugging Face), by hand: a layer has 2 e^2 + 2 e
// k (attention), 8 e (router), 8 * 3 e f and 2 e with e = 4096, k = 1024, f = 14336: 1451270144; 32 of them, 2 * 32000
// e and e. DeepSeekMoE 16B (16.4 B): e = 2048, attention 4 e^2, 64 e, 64 * 3 * 1408 e, 3 * 2816 e and 2 e are
// 587862016; 27 of them, one layer of 4 e^2 + 3 * 10944 e + 2 e, 2 * 102400 e and e. Mixtral 8x22B (141 B): as 8x7B
// with e = 6144, k = 1024, f = 16384: 2504060928; 56 of them. Qwen 3 (30.5 B and 235 B): queries are q wide, and a
// layer has 2 e q + 2 e k (attention), 2 * 128 (norms of heads), 128 e, 128 * 3 e f and 2 e. 30B: e = 2048, q = 4096, k
// = 512, f = 768: 623120640; 48 of them, 2 * 151936 e and e. 235B: e = 4096, q = 8192, k = 512, f = 1536: 2487755008;
// 94 of them. Mistral 7B (7.24 B): 2 e^2 + 2 e k + 3 e f + 2 e of e = 4096, k = 1024, f = 14336: 218112000; 32 of them,
// 2 * 32000 e and e. mixtral-mini: 4 * (163840 + 2048 + 8 * 3 * 352 * 256 + 512) + 2 * 32000 * 256 + 256 = 25700608.
const std::map<std::string, std::int64_t> published = {
    {"alexnet", 61100840},
    {"vgg11", 132863336},
    {"vgg16", 138357544},
    {"resnet18", 11689512},
    {"resnet34", 21797672},
    {"resnet50", 25557032},
    {"resnet101", 44549160},
    {"resnet152", 60192808},
    {"mobilenet-v2", 3504872},
    {"densenet121", 7978856},
    {"inception-v3", 27161264},
    {"squeezenet1.1", 1235496},
    {"vgg11-bn", 132868840},
    {"vgg13", 133047848},
    {"vgg13-bn", 133053736},
    {"vgg16-bn", 138365992},
    {"vgg19", 143667240},
    {"vgg19-bn", 143678248},
    {"wide-resnet50-2", 68883240},
    {"wide-resnet101-2", 126886696},
    {"resnext101-64x4d", 83455272},
    {"mobilenet-v3-small", 2542856},
    {"mobilenet-v3-large", 5483032},
    {"convnext-tiny", 28589128},
    {"convnext-small", 50223688},
    {"convnext-base", 88591464},
    {"convnext-large", 197767336},
    {"efficientnet-b1", 7794184},
    {"efficientnet-b2", 9109994},
    {"efficientnet-b3", 12233232},
    {"efficientnet-b5", 30389784},
    {"efficientnet-b6", 43040704},
    {"efficientnet-b7", 66347960},
    {"efficientnet-v2-s", 21458488},
    {"efficientnet-v2-m", 54139356},
    {"efficientnet-v2-l", 118515272},
    {"densenet161", 28681000},
    {"densenet169", 14149480},
    {"densenet201", 20013928},
    {"googlenet", 6624904},
    {"vit-b-32", 88224232},
    {"vit-l-16", 304326632},
    {"vit-l-32", 306535400},
    {"vit-h-14", 632045800},
    {"deit-small", 22050664},
    {"swin-tiny", 28288354},
    {"swin-small", 49606258},
    {"swin-base", 87768224},
    {"swin-large", 196532476},
    {"mixer-s-16", 18528264},
    {"mixer-b-16", 59880472},
    {"mixer-l-16", 208196168},
    {"vit-b-16", 86567656},
    {"deit-tiny", 5717416},
    {"bert-base", 109482240},
    {"bert-large", 335141888},
    {"bert-base-mlm", 109514298},
    {"bert-large-mlm", 335174458},
    {"bert-mini", 11170560},
    {"bert-tiny", 4385920},
    {"gpt2", 124439808},
    {"gpt2-medium", 354823168},
    {"gpt2-large", 774030080},
    {"gpt2-xl", 1557611200},
    {"gpt2-mini", 16287488},
    {"cosmoflow", 8907556},
    {"lenet", 61706},
    {"small-cnn", 38282},
    {"small-cnn-bn", 38330},
    {"gpt3-175b", 174615846912},
    {"mt-nlg-530b", 529600819200},
    {"gpt-1t", 1008038758400},
    {"resnext50-32x4d", 25028904},
    {"resnext101-32x8d", 88791336},
    {"alexnet-tf", 61838248},
    {"alexnet-mxnet", 50844008},
    {"resnet50-v1", 25557032},
    {"resnet50-v2", 25549483},
    {"resnet50-tf", 25549352},
    {"resnet152-tf", 60185128},
    {"resnext101-32x4d", 44177704},
    {"se-resnext101-32x4d", 48955416},
    {"efficientnet-b0", 5288548},
    {"efficientnet-b4", 19341616},
    {"inception-v3-no-aux", 23834568},
    {"unet3d-brats", 31196196},
    {"nnunet-2d", 20613092},
    {"nnunet-3d", 31192868},
    {"unet-medical", 34512258},
    {"unet-industrial-tiny", 1850305},
    {"ssd300-resnet34", 19972534},
    {"ssd300-resnet50", 22894902},
    {"insightface-r100", 109055552},
    {"insightface-y1", 45100416},
    {"llama3-8b", 8030261248},
    {"llama3-70b", 70553706496},
    {"tinyllama-1.1b", 1100048384},
    {"qwen2.5-0.5b", 494032768},
    {"qwen2.5-7b", 7615616512},
    {"qwen2.5-72b", 72706203648},
    {"llama-mini", 19204352},
    {"t5-small", 60506624},
    {"t5-base", 222903552},
    {"t5-large", 737668096},
    {"sd1.5-unet", 859520964},
    {"dlrm-terabyte", 24036595969},
    {"dlrm-kaggle", 540677217},
    {"dlrm-mini", 131665},
    {"mixtral-8x7b", 46702792704},
    {"deepseek-moe-16b", 16375728128},
    {"mistral-7b", 7241732096},
    {"mixtral-8x22b", 140620634112},
    {"qwen3-30b-a3b", 30532122624},
    {"qwen3-235b-a22b", 235093634560},
    {"mixtral-mini", 25700608},
    {"unet3d", 19069955},
    {"unet3d-mlperf", 31190243},
};

onnx::ModelProto parse(const std::string& name) {
  const Result<std::string> bytes = zoo_model_bytes(name);
  onnx::ModelProto model;
  EXPECT_TRUE(bytes.has_value() && model.ParseFromString(*bytes));
  return model;
}

std::int64_t elements(const onnx::TensorProto& tensor) {
  std::int64_t count = 1;
  for (const std::int64_t extent : tensor.dims()) count *= extent;
  return count;
}

bool is_external(const onnx::TensorProto& tensor) { return tensor.data_location() == onnx::TensorProto::EXTERNAL; }

std::string external_entry(const onnx::TensorProto& tensor, const std::string& key) {
  for (const auto& entry : tensor.external_data())
    if (entry.key() == key) return entry.value();
  return {};
}

// Running statistics are weights of the file and no parameters of the model.
std::set<std::string> running_statistics(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const auto& node : graph.node())
    if (node.op_type() == "BatchNormalization") names.insert({node.input(3), node.input(4)});
  return names;
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const ZooModel& model : zoo_models()) names.push_back(model.name);
  return names;
}

class EveryModel : public testing::TestWithParam<std::string> {};

TEST_P(EveryModel, HasThePublishedNumberOfParameters) {
  const onnx::ModelProto model = parse(GetParam());
  const std::set<std::string> statistics = running_statistics(model.graph());
  std::int64_t parameters = 0;
  for (const auto& tensor : model.graph().initializer())
    if (is_external(tensor) && !statistics.contains(tensor.name())) parameters += elements(tensor);
  ASSERT_TRUE(published.contains(GetParam())) << "add its published count to this test";
  EXPECT_EQ(parameters, published.at(GetParam()));
}

TEST_P(EveryModel, SaysThePublishedNumberInTheList) {
  for (const ZooModel& model : zoo_models())
    if (model.name == GetParam()) {
      EXPECT_EQ(model.parameters, published.at(GetParam()));
    }
}

TEST_P(EveryModel, LaysItsWeightsEndToEnd) {
  const onnx::ModelProto model = parse(GetParam());
  std::int64_t end = 0;
  for (const auto& tensor : model.graph().initializer()) {
    if (!is_external(tensor)) continue;
    EXPECT_EQ(external_entry(tensor, "location"), GetParam() + ".weights");
    EXPECT_EQ(external_entry(tensor, "offset"), std::to_string(end));
    EXPECT_EQ(external_entry(tensor, "length"), std::to_string(4 * elements(tensor)));
    end += 4 * elements(tensor);
  }
  EXPECT_GT(end, 0);
}

TEST_P(EveryModel, IsASmallFile) { EXPECT_LT(zoo_model_bytes(GetParam())->size(), 1'000'000U); }

// The checker wants the weights file to be there; a file with a hole of their size will do.
TEST_P(EveryModel, PassesTheOnnxChecker) {
  const auto folder = std::filesystem::temp_directory_path() / ("sibyl_zoo_" + std::to_string(getpid()) + GetParam());
  std::filesystem::create_directories(folder);
  const auto path = folder / "model.onnx";
  ASSERT_TRUE(write_zoo_model(GetParam(), path).has_value());
  std::uintmax_t bytes = 0;
  const onnx::ModelProto model = parse(GetParam());
  for (const auto& tensor : model.graph().initializer())
    if (is_external(tensor)) bytes += 4 * static_cast<std::uintmax_t>(elements(tensor));
  const auto weights = folder / (GetParam() + ".weights");
  std::ofstream(weights).close();
  std::filesystem::resize_file(weights, bytes);
  EXPECT_NO_THROW(onnx::checker::check_model(path.string()));
  std::filesystem::remove_all(folder);
}

// Binds the symbolic dimensions, as the importer does.
void bind(onnx::ModelProto& model, std::int64_t batch, std::int64_t seq) {
  auto& graph = *model.mutable_graph();
  for (auto* declared : {graph.mutable_input(), graph.mutable_value_info()})
    for (auto& value : *declared)
      for (auto& dim : *value.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        if (dim.has_dim_param()) dim.set_dim_value(dim.dim_param() == "batch" ? batch : seq);
  for (auto& output : *graph.mutable_output()) output.mutable_type()->mutable_tensor_type()->clear_shape();
}

std::vector<std::int64_t> shape_of(const onnx::ValueInfoProto& value) {
  std::vector<std::int64_t> shape;
  for (const auto& dim : value.type().tensor_type().shape().dim()) shape.push_back(dim.dim_value());
  return shape;
}

// What the file declares for its outputs, with the symbols replaced.
std::vector<std::int64_t> declared_shape(const onnx::ValueInfoProto& value, std::int64_t batch, std::int64_t seq) {
  std::vector<std::int64_t> shape;
  for (const auto& dim : value.type().tensor_type().shape().dim())
    shape.push_back(!dim.has_dim_param() ? dim.dim_value() : dim.dim_param() == "batch" ? batch : seq);
  return shape;
}

TEST_P(EveryModel, OutputsHaveTheDeclaredShapesByStrictInference) {
  const onnx::ModelProto declared = parse(GetParam());
  onnx::ModelProto model = declared;
  bind(model, 3, 24);
  const onnx::ShapeInferenceOptions options(/*check_type=*/true, /*strict_mode=*/1, /*data_prop=*/true);
  ASSERT_NO_THROW(onnx::shape_inference::InferShapes(model, onnx::OpSchemaRegistry::Instance(), options));
  ASSERT_GE(model.graph().output_size(), 1);
  for (int i = 0; i < model.graph().output_size(); ++i)
    EXPECT_EQ(shape_of(model.graph().output(i)), declared_shape(declared.graph().output(i), 3, 24));
}

INSTANTIATE_TEST_SUITE_P(Zoo, EveryModel, testing::ValuesIn(all_names()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name)
    if (c == '-' || c == '.') c = '_';
  return name;
});

TEST(Zoo, NamesItsModelsWhenAskedForAnother) {
  const auto bytes = zoo_model_bytes("resnet51");
  ASSERT_FALSE(bytes.has_value());
  EXPECT_THAT(bytes.error().message, HasSubstr("resnet51"));
  EXPECT_THAT(bytes.error().hint, HasSubstr("resnet34, resnet50"));
}

TEST(Zoo, SaysWhereItCouldNotWrite) {
  const auto written = write_zoo_model("lenet", "/nowhere/at/all/lenet.onnx");
  ASSERT_FALSE(written.has_value());
  EXPECT_EQ(written.error().where, "/nowhere/at/all/lenet.onnx");
}

TEST(Zoo, LanguageModelsSayTheirSequenceLength) {
  const onnx::ModelProto model = parse("gpt2");
  ASSERT_EQ(model.metadata_props_size(), 1);
  EXPECT_EQ(model.metadata_props(0).key(), "sibyl.dim.seq");
  EXPECT_EQ(model.metadata_props(0).value(), "1024");
}

// GPT-2's output weight is its embedding: one initializer, used by the Gather of the words and by the Transpose before
// the last MatMul.
TEST(Zoo, Gpt2TiesItsOutputToItsEmbedding) {
  const onnx::ModelProto model = parse("gpt2");
  std::multiset<std::string> users;
  for (const auto& node : model.graph().node())
    for (const auto& input : node.input())
      if (input == "wte.weight") users.insert(node.op_type());
  EXPECT_EQ(users, (std::multiset<std::string>{"Gather", "Transpose"}));
}

// The same bytes each time: a file can be compared and cached by its contents.
TEST(Zoo, IsDeterministic) { EXPECT_EQ(zoo_model_bytes("resnet50"), zoo_model_bytes("resnet50")); }

}  // namespace
}  // namespace sibyl
