#include "gui/view/canvas/graph_model.h"

#include <algorithm>

#include "base/quantity.h"

namespace sibyl::gui {
namespace {

constexpr std::size_t most_unfolded = 40;  // operations that are readable each by itself

// The names' beginning up to a separator: "h.0" of "h.0.ln_1" and "h.0.attn.c_attn".
std::string common_path(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  std::size_t length = names.front().size();
  for (const std::string& name : names) {
    std::size_t same = 0;
    while (same < std::min(length, name.size()) && name[same] == names.front()[same]) ++same;
    length = same;
  }
  const std::size_t cut = names.front().substr(0, length).find_last_of("./");
  return cut == std::string::npos ? std::string() : names.front().substr(0, cut);
}

}  // namespace

struct GraphModel::Unit {
  GraphNode::Kind kind = GraphNode::Kind::operation;
  std::size_t begin = 0, end = 0;  // in Wiring::order
  std::size_t blocks = 1;
  std::string key;
  bool whole = true;
};

QString axisName(MeshAxis axis) { return qt(std::string(to_string(axis))); }

std::size_t GraphScene::node_of(OperationId operation) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const GraphNode& node) {
    return std::find(node.operations.begin(), node.operations.end(), operation) != node.operations.end();
  });
  return static_cast<std::size_t>(found - nodes.begin());
}

std::size_t GraphScene::node_at(double x, double y) const {
  const auto found =
      std::find_if(layout.boxes.begin(), layout.boxes.end(), [&](const LayoutBox& box) { return box.contains(x, y); });
  return static_cast<std::size_t>(found - layout.boxes.begin());
}

GraphModel::GraphModel(std::shared_ptr<const Answer> answer, Wiring wiring)
    : answer_(std::move(answer)), wiring_(std::move(wiring)) {
  const auto operations = graph().operations();
  folds_ = operations.size() > most_unfolded && !wiring_.blocks.empty();
  times_ = pass_times(graph(), prediction());
  for (std::size_t i = 0; i < operations.size(); ++i) by_name_.emplace(operations[i].name, OperationId{i});
}

OperationId GraphModel::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? OperationId() : found->second;
}

std::vector<MeshAxis> GraphModel::axes() const {
  std::set<MeshAxis> found;
  for (const WiredOperation& operation : wiring_.operations)
    for (const OperationSplit& split : operation.splits) found.insert(split.axis);
  return {found.begin(), found.end()};
}

std::string GraphModel::block_key(const Wiring::Block& block) const {
  return "block:" + graph()[wiring_.order[block.begin]].name;
}
std::string GraphModel::run_key(const Wiring::Block& block) const {
  return "run:" + graph()[wiring_.order[block.begin]].name;
}

// How many equal blocks follow each other from this one on.
std::size_t GraphModel::run_length(std::size_t block) const {
  std::size_t last = block;
  while (last + 1 < wiring_.blocks.size() && wiring_.blocks[last + 1].kind == wiring_.blocks[block].kind &&
         wiring_.blocks[last + 1].begin == wiring_.blocks[last].end)
    ++last;
  return last - block + 1;
}

std::vector<GraphModel::Unit> GraphModel::units(const std::set<std::string>& opened) const {
  std::vector<Unit> result;
  const auto add_operations = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) result.push_back({GraphNode::Kind::operation, i, i + 1, 1, {}});
  };
  std::size_t at = 0;
  for (std::size_t b = 0; folds_ && b < wiring_.blocks.size();) {
    const std::size_t length = run_length(b);
    const Wiring::Block& first = wiring_.blocks[b];
    add_operations(at, first.begin);
    at = wiring_.blocks[b + length - 1].end;
    if (length > 1 && !opened.contains(run_key(first))) {
      result.push_back({GraphNode::Kind::run, first.begin, at, length, run_key(first)});
      b += length;
      continue;
    }
    for (const std::size_t end = b + length; b < end; ++b) {
      const Wiring::Block& block = wiring_.blocks[b];
      if (opened.contains(block_key(block)))
        add_operations(block.begin, block.end);
      else
        result.push_back({GraphNode::Kind::block, block.begin, block.end, 1, block_key(block), block.whole});
    }
  }
  add_operations(at, wiring_.order.size());
  return result;
}

