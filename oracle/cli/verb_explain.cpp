// explain: why the network model answers what it does for one exchange, step by step.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/quantity.h"
#include "netmodel/explain.h"
#include "netmodel/library.h"
#include "netmodel/simulate.h"
#include "netmodel/topology.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/study.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/format.h"

namespace sibyl::cli {
namespace {

using Json = nlohmann::ordered_json;
using enum Column::Align;

// What is asked about.
struct Question {
  Collective collective = Collective::all_reduce;
  Bytes bytes;
  GroupPlacement placement;
  Algorithm asked = Algorithm::automatic;
  std::optional<Protocol> protocol;  // else the cluster's
  std::optional<Library> library;    // else the cluster's
  double imbalance = 1.0;
  bool simulate = false, step_by_step = false;
  std::vector<SimulatedExchange> beside;  // at once
};

constexpr std::array collectives{Collective::all_reduce,  Collective::reduce_scatter, Collective::all_gather,
                                 Collective::broadcast,   Collective::reduce,         Collective::all_to_all,
                                 Collective::send_receive};

std::string spelt(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

std::vector<std::string> collective_words() {
  std::vector<std::string> words;
  for (const Collective collective : collectives) words.push_back(spelt(to_string(collective)));
  return words;
}

Result<GroupPlacement> read_placement(const Arguments& arguments, const Cluster& cluster) {
  SIBYL_TRY(const auto ranks, arguments.integer("--ranks", 1, most_devices));
  const auto all = static_cast<int>(ranks.value_or(cluster.devices()));
  SIBYL_TRY(const auto each, arguments.integer("--ranks-per-node", 1, most_devices));
  GroupPlacement placement;
  placement.ranks_per_node = static_cast<int>(each.value_or(std::min(all, cluster.devices_per_node)));
  if (placement.ranks_per_node > cluster.devices_per_node)
    return fail(ErrorCode::usage,
                fmt::format("--ranks-per-node: a node of {} has {} devices", cluster.name, cluster.devices_per_node));
  if (all % placement.ranks_per_node != 0)
    return fail(ErrorCode::usage,
                fmt::format("--ranks: {} is not divisible by {} ranks on a node", all, placement.ranks_per_node));
  placement.nodes = all / placement.ranks_per_node;
  if (placement.nodes > cluster.nodes)
    return fail(
        ErrorCode::usage,
        fmt::format("--ranks: {} are on {} nodes, but {} has {}", all, placement.nodes, cluster.name, cluster.nodes),
        {}, "fewer ranks, or --nodes");
  SIBYL_TRY(const auto groups, arguments.integer("--groups-per-node", 1, most_devices));
  placement.groups_per_node = static_cast<int>(groups.value_or(1));
  return placement;
}

Result<Collective> named_collective(const std::string& name) {
  for (const Collective known : collectives)
    if (spelt(to_string(known)) == name) return known;
  return fail(ErrorCode::usage, fmt::format("no collective is called '{}'", name), {},
              fmt::format("{}", fmt::join(collective_words(), ", ")));
}

// "all-gather:16MiB".
Result<SimulatedExchange> read_beside(const std::string& text, const GroupPlacement& placement) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos)
    return fail(ErrorCode::usage, fmt::format("--beside: '{}' is no COLLECTIVE:SIZE", text), {},
                "write --beside all-gather:16MiB");
  SimulatedExchange exchange;
  exchange.placement = placement;
  SIBYL_TRY(exchange.collective, named_collective(text.substr(0, colon)));
  const auto bytes = parse_bytes(text.substr(colon + 1));
  if (!bytes) return fail(ErrorCode::usage, "--beside: " + bytes.error().message, {}, bytes.error().hint);
  exchange.bytes = *bytes;
  return exchange;
}

Result<double> read_imbalance(const Arguments& arguments, const Question& question) {
  SIBYL_TRY(const std::optional<double> imbalance, arguments.number("--imbalance"));
  if (!imbalance) return 1.0;
  if (question.collective != Collective::all_to_all)
    return fail(ErrorCode::usage, "--imbalance is of an all-to-all", {}, "--collective all-to-all");
  if (const int ranks = question.placement.size(); !(*imbalance >= 1 && *imbalance <= ranks))
    return fail(ErrorCode::usage,
                fmt::format("--imbalance: one of {} ranks gets 1 to {} times its share", ranks, ranks));
  return *imbalance;
}

Result<Question> read_question(const Arguments& arguments, const Cluster& cluster) {
  Question question;
  SIBYL_TRY(question.collective, named_collective(arguments.text("--collective").value_or("all-reduce")));
  SIBYL_TRY(const auto bytes, arguments.bytes("--bytes"));
  if (!bytes) return fail(ErrorCode::usage, "--bytes is missing", {}, "write --bytes 64MiB");
  question.bytes = *bytes;
  SIBYL_TRY(question.placement, read_placement(arguments, cluster));
  std::string algorithm = arguments.text("--algorithm").value_or("automatic");
  std::ranges::replace(algorithm, '-', '_');
  const auto asked = parse_algorithm(algorithm);
  if (!asked) return fail(ErrorCode::usage, "--algorithm: " + asked.error().message, {}, asked.error().hint);
  question.asked = *asked;
  if (const auto name = arguments.text("--protocol")) {
    SIBYL_TRY(question.protocol, parse_protocol(*name));
  }
  if (const auto name = arguments.text("--library")) {
    const auto library = parse_library(*name);
    if (!library) return fail(ErrorCode::usage, "--library: " + library.error().message, {}, library.error().hint);
    question.library = *library;
  }
  SIBYL_TRY(question.imbalance, read_imbalance(arguments, question));
  for (const std::string& text : arguments.all("--beside")) {
    SIBYL_TRY(SimulatedExchange exchange, read_beside(text, question.placement));
    question.beside.push_back(exchange);
  }
  question.step_by_step = arguments.has("--step-by-step");
  question.simulate = arguments.has("--simulate") || question.step_by_step || !question.beside.empty();
  return question;
}

Json placement_json(const GroupPlacement& placement) {
  return {{"ranks_per_node", placement.ranks_per_node},
          {"nodes", placement.nodes},
          {"groups_per_node", placement.groups_per_node}};
}

Json round_json(const NetworkExplanation::Round& round) {
  return {{"what", round.what},
          {"times", round.times},
          {"messages", round.messages},
          {"message_bytes", round.message.value()},
          {"latency_s", round.latency.value()},
          {"transfer_s", round.transfer.value()},
          {"total_s", round.total().value()},
          {"busiest_link", round.busiest_link},
          {"busiest_link_bytes", round.over_busiest_link.value()},
          {"busiest_link_rate", round.gives.value()},
          {"route", round.route}};
}

using Simulated = std::vector<SimulatedExchange>;

Json simulation_json(const Simulated& simulated) {
  Json exchanges = Json::array();
  for (const SimulatedExchange& it : simulated) {
    exchanges.push_back({{"collective", to_string(it.collective)},
                         {"bytes", it.bytes.value()},
                         {"algorithm", to_string(it.algorithm)},
                         {"closed_form_s", it.closed_form.value()},
                         {"alone_s", it.alone.value()},
                         {"at_once_s", it.at_once.value()}});
    if (it.steps)
      exchanges.back()["step_by_step"] = {{"time_s", it.steps->time.value()}, {"messages", it.steps->messages}};
  }
  return exchanges;
}

Json to_json(const Cluster& cluster, const Question& question, const NetworkExplanation& e,
             const Simulated& simulated) {
  Json candidates = Json::array(), protocols = Json::array(), distances = Json::array(), rounds = Json::array();
  for (const auto& [algorithm, time] : e.candidates)
    candidates.push_back({{"algorithm", to_string(algorithm)}, {"time_s", time.value()}});
  for (const auto& d : e.distances)
    distances.push_back({{"what", d.what},
                         {"links", d.links},
                         {"latency_s", d.latency.value()},
                         {"bandwidth", d.bandwidth.value()},
                         {"mebibyte_s", d.message.value()}});
  for (const auto& [protocol, time] : e.protocols)
    protocols.push_back({{"protocol", to_string(protocol)}, {"time_s", time.value()}});
  for (const auto& round : e.rounds) rounds.push_back(round_json(round));
  Json samples;
  if (e.samples)
    samples = {{"placement", placement_json(e.samples->placement)},
               {"count", e.samples->count},
               {"from_bytes", e.samples->from.value()},
               {"to_bytes", e.samples->to.value()}};
  return {{"schema", "sibyl-explain-network"},
          {"version", 1},
          {"cluster", cluster.name},
          {"collective", to_string(question.collective)},
          {"bytes", question.bytes.value()},
          {"placement", placement_json(question.placement)},
          {"imbalance", question.imbalance},
          {"algorithm", to_string(e.estimate.algorithm)},
          {"why", e.why},
          {"time_s", e.estimate.time.time.value()},
          {"relative_error", e.estimate.time.relative_error},
          {"provenance", to_string(e.estimate.time.provenance)},
          {"in_turn", e.estimate.in_turn},
          {"answered_by", e.answered_by},
          {"samples", samples},
          {"formula_s", e.by_formula.value()},
          {"launch_s", e.launch.value()},
          {"candidates_by_formula", candidates},
          {"protocol", e.protocol ? Json(to_string(*e.protocol)) : Json()},
          {"protocols_by_formula", protocols},
          {"distances", distances},
          {"rounds", rounds},
          {"simulated", simulation_json(simulated)}};
}

Table rounds_table(const NetworkExplanation& e) {
  Table table{.columns = {{"step", "step", left},
                          {"times", "times"},
                          {"messages", "messages"},
                          {"each", "message_bytes"},
                          {"latency", "latency_s"},
                          {"transfer", "transfer_s"},
                          {"in all", "total_s"},
                          {"busiest link", "busiest_link", left}},
              .rows = {}};
  const auto cell = [](const auto& quantity) { return Cell(to_string(quantity), plain_number(quantity.value())); };
  for (const auto& round : e.rounds)
    table.rows.push_back({round.what, std::to_string(round.times), std::to_string(round.messages), cell(round.message),
                          cell(round.latency), cell(round.transfer), cell(round.total()), round.busiest_link});
  return table;
}

Table distances_table(const NetworkExplanation& e) {
  Table table{.columns = {{"messages", "what", left},
                          {"links", "links"},
                          {"latency", "latency_s"},
                          {"bandwidth", "bandwidth"},
                          {"1 MiB alone", "mebibyte_s"}},
              .rows = {}};
  const auto cell = [](const auto& quantity) { return Cell(to_string(quantity), plain_number(quantity.value())); };
  for (const auto& d : e.distances)
    table.rows.push_back({d.what, std::to_string(d.links), cell(d.latency), cell(d.bandwidth), cell(d.message)});
  return table;
}

std::string placed(const GroupPlacement& p) {
  std::string text = fmt::format("{}, {} on each", plural(p.nodes, "node"), plural(p.ranks_per_node, "rank"));
  if (p.groups_per_node > 1) text += fmt::format(", {} groups at once", p.groups_per_node);
  return text;
}

std::string simulation_text(const Simulated& simulated) {
  if (simulated.empty()) return {};
  const SimulatedExchange& asked = simulated.front();
  std::string text = fmt::format(
      "simulated     {} flow by flow; {} by the closed form of the same links, both without what a library adds\n",
      to_string(asked.alone), to_string(asked.closed_form));
  if (asked.steps)
    text += fmt::format("step by step  {}: {} messages, none taken to be like another\n", to_string(asked.steps->time),
                        asked.steps->messages);
  if (simulated.size() == 1) return text;
  text += fmt::format("at once       {} with those beside it\n", to_string(asked.at_once));
  for (const SimulatedExchange& it : std::span(simulated).subspan(1))
    text +=
        fmt::format("beside        {} of {} ({}): {}, alone {}\n", spelt(to_string(it.collective)), to_string(it.bytes),
                    spelt(to_string(it.algorithm)), to_string(it.at_once), to_string(it.alone));
  return text;
}

std::string to_text(const Cluster& cluster, const Question& question, const NetworkExplanation& e,
                    const Simulated& simulated) {
  const Estimate& time = e.estimate.time;
  std::string text = fmt::format("{} of {} on {}: {}\n", spelt(to_string(question.collective)),
                                 to_string(question.bytes), cluster.name, placed(question.placement));
  if (question.imbalance != 1) text += fmt::format("one rank gets {:.3g} times its share\n", question.imbalance);
  text += "\n";
  text += fmt::format("time          {} ± {} ({})\n", to_string(time.time), percent(time.relative_error),
                      to_string(time.provenance));
  if (e.estimate.in_turn != 1)
    text += fmt::format("in turn       {}: one of several, with computing between\n",
                        to_string(time.time * e.estimate.in_turn));
  text += fmt::format("algorithm     {}: {}\n", spelt(to_string(e.estimate.algorithm)), e.why);
  text += fmt::format("answered by   {}\n", e.answered_by);
  if (e.samples)
    text += fmt::format("samples       {}, {} to {}, on {}\n", e.samples->count, to_string(e.samples->from),
                        to_string(e.samples->to), placed(e.samples->placement));
  if (e.by_formula.value() > 0)
    text += fmt::format("formula       {}, of which {} to launch\n", to_string(e.by_formula), to_string(e.launch));
  text += simulation_text(simulated);
  std::vector<std::string> others;
  for (const auto& [algorithm, seconds] : e.candidates)
    others.push_back(fmt::format("{} {}", spelt(to_string(algorithm)), to_string(seconds)));
  if (others.size() > 1) text += fmt::format("by formula    {}\n", fmt::join(others, ", "));
  std::vector<std::string> spoken;
  for (const auto& [protocol, seconds] : e.protocols)
    spoken.push_back(fmt::format("{} {}", to_string(protocol), to_string(seconds)));
  if (e.protocol)
    text += fmt::format("protocol      {} by formula, of {}\n", to_string(*e.protocol), fmt::join(spoken, ", "));
  if (!e.distances.empty()) text += "\n" + aligned_text(distances_table(e));
  if (e.rounds.empty()) return text;
  text += "\n" + aligned_text(rounds_table(e));
  const auto slowest = std::ranges::max_element(e.rounds, {}, [](const auto& round) { return round.total(); });
  if (slowest->route.empty()) return text;
  return text + fmt::format("\nThe step that takes longest: {}. Over {} go {} at {}; one message's way:\n  {}\n",
                            slowest->what, slowest->busiest_link, to_string(slowest->over_busiest_link),
                            to_string(slowest->gives), fmt::join(slowest->route, " -> "));
}

Result<int> run_explain(const Arguments& arguments) {
  if (arguments.operands().front() != "network")
    return fail(ErrorCode::usage, fmt::format("'{}' cannot be explained", arguments.operands().front()), {},
                "sibyl explain network");
  SIBYL_TRY(const Cluster cluster, read_cluster(arguments));
  SIBYL_TRY(const Question question, read_question(arguments, cluster));
  Network network = question.protocol ? cluster.network.speaking(*question.protocol) : cluster.network;
  if (question.library) network = network.running({*question.library});
  const NetworkExplanation explanation =
      network.explain(question.collective, question.bytes, question.placement, question.asked, question.imbalance);
  Simulated simulated;
  if (question.simulate) {
    simulated = {{question.collective, question.bytes, question.placement, question.asked, question.imbalance}};
    std::ranges::copy(question.beside, std::back_inserter(simulated));
    SIBYL_TRY(simulated, network.simulate(std::move(simulated), question.step_by_step));
  }
  SIBYL_CHECK(print(arguments.has("--json") ? to_json(cluster, question, explanation, simulated).dump(2) + "\n"
                                            : to_text(cluster, question, explanation, simulated)));
  return 0;
}

}  // namespace

