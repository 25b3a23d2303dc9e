// Which model a published row trained: recipes, one file per family of models, each asked in turn.
//
// A recipe writes the model with the zoo's builder, from the row's `model` and `arch_params`; it says what it assumed
// where the row is silent. To add a family: a function below, its file, and one line in models.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/canonical/loss.h"
#include "models/zoo/builder.h"
#include "oracle/strategy.h"
#include "oracle/validate/published/row.h"

namespace sibyl::published {

struct ModelRecipe {
  std::string name;  // "resnet50": equal names are equal models
  std::function<void(zoo::Builder&)> build;
  std::map<std::string, std::int64_t> dims = {};  // symbolic dimensions of the file, but the batch
  LossKind loss = LossKind::automatic;
  // Layers that are alike, and the operation that each begins with: PREFIX number START.
  std::int64_t layers = 0;
  std::string layer_prefix = {}, layer_start = {};
  bool fused_attention = false;                 // whatever the framework's usual way: the model came later
  double items = 1;                             // of a sample, as throughput counts them: tokens of a sequence
  std::optional<OptimizerKind> optimizer = {};  // that it is usually trained with; else the framework's
  bool images = false;                          // the row's seq_or_image states the extents of its inputs
  bool fused_norms = false, converted_images = false, converted_norms = false;  // as Strategy has them
  std::vector<std::string> assumed = {};        // sentences without full stop
};

// Nothing where the row is of another family; an Error where it is of this one and cannot be built: its message says
// why.
using ModelFamily = Result<std::optional<ModelRecipe>> (*)(const Row& row);

Result<std::optional<ModelRecipe>> convolutional_model(const Row& row);
Result<std::optional<ModelRecipe>> vision_transformer(const Row& row);
Result<std::optional<ModelRecipe>> t5_model(const Row& row);
Result<std::optional<ModelRecipe>> bert_model(const Row& row);
Result<std::optional<ModelRecipe>> gpt_model(const Row& row);
Result<std::optional<ModelRecipe>> llama_model(const Row& row);

// Asks each family; an Error where none has it.
Result<ModelRecipe> model_of(const Row& row);

}  // namespace sibyl::published
