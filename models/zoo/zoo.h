// The known models, written as real ONNX files whose weights exist by shape only (external data that is not there).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace sibyl {

struct ZooModel {
  std::string name;         // "resnet50"
  std::string description;  // "ResNet-50 v1.5, torchvision"
  std::int64_t parameters;  // the published count
};

std::vector<ZooModel> zoo_models();

namespace zoo {
class Builder;
// What writes NAME; null for an unknown name.
using Build = void (*)(Builder&);
Build find_build(const std::string& name);
}  // namespace zoo

// Writes NAME as ONNX (opset 17) with symbolic batch "batch" (and "seq" for language models, "decoder_seq" where
// they have a decoder beside an encoder; the file's metadata "sibyl.dim.seq" is its default). Metadata "sibyl.loss"
// names the loss where the output's shape does not tell it. Fails, naming the models there are or the path, for an
// unknown name or a path that cannot be written.
Result<void> write_zoo_model(const std::string& name, const std::filesystem::path& path);
// The same as bytes.
Result<std::string> zoo_model_bytes(const std::string& name);

}  // namespace sibyl
