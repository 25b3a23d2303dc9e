#include "calibration/import/switch_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace sibyl::import {
namespace {

using Switch = SwitchTree::Switch;
constexpr std::size_t most_levels = 8;

class Laying {
 public:
  Laying(const SwitchTree& tree, const Nics& nics) : tree_(tree), nics_(nics) {}

  Result<LaidTree> run(const std::string& file) {
    SIBYL_CHECK(index());
    SIBYL_TRY(const Switch* top, find_top(file));
    SIBYL_CHECK(descend(*top, 1));
    if (visited_ < tree_.switches.size())
      return fail(fmt::format("{} switches hang in a ring, below no top", tree_.switches.size() - visited_), file);
    if (laid_.nodes.empty()) return fail("the switches have no nodes below them", file);
    if (regular_)
      laid_.network = fat_tree();
    else
      laid_.network = std::move(links_);
    return std::move(laid_);
  }

 private:
  Result<void> index() {
    for (const Switch& one : tree_.switches)
      if (!by_name_.emplace(one.name, &one).second)
        return fail(fmt::format("switch '{}' is listed twice", one.name), one.where);
    std::set<std::string> nodes;
    for (const Switch& one : tree_.switches) {
      for (const std::string& below : one.switches) {
        if (!by_name_.contains(below))
          return fail(fmt::format("'{}' below switch '{}' is no switch that is listed", below, one.name), one.where);
        if (const auto [other, is_new] = above_.emplace(below, &one); !is_new)
          return fail(fmt::format("switch '{}' hangs below '{}' and '{}'", below, other->second->name, one.name),
                      one.where, "a tree has one way up");
      }
      for (const std::string& node : one.nodes)
        if (!nodes.insert(node).second)
          return fail(fmt::format("node '{}' is listed a second time below switch '{}'", node, one.name), one.where);
    }
    return {};
  }

  Result<const Switch*> find_top(const std::string& file) const {
    const Switch* top = nullptr;
    for (const Switch& one : tree_.switches) {
      if (above_.contains(one.name)) continue;
      if (top != nullptr)
        return fail(fmt::format("'{}' and '{}' are both on top: nothing joins them", top->name, one.name), one.where,
                    "list the switch above both");
      top = &one;
    }
    if (top == nullptr) return fail("the switches hang in a ring: none is on top", file);
    return top;
  }

  // How many nodes are below.
  Result<std::size_t> descend(const Switch& at, std::size_t level) {
    if (level > most_levels)
      return fail(fmt::format("switch '{}' is more than {} levels below the top", at.name, most_levels), at.where);
    ++visited_;
    if (!at.nodes.empty() && !at.switches.empty()) regular_ = false;
    std::size_t below = at.nodes.size();
    for (const std::string& node : at.nodes) {
      for (int nic = 0; nic < nics_.per_node; ++nic)
        links_.cables.push_back(
            {fmt::format("node{}.nic{}", laid_.nodes.size(), nic), "s:" + at.name, {}, {}, 1, at.where});
      laid_.nodes.push_back(node);
    }
    if (!at.nodes.empty()) count(level, at.nodes.size(), true);
    if (!at.switches.empty()) count(level, at.switches.size(), false);
    if (at.nodes.empty() && at.switches.empty()) regular_ = false;
    for (const std::string& name : at.switches) {
      SIBYL_TRY(const std::size_t here, descend(*by_name_.at(name), level + 1));
      below += here;
      if (here == 0) continue;
      fabric::LinkRate uplink;
      uplink.bandwidth = nics_.bandwidth * (static_cast<double>(here) * nics_.per_node);
      links_.cables.push_back({"s:" + name, "s:" + at.name, uplink, {}, 1, at.where});
    }
    return below;
  }

  // All switches of a level must be alike for a fat tree.
  void count(std::size_t level, std::size_t children, bool nodes) {
    const auto [at, is_new] = levels_.try_emplace(level, children, nodes);
    if (!is_new && at->second != std::pair(children, nodes)) regular_ = false;
  }

  // From the adapters upwards.
  [[nodiscard]] fabric::FatTree fat_tree() const {
    fabric::FatTree result;
    for (auto level = levels_.rbegin(); level != levels_.rend(); ++level)
      result.down.push_back(static_cast<int>(level->second.first));
    result.down.front() *= nics_.per_node;
    result.up.assign(result.down.size() - 1, 1);
    return result;
  }

  const SwitchTree& tree_;
  const Nics& nics_;
  std::map<std::string, const Switch*> by_name_, above_;
  std::map<std::size_t, std::pair<std::size_t, bool>> levels_;  // children of each switch, and whether they are nodes
  std::size_t visited_ = 0;
  bool regular_ = true;
  fabric::Custom links_;
  LaidTree laid_;
};

}  // namespace

Result<LaidTree> lay_out(const SwitchTree& tree, const Nics& nics, const std::string& file) {
  return Laying(tree, nics).run(file);
}

}  // namespace sibyl::import
