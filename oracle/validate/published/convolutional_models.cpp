// Convolutional networks: by the name in arch_params ("cnn") or else the row's own.
#include <array>

#include "models/zoo/families.h"
#include "oracle/validate/published/models.h"

namespace sibyl::published {
namespace {

struct Entry {
  std::string_view name;  // normalized
  std::string_view zoo;
  void (*build)(zoo::Builder&);
};

constexpr auto entries = std::to_array<Entry>({
    {"resnet50", "resnet50", [](zoo::Builder& b) { zoo::resnet(b, {{3, 4, 6, 3}}); }},
    {"resnet50v15", "resnet50", [](zoo::Builder& b) { zoo::resnet(b, {{3, 4, 6, 3}}); }},
    {"resnet101", "resnet101", [](zoo::Builder& b) { zoo::resnet(b, {{3, 4, 23, 3}}); }},
    {"resnet152", "resnet152", [](zoo::Builder& b) { zoo::resnet(b, {{3, 8, 36, 3}}); }},
    {"vgg16", "vgg16", [](zoo::Builder& b) { zoo::vgg(b, {{2, 2, 3, 3, 3}}); }},
});

}  // namespace

Result<std::optional<ModelRecipe>> convolutional_model(const Row& row) {
  const std::string named = row.architecture.text("cnn");
  const std::string name = normalized(named.empty() ? row.model : named);
  for (const Entry& entry : entries)
    if (name == entry.name)
      return ModelRecipe{.name = std::string(entry.zoo), .build = entry.build, .optimizer = OptimizerKind::momentum};
  return std::nullopt;
}

}  // namespace sibyl::published
