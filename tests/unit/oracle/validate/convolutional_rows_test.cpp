// Which network, and which kernels of images, a published row of a convolutional network is taken for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "oracle/validate/published/image_kernels.h"
#include "oracle/validate/published/images.h"
#include "oracle/validate/published/models.h"

namespace sibyl::published {
namespace {

using testing::Contains;
using testing::HasSubstr;

Row row(std::string model, std::string cnn, std::string framework, std::string precision = "fp32") {
  Row r;
  r.model = std::move(model);
  r.framework = std::move(framework);
  r.precision = std::move(precision);
  if (!cnn.empty()) r.architecture.set("cnn", std::move(cnn));
  return r;
}

std::string name_of(const Row& r) {
  const auto recipe = convolutional_model(r);
  return !recipe ? "error" : !*recipe ? "none" : (*recipe)->name;
}

// The examples of frameworks have their own ResNets, AlexNets and Inceptions.
TEST(ConvolutionalRows, TakeTheNetworkAsTheFrameworkSpellsIt) {
  EXPECT_EQ(name_of(row("ResNet-50", "resnet-50", "TensorFlow tf_cnn_benchmarks")), "resnet50-tf");
  EXPECT_EQ(name_of(row("ResNet-50", "resnet-50", "MXNet")), "resnet50-v2");
  EXPECT_EQ(name_of(row("ResNet-50", "resnet50", "Chainer/ChainerMNX")), "resnet50-v1");
  EXPECT_EQ(name_of(row("ResNet-50 v1.5", "ResNet-50 v1.5", "MXNet (NGC 20.03, DALI, Horovod)")), "resnet50");
  EXPECT_EQ(name_of(row("Alexnet", "alexnet", "TensorFlow tf_cnn_benchmarks")), "alexnet-tf");
  EXPECT_EQ(name_of(row("AlexNet", "alexnet", "MXNet")), "alexnet-mxnet");
  EXPECT_EQ(name_of(row("Inception-v3", "inception-v3", "MXNet")), "inception-v3-no-aux");
  EXPECT_EQ(name_of(row("Inception-v3", "", "PyTorch 1.6 examples")), "inception-v3");
}

TEST(ConvolutionalRows, AreFoundByArchitectureAndByModel) {
  for (const auto& [cnn, name] :
       std::initializer_list<std::pair<const char*, const char*>>{{"resnet50_v1.5", "resnet50"},
                                                                  {"se-resnext101-32x4d", "se-resnext101-32x4d"},
                                                                  {"efficientnet-b4", "efficientnet-b4"},
                                                                  {"ssd300_resnet34", "ssd300-resnet34"},
                                                                  {"unet2d_572_388", "unet-medical"},
                                                                  {"unet_industrial", "unet-industrial-tiny"},
                                                                  {"unet3d_brats", "unet3d-brats"},
                                                                  {"unet3d_mlperf", "unet3d-mlperf"},
                                                                  {"nnunet_2d_brats", "nnunet-2d"},
                                                                  {"nnunet_3d_brats", "nnunet-3d"}})
    EXPECT_EQ(name_of(row("as in the report", cnn, "PyTorch NGC")), name);
  EXPECT_EQ(name_of(row("VGG16", "", "PyTorch")), "vgg16");
  EXPECT_EQ(name_of(row("BERT-base", "", "PyTorch")), "none");
}

TEST(ConvolutionalRows, TakeAnyNetworkOfTheZooOnImages) {
  EXPECT_EQ(name_of(row("DenseNet-121", "", "PyTorch")), "densenet121");
  EXPECT_EQ(name_of(row("MobileNet_v2", "", "PyTorch")), "mobilenet-v2");
  EXPECT_EQ(name_of(row("ViT-B/16", "", "PyTorch")), "vit-b-16");
  EXPECT_EQ(name_of(row("bert-tiny", "", "PyTorch")), "none");  // on tokens
  EXPECT_EQ(name_of(row("gpt2-mini", "", "PyTorch")), "none");
}

TEST(ImageExtents, AreReadAsSourcesWriteThem) {
  EXPECT_EQ(stated_extents("224"), (Ints{224}));
  EXPECT_EQ(stated_extents("3x226x226"), (Ints{3, 226, 226}));
  for (const char* text : {"", "224x", "x224", "0x224", "-3x224", "large", "224 x 224", "99999999999999999999", "70000"})
    EXPECT_EQ(stated_extents(text), Ints{}) << text;
  const Shape photo = {8, 3, 299, 299}, volume = {1, 4, 128, 128, 128};
  EXPECT_EQ(image_extents({224}, photo).value(), (Ints{224, 224}));
  EXPECT_EQ(image_extents({192, 160}, photo).value(), (Ints{192, 160}));
  EXPECT_EQ(image_extents({3, 192, 160}, photo).value(), (Ints{192, 160}));
  EXPECT_EQ(image_extents({64, 128, 128}, volume).value(), (Ints{64, 128, 128}));
  EXPECT_THAT(image_extents({1, 28, 28}, photo).error().message, HasSubstr("images of 1x28x28: the network takes 3x299x299"));
  EXPECT_THAT(image_extents({1, 3, 64, 128, 128}, volume).error().message, HasSubstr("takes 4x128x128x128"));
}

// InsightFace: the classifier has as many rows as the data; shared or sampled ones are refused with the reason.
TEST(ConvolutionalRows, OfFacesSayWhyTheyCannotBePriced) {
  Row r = row("InsightFace-R100", "ResNet-100 (IResNet)", "OneFlow 0.3.4");
  r.architecture.set("classes", 360232.0);
  r.architecture.set("fc_parallel", std::string("replicated"));
  EXPECT_EQ(name_of(r), "insightface-r100-360232");
  r.architecture.set("fc_parallel", std::string("class-sharded over all GPUs"));
  EXPECT_EQ(name_of(r), "insightface-r100-360232");  // one GPU shares nothing
  r.gpus = 8;
  ASSERT_FALSE(convolutional_model(r).has_value());
  EXPECT_THAT(convolutional_model(r).error().message, HasSubstr("split over the ranks"));
  r.architecture.set("partial_fc_ratio", 0.1);
  EXPECT_THAT(convolutional_model(r).error().message, HasSubstr("sampled"));
}

ImageKernels kernels_of(const std::string& framework, const std::string& precision, const std::string& notes = {},
                        const std::string& source = {}) {
  Row r = row("ResNet-50", "resnet50", framework, precision);
  r.notes = notes;
  r.source = source;
  return image_kernels_of(r);
}

TEST(ConvolutionalRows, KeepImagesAsTheFrameworkDoes) {
  EXPECT_FALSE(kernels_of("PyTorch NGC", "fp32").converted_images);
  EXPECT_TRUE(kernels_of("PyTorch NGC", "tf32").converted_images);
  EXPECT_TRUE(kernels_of("PyTorch NGC (DLE fork)", "tf32-or-fp32 (default: TF32 on Ampere+)").converted_images);
  EXPECT_FALSE(kernels_of("PyTorch NGC", "fp16-mixed(AMP)").converted_images);
  EXPECT_TRUE(kernels_of("PyTorch (NGC 20.03, DALI, APEX)", "amp-fp16").converted_images);
  // TensorFlow and MXNet, too: their scripts ask for channels last in f16 alone, or their compilers put them first.
  for (const char* framework : {"TensorFlow NGC", "TensorFlow2 NGC", "MxNet NGC"}) {
    EXPECT_TRUE(kernels_of(framework, "tf32").converted_images) << framework;
    EXPECT_TRUE(kernels_of(framework, "tf32", "TF32 + XLA column").converted_images) << framework;
    EXPECT_FALSE(kernels_of(framework, "fp16-mixed(AMP)").converted_images) << framework;
    EXPECT_FALSE(kernels_of(framework, "fp32").converted_images) << framework;
    EXPECT_THAT(kernels_of(framework, "fp16-mixed(AMP)").assumed, Contains("images lie channels last"));
  }
}

// DLPerf's configurations of TensorFlow 2.3 for several nodes turn cuDNN's persistent batch-norm off, which is of f16
// alone.
TEST(ConvolutionalRows, TransposeForNormsThatAreNotPersistent) {
  const auto converted = [](const std::string& framework, const std::string& precision, int gpus) {
    Row r = row("ResNet-50", "resnet50", framework, precision);
    r.source = "OneFlow-DLPerf";
    r.gpus = gpus;
    r.gpus_per_node = 8;
    return image_kernels_of(r).converted_norms;
  };
  EXPECT_TRUE(converted("TensorFlow 2.3 (MultiWorkerMirrored)", "amp-fp16", 16));
  EXPECT_FALSE(converted("TensorFlow 2.3 (MultiWorkerMirrored)", "amp-fp16", 8));
  EXPECT_FALSE(converted("TensorFlow 2.3 (MultiWorkerMirrored)", "fp32", 16));
  EXPECT_FALSE(converted("TensorFlow1 (NGC 20.03, DALI, Horovod)", "amp-fp16", 16));
}

TEST(ConvolutionalRows, FuseWhatTheFrameworkFuses) {
  EXPECT_TRUE(kernels_of("OneFlow 0.2", "amp-fp16").fused_norms);
  EXPECT_FALSE(kernels_of("OneFlow 0.2", "fp32").fused_norms);
  EXPECT_TRUE(kernels_of("MXNet 1.8.0", "fp16-mixed(AMP)", {}, "MLPerf-v1.0").fused_norms);
  EXPECT_TRUE(kernels_of("MXNet (NGC 20.03, DALI, Horovod)", "amp-fp16").fused_norms);
  EXPECT_FALSE(kernels_of("MXNet (NGC 20.03, DALI, Horovod)", "fp32").fused_norms);
  EXPECT_FALSE(kernels_of("MXNet", "fp16").fused_norms);  // who trains without NVIDIA's scripts
  EXPECT_TRUE(kernels_of("TensorFlow NGC", "tf32", "TF1 20.06; TF32 + XLA column").fused_norms);
  EXPECT_FALSE(kernels_of("TensorFlow NGC", "fp32", "TF1 20.06; FP32 column").fused_norms);
  EXPECT_FALSE(kernels_of("TensorFlow tf_cnn_benchmarks", "fp32", "AWS p2.8xlarge; synthetic data").fused_norms);
}

}  // namespace
}  // namespace sibyl::published
