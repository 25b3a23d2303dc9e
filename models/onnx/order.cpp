#include "models/onnx/order.h"

#include <functional>
#include <queue>
#include <unordered_map>

namespace sibyl::onnx_import {
namespace {

// What a node reads, the nodes of its subgraphs included.
void collect_reads(const NodeData& node, std::set<std::string>& reads) {
  for (const std::string& input : node.inputs)
    if (!input.empty()) reads.insert(input);
  for (const AttributeData& attribute : node.attributes)
    if (const auto* graph = std::get_if<std::shared_ptr<const GraphData>>(&attribute.value)) {
      for (const NodeData& inner : (*graph)->nodes) collect_reads(inner, reads);
      for (const ValueData& output : (*graph)->outputs) reads.insert(output.name);
    }
}

}  // namespace

Result<std::vector<std::size_t>> execution_order(const std::vector<NodeData>& nodes,
                                                 const std::set<std::string>& given) {
  std::unordered_map<std::string, std::size_t> producer;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::string& output : nodes[i].outputs) {
      if (output.empty()) continue;
      if (given.contains(output) || !producer.emplace(output, i).second)
        return fail("the tensor '" + output + "' is produced twice", nodes[i].name);
    }
  std::vector<std::vector<std::size_t>> users(nodes.size());
  std::vector<std::size_t> waiting(nodes.size(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string> reads;
    collect_reads(nodes[i], reads);
    for (const std::string& name : reads)
      if (const auto found = producer.find(name); found != producer.end()) {
        users[found->second].push_back(i);
        ++waiting[i];
      }
  }
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = ready.top();
    ready.pop();
    order.push_back(next);
    for (const std::size_t user : users[next])
      if (--waiting[user] == 0) ready.push(user);
  }
  if (order.size() == nodes.size()) return order;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] > 0) return fail("the nodes depend on each other in a cycle", nodes[i].name);
  return order;
}

}  // namespace sibyl::onnx_import
