// Slurm's topology.yaml (25.05): a list of topologies, each a tree (switches with their children or nodes), blocks
// (which then hang below one switch), or flat. The one with cluster_default counts, else the first.
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "calibration/import/host_list.h"
#include "calibration/import/part.h"

namespace sibyl::import {
namespace {

class SlurmYamlReader {
 public:
  explicit SlurmYamlReader(std::string file) : file_(std::move(file)) {}

  Result<Part> read(const YAML::Node& root) {
    if (!root.IsSequence() || root.size() == 0) return fail("must be a list of topologies", where(root));
    YAML::Node chosen = root[0];
    for (const YAML::Node& one : root) {
      if (!one.IsMap()) return fail("a topology must be a mapping", where(one));
      const YAML::Node preferred = one["cluster_default"];
      if (preferred && preferred.IsScalar() && preferred.Scalar() == "true") chosen.reset(one);
    }
    Part part;
    part.format = "Slurm topology.yaml";
    part.tree.emplace();
    if (const YAML::Node tree = chosen["tree"]) {
      SIBYL_CHECK(list(tree, "tree", "switches", "switch"));
    } else if (const YAML::Node block = chosen["block"]) {
      SIBYL_CHECK(list(block, "block", "blocks", "block"));
      SwitchTree::Switch over{"over-blocks", {}, {}, where(block)};
      for (const SwitchTree::Switch& one : switches_) over.switches.push_back(one.name);
      switches_.push_back(std::move(over));
    } else {
      return fail("the topology says nothing of links", where(chosen), "one with 'tree' or 'block' does");
    }
    if (switches_.empty()) return fail("the topology lists no switch", where(chosen));
    part.tree->switches = std::move(switches_);
    return part;
  }

 private:
  [[nodiscard]] std::string where(const YAML::Node& node) const {
    return node.Mark().is_null() ? file_ : fmt::format("{}:{}", file_, node.Mark().line + 1);
  }

  Result<std::vector<std::string>> names(const YAML::Node& node) {
    if (!node) return std::vector<std::string>{};
    if (!node.IsScalar()) return fail("must be a list of names as Slurm writes them", where(node), "like node[01-12]");
    return lists_.expand(node.Scalar(), where(node));
  }

  // Members of `owner`, a list under `key`, each with its name under `named`.
  Result<void> list(const YAML::Node& owner, const char* name, const char* key, const char* named) {
    if (!owner.IsMap() || !owner[key] || !owner[key].IsSequence())
      return fail(fmt::format("'{}' must have a list '{}'", name, key), where(owner));
    for (const YAML::Node& member : owner[key]) {
      if (!member.IsMap() || !member[named] || !member[named].IsScalar() || member[named].Scalar().empty())
        return fail(fmt::format("one of '{}' lacks the key '{}'", key, named), where(member));
      SwitchTree::Switch one{member[named].Scalar(), {}, {}, where(member)};
      SIBYL_TRY(one.switches, names(member["children"]));
      SIBYL_TRY(one.nodes, names(member["nodes"]));
      switches_.push_back(std::move(one));
    }
    return {};
  }

  std::string file_;
  HostLists lists_;
  std::vector<SwitchTree::Switch> switches_;
};

}  // namespace

Result<Part> read_slurm_yaml(std::string_view text, const std::string& file) {
  try {
    return SlurmYamlReader(file).read(YAML::Load(std::string(text)));
  } catch (const YAML::Exception& problem) {
    const std::string where = problem.mark.is_null() ? file : fmt::format("{}:{}", file, problem.mark.line + 1);
    return fail(fmt::format("not valid YAML: {}", problem.msg), where);
  }
}

}  // namespace sibyl::import
