#include "models/canonical/canonical.h"

#include "models/canonical/editor.h"
#include "models/canonical/rewrites/rewrites.h"

namespace sibyl {

Result<Graph> canonicalize(Graph raw, const Apart& apart) {
  Editor editor(raw);
  rewrites::folded_batch_norms(editor);
  rewrites::views(editor);
  rewrites::constants(editor);
  rewrites::scalar_operands(editor);
  rewrites::spelled_dropouts(editor);
  rewrites::selects(editor);
  rewrites::rotary_tables(editor);
  rewrites::gated_activations(editor, apart.gelu_tanh);
  if (!apart.layer_norm) rewrites::norms(editor);
  rewrites::group_norms(editor);
  if (!apart.attention) rewrites::attentions(editor);
  rewrites::linears(editor);
  rewrites::biases(editor);
  rewrites::views(editor);  // reshapes that the rewrites brought together
  return editor.finish();
}

}  // namespace sibyl
