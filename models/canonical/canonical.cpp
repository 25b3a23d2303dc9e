#include "models/canonical/canonical.h"

#include "models/canonical/editor.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl {

Result<Graph> canonicalize(Graph raw, const Apart& apart) {
  Editor editor(raw);
  rewrites::folded_batch_norms(editor);
  rewrites::views(editor);
  rewrites::unit_axes(editor);
  editor.remove_unused();
  rewrites::constants(editor);
  rewrites::scalar_operands(editor);
  rewrites::limits(editor);
  rewrites::spelled_dropouts(editor);
  rewrites::selects(editor);
  rewrites::rotary_tables(editor);
  rewrites::gated_activations(editor, apart.gelu_tanh);
  if (!apart.layer_norm) rewrites::norms(editor);
  rewrites::group_norms(editor);
  if (!apart.attention) rewrites::attentions(editor);
  rewrites::folded_transposes(editor);
  rewrites::layouts(editor);
  rewrites::stored_views(editor);
  rewrites::linears(editor);
  rewrites::kept_rows(editor);
  editor.remove_unused();
  rewrites::biases(editor);
  rewrites::kept_rows(editor);  // where the bias stood before the reshape
  rewrites::views(editor);      // reshapes that the rewrites brought together
  return editor.finish();
}

}  // namespace sibyl
