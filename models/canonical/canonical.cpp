#include "models/canonical/canonical.h"

#include <functional>

#include "models/canonical/editor.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl {

Result<Graph> canonicalize(Graph raw, const Apart& apart, const Cancelled& cancelled) {
  using namespace rewrites;
  const auto remove_unused = [](Editor& editor) { editor.remove_unused(); };
  const std::function<void(Editor&)> patterns[] = {
      folded_batch_norms,
      views,
      unit_axes,
      remove_unused,
      constants,
      scalar_operands,
      limits,
      spelled_dropouts,
      selects,
      rotary_tables,
      [&](Editor& editor) { gated_activations(editor, apart.gelu_tanh); },
      [&](Editor& editor) {
        if (!apart.layer_norm) norms(editor);
      },
      group_norms,
      [&](Editor& editor) {
        if (!apart.attention) attentions(editor);
      },
      folded_heads,
      folded_transposes,
      layouts,
      stored_views,
      linears,
      kept_rows,
      remove_unused,
      [&](Editor& editor) { biases(editor, apart.linear_bias); },
      [&](Editor& editor) {
        if (apart.convolution_bias) split_biases(editor);
      },
      kept_rows,  // where the bias stood before the reshape
      views,      // reshapes that the rewrites brought together
  };
  Editor editor(raw);
  for (const auto& rewrite : patterns) {
    if (is_true(cancelled)) return interrupted();
    rewrite(editor);
  }
  return editor.finish();
}

}  // namespace sibyl