std::set<std::string> GraphModel::around(OperationId operation) const {
  std::set<std::string> keys;
  for (std::size_t b = 0; folds_ && b < wiring_.blocks.size();) {
    const std::size_t length = run_length(b), first = b;
    for (const std::size_t end = b + length; b < end; ++b) {
      const Wiring::Block& block = wiring_.blocks[b];
      const auto begin = wiring_.order.begin() + static_cast<std::ptrdiff_t>(block.begin);
      const auto until = wiring_.order.begin() + static_cast<std::ptrdiff_t>(block.end);
      if (std::find(begin, until, operation) == until) continue;
      keys.insert(block_key(block));
      if (length > 1) keys.insert(run_key(wiring_.blocks[first]));
    }
  }
  return keys;
}

// After the layers that have parameters, whose names are their owner's.
QString GraphModel::block_name(std::size_t begin, std::size_t end) const {
  std::vector<std::string> names, all;
  for (std::size_t i = begin; i < end; ++i) {
    const OperationId id = wiring_.order[i];
    all.push_back(graph()[id].name);
    if (wiring_.operations[id.index()].parameters > 0) names.push_back(all.back());
  }
  const std::vector<std::string>& owners = names.empty() ? all : names;
  const std::string path = common_path(owners);
  // A path that other blocks have, too, tells nothing.
  if (path.find_first_of("0123456789") != std::string::npos) return qt(path);
  return qt(owners.front() + " – " + owners.back());
}

PartSum GraphModel::sum(const std::vector<OperationId>& operations) const {
  return sum_of_part(wiring_, times_, operations);
}

GraphNode GraphModel::node(const Unit& unit) const {
  GraphNode result;
  result.kind = unit.kind;
  result.key = unit.key;
  for (std::size_t i = unit.begin; i < unit.end; ++i) {
    const OperationId id = wiring_.order[i];
    const WiredOperation& wired = wiring_.operations[id.index()];
    result.operations.push_back(id);
    result.stage = wired.stage;
    for (const OperationSplit& split : wired.splits) {
      const auto known = std::find_if(result.splits.begin(), result.splits.end(),
                                      [&](const OperationSplit& other) { return other.axis == split.axis; });
      if (known == result.splits.end()) result.splits.push_back(split);
    }
  }
  const PartSum all = sum(result.operations);
  const QString took = all.time.both().value() > 0 ? " · " + qt(to_string(all.time.both())) : QString();
  if (unit.kind == GraphNode::Kind::operation) {
    const OperationId id = result.operations.front();
    result.title = qt(graph()[id].name);
    result.subtitle =
        qt(std::string(name_of(graph()[id].attributes)).append(" · ") + wiring_.operations[id.index()].output) + took;
    result.subtitle.replace('_', ' ');
    return result;
  }
  const QString size = all.parameters > 0 ? qt(with_prefix(static_cast<double>(all.parameters), "")) + tr(" parameters")
                                          : tr("%1 operations").arg(result.operations.size());
  result.subtitle = size + took;
  const std::size_t each = (unit.end - unit.begin) / unit.blocks;
  result.title = block_name(unit.begin, unit.begin + each) + (unit.whole ? QString() : tr(" (part)"));
  if (unit.kind == GraphNode::Kind::run)
    result.title = tr("%1 × block: %2 … %3").arg(unit.blocks).arg(result.title, block_name(unit.end - each, unit.end));
  return result;
}

