// Keys and their order stand in docs/formats/prediction.md; read_json.cpp reads the same.
#include <cmath>
#include <nlohmann/json.hpp>

#include "oracle/report/report.h"
#include "oracle/report/table_json.h"

namespace sibyl {
namespace {

using Json = nlohmann::ordered_json;

// Whole numbers of bytes are written without a fraction.
Json bytes(Bytes b) {
  const double v = b.value();
  constexpr double exact = 9007199254740992.0;  // 2^53
  if (std::floor(v) == v && std::abs(v) < exact) return static_cast<std::int64_t>(v);
  return v;
}

Json estimate(const Estimate& e) {
  return {{"time_s", e.time.value()}, {"relative_error", e.relative_error}, {"provenance", to_string(e.provenance)}};
}

Json memory(const MemoryBreakdown& m) {
  Json json = {{"total", bytes(m.total)}};
  for (const MemoryPart& part : memory_parts()) json[std::string(part.key)] = bytes(m.*part.value);
  if (m.reserved.value() > 0) json["reserved"] = bytes(m.reserved);
  return json;
}

Json breakdown(const TimeBreakdown& b) {
  Json json;
  for (const TimePart& part : time_parts())
    if (part.always || (b.*part.value).value() > 0) json[std::string(part.key)] = (b.*part.value).value();
  return json;
}

Json limits(const std::vector<Limit>& all) {
  Json list = Json::array();
  for (const Limit& l : all)
    list.push_back({{"name", l.name},
                    {"where", l.where},
                    {"value", l.value},
                    {"unit", l.unit},
                    {"share", l.share},
                    {"relief", l.relief}});
  return list;
}

Json stages(const Prediction& p) {
  Json list = Json::array();
  for (const StageCost& s : p.stages)
    list.push_back({{"first", s.first},
                    {"coordinate", s.coordinate},
                    {"forward_s", s.forward.value()},
                    {"backward_s", s.backward.value()},
                    {"bytes_sent", s.bytes_sent},
                    {"memory_bytes", bytes(s.memory)},
                    {"bubble_s", s.bubble.value()}});
  return list;
}

Json plan(const Prediction& p) {
  Json json = {{"devices", p.devices},
          {"nodes", p.nodes},
          {"parallel", p.parallel},
          {"global_batch", p.global_batch},
          {"micro_batch", p.micro_batch},
          {"micro_batches", p.micro_batches},
          {"precision", p.precision},
          {"optimizer", p.optimizer},
          {"buckets", p.buckets},
          {"algorithm", p.algorithm},
          {"bytes_sent_per_rank", p.bytes_sent}};
  for (const BytesSentPart& part : bytes_sent_parts) json["bytes_sent"][std::string(part.key)] = p.bytes_by_kind.*part.value;
  if (p.zero > 0) json["zero"] = p.zero;
  if (p.zero_ranks > 0) json["zero_ranks"] = p.zero_ranks;
  if (p.reduce_each) json["reduce_each"] = true;
  if (p.gather_late) json["gather_late"] = true;
  if (!p.offload.empty()) json["offload"] = p.offload;
  if (!p.recompute.empty()) json["recompute"] = p.recompute;
  if (!p.order.empty()) json["order"] = p.order;
  if (!p.split_until.empty()) json["split_until"] = p.split_until;
  if (p.clip > 0) json["clip"] = p.clip;
  if (!p.batch_norm.empty()) json["batch_norm"] = p.batch_norm;
  if (!p.compress.empty()) json["compress"] = p.compress;
  if (p.half_weights) json["half_weights"] = true;
  if (p.fp32_gradients) json["fp32_gradients"] = true;
  if (!p.context_exchange.empty()) json["context_exchange"] = p.context_exchange;
  if (p.overlap_tensor) json["overlap_tensor"] = true;
  if (p.dropless) json["dropless"] = true;
  if (p.whole_experts) json["whole_experts"] = true;
  if (p.fused_update) json["fused_update"] = true;
  if (p.written_update) json["written_update"] = true;
  if (p.fused_norms) json["fused_norms"] = true;
  if (p.fused_pointwise) json["fused_pointwise"] = true;
  if (p.converted_images) json["converted_images"] = true;
  if (p.converted_norms) json["converted_norms"] = true;
  if (!p.attention.empty()) json["attention"] = p.attention;
  if (!p.bucket_bytes.empty()) json["bucket_bytes"] = p.bucket_bytes;
  if (!p.framework.empty()) json["framework"] = p.framework;
  if (p.stages.empty()) return json;
  json["schedule"] = p.schedule;
  json["stages"] = stages(p);
  return json;
}

Json nearest(const NearestSetting& n) {
  return {
      {"words", n.words}, {"devices", n.devices}, {"global_batch", n.global_batch}, {"memory_bytes", bytes(n.memory)}};
}

Json to_value(const PredictionReport& report) {
  const Prediction& p = report.prediction;
  Json json;
  json["schema"] = "sibyl-prediction";
  json["version"] = 1;
  json["model"] = report.model;
  json["cluster"] = report.cluster;
  json["step_time_s"] = p.step_time.value();
  json["interval_s"] = {p.interval_low.value(), p.interval_high.value()};
  json["throughput_samples_per_s"] = p.throughput;
  json["memory_bytes"] = memory(p.memory);
  json["memory_capacity_bytes"] = bytes(p.memory_capacity);
  json["fits"] = p.fits;
  if (report.nearest) json["nearest"] = nearest(*report.nearest);
  if (p.host_memory.value() > 0) json["host_memory_bytes"] = bytes(p.host_memory);
  if (p.storage.value() > 0) json["storage_bytes"] = bytes(p.storage);
  json["breakdown_s"] = breakdown(p.breakdown);
  json["bottleneck"] = {{"name", p.bottleneck.name}, {"share", p.bottleneck.share}, {"relief", p.bottleneck.relief}};
  if (!p.bottleneck.relieved_by.empty()) json["bottleneck"]["relieved_by"] = p.bottleneck.relieved_by;
  json["provenance"] = {{"measured", p.provenance.measured},
                        {"interpolated", p.provenance.interpolated},
                        {"estimated", p.provenance.estimated}};
  json["assumed"] = assumptions(p);
  if (!p.without_effect.empty()) json["without_effect"] = p.without_effect;
  json["plan"] = plan(p);
  json["options"] = report.options;
  json["limits"] = limits(p.limits);
  json["operations"] = Json::array();
  for (const OperationCost& o : p.operations)
    json["operations"].push_back(
        {{"name", o.name}, {"kind", o.kind}, {"forward", estimate(o.forward)}, {"backward", estimate(o.backward)}});
  return json;
}

// Names come from the user's files and may hold any bytes.
std::string written(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string limits_json(const std::vector<Limit>& all) { return written(limits(all)); }

std::string to_json(const PredictionReport& report) { return written(to_value(report)); }

std::string to_json(const ScaleReport& report) {
  Json json;
  json["schema"] = "sibyl-scale";
  json["version"] = 1;
  json["model"] = report.model;
  json["cluster"] = report.cluster;
  json["scaling"] = to_string(report.scaling);
  json["points"] = Json::array();
  for (const ScalePoint& point : report.points) {
    Json entry = {{"devices", point.devices}};
    if (point.prediction) {
      entry["efficiency"] = point.efficiency;
      entry["prediction"] = to_value({report.model, report.cluster, *point.prediction});
    } else {
      const Error& error = point.prediction.error();
      entry["error"] = {{"message", error.message}, {"where", error.where}, {"hint", error.hint}};
    }
    json["points"].push_back(std::move(entry));
  }
  if (report.nearest) json["nearest"] = nearest(*report.nearest);
  return written(json);
}

}  // namespace sibyl
