// What the graph view shows, without widgets: a model's operations under a plan, blocks folded, and their places.
//
// Of a model with many operations each block is one node, and equal blocks in a row are one node together; a node that
// is opened by its key shows what it holds. What is sent between operations is a small node of its own on the edge.
// Immutable; any thread.
#pragma once

#include <QCoreApplication>
#include <QString>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/table.h"
#include "gui/model/study.h"
#include "gui/view/canvas/graph_layout.h"
#include "oracle/wiring_sums.h"

namespace sibyl::gui {

inline QString qt(const std::string& text) { return QString::fromStdString(text); }

struct GraphNode {
  enum class Kind { operation, block, run, transfer } kind = Kind::operation;
  std::string key;  // of a block or run: what opens it
  QString title, subtitle;
  int stage = 0;
  std::vector<OperationId> operations;  // of a transfer none
  std::vector<OperationSplit> splits;   // by axis; `what` is of the last operation
  std::vector<std::size_t> wires;       // within it; of a transfer what is sent
  QString sent;                         // of a transfer, or in short what is sent within

  [[nodiscard]] bool opens() const { return kind == Kind::block || kind == Kind::run; }
};

struct GraphScene {
  std::vector<GraphNode> nodes;
  std::vector<LayoutEdge> edges;
  GraphLayout layout;

  [[nodiscard]] std::size_t node_of(OperationId operation) const;  // nodes.size(): none
  [[nodiscard]] std::size_t node_at(double x, double y) const;
};

class GraphModel {
  Q_DECLARE_TR_FUNCTIONS(GraphModel)

 public:
  // `answer` has a report and a study.
  GraphModel(std::shared_ptr<const Answer> answer, Wiring wiring);

  // `opened`: keys of nodes that show what they hold. `em`: the height of a line of text, in which sizes are counted.
  [[nodiscard]] GraphScene scene(const std::set<std::string>& opened, double em) const;
  [[nodiscard]] bool folds() const { return folds_; }
  // The keys that must be opened for the operation to be a node of its own.
  [[nodiscard]] std::set<std::string> around(OperationId operation) const;
  [[nodiscard]] OperationId find(const std::string& name) const;  // invalid: there is none
  [[nodiscard]] const std::string& name(OperationId operation) const { return graph()[operation].name; }

  [[nodiscard]] QString details(const GraphNode& node) const;  // rich text
  [[nodiscard]] QString stageTitle(int stage) const;
  [[nodiscard]] QString summary() const;  // what the plan does to the whole model
  [[nodiscard]] Table table() const;      // an operation a row
  [[nodiscard]] bool sends() const { return !wiring_.wires.empty(); }
  [[nodiscard]] int stages() const { return wiring_.stages; }
  [[nodiscard]] std::vector<MeshAxis> axes() const;  // that split anything

 private:
  struct Unit;  // a node to be, in the order of operations
  [[nodiscard]] const Graph& graph() const { return *answer_->study->graph; }
  [[nodiscard]] const Prediction& prediction() const { return answer_->report->prediction; }
  [[nodiscard]] std::vector<Unit> units(const std::set<std::string>& opened) const;
  [[nodiscard]] std::string block_key(const Wiring::Block& block) const;
  [[nodiscard]] std::string run_key(const Wiring::Block& block) const;
  [[nodiscard]] std::size_t run_length(std::size_t block) const;
  [[nodiscard]] QString block_name(std::size_t begin, std::size_t end) const;
  [[nodiscard]] GraphNode node(const Unit& unit) const;
  void add_wires(GraphScene& scene, const std::vector<std::size_t>& node_of) const;
  [[nodiscard]] PartSum sum(const std::vector<OperationId>& operations) const;
  [[nodiscard]] QString transfer_text(const std::vector<std::size_t>& wires, bool brief) const;
  [[nodiscard]] QString operation_details(OperationId operation) const;

  std::shared_ptr<const Answer> answer_;
  Wiring wiring_;
  bool folds_ = false;
  std::vector<PassTimes> times_;
  std::map<std::string, OperationId> by_name_;
};

QString axisName(MeshAxis axis);

}  // namespace sibyl::gui
