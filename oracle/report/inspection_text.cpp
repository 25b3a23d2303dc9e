#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/quantity.h"
#include "models/untrained.h"
#include "oracle/report/format.h"
#include "oracle/report/inspection.h"
#include "oracle/report/paint.h"

namespace sibyl {
namespace {

constexpr std::size_t shown_layers = 10;

// "601.6 MFLOP", and "300.8 M multiply-adds": published counts have four digits.
std::string products(Flops flops) {
  constexpr std::array<std::string_view, 6> prefixes = {"", "k", "M", "G", "T", "P"};
  const auto text = [&](double value, std::string_view apart, std::string_view unit) {
    std::size_t i = 0;
    while (i + 1 < prefixes.size() && value >= 999.95) value /= 1000, ++i;
    const int digits = value < 9.9995 ? 3 : value < 99.995 ? 2 : 1;
    return fmt::format("{:.{}f} {}{}{}", value, i == 0 ? 0 : digits, prefixes[i], i == 0 ? "" : apart, unit);
  };
  return fmt::format("{:<11}  in convolutions and matrix products: {}", text(flops.value(), "", "FLOP"),
                     text(flops.value() / 2, " ", "multiply-adds"));
}

std::string heading(const Inspection& i, Paint paint) {
  std::string text = paint.bold(i.model);
  text += fmt::format("   opset {}", i.opset);
  if (!i.producer.empty()) text += fmt::format(", written by {}", i.producer);
  text += "\n\n";
  if (i.partial())
    text += "  " + paint.alarm("partial") +
            "      what follows counts only what could be read; the end says what could not\n";
  text += fmt::format("  parameters   {}   ({} in the file's types)\n", grouped(i.parameters),
                      to_string(i.parameter_bytes));
  if (!i.chosen.empty())
    text += fmt::format("  active       {}   for a token: {}\n", grouped(i.active_parameters), i.chosen);
  for (const UntrainedOutput& left : i.untrained) text += fmt::format("  left out     {}\n", untrained_sentence(left));
  text += fmt::format("  operations   {}\n", grouped(static_cast<std::int64_t>(i.operations.size())));
  text += fmt::format("  forward      {}   for a batch of {}\n", to_string(i.flops_forward), grouped(i.batch));
  if (i.products_forward.value() > 0)
    text += fmt::format("    of which   {}, as published counts are\n", products(i.products_forward));
  text += fmt::format("  backward     {}\n", to_string(i.flops_backward));
  if (i.products_backward.value() > 0) text += fmt::format("    of which   {}\n", products(i.products_backward));
  text += fmt::format("  activations  {}   kept for backward\n\n", to_string(i.activation_bytes));
  return text;
}

std::string kinds_section(const Inspection& i, Paint paint) {
  struct Sum {
    std::int64_t count = 0, parameters = 0;
    Flops flops;
    Bytes kept;
  };
  std::map<std::string, Sum> sums;
  for (const InspectedOperation& o : i.operations) {
    Sum& sum = sums[o.kind];
    sum.count += 1, sum.parameters += o.parameters, sum.flops += o.forward + o.backward, sum.kept += o.kept;
  }
  std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) { return a.second.flops > b.second.flops; });
  Table table{.columns = {{"kind", "", Column::Align::left},
                          {"count", ""},
                          {"parameters", ""},
                          {"fwd + bwd", ""},
                          {"share", ""},
                          {"kept", ""}},
              .rows = {}};
  const Flops all = i.flops_forward + i.flops_backward;
  for (const auto& [kind, sum] : order)
    table.rows.push_back({kind, grouped(sum.count), grouped(sum.parameters), to_string(sum.flops),
                          all.value() > 0 ? percent(sum.flops / all) : "", to_string(sum.kept)});
  return paint.heading("By kind") + "\n" + indented(aligned_text(table)) + "\n";
}

// Layers of one kind, shape and size, as those of a repeated block are.
struct AlikeOperations {
  const InspectedOperation* first = nullptr;
  std::int64_t count = 0;

  [[nodiscard]] Flops total() const { return static_cast<double>(count) * (first->forward + first->backward); }
};

std::vector<AlikeOperations> largest_groups(const std::vector<InspectedOperation>& operations) {
  std::vector<AlikeOperations> groups;
  std::map<std::tuple<std::string, std::string, std::int64_t, Flops, Flops>, std::size_t> index;
  for (const InspectedOperation& o : operations) {
    const auto [at, added] = index.try_emplace({o.kind, o.output, o.parameters, o.forward, o.backward}, groups.size());
    if (added) groups.push_back({&o, 0});
    ++groups[at->second].count;
  }
  std::ranges::stable_sort(groups,
                           [](const AlikeOperations& a, const AlikeOperations& b) { return a.total() > b.total(); });
  groups.resize(std::min(groups.size(), shown_layers));
  return groups;
}

std::string layers_section(const Inspection& i, Paint paint) {
  using enum Column::Align;
  Table table{.columns = {{"layer", "", left},
                          {"kind", "", left},
                          {"output", "", left},
                          {"alike", ""},
                          {"parameters", ""},
                          {"forward", ""},
                          {"backward", ""},
                          {"share of all", ""}},
              .rows = {}};
  const Flops all = i.flops_forward + i.flops_backward;
  for (const AlikeOperations& group : largest_groups(i.operations)) {
    const InspectedOperation& o = *group.first;
    table.rows.push_back({o.name, o.kind, o.output, grouped(group.count), grouped(o.parameters), to_string(o.forward),
                          to_string(o.backward), all.value() > 0 ? percent(group.total() / all) : ""});
  }
  return paint.heading("Layers that matter") + fmt::format(" (of {}; --csv lists all)\n", i.operations.size()) +
         indented(aligned_text(table)) + "\n";
}