// What is sent between two nodes stands between them; what is sent within one is counted there.
void GraphModel::add_wires(GraphScene& scene, const std::vector<std::size_t>& node_of) const {
  struct Between {
    std::vector<std::size_t> wires;
    std::set<std::pair<TensorId, OperationId>> carried;
  };
  std::map<std::pair<std::size_t, std::vector<std::size_t>>, Between> between;
  const std::size_t none = scene.nodes.size();
  for (std::size_t w = 0; w < wiring_.wires.size(); ++w) {
    const Wire& wire = wiring_.wires[w];
    const std::size_t from = wire.from.valid() ? node_of[wire.from.index()] : none;
    std::set<std::size_t> to;
    for (const OperationId reader : wire.to) to.insert(node_of[reader.index()]);
    to.erase(from);
    if (to.empty() || from == none) {
      if (const std::size_t owner = to.empty() ? from : *to.begin(); owner != none)
        scene.nodes[owner].wires.push_back(w);
      continue;
    }
    Between& found = between[{from, {to.begin(), to.end()}}];
    found.wires.push_back(w);
    for (const OperationId reader : wire.to) found.carried.insert({wire.tensor, reader});
  }
  std::set<std::pair<TensorId, OperationId>> carried;
  std::set<std::pair<std::size_t, std::size_t>> edges;
  for (const auto& [ends, what] : between) {
    const std::size_t chip = scene.nodes.size();
    GraphNode sent;
    sent.kind = GraphNode::Kind::transfer;
    sent.stage = scene.nodes[ends.first].stage;
    sent.wires = what.wires;
    scene.nodes.push_back(sent);
    carried.insert(what.carried.begin(), what.carried.end());
    edges.insert({ends.first, chip});
    for (const std::size_t to : ends.second) edges.insert({chip, to});
  }
  for (std::size_t i = 0; i < graph().operations().size(); ++i)
    for (const TensorId in : graph().operations()[i].inputs) {
      if (!in.valid() || carried.contains({in, OperationId{i}})) continue;
      const OperationId producer = graph().producer(in);
      if (producer.valid() && node_of[producer.index()] != node_of[i])
        edges.insert({node_of[producer.index()], node_of[i]});
    }
  for (const auto& [from, to] : edges) scene.edges.push_back({from, to});
  for (GraphNode& any : scene.nodes) any.sent = transfer_text(any.wires, any.kind != GraphNode::Kind::transfer);
}

GraphScene GraphModel::scene(const std::set<std::string>& opened, double em) const {
  GraphScene unordered;
  std::vector<std::size_t> node_of(graph().operations().size(), 0);
  for (const Unit& unit : units(opened)) {
    unordered.nodes.push_back(node(unit));
    for (const OperationId id : unordered.nodes.back().operations) node_of[id.index()] = unordered.nodes.size() - 1;
  }
  add_wires(unordered, node_of);
  // A transfer follows the node that sends, so that edges lead from lower to higher numbers.
  std::vector<std::size_t> key(unordered.nodes.size());
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = 2 * i;
  for (const LayoutEdge& edge : unordered.edges)
    if (unordered.nodes[edge.to].kind == GraphNode::Kind::transfer) key[edge.to] = 2 * edge.from + 1;
  std::vector<std::size_t> order(key.size()), place(key.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key[a] < key[b]; });
  GraphScene scene;
  std::vector<LayoutBox> sizes;
  for (const std::size_t i : order) {
    place[i] = scene.nodes.size();
    scene.nodes.push_back(std::move(unordered.nodes[i]));
    const GraphNode& made = scene.nodes.back();
    const double lines = 2 + (made.splits.empty() ? 0 : 1) + (made.sent.isEmpty() ? 0 : 1);
    if (made.kind == GraphNode::Kind::transfer)
      sizes.push_back({0, 0, 13 * em, (1.25 * static_cast<double>(made.sent.count('\n') + 1) + 0.4) * em});
    else
      sizes.push_back({0, 0, (made.kind == GraphNode::Kind::run ? 21 : 18.5) * em, (1.3 * lines + 0.7) * em});
  }
  for (const LayoutEdge& edge : unordered.edges) scene.edges.push_back({place[edge.from], place[edge.to]});
  scene.layout = lay_out(sizes, scene.edges, {1.6 * em, 2.4 * em});
  return scene;
}

QString GraphModel::transfer_text(const std::vector<std::size_t>& wires, bool brief) const {
  if (brief) {
    const Sent all = sent_in_all(wiring_, wires);
    if (all.messages == 0) return {};
    const QString words = all.messages == 1 ? tr("%1 message inside, %2") : tr("%1 messages inside, %2");
    return words.arg(all.messages).arg(qt(to_string(all.bytes)));
  }
  QStringList lines;
  for (const SentByKind& each : sent_by_kind(wiring_, wires)) {
    const QString arrow = each.pass == Pass::forward ? QStringLiteral("↓ ") : QStringLiteral("↑ ");
    const QString times = each.sent.messages > 1 ? QString("%1 × ").arg(each.sent.messages) : QString();
    lines += arrow + times + qt(each.kind) + " " + qt(to_string(each.sent.bytes));
  }
  return lines.join('\n');
}

}  // namespace sibyl::gui
