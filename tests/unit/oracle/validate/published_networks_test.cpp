// Networks on images by the names that torchvision, timm and others give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/validate/published/models.h"

namespace sibyl::published {
namespace {

using testing::Contains;
using testing::HasSubstr;

Row named(const std::string& name) {
  Row row;
  row.model = name;
  return row;
}

TEST(PublishedNetworks, AreKnownByTheNamesOfTheirLibraries) {
  for (const auto& [name, zoo] : std::vector<std::pair<std::string, std::string>>{
           {"ResNet-50", "resnet50"},
           {"ResNet-50-v1.5", "resnet50"},
           {"resnet152", "resnet152"},
           {"wide_resnet50_2", "wide-resnet50-2"},
           {"vgg19_bn", "vgg19-bn"},
           {"densenet161", "densenet161"},
           {"mobilenetv2_100", "mobilenet-v2"},
           {"mobilenetv3_large_100", "mobilenet-v3-large"},
           {"mobilenet_v3_small", "mobilenet-v3-small"},
           {"efficientnet_b3", "efficientnet-b3"},
           {"efficientnet_v2_s", "efficientnet-v2-s"},
           {"convnext_tiny", "convnext-tiny"},
           {"swin_tiny_patch4_window7_224", "swin-tiny"},
           {"swin_b", "swin-base"},
           {"mixer_b16_224", "mixer-b-16"},
           {"inception_v1", "googlenet"},
       }) {
    const Result<ModelRecipe> recipe = model_of(named(name));
    ASSERT_TRUE(recipe) << name << ": " << recipe.error().message;
    EXPECT_EQ(recipe->name, zoo) << name;
    EXPECT_TRUE(recipe->images) << name;
  }
  EXPECT_FALSE(model_of(named("swin_tiny_patch4_window12_384"))) << "another window is another network";
  EXPECT_FALSE(model_of(named("convnext_tiny_100_bars")));
}

TEST(PublishedNetworks, AreTrainedAsTheyUsuallyAre) {
  EXPECT_EQ(model_of(named("resnet50"))->optimizer, OptimizerKind::momentum);
  EXPECT_EQ(model_of(named("convnext_base"))->optimizer, OptimizerKind::adamw);
  EXPECT_THAT(model_of(named("swin_t"))->assumed, Contains(HasSubstr("stochastic depth")));
  Row tensorflow = named("resnet50");
  tensorflow.framework = "TensorFlow tf_cnn_benchmarks";
  EXPECT_EQ(model_of(tensorflow)->name, "resnet50-tf");
  EXPECT_EQ(model_of(tensorflow)->optimizer, OptimizerKind::sgd);
}

}  // namespace
}  // namespace sibyl::published
