#include "calibration/import/cluster_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "calibration/import/switch_tree.h"
#include "calibration/library_file.h"

namespace sibyl::import {
namespace {

// Without an exponent, which quantities are not read with.
std::string plain(double value) {
  std::string text = fmt::format("{:.6f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}
std::string rate(BytesPerSecond r) { return plain(r.value() / 1e9) + "GB/s"; }
std::string time(Seconds t) { return plain(t.value() * 1e6) + "us"; }
// Any word, as YAML takes it.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result + '"';
}

// Of all parts the one that says it.
template <class T>
Result<std::optional<T>> only_one(const std::vector<Source>& sources, std::optional<T> Part::*member,
                                  const char* what) {
  std::optional<T> value;
  std::string said_by;
  for (const Source& source : sources) {
    const std::optional<T>& here = source.part.*member;
    if (!here) continue;
    if (value)
      return fail(fmt::format("{} and {} both say {}", said_by, source.file, what), source.file, "import one of them");
    value = here;
    said_by = source.file;
  }
  return value;
}

std::string background_text(double share) { return share > 0 ? ", background: " + plain(share) : ""; }

std::string inside_text(const fabric::Inside& inside) {
  if (const auto* planes = std::get_if<fabric::NvSwitch>(&inside))
    return fmt::format("{{kind: nvswitch, switches: {}}}", planes->switches);
  if (std::holds_alternative<fabric::Mesh>(inside)) return "{kind: fully connected}";
  if (std::holds_alternative<fabric::InnerRing>(inside)) return "{kind: ring}";
  if (const auto* cube = std::get_if<fabric::CubeMesh>(&inside))
    return fmt::format("{{kind: hybrid cube mesh, links: {}}}", cube->links);
  if (const auto* tree = std::get_if<fabric::PcieTree>(&inside))
    return fmt::format("{{kind: pcie tree, sockets: {}, switches_per_socket: {}}}", tree->sockets,
                       tree->switches_per_socket);
  return {};
}

std::string cable_text(const fabric::Custom::Cable& cable) {
  std::string text = fmt::format("    - {{from: {}, to: {}", quoted(cable.from), quoted(cable.to));
  if (cable.link.bandwidth.value() > 0) text += fmt::format(", bandwidth: {}", rate(cable.link.bandwidth));
  return text + "}\n";
}

std::string network_text(const fabric::Outside& network) {
  if (const auto* torus = std::get_if<fabric::Torus>(&network))
    return fmt::format("  kind: torus\n  dimensions: [{}]\n", fmt::join(torus->dimensions, ", "));
  if (const auto* tree = std::get_if<fabric::FatTree>(&network))
    return fmt::format("  kind: fat tree\n  down: [{}]\n", fmt::join(tree->down, ", ")) +
           (tree->up.empty() ? "" : fmt::format("  up: [{}]\n", fmt::join(tree->up, ", ")));
  if (const auto* custom = std::get_if<fabric::Custom>(&network)) {
    std::string text = "  kind: custom\n  links:\n";
    for (const fabric::Custom::Cable& cable : custom->cables) text += cable_text(cable);
    return text;
  }
  return "  kind: fully connected\n";
}

class Writer {
 public:
  Writer(const std::vector<Source>& sources, const Wanted& wanted) : sources_(sources), wanted_(wanted) {}

  Result<std::string> run() {
    SIBYL_CHECK(gather());
    SIBYL_CHECK(fill());
    SIBYL_CHECK(lay_tree());
    return head() + body();
  }

 private:
  Result<void> gather() {
    SIBYL_TRY(nodes_, only_one(sources_, &Part::nodes, "how many nodes there are"));
    SIBYL_TRY(devices_, only_one(sources_, &Part::devices_per_node, "what a node is"));
    SIBYL_TRY(link_, only_one(sources_, &Part::device_link, "what joins devices"));
    SIBYL_TRY(inside_, only_one(sources_, &Part::inside, "what joins devices"));
    SIBYL_TRY(nics_, only_one(sources_, &Part::nics, "which adapters a node has"));
    SIBYL_TRY(network_, only_one(sources_, &Part::network, "what joins nodes"));
    SIBYL_TRY(tree_, only_one(sources_, &Part::tree, "what joins nodes"));
    if (tree_ && network_) return fail("two files say what joins nodes", sources_.back().file, "import one of them");
    for (const Source& source : sources_) {
      if (source.part.network) rate_ = source.part.link;
      if (source.part.switch_latency) switch_latency_ = source.part.switch_latency;
      if (source.part.tree) tree_file_ = source.file;
      assumed_.insert(assumed_.end(), source.part.assumed.begin(), source.part.assumed.end());
    }
    return {};
  }

  // What no file says: the node of `like`, and usual figures.
  Result<void> fill() {
    const bool lacks_nics = !nics_ && !network_;
    if (wanted_.like && wanted_.like->network && (!devices_ || lacks_nics))
      return fail(fmt::format("what a node of {} is stands in a calibration", wanted_.like->name), "--like",
                  "name a cluster that says it itself");
    if (wanted_.like && lacks_nics) {
      const TopologySpec& spec = wanted_.like->topology;
      nics_ = Nics{spec.nics_per_node, spec.nic_bandwidth, spec.nic_latency, spec.nic_background};
      if (devices_) assumed_.push_back(fmt::format("adapters are those of {}", wanted_.like->name));
    }
    if (!devices_ && wanted_.like) {
      const TopologySpec& spec = wanted_.like->topology;
      devices_ = spec.devices_per_node;
      link_ = spec.device_link;
      node_is_like_ = true;
      assumed_.push_back(fmt::format("a node is one of {}", wanted_.like->name));
    }
    if (!devices_ || !link_)
      return fail("none of the files says what a node is", sources_.front().file,
                  "import an NCCL topology beside it, or take the node of another cluster: --like dgx-h100");
    calibration_ = wanted_.calibration;
    if (calibration_.empty() && wanted_.like) calibration_ = wanted_.like->calibration;
    if (calibration_.empty())
      return fail(ErrorCode::usage, "none of the files says which devices these are", {}, "--calibration h100-sxm");
    if (wanted_.nodes && (nodes_ || tree_))
      return fail(ErrorCode::usage, "a file says how many nodes there are", "--nodes");
    if (wanted_.nodes) nodes_ = wanted_.nodes;
    if (!nodes_ && !tree_) nodes_ = 1, assumed_.push_back("one node: no file says how many (--nodes)");
    if (!nics_ && !network_ && (tree_ || *nodes_ > 1))
      return fail("none of the files says which adapters a node has", sources_.front().file,
                  "import an NCCL topology beside it, or take the node of another cluster: --like dgx-h100");
    if (nics_ && nics_->bandwidth.value() <= 0)
      return fail("none of the files says how fast the adapters are", sources_.front().file,
                  "import an NCCL topology instead");
    if (nics_ && !nics_->latency)
      nics_->latency = Seconds{1.35e-6}, assumed_.push_back("adapters have the latency of InfiniBand's");
    return {};
  }

  Result<void> lay_tree() {
    if (!tree_) return {};
    SIBYL_TRY(LaidTree laid, lay_out(*tree_, *nics_, tree_file_));
    nodes_ = static_cast<int>(laid.nodes.size());
    network_ = std::move(laid.network);
    names_ = std::move(laid.nodes);
    rate_ = {};
    if (std::holds_alternative<fabric::Custom>(*network_)) rate_.bandwidth = nics_->bandwidth;
    assumed_.push_back(
        "every uplink carries what all adapters below it send (else write oversubscription, or a bandwidth)");
    return {};
  }

  [[nodiscard]] std::string head() const {
    std::string text;
    for (const Source& source : sources_)
      text += fmt::format("# From {}: {}.\n", source.part.format, quoted(source.file));
    if (!names_.empty())
      text += fmt::format("# Nodes in the order of the switches: {} to {}.\n", quoted(names_.front()),
                          quoted(names_.back()));
    std::set<std::string> said;
    for (const std::string& sentence : assumed_)
      if (said.insert(sentence).second) text += fmt::format("# Assumed: {}.\n", sentence);
    return text;
  }

  [[nodiscard]] std::string body() const {
    std::string text = fmt::format("name: {}\ncalibration: {}\nnodes: {}\ndevices_per_node: {}\n", quoted(wanted_.name),
                                   quoted(calibration_), *nodes_, *devices_);
    text += fmt::format("device_link: {{kind: {}, bandwidth: {}, latency: {}{}{}}}\n", to_string(link_->kind),
                        rate(link_->bandwidth), time(link_->latency), link_->reduces ? ", reduces: true" : "",
                        background_text(link_->background));
    if (nics_)
      text += fmt::format("nic: {{per_node: {}, bandwidth: {}, latency: {}{}}}\n", nics_->per_node,
                          rate(nics_->bandwidth), time(*nics_->latency), background_text(nics_->background));
    const std::string inside = inside_ ? inside_text(*inside_) : "";
    if (network_) {
      text += "fabric:\n" + network_text(*network_);
      if (rate_.bandwidth.value() > 0)
        text += fmt::format("  link: {{bandwidth: {}, latency: {}}}\n", rate(rate_.bandwidth), time(rate_.latency));
      if (switch_latency_) text += fmt::format("  switch_latency: {}\n", time(*switch_latency_));
    } else if (nics_ && !inside.empty()) {
      text += fmt::format("fabric:\n  kind: fat tree\n  down: [{}]\n", *nodes_ * nics_->per_node);
    }
    if (!inside.empty() && (network_ || nics_)) text += fmt::format("  inside: {}\n", inside);
    return text + settings();
  }

  // What `like` says beside its links and switches, as far as it is of what is taken from it.
  [[nodiscard]] std::string settings() const {
    if (!wanted_.like) return {};
    const ClusterFile& like = *wanted_.like;
    std::string text;
    if (like.algorithm != Algorithm::automatic) text += fmt::format("algorithm: {}\n", to_string(like.algorithm));
    if (like.protocol != Protocol::automatic) text += fmt::format("protocol: {}\n", to_string(like.protocol));
    if (like.library.library != Library::automatic) text += library_text(like.library);
    if (wanted_.calibration.empty()) {
      if (like.overlap)
        text += fmt::format("overlap: {{compute_slowdown: {}, communication_slowdown: {}}}\n",
                            plain(like.overlap->compute_slowdown), plain(like.overlap->communication_slowdown));
      if (like.step_overhead_per_operation)
        text += fmt::format("step_overhead_per_operation: {}\n", time(*like.step_overhead_per_operation));
    }
    if (node_is_like_) {
      if (like.storage_read) text += fmt::format("storage: {{bandwidth: {}}}\n", rate(*like.storage_read));
      if (like.host_link) text += fmt::format("host_link: {{bandwidth: {}}}\n", rate(*like.host_link));
    }
    return text;
  }

  const std::vector<Source>& sources_;
  const Wanted& wanted_;
  std::optional<int> nodes_, devices_;
  std::optional<LinkSpec> link_;
  std::optional<fabric::Inside> inside_;
  std::optional<Nics> nics_;
  std::optional<fabric::Outside> network_;
  std::optional<SwitchTree> tree_;
  std::string tree_file_, calibration_;
  fabric::LinkRate rate_;
  std::optional<Seconds> switch_latency_;
  std::vector<std::string> names_, assumed_;
  bool node_is_like_ = false;  // no file describes one
};

}  // namespace

Result<std::string> cluster_text(const std::vector<Source>& sources, const Wanted& wanted) {
  return Writer(sources, wanted).run();
}

}  // namespace sibyl::import
