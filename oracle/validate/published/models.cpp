#include "oracle/validate/published/models.h"

#include <fmt/format.h>

namespace sibyl::published {

Result<ModelRecipe> model_of(const Row& row) {
  for (const ModelFamily family :
       {vision_transformer, convolutional_model, t5_model, bert_model, llama_model, gpt_model}) {
    SIBYL_TRY(std::optional<ModelRecipe> recipe, family(row));
    if (recipe) return std::move(*recipe);
  }
  return fail(fmt::format("no recipe for the model '{}'", row.model));
}

}  // namespace sibyl::published
