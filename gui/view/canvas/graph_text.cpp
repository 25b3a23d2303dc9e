// The graph in words: details of a node, the plan's summary, the table.
#include <QFileInfo>
#include <algorithm>

#include "base/quantity.h"
#include "gui/view/canvas/graph_model.h"

namespace sibyl::gui {
namespace {

QString row(const QString& title, const QString& value) {
  if (value.isEmpty()) return {};
  return QString("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>").arg(title, value.toHtmlEscaped());
}

std::string axes_text(const std::vector<MeshAxis>& axes) {
  std::string text;
  for (const MeshAxis axis : axes) text += (text.empty() ? "" : " × ") + std::string(to_string(axis));
  return text;
}

std::string splits_text(const WiredOperation& operation) {
  std::string text;
  for (const OperationSplit& split : operation.splits)
    text += (text.empty() ? "" : ", ") + std::string(to_string(split.axis)) + "=" + std::to_string(split.ways);
  return text;
}

}  // namespace

QString GraphModel::stageTitle(int stage) const {
  const auto& stages = prediction().stages;
  const auto s = static_cast<std::size_t>(stage);
  const QString title = tr("Stage %1").arg(stage);
  if (s >= stages.size()) return title;
  return title +
         tr(" · pipeline device %1 · forward %2 · backward %3 · %4")
             .arg(stages[s].coordinate)
             .arg(qt(to_string(stages[s].forward)), qt(to_string(stages[s].backward)), qt(to_string(stages[s].memory)));
}

QString GraphModel::summary() const {
  QStringList lines = {QString("<b>%1</b>").arg(QFileInfo(qt(answer_->report->model)).fileName().toHtmlEscaped())};
  lines += tr("%L1 operations, %2 parameters")
               .arg(graph().operations().size())
               .arg(qt(with_prefix(static_cast<double>(graph().parameter_count()), "")));
  lines += qt(prediction().parallel);
  if (!wiring_.gradients.empty()) {
    const GradientMessage& first = wiring_.gradients.front();
    lines += tr("Gradients: %1 × %2 over %3 of %4 ranks, %5 in all")
                 .arg(wiring_.gradients.size())
                 .arg(qt(first.kind), qt(axes_text(first.axes)))
                 .arg(first.ranks)
                 .arg(qt(to_string(gradient_bytes(wiring_))));
  }
  return lines.join("<br>");
}

QString GraphModel::operation_details(OperationId id) const {
  const Operation& operation = graph()[id];
  const WiredOperation& wired = wiring_.operations[id.index()];
  QString rows = row(tr("Kind"), qt(std::string(name_of(operation.attributes))).replace('_', ' '));
  QStringList inputs;
  for (const TensorId in : operation.inputs)
    if (in.valid() && graph()[in].kind != TensorKind::parameter) inputs += qt(to_string(graph()[in].shape));
  rows += row(tr("Inputs"), inputs.join(", "));
  rows += row(tr("Output"), qt(wired.output));
  if (wired.local_output != wired.output) rows += row(tr("Of one rank"), qt(wired.local_output));
  for (const TensorId in : operation.inputs)
    if (in.valid() && graph()[in].kind == TensorKind::parameter)
      rows += row(tr("Parameter"), qt(graph()[in].name + " " + to_string(graph()[in].shape)));
  if (operation.fused.size() > 1) rows += row(tr("Fused from"), tr("%1 ONNX nodes").arg(operation.fused.size()));
  return rows;
}

QString GraphModel::details(const GraphNode& node) const {
  QString rows;
  if (node.operations.size() == 1) rows += operation_details(node.operations.front());
  const PartSum all = sum(node.operations);
  if (!node.operations.empty()) {
    if (node.operations.size() > 1) rows += row(tr("Operations"), QString::number(node.operations.size()));
    if (wiring_.stages > 1) rows += row(tr("Stage"), tr("%1, of %2").arg(node.stage).arg(wiring_.stages));
    if (all.parameters > 0) rows += row(tr("Parameters"), QString("%L1").arg(all.parameters));
    rows += row(tr("Arithmetic forward"), qt(to_string(all.forward)));
    rows += row(tr("Arithmetic backward"), qt(to_string(all.backward)));
    rows += row(tr("Time forward"), qt(to_string(all.time.forward)));
    rows += row(tr("Time backward"), qt(to_string(all.time.backward)));
  }
  for (const OperationSplit& split : node.splits)
    rows +=
        row(tr("Split: %1").arg(axisName(split.axis)),
            tr("over %1 ranks%2").arg(split.ways).arg(node.operations.size() == 1 ? ": " + qt(split.what) : QString()));
  const std::size_t shown = std::min<std::size_t>(node.wires.size(), 8);
  for (std::size_t i = 0; i < shown; ++i)
    for (const WireTransfer& transfer : wiring_.wires[node.wires[i]].transfers)
      rows += row(transfer.pass == Pass::forward ? tr("Sent forward") : tr("Sent backward"),
                  tr("%1 of %2, %3 of %4 ranks, %5")
                      .arg(qt(transfer.kind), qt(to_string(transfer.bytes)), axisName(transfer.axis))
                      .arg(transfer.ranks)
                      .arg(qt(to_string(transfer.time))));
  if (shown < node.wires.size()) rows += row(QString(" "), tr("and %1 more").arg(node.wires.size() - shown));
  for (const std::size_t m : all.gradients) {
    const GradientMessage& message = wiring_.gradients[m];
    if (all.gradients.size() > 4 && m != all.gradients.front()) continue;
    rows += row(tr("Gradients"),
                tr("%1 %2 of %3, %4 of %5 ranks%6")
                    .arg(qt(message.kind))
                    .arg(m)
                    .arg(qt(to_string(message.bytes)), qt(axes_text(message.axes)))
                    .arg(message.ranks)
                    .arg(all.gradients.size() > 4 ? tr(", and %1 more").arg(all.gradients.size() - 1) : QString()));
  }
  const QString title = node.kind == GraphNode::Kind::transfer ? tr("Sent between ranks") : node.title;
  const QString note = node.operations.empty() ? QString() : tr("Of one rank and one micro-batch.");
  return QString("<b>%1</b><table>%2</table><p>%3</p>").arg(title.toHtmlEscaped(), rows, note);
}

Table GraphModel::table() const {
  using enum Column::Align;
  Table table{{{"operation", "operation", left},
               {"kind", "kind", left},
               {"stage", "stage", right},
               {"split", "split", left},
               {"output", "output", left},
               {"of one rank", "local_output", left},
               {"parameters", "parameters", right},
               {"FLOPs forward", "flops_forward", right},
               {"FLOPs backward", "flops_backward", right},
               {"forward", "forward_s", right},
               {"backward", "backward_s", right}},
              {}};
  for (const OperationId id : wiring_.order) {
    const WiredOperation& wired = wiring_.operations[id.index()];
    const auto& [forward, backward] = times_[id.index()];
    table.rows.push_back({graph()[id].name, std::string(name_of(graph()[id].attributes)), std::to_string(wired.stage),
                          splits_text(wired), wired.output, wired.local_output, std::to_string(wired.parameters),
                          Cell(to_string(wired.forward), plain_number(wired.forward.value())),
                          Cell(to_string(wired.backward), plain_number(wired.backward.value())),
                          Cell(to_string(forward), plain_number(forward.value())),
                          Cell(to_string(backward), plain_number(backward.value()))});
  }
  return table;
}

}  // namespace sibyl::gui