std::string fused_section(const Inspection& i, Paint paint) {
  struct Sum {
    std::int64_t operations = 0, nodes = 0;
    const InspectedOperation* example = nullptr;
  };
  std::map<std::string, Sum> sums;
  for (const InspectedOperation& o : i.operations) {
    if (o.fused.size() < 2) continue;
    Sum& sum = sums[o.kind];
    sum.operations += 1, sum.nodes += static_cast<std::int64_t>(o.fused.size());
    if (sum.example == nullptr) sum.example = &o;
  }
  if (sums.empty()) return "";
  std::string text = paint.heading("Fused") + " into what a framework runs as one operation\n";
  for (const auto& [kind, sum] : sums)
    text += fmt::format("  {} of {} from {} (as {})\n", grouped(sum.operations), kind, plural(sum.nodes, "node"),
                        fmt::join(sum.example->fused, " + "));
  return text + "\n";
}

std::string assumed_section(const Inspection& i, Paint paint) {
  if (i.assumed.empty()) return "";
  std::string text = paint.heading("Assumed") + "\n";
  for (const std::string& line : i.assumed) text += "  - " + line + "\n";
  return text + "\n";
}

std::string unsupported_section(const Inspection& i, Paint paint) {
  if (i.unsupported.empty()) return "Every operation can be priced.\n";
  Table table{.columns = {{"node", "", Column::Align::left},
                          {"operator", "", Column::Align::left},
                          {"why", "", Column::Align::left}},
              .rows = {}};
  for (const Unsupported& u : i.unsupported) table.rows.push_back({u.node, u.op_type, u.reason});
  std::string text =
      paint.alarm(fmt::format("{} cannot be priced", plural(static_cast<std::int64_t>(i.unsupported.size()), "node")));
  if (i.unseen > 0) text += fmt::format(", and {} behind could not be looked at", plural(i.unseen, "node"));
  return text + "\n" + indented(aligned_text(table));
}

}  // namespace

std::string to_text(const Inspection& inspection, TextStyle style) {
  const Paint paint(style);
  std::string text = heading(inspection, paint);
  if (!inspection.operations.empty()) text += kinds_section(inspection, paint) + layers_section(inspection, paint);
  return text + fused_section(inspection, paint) + assumed_section(inspection, paint) +
         unsupported_section(inspection, paint);
}

Table to_table(const Inspection& inspection) {
  using enum Column::Align;
  Table table{.columns = {{"layer", "name", left},
                          {"kind", "kind", left},
                          {"output", "output", left},
                          {"parameters", "parameters"},
                          {"forward", "flops_forward"},
                          {"backward", "flops_backward"},
                          {"kept", "activation_bytes"},
                          {"nodes", "fused_nodes"}},
              .rows = {}};
  for (const InspectedOperation& o : inspection.operations)
    table.rows.push_back({o.name, o.kind, o.output, Cell(grouped(o.parameters), fmt::format("{}", o.parameters)),
                          Cell(to_string(o.forward), plain_number(o.forward.value())),
                          Cell(to_string(o.backward), plain_number(o.backward.value())),
                          Cell(to_string(o.kept), plain_number(o.kept.value())),
                          fmt::format("{}", std::max<std::size_t>(1, o.fused.size()))});
  return table;
}

namespace {

// Counts are whole, and written so.
nlohmann::ordered_json whole(double count) {
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (std::floor(count) == count && count < exact) return static_cast<std::int64_t>(count);
  return count;
}

}  // namespace

std::string to_json(const Inspection& i) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["schema"] = "sibyl-inspection";
  json["version"] = 1;
  json["model"] = i.model;
  json["producer"] = i.producer;
  json["opset"] = i.opset;
  json["batch"] = i.batch;
  json["parameters"] = i.parameters;
  json["flops_forward"] = whole(i.flops_forward.value());
  json["flops_backward"] = whole(i.flops_backward.value());
  json["flops_forward_products"] = whole(i.products_forward.value());
  json["flops_backward_products"] = whole(i.products_backward.value());
  json["activation_bytes"] = whole(i.activation_bytes.value());
  json["active_parameters"] = i.active_parameters;
  json["operations"] = Json::array();
  for (const InspectedOperation& o : i.operations)
    json["operations"].push_back({{"name", o.name},
                                  {"kind", o.kind},
                                  {"output", o.output},
                                  {"parameters", o.parameters},
                                  {"flops_forward", whole(o.forward.value())},
                                  {"flops_backward", whole(o.backward.value())},
                                  {"activation_bytes", whole(o.kept.value())},
                                  {"fused", o.fused}});
  json["assumed"] = i.assumed;
  json["partial"] = i.partial();
  json["unseen_nodes"] = i.unseen;
  json["unsupported"] = Json::array();
  for (const Unsupported& u : i.unsupported)
    json["unsupported"].push_back({{"node", u.node}, {"op_type", u.op_type}, {"reason", u.reason}});
  json["untrained"] = Json::array();
  for (const UntrainedOutput& left : i.untrained)
    json["untrained"].push_back(
        {{"output", left.output}, {"parameters", left.parameters}, {"elements", left.elements}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sibyl
