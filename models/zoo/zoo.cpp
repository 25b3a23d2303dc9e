#include "models/zoo/zoo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>

#include "models/zoo/families.h"

namespace sibyl {

namespace {

struct Entry {
  ZooModel model;
  zoo::Build build;
};

// Trained on sequences of 4,096 tokens.
zoo::LlamaOptions qwen(zoo::LlamaOptions options, std::int64_t vocabulary, bool tied) {
  options.seq = 4096;
  options.vocabulary = vocabulary;
  options.rotary_base = 1e6;
  options.epsilon = 1e-6;
  options.biases = true;
  options.tied = tied;
  return options;
}

// Categories of Criteo's clicks: the terabyte, cut at 40 million each as MLPerf does, and Kaggle's challenge.
const Ints criteo_terabyte = {39884406, 39043,    17289,    7420,     20263,  3,     7120, 1543, 63,
                              38532951, 2953546,  403346,   10,       2208,   11938, 155,  4,    976,
                              14,       39979771, 25641295, 39664984, 585935, 12972, 108,  36};
const Ints criteo_kaggle = {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                            93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                            2173,  4,    7046547,  18,      15,  286181, 105,     142572};

// Eight experts, two of them for a token; sequences of 4,096 tokens.
zoo::LlamaOptions mixtral(zoo::LlamaOptions options) {
  options.seq = 4096;
  options.vocabulary = 32000;
  options.rotary_base = 1e6;
  options.experts = {.count = 8, .chosen = 2, .width = options.ffn_width};
  return options;
}

// Eight of 128 experts for a token; heads of 128, whatever the width.
zoo::LlamaOptions qwen3_of_experts(zoo::LlamaOptions options, std::int64_t expert_width) {
  options = qwen(options, 151936, false);
  options.biases = false;
  options.head_width = 128;
  options.head_norms = true;
  options.experts = {.count = 128, .chosen = 8, .width = expert_width};
  return options;
}

// Attention with as many keys as queries; two shared experts, which are one of twice the width.
zoo::LlamaOptions deepseek_moe() {
  zoo::LlamaOptions options{28, 2048, 16, 16, 10944, 4096, 102400, 10000};
  options.epsilon = 1e-6;
  options.experts = {
      .count = 64, .chosen = 6, .width = 1408, .normalized = false, .shared_width = 2816, .dense_layers = 1};
  return options;
}

// clang-format off
const std::vector<Entry>& entries() {
  using zoo::Builder;
  using enum zoo::BertHead;
  static const std::vector<Entry> table = {
    {{"alexnet", "AlexNet, one tower, torchvision", 61'100'840}, zoo::alexnet},
    {{"alexnet-tf", "AlexNet of tf_cnn_benchmarks", 61'838'248}, zoo::alexnet_tf},
    {{"alexnet-mxnet", "AlexNet of MXNet's examples", 50'844'008}, zoo::alexnet_mxnet},
    {{"vgg11", "VGG-11, torchvision", 132'863'336}, [](Builder& b) { zoo::vgg(b, {{1, 1, 2, 2, 2}}); }},
    {{"vgg11-bn", "VGG-11 with batch-norm, torchvision", 132'868'840},
     [](Builder& b) { zoo::vgg(b, {{1, 1, 2, 2, 2}, true}); }},
    {{"vgg13", "VGG-13, torchvision", 133'047'848}, [](Builder& b) { zoo::vgg(b, {{2, 2, 2, 2, 2}}); }},
    {{"vgg13-bn", "VGG-13 with batch-norm, torchvision", 133'053'736},
     [](Builder& b) { zoo::vgg(b, {{2, 2, 2, 2, 2}, true}); }},
    {{"vgg16", "VGG-16, torchvision", 138'357'544}, [](Builder& b) { zoo::vgg(b, {{2, 2, 3, 3, 3}}); }},
    {{"vgg16-bn", "VGG-16 with batch-norm, torchvision", 138'365'992},
     [](Builder& b) { zoo::vgg(b, {{2, 2, 3, 3, 3}, true}); }},
    {{"vgg19", "VGG-19, torchvision", 143'667'240}, [](Builder& b) { zoo::vgg(b, {{2, 2, 4, 4, 4}}); }},
    {{"vgg19-bn", "VGG-19 with batch-norm, torchvision", 143'678'248},
     [](Builder& b) { zoo::vgg(b, {{2, 2, 4, 4, 4}, true}); }},
    {{"resnet18", "ResNet-18, torchvision", 11'689'512},
     [](Builder& b) { zoo::resnet(b, {{2, 2, 2, 2}, false}); }},
    {{"resnet34", "ResNet-34, torchvision", 21'797'672},
     [](Builder& b) { zoo::resnet(b, {{3, 4, 6, 3}, false}); }},
    {{"resnet50", "ResNet-50 v1.5, torchvision", 25'557'032},
     [](Builder& b) { zoo::resnet(b, {{3, 4, 6, 3}}); }},
    {{"resnet50-v1", "ResNet-50 of its paper, striding in the 1 x 1 convolution", 25'557'032},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .stride_first = true}); }},
    {{"resnet50-v2", "ResNet-50 v2 of MXNet's examples", 25'549'483},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .preactivated = true}); }},
    {{"resnet50-tf", "ResNet-50 of tf_cnn_benchmarks: v1, no batch-norm in shortcuts", 25'549'352},
     [](Builder& b) {
       zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .stride_first = true, .normalized_shortcut = false});
     }},
    {{"resnet152-tf", "ResNet-152 of tf_cnn_benchmarks: v1, no batch-norm in shortcuts", 60'185'128},
     [](Builder& b) {
       zoo::resnet(b, {.blocks = {3, 8, 36, 3}, .stride_first = true, .normalized_shortcut = false});
     }},
    {{"resnet101", "ResNet-101 v1.5, torchvision", 44'549'160},
     [](Builder& b) { zoo::resnet(b, {{3, 4, 23, 3}}); }},
    {{"resnet152", "ResNet-152 v1.5, torchvision", 60'192'808},
     [](Builder& b) { zoo::resnet(b, {{3, 8, 36, 3}}); }},
    {{"wide-resnet50-2", "Wide ResNet-50-2, torchvision", 68'883'240},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .width = 128}); }},
    {{"wide-resnet101-2", "Wide ResNet-101-2, torchvision", 126'886'696},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 23, 3}, .width = 128}); }},
    {{"resnext50-32x4d", "ResNeXt-50 32x4d, torchvision", 25'028'904},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 6, 3}, .groups = 32, .width = 4}); }},
    {{"resnext101-32x4d", "ResNeXt-101 32x4d, timm", 44'177'704},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 23, 3}, .groups = 32, .width = 4}); }},
    {{"se-resnext101-32x4d", "SE-ResNeXt-101 32x4d, timm", 48'955'416},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 23, 3}, .groups = 32, .width = 4, .squeeze = 16}); }},
    {{"resnext101-32x8d", "ResNeXt-101 32x8d, torchvision", 88'791'336},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 23, 3}, .groups = 32, .width = 8}); }},
    {{"resnext101-64x4d", "ResNeXt-101 64x4d, torchvision", 83'455'272},
     [](Builder& b) { zoo::resnet(b, {.blocks = {3, 4, 23, 3}, .groups = 64, .width = 4}); }},
    {{"mobilenet-v2", "MobileNetV2, torchvision", 3'504'872}, zoo::mobilenet_v2},
    {{"mobilenet-v3-small", "MobileNetV3 small, torchvision", 2'542'856},
     [](Builder& b) { zoo::mobilenet_v3(b, zoo::MobileNetV3::small); }},
    {{"mobilenet-v3-large", "MobileNetV3 large, torchvision", 5'483'032},
     [](Builder& b) { zoo::mobilenet_v3(b, zoo::MobileNetV3::large); }},
    {{"convnext-tiny", "ConvNeXt-T, torchvision", 28'589'128},
     [](Builder& b) { zoo::convnext(b, {{3, 3, 9, 3}, 96}); }},
    {{"convnext-small", "ConvNeXt-S, torchvision", 50'223'688},
     [](Builder& b) { zoo::convnext(b, {{3, 3, 27, 3}, 96}); }},
    {{"convnext-base", "ConvNeXt-B, torchvision", 88'591'464},
     [](Builder& b) { zoo::convnext(b, {{3, 3, 27, 3}, 128}); }},
    {{"convnext-large", "ConvNeXt-L, torchvision", 197'767'336},
     [](Builder& b) { zoo::convnext(b, {{3, 3, 27, 3}, 192}); }},
    {{"efficientnet-b0", "EfficientNet-B0, torchvision", 5'288'548}, [](Builder& b) { zoo::efficientnet(b, {}); }},
    {{"efficientnet-b1", "EfficientNet-B1, torchvision, on 240 x 240 images", 7'794'184},
     [](Builder& b) { zoo::efficientnet(b, {.width = 1, .depth = 1.1, .image = 240, .dropout = 0.2}); }},
    {{"efficientnet-b2", "EfficientNet-B2, torchvision, on 260 x 260 images", 9'109'994},
     [](Builder& b) { zoo::efficientnet(b, {.width = 1.1, .depth = 1.2, .image = 260, .dropout = 0.3}); }},
    {{"efficientnet-b3", "EfficientNet-B3, torchvision, on 300 x 300 images", 12'233'232},
     [](Builder& b) { zoo::efficientnet(b, {.width = 1.2, .depth = 1.4, .image = 300, .dropout = 0.3}); }},
    {{"efficientnet-b4", "EfficientNet-B4, torchvision, on 380 x 380 images", 19'341'616},
     [](Builder& b) { zoo::efficientnet(b, {.width = 1.4, .depth = 1.8, .image = 380, .dropout = 0.4}); }},
    {{"efficientnet-b5", "EfficientNet-B5, torchvision, on 456 x 456 images", 30'389'784},
     [](Builder& b) { zoo::efficientnet(b, {.width = 1.6, .depth = 2.2, .image = 456, .dropout = 0.4}); }},
    {{"efficientnet-b6", "EfficientNet-B6, torchvision, on 528 x 528 images", 43'040'704},
     [](Builder& b) { zoo::efficientnet(b, {.width = 1.8, .depth = 2.6, .image = 528, .dropout = 0.5}); }},
    {{"efficientnet-b7", "EfficientNet-B7, torchvision, on 600 x 600 images", 66'347'960},
     [](Builder& b) { zoo::efficientnet(b, {.width = 2, .depth = 3.1, .image = 600, .dropout = 0.5}); }},
    {{"efficientnet-v2-s", "EfficientNetV2-S, torchvision, on 300 x 300 images", 21'458'488},
     [](Builder& b) { zoo::efficientnet_v2(b, zoo::EfficientNetV2::s); }},
    {{"efficientnet-v2-m", "EfficientNetV2-M, torchvision, on 384 x 384 images", 54'139'356},
     [](Builder& b) { zoo::efficientnet_v2(b, zoo::EfficientNetV2::m); }},
    {{"efficientnet-v2-l", "EfficientNetV2-L, torchvision, on 384 x 384 images", 118'515'272},
     [](Builder& b) { zoo::efficientnet_v2(b, zoo::EfficientNetV2::l); }},
    {{"densenet121", "DenseNet-121, torchvision", 7'978'856},
     [](Builder& b) { zoo::densenet(b, {{6, 12, 24, 16}}); }},
    {{"densenet161", "DenseNet-161, torchvision", 28'681'000},
     [](Builder& b) { zoo::densenet(b, {{6, 12, 36, 24}, 48}); }},
    {{"densenet169", "DenseNet-169, torchvision", 14'149'480},
     [](Builder& b) { zoo::densenet(b, {{6, 12, 32, 32}}); }},
    {{"densenet201", "DenseNet-201, torchvision", 20'013'928},
     [](Builder& b) { zoo::densenet(b, {{6, 12, 48, 32}}); }},
    {{"googlenet", "GoogLeNet with batch-norm and without auxiliary classifiers, torchvision", 6'624'904},
     zoo::googlenet},
    {{"inception-v3", "Inception v3 with its auxiliary classifier, torchvision (23,834,568 without)", 27'161'264},
     [](Builder& b) { zoo::inception_v3(b); }},
    {{"inception-v3-no-aux", "Inception v3 without its auxiliary classifier", 23'834'568},
     [](Builder& b) { zoo::inception_v3(b, false); }},
    {{"squeezenet1.1", "SqueezeNet 1.1, torchvision", 1'235'496}, zoo::squeezenet},
    {{"vit-b-16", "ViT-B/16, torchvision", 86'567'656}, [](Builder& b) { zoo::vit(b, {12, 768, 12}); }},
    {{"vit-b-32", "ViT-B/32, torchvision", 88'224'232}, [](Builder& b) { zoo::vit(b, {12, 768, 12, 32}); }},
    {{"vit-l-16", "ViT-L/16, torchvision", 304'326'632}, [](Builder& b) { zoo::vit(b, {24, 1024, 16}); }},
    {{"vit-l-32", "ViT-L/32, torchvision", 306'535'400}, [](Builder& b) { zoo::vit(b, {24, 1024, 16, 32}); }},
    {{"vit-h-14", "ViT-H/14, torchvision", 632'045'800}, [](Builder& b) { zoo::vit(b, {32, 1280, 16, 14}); }},
    {{"deit-tiny", "DeiT-Ti/16: ViT at width 192", 5'717'416}, [](Builder& b) { zoo::vit(b, {12, 192, 3}); }},
    {{"deit-small", "DeiT-S/16: ViT at width 384", 22'050'664}, [](Builder& b) { zoo::vit(b, {12, 384, 6}); }},
    {{"swin-tiny", "Swin-T, torchvision", 28'288'354}, [](Builder& b) { zoo::swin(b, {{2, 2, 6, 2}, 96}); }},
    {{"swin-small", "Swin-S, torchvision", 49'606'258}, [](Builder& b) { zoo::swin(b, {{2, 2, 18, 2}, 96}); }},
    {{"swin-base", "Swin-B, torchvision", 87'768'224}, [](Builder& b) { zoo::swin(b, {{2, 2, 18, 2}, 128}); }},
    {{"swin-large", "Swin-L, timm", 196'532'476}, [](Builder& b) { zoo::swin(b, {{2, 2, 18, 2}, 192}); }},
    {{"mixer-s-16", "MLP-Mixer S/16, timm", 18'528'264}, [](Builder& b) { zoo::mixer(b, {8, 512}); }},
    {{"mixer-b-16", "MLP-Mixer B/16, timm", 59'880'472}, [](Builder& b) { zoo::mixer(b, {12, 768}); }},
    {{"mixer-l-16", "MLP-Mixer L/16, timm", 208'196'168}, [](Builder& b) { zoo::mixer(b, {24, 1024}); }},
    {{"bert-base", "BERT-base uncased with its pooler", 109'482'240},
     [](Builder& b) { zoo::bert(b, {12, 768, 12, 512}); }},
    {{"bert-large", "BERT-large uncased with its pooler", 335'141'888},
     [](Builder& b) { zoo::bert(b, {24, 1024, 16, 512}); }},
    {{"bert-base-mlm", "BERT-base uncased as a masked language model", 109'514'298},
     [](Builder& b) { zoo::bert(b, {12, 768, 12, 512, masked_language_model}); }},
    {{"bert-large-mlm", "BERT-large uncased as a masked language model", 335'174'458},
     [](Builder& b) { zoo::bert(b, {24, 1024, 16, 512, masked_language_model}); }},
    {{"bert-mini", "BERT of 4 layers of 256, with its pooler", 11'170'560},
     [](Builder& b) { zoo::bert(b, {4, 256, 4, 128}); }},
    {{"bert-tiny", "BERT of 2 layers of 128, with its pooler", 4'385'920},
     [](Builder& b) { zoo::bert(b, {2, 128, 2, 128}); }},
    {{"gpt2", "GPT-2 small", 124'439'808}, [](Builder& b) { zoo::gpt2(b, {12, 768, 12}); }},
    {{"gpt2-medium", "GPT-2 medium", 354'823'168}, [](Builder& b) { zoo::gpt2(b, {24, 1024, 16}); }},
    {{"gpt2-large", "GPT-2 large", 774'030'080}, [](Builder& b) { zoo::gpt2(b, {36, 1280, 20}); }},
    {{"gpt2-xl", "GPT-2 XL", 1'557'611'200}, [](Builder& b) { zoo::gpt2(b, {48, 1600, 25}); }},
    {{"gpt2-mini", "GPT-2 of 4 layers of 256: Sibyl's own size, not a published one", 16'287'488},
     [](Builder& b) { zoo::gpt2(b, {4, 256, 4, 128}); }},
    {{"gpt3-175b", "GPT-3 as Megatron-LM trains it (vocabulary 51,200): published as 174.6 B", 174'615'846'912},
     [](Builder& b) { zoo::gpt2(b, {96, 12288, 96, 2048, 2048, 51200}); }},
    {{"mt-nlg-530b", "Megatron-Turing NLG: published as 529.6 B", 529'600'819'200},
     [](Builder& b) { zoo::gpt2(b, {105, 20480, 128, 2048, 2048, 51200}); }},
    {{"gpt-1t", "Megatron-LM's largest: published as 1008.0 B", 1'008'038'758'400},
     [](Builder& b) { zoo::gpt2(b, {128, 25600, 160, 2048, 2048, 51200}); }},
    {{"llama3-8b", "Llama 3 8B", 8'030'261'248}, [](Builder& b) { zoo::llama(b, {32, 4096, 32, 8, 14336}); }},
    {{"llama3-70b", "Llama 3 70B", 70'553'706'496}, [](Builder& b) { zoo::llama(b, {80, 8192, 64, 8, 28672}); }},
    {{"mistral-7b", "Mistral 7B", 7'241'732'096},
     [](Builder& b) { zoo::llama(b, {32, 4096, 32, 8, 14336, 4096, 32000, 10000}); }},
    {{"tinyllama-1.1b", "TinyLlama 1.1B", 1'100'048'384},
     [](Builder& b) { zoo::llama(b, {22, 2048, 32, 4, 5632, 2048, 32000, 10000}); }},
    {{"qwen2.5-0.5b", "Qwen 2.5 0.5B", 494'032'768}, [](Builder& b) { zoo::llama(b, qwen({24, 896, 14, 2, 4864}, 151936, true)); }},
    {{"qwen2.5-7b", "Qwen 2.5 7B", 7'615'616'512}, [](Builder& b) { zoo::llama(b, qwen({28, 3584, 28, 4, 18944}, 152064, false)); }},
    {{"qwen2.5-72b", "Qwen 2.5 72B", 72'706'203'648},
     [](Builder& b) { zoo::llama(b, qwen({80, 8192, 64, 8, 29568}, 152064, false)); }},
    {{"llama-mini", "Llama of 4 layers of 256: Sibyl's own size, not a published one", 19'204'352},
     [](Builder& b) { zoo::llama(b, {4, 256, 8, 2, 704, 128, 32000}); }},
    {{"t5-small", "T5 small, version 1.0", 60'506'624}, [](Builder& b) { zoo::t5(b, {6, 512, 8, 2048}); }},
    {{"t5-base", "T5 base, version 1.0", 222'903'552}, [](Builder& b) { zoo::t5(b, {12, 768, 12, 3072}); }},
    {{"t5-large", "T5 large, version 1.0", 737'668'096}, [](Builder& b) { zoo::t5(b, {24, 1024, 16, 4096}); }},
    {{"sd1.5-unet", "Stable Diffusion 1.5's U-Net, 64 x 64 latents, 77 tokens", 859'520'964},
     zoo::stable_diffusion_unet},
    {{"dlrm-terabyte", "DLRM of MLPerf Training, Criteo's terabyte of clicks", 24'036'595'969},
     [](Builder& b) { zoo::dlrm(b, {criteo_terabyte, 128, {512, 256, 128}, {1024, 1024, 512, 256}}); }},
    {{"dlrm-kaggle", "DLRM of its paper's repository, Criteo's clicks on Kaggle", 540'677'217},
     [](Builder& b) { zoo::dlrm(b, {criteo_kaggle, 16, {512, 256, 64, 16}, {512, 256}}); }},
    {{"dlrm-mini", "DLRM of 8 tables and bags of 4: Sibyl's own size, not a published one", 131'665},
     [](Builder& b) { zoo::dlrm(b, {Ints(8, 1000), 16, {64, 16}, {32}, 4}); }},
    {{"mixtral-8x7b", "Mixtral 8x7B: 2 of 8 experts, 12.9 B of the parameters, for a token", 46'702'792'704},
     [](Builder& b) { zoo::llama(b, mixtral({32, 4096, 32, 8, 14336})); }},
    {{"mixtral-8x22b", "Mixtral 8x22B: 2 of 8 experts, 39.1 B of the parameters, for a token", 140'620'634'112},
     [](Builder& b) { zoo::llama(b, mixtral({56, 6144, 48, 8, 16384})); }},
    {{"qwen3-30b-a3b", "Qwen 3 30B-A3B: 8 of 128 experts, 3.3 B of the parameters, for a token", 30'532'122'624},
     [](Builder& b) { zoo::llama(b, qwen3_of_experts({48, 2048, 32, 4, 6144}, 768)); }},
    {{"qwen3-235b-a22b", "Qwen 3 235B-A22B: 8 of 128 experts, 22.1 B of the parameters, for a token", 235'093'634'560},
     [](Builder& b) { zoo::llama(b, qwen3_of_experts({94, 4096, 64, 4, 12288}, 1536)); }},
    {{"deepseek-moe-16b", "DeepSeekMoE 16B: 6 of 64 experts, 2 shared ones beside, for a token", 16'375'728'128},
     [](Builder& b) { zoo::llama(b, deepseek_moe()); }},
    {{"mixtral-mini", "Mixtral of 4 layers of 256, 8 experts of 352: Sibyl's own size, not a published one", 25'700'608},
     [](Builder& b) {
       auto options = mixtral({4, 256, 8, 2, 352});
       options.seq = 128;
       zoo::llama(b, options);
     }},
    {{"cosmoflow", "CosmoFlow, MLPerf HPC reference, 128^3 voxels", 8'907'556}, zoo::cosmoflow},
    {{"unet3d", "3D U-Net of its paper (Cicek et al., 2016), tiles of 132 x 132 x 116 voxels", 19'069'955}, zoo::unet3d},
    {{"unet3d-mlperf", "3D U-Net as MLPerf Training's reference, KiTS19, 128^3 voxels", 31'190'243}, zoo::unet3d_mlperf},
    {{"unet3d-brats", "3D U-Net for BraTS of NVIDIA's TensorFlow examples, 128^3 voxels", 31'196'196},
     [](Builder& b) { zoo::nnunet(b, {.patch = {128, 128, 128}, .output_kernel = 3}); }},
    {{"nnunet-2d", "nnU-Net of NVIDIA's PyTorch examples, 192 x 160 pixels", 20'613'092},
     [](Builder& b) { zoo::nnunet(b, {.patch = {192, 160}, .most_channels = 512}); }},
    {{"nnunet-3d", "nnU-Net of NVIDIA's PyTorch examples, 128^3 voxels", 31'192'868},
     [](Builder& b) { zoo::nnunet(b, {.patch = {128, 128, 128}}); }},
    {{"unet-medical", "U-Net of NVIDIA's TensorFlow examples, 572 x 572 pixels", 34'512'258}, zoo::unet_medical},
    {{"unet-industrial-tiny", "TinyUNet of NVIDIA's TensorFlow examples, 512 x 512 pixels", 1'850'305},
     zoo::unet_industrial_tiny},
    {{"ssd300-resnet34", "SSD300 on ResNet-34, MLPerf Training", 19'972'534},
     [](Builder& b) { zoo::ssd300(b, {{.blocks = {3, 4, 6}, .bottleneck = false}, false}); }},
    {{"ssd300-resnet50", "SSD300 on ResNet-50 of NVIDIA's examples", 22'894'902},
     [](Builder& b) { zoo::ssd300(b, {{.blocks = {3, 4, 6}}, true}); }},
    {{"insightface-r100", "InsightFace's ResNet-100 with a classifier of 85,742 people", 109'055'552},
     [](Builder& b) { zoo::insightface_r100(b, 85742); }},
    {{"insightface-y1", "InsightFace's MobileFaceNet with a classifier of 85,742 people", 45'100'416},
     [](Builder& b) { zoo::insightface_y1(b, 85742); }},
    {{"lenet", "LeNet-5 on 28 x 28 images", 61'706}, zoo::lenet},
    {{"small-cnn", "two convolutions for 8 x 8 digits: Sibyl's own", 38'282},
     [](Builder& b) { zoo::small_cnn(b, false); }},
    {{"small-cnn-bn", "small-cnn with batch-norm in place of the convolutions' biases: Sibyl's own", 38'330},
     [](Builder& b) { zoo::small_cnn(b, true); }},
  };
  return table;
}
// clang-format on

}  // namespace

std::vector<ZooModel> zoo_models() {
  std::vector<ZooModel> models;
  for (const Entry& entry : entries()) models.push_back(entry.model);
  return models;
}

zoo::Build zoo::find_build(const std::string& name) {
  const auto found = std::ranges::find(entries(), name, [](const Entry& entry) { return entry.model.name; });
  return found == entries().end() ? nullptr : found->build;
}

Result<std::string> zoo_model_bytes(const std::string& name) {
  const zoo::Build build = zoo::find_build(name);
  if (!build) {
    std::vector<std::string> names;
    for (const Entry& entry : entries()) names.push_back(entry.model.name);
    return fail(fmt::format("no model of the zoo is called '{}'", name), {},
                fmt::format("there are: {}", fmt::join(names, ", ")));
  }
  zoo::Builder builder(name);
  build(builder);
  return builder.bytes();
}

Result<void> write_zoo_model(const std::string& name, const std::filesystem::path& path) {
  SIBYL_TRY(const std::string bytes, zoo_model_bytes(name));
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return fail("cannot write the model", path.string(), "is the folder there and writable?");
  return {};
}

}  // namespace sibyl
