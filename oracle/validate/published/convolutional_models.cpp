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
  OptimizerKind optimizer = OptimizerKind::momentum;
  std::string_view assumed = {};
  void (*build)(zoo::Builder&) = nullptr;  // where the source's differs from the zoo's
};

constexpr std::string_view squeeze_note =
    "gates are squeezed by 16, as in the paper; NVIDIA's PyTorch code squeezes to 16 channels, in hardly other time";
constexpr std::string_view detection_note =
    "the loss is a cross-entropy over coordinates and scores together, without mining of hard negatives";
constexpr std::string_view rmsprop_note = "RMSProp with momentum updates like Adam, with as much state";
// tf.contrib.layers.instance_norm: tf.nn.moments casts f16 to f32, and TensorFlow's mixed precision leaves Mean there.
constexpr std::string_view moments_note = "instance norms in f32, as TensorFlow's moments are";
constexpr std::string_view depth_note = "without stochastic depth";

using enum OptimizerKind;
constexpr auto entries = std::to_array<Entry>({
    {"resnet50v15", "resnet50"},
    {"resnet50v1", "resnet50-v1"},
    {"resnet50v2", "resnet50-v2"},
    {"resnet50tf", "resnet50-tf", sgd},
    {"resnet152tf", "resnet152-tf", sgd},
    {"wrn502", "wide-resnet50-2"},
    {"wrn1012", "wide-resnet101-2"},
    {"seresnext10132x4d", "se-resnext101-32x4d", momentum, squeeze_note},
    {"efficientnetb0", "efficientnet-b0", adam, rmsprop_note},
    {"efficientnetb4", "efficientnet-b4", adam, depth_note},
    {"vgg16tf", "vgg16", sgd},
    {"alexnettf", "alexnet-tf", sgd},
    {"alexnetmxnet", "alexnet-mxnet"},
    {"inceptionv1", "googlenet"},
    {"inceptionv3tf", "inception-v3-no-aux", sgd},
    {"inceptionv3mxnet", "inception-v3-no-aux"},
    {"mobilenetv3", "mobilenet-v3-large"},
    {"ssd300resnet50", "ssd300-resnet50", momentum, detection_note},
    {"ssd300resnet34", "ssd300-resnet34", momentum, detection_note},
    {"unet2d572388", "unet-medical", adam},
    {"unetindustrial", "unet-industrial-tiny", adam, rmsprop_note},
    {"unet3dbrats", "unet3d-brats", adam, moments_note,
     [](zoo::Builder& b) {
       zoo::nnunet(b, {.patch = {128, 128, 128}, .output_kernel = 3, .norms_in_full = true});
     }},
    {"nnunet2dbrats", "nnunet-2d", adam, "without deep supervision, as the benchmark's script"},
    {"nnunet3dbrats", "nnunet-3d", adam, "without deep supervision, as the benchmark's script"},
    {"swint", "swin-tiny", adamw, depth_note},
    {"swins", "swin-small", adamw, depth_note},
    {"swinb", "swin-base", adamw, depth_note},
});

// Families that are usually trained with AdamW, and with stochastic depth.
constexpr auto modern = std::to_array<std::string_view>({"swin-", "convnext-", "mixer-"});

// As timm and its checkpoints spell a network, with the images' extent, a window or a multiplier of one at the end.
std::string without_suffix(std::string name) {
  for (const std::string_view end : {"224", "patch4window7", "100"})
    if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

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

ModelRecipe recipe_of(const Entry& entry) {
  ModelRecipe recipe{.name = std::string(entry.zoo),
                     .build = entry.build ? entry.build : zoo::find_build(std::string(entry.zoo))};
  recipe.optimizer = entry.optimizer;
  if (!entry.assumed.empty()) recipe.assumed.emplace_back(entry.assumed);
  return recipe;
}

// A network of the zoo on images, under its own name.
std::optional<ModelRecipe> zoo_recipe(const std::string& name) {
  for (const ZooModel& model : zoo_models()) {
    if (normalized(model.name) != name) continue;
    const zoo::Build build = zoo::find_build(model.name);
    zoo::Builder builder(model.name);
    build(builder);
    if (!builder.takes_images()) return std::nullopt;
    for (const std::string_view family : modern)
      if (model.name.starts_with(family)) return recipe_of({{}, model.name, OptimizerKind::adamw, depth_note});
    return recipe_of({{}, model.name});
  }
  return std::nullopt;
}

std::optional<ModelRecipe> named_recipe(const std::string& name) {
  for (const Entry& entry : entries)
    if (name == entry.name) return recipe_of(entry);
  return zoo_recipe(name);
}

}  // namespace

Result<std::optional<ModelRecipe>> convolutional_model(const Row& row) {
  const std::string model = normalized(row.model);
  const std::string named = row.architecture.text("cnn");
  std::optional<ModelRecipe> recipe;
  if (model.starts_with("insightface")) {
    SIBYL_TRY(recipe, face_model(row, model == "insightfacey1"));
  } else {
    const std::string name = spelled(named.empty() ? model : normalized(named), row);
    recipe = named_recipe(name);
    if (!recipe) recipe = named_recipe(without_suffix(name));
  }
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
