// Convolutional networks: by the name in arch_params ("cnn") or else the row's own, and where frameworks spell a
// network differently, by the framework.
#include <fmt/format.h>

#include <array>

#include "models/zoo/families.h"
#include "models/zoo/zoo.h"
#include "oracle/validate/published/image_kernels.h"
#include "oracle/validate/published/models.h"

namespace sibyl::published {
namespace {

struct Entry {
  std::string_view name;  // normalized
  std::string_view zoo;
  void (*build)(zoo::Builder&);
  OptimizerKind optimizer = OptimizerKind::momentum;
  std::string_view assumed = {};
};

constexpr std::string_view squeeze_note =
    "gates are squeezed by 16, as in the paper; NVIDIA's PyTorch code squeezes to 16 channels, in hardly other time";
constexpr std::string_view detection_note =
    "the loss is a cross-entropy over coordinates and scores together, without mining of hard negatives";
constexpr std::string_view rmsprop_note = "RMSProp with momentum updates like Adam, with as much state";
// tf.contrib.layers.instance_norm: tf.nn.moments casts f16 to f32, and TensorFlow's mixed precision leaves Mean there.
constexpr std::string_view moments_note = "instance norms in f32, as TensorFlow's moments are";
constexpr std::string_view depth_note = "without stochastic depth";

// clang-format off
constexpr auto entries = std::to_array<Entry>({
    {"resnet50", "resnet50", [](zoo::Builder& b) { zoo::resnet(b, {{3, 4, 6, 3}}); }},
    {"resnet50v15", "resnet50", [](zoo::Builder& b) { zoo::resnet(b, {{3, 4, 6, 3}}); }},
    {"resnet50v1", "resnet50-v1",
     [](zoo::Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .stride_first = true}); }},
    {"resnet50v2", "resnet50-v2",
     [](zoo::Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .preactivated = true}); }},
    {"resnet50tf", "resnet50-tf",
     [](zoo::Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .stride_first = true, .normalized_shortcut = false}); },
     OptimizerKind::sgd},
    {"resnet152tf", "resnet152-tf",
     [](zoo::Builder& b) { zoo::resnet(b, {.blocks = {3, 8, 36, 3}, .stride_first = true, .normalized_shortcut = false}); },
     OptimizerKind::sgd},
    {"resnet101", "resnet101", [](zoo::Builder& b) { zoo::resnet(b, {{3, 4, 23, 3}}); }},
    {"resnet152", "resnet152", [](zoo::Builder& b) { zoo::resnet(b, {{3, 8, 36, 3}}); }},
    {"resnext10132x4d", "resnext101-32x4d",
     [](zoo::Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 23, 3}, .groups = 32, .width = 4}); }},
    {"seresnext10132x4d", "se-resnext101-32x4d",
     [](zoo::Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 23, 3}, .groups = 32, .width = 4, .squeeze = 16}); },
     OptimizerKind::momentum, squeeze_note},
    {"efficientnetb0", "efficientnet-b0", [](zoo::Builder& b) { zoo::efficientnet(b, {}); },
     OptimizerKind::adam, rmsprop_note},
    {"efficientnetb4", "efficientnet-b4",
     [](zoo::Builder& b) { zoo::efficientnet(b, {.width = 1.4, .depth = 1.8, .image = 380, .dropout = 0.4}); },
     OptimizerKind::adam, depth_note},
    {"vgg16", "vgg16", [](zoo::Builder& b) { zoo::vgg(b, {{2, 2, 3, 3, 3}}); }},
    {"vgg16tf", "vgg16", [](zoo::Builder& b) { zoo::vgg(b, {{2, 2, 3, 3, 3}}); }, OptimizerKind::sgd},
    {"alexnet", "alexnet", zoo::alexnet},
    {"alexnettf", "alexnet-tf", zoo::alexnet_tf, OptimizerKind::sgd},
    {"alexnetmxnet", "alexnet-mxnet", zoo::alexnet_mxnet},
    {"inceptionv3", "inception-v3", [](zoo::Builder& b) { zoo::inception_v3(b); }},
    {"inceptionv3tf", "inception-v3-no-aux", [](zoo::Builder& b) { zoo::inception_v3(b, false); }, OptimizerKind::sgd},
    {"inceptionv3mxnet", "inception-v3-no-aux", [](zoo::Builder& b) { zoo::inception_v3(b, false); }},
    {"ssd300resnet50", "ssd300-resnet50", [](zoo::Builder& b) { zoo::ssd300(b, {{.blocks = {3, 4, 6}}, true}); },
     OptimizerKind::momentum, detection_note},
    {"ssd300resnet34", "ssd300-resnet34",
     [](zoo::Builder& b) { zoo::ssd300(b, {{.blocks = {3, 4, 6}, .bottleneck = false}, false}); },
     OptimizerKind::momentum, detection_note},
    {"unet2d572388", "unet-medical", zoo::unet_medical, OptimizerKind::adam},
    {"unetindustrial", "unet-industrial-tiny", zoo::unet_industrial_tiny, OptimizerKind::adam, rmsprop_note},
    {"unet3dbrats", "unet3d-brats",
     [](zoo::Builder& b) { zoo::nnunet(b, {.patch = {128, 128, 128}, .output_kernel = 3, .norms_in_full = true}); },
     OptimizerKind::adam, moments_note},
    {"unet3dmlperf", "unet3d-mlperf", zoo::unet3d_mlperf},
    {"nnunet2dbrats", "nnunet-2d", [](zoo::Builder& b) { zoo::nnunet(b, {.patch = {192, 160}, .most_channels = 512}); },
     OptimizerKind::adam, "without deep supervision, as the benchmark's script"},
    {"nnunet3dbrats", "nnunet-3d", [](zoo::Builder& b) { zoo::nnunet(b, {.patch = {128, 128, 128}}); },
     OptimizerKind::adam, "without deep supervision, as the benchmark's script"},
});
// clang-format on