Verb explain_verb() {
  Command c;
  c.name = "explain";
  c.program = "sibyl explain";
  c.summary =
      "say why an exchange takes as long as it is predicted to: algorithm, route and busiest link, step by step";
  c.operands = "network";
  c.least_operands = c.most_operands = 1;
  c.examples = {{"sibyl explain network --cluster dgx-a100 --bytes 64MiB --ranks 64", "an all-reduce over 8 nodes"},
                {"sibyl explain network --cluster torus.yaml --collective all-to-all --bytes 16MiB --ranks 64 --json",
                 "for programs"}};
  c.options = concatenated(
      {{cluster_option(), nodes_option()},
       machine_options(),
       {{.name = "--collective",
         .value = "NAME",
         .help = "what is exchanged",
         .fallback = "all-reduce",
         .choices = collective_words()},
        {.name = "--bytes", .value = "SIZE", .help = "of the whole buffer; of an all-to-all, one rank's"},
        {.name = "--ranks", .value = "N", .help = "of the group, on neighbouring nodes; all devices unless given"},
        {.name = "--ranks-per-node", .value = "N", .help = "as many as a node has devices unless given"},
        {.name = "--groups-per-node",
         .value = "N",
         .help = "groups of a node that do the same at once",
         .fallback = "1"},
        {.name = "--algorithm",
         .value = "NAME",
         .help = "instead of what the library would choose",
         .fallback = "automatic"},
        {.name = "--protocol",
         .value = "NAME",
         .help = "NCCL's, instead of the quickest; the cluster's unless given",
         .choices = {"automatic", "LL", "LL128", "Simple"}},
        {.name = "--library",
         .value = "NAME",
         .help = "whose rules choose the algorithm; the cluster's unless given",
         .choices = {"automatic", "sibyl", "nccl", "open mpi", "mpich", "gloo"}},
        {.name = "--imbalance",
         .value = "F",
         .help = "of an all-to-all: the busiest rank gets F times its share, as experts do; 1 is even"},
        {.name = "--simulate",
         .help = "on a fabric also flow by flow, beside the closed form; rounds that are alike once"},
        {.name = "--step-by-step", .help = "simulate every message of every round, too"},
        {.name = "--beside",
         .value = "COLLECTIVE:SIZE",
         .help = "simulate that exchange of the same ranks at once",
         .repeatable = true}},
       output_options()});
  return {std::move(c), run_explain};
}

}  // namespace sibyl::cli
