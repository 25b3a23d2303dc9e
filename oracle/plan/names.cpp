#include "oracle/plan/names.h"

#include <fmt/format.h>

namespace sibyl {

std::string_view to_string(Turn::Kind kind) {
  constexpr std::string_view names[] = {"forward", "backward", "backward input", "backward weight"};
  return names[static_cast<std::size_t>(kind)];
}

std::string pass_name(const Graph& graph, const Compute& compute, Turn::Kind kind) {
  return fmt::format("{} {}", graph[compute.operation].name, to_string(kind));
}

std::string pass_name(const Graph& graph, const Stage& stage, const Step& step, Turn::Kind kind) {
  if (const auto* compute = std::get_if<Compute>(&step)) return pass_name(graph, *compute, kind);
  const auto& exchange = std::get<Exchange>(step);
  const Transfer& transfer = kind == Turn::Kind::forward ? exchange.forward : exchange.backward;
  return fmt::format("{} {} {}", to_string(transfer.motion), graph[stage[exchange.input].origin].name, to_string(kind));
}

std::string turn_name(const Turn& turn) {
  return fmt::format("{} {} of stage {}", to_string(turn.kind), turn.micro_batch, turn.stage);
}

std::string send_name(const Turn& turn) { return "send " + turn_name(turn); }

std::string bucket_name(std::size_t index, std::string_view exchange) {
  return fmt::format("{} bucket {}", exchange, index);
}

std::string unit_name(std::size_t index) { return fmt::format("all-gather unit {}", index); }
std::string unit_copy_name(std::size_t index) { return fmt::format("copy part of unit {}", index); }

std::string copy_name(const OffloadCopy& copy) {
  return fmt::format("{} state {}", copy.way == OffloadCopy::Way::in ? "read" : "write", copy.block);
}

std::string part_name(std::size_t unit) { return fmt::format("read part of unit {}", unit); }

std::string kept_name(std::size_t segment, OffloadCopy::Way way) {
  return fmt::format("{} kept {}", way == OffloadCopy::Way::in ? "read" : "write", segment);
}

}  // namespace sibyl