// Networks that a framework's examples spell in their own way.
std::string spelled(const std::string& name, const Row& row) {
  const std::string framework = normalized(row.framework);
  if (framework.find("tfcnnbenchmarks") != std::string::npos)
    for (const std::string_view tensorflow : {"resnet50", "resnet152", "vgg16", "alexnet", "inceptionv3"})
      if (name == tensorflow) return name + "tf";
  if (framework == "mxnet") {
    if (name == "resnet50") return "resnet50v2";
    if (name == "alexnet" || name == "inceptionv3") return name + "mxnet";
  }
  if (framework.find("chainer") != std::string::npos && name == "resnet50") return "resnet50v1";
  return name;
}

// A classifier of as many rows as the data has people. Where ranks share its rows and not the rest of the network, or a
// step takes a part of the rows, no strategy says so.
Result<ModelRecipe> face_model(const Row& row, bool mobile) {
  const std::int64_t classes = row.architecture.integer("classes").value_or(85742);
  const std::string shared = lower_case(row.architecture.text("fc_parallel"));
  if (row.architecture.number("partial_fc_ratio").value_or(1.0) != 1.0)
    return fail("a step trains a sampled part of the classifier, which no operation here does");
  if (shared.find("shard") != std::string::npos && row.gpus > 1)
    return fail("the classifier is split over the ranks that the rest is replicated on, which no strategy here does");
  const auto build = [mobile, classes](zoo::Builder& b) {
    mobile ? zoo::insightface_y1(b, classes) : zoo::insightface_r100(b, classes);
  };
  ModelRecipe recipe{.name = fmt::format("insightface-{}-{}", mobile ? "y1" : "r100", classes), .build = build};
  recipe.optimizer = OptimizerKind::momentum;
  recipe.assumed.emplace_back("the classifier is a plain product, its rows and embeddings not normalised");
  return recipe;
}

Result<std::optional<ModelRecipe>> recipe_of(const Row& row) {
  const std::string named = row.architecture.text("cnn");
  const std::string model = normalized(row.model);
  if (model.starts_with("insightface")) {
    SIBYL_TRY(ModelRecipe recipe, face_model(row, model == "insightfacey1"));
    return std::optional(std::move(recipe));
  }
  const std::string name = spelled(normalized(named.empty() ? row.model : named), row);
  for (const Entry& entry : entries) {
    if (name != entry.name) continue;
    ModelRecipe recipe{.name = std::string(entry.zoo), .build = entry.build};
    recipe.optimizer = entry.optimizer;
    if (!entry.assumed.empty()) recipe.assumed.emplace_back(entry.assumed);
    return std::optional(std::move(recipe));
  }
  return std::nullopt;
}

// Any other network of the zoo on images, under its own name.
std::optional<ModelRecipe> zoo_recipe(const Row& row) {
  const std::string named = row.architecture.text("cnn");
  const std::string name = normalized(named.empty() ? row.model : named);
  for (const ZooModel& model : zoo_models()) {
    if (normalized(model.name) != name) continue;
    const zoo::Build build = zoo::find_build(model.name);
    zoo::Builder builder(model.name);
    build(builder);
    if (builder.takes_images()) return ModelRecipe{.name = model.name, .build = build};
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<ModelRecipe>> convolutional_model(const Row& row) {
  SIBYL_TRY(std::optional<ModelRecipe> recipe, recipe_of(row));
  if (!recipe) recipe = zoo_recipe(row);
  if (!recipe) return recipe;
  recipe->images = true;
  const ImageKernels kernels = image_kernels_of(row);
  recipe->fused_norms = kernels.fused_norms;
  recipe->converted_images = kernels.converted_images;
  recipe->converted_norms = kernels.converted_norms;
  recipe->assumed.insert(recipe->assumed.end(), kernels.assumed.begin(), kernels.assumed.end());
  return recipe;
}

}  // namespace sibyl::published
