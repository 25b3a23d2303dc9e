#include "calibration/device_codec.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

namespace sibyl::calibration_codec {
namespace {

using Line = nlohmann::ordered_json;

// One row for each library, pass and width of heads.
Line attention_lines(const std::vector<AttentionSpeed>& speeds) {
  Line lines = Line::array();
  for (const AttentionSpeed& s : speeds) {
    Line head{{"library", to_string(s.library)},
              {"pass", s.pass == Pass::forward ? "forward" : "backward"},
              {"causal", s.causal},
              {"head_dim", s.head_dim}};
    const auto same = [&](const Line& line) {
      return std::ranges::all_of(head.items(),
                                 [&](const auto& member) { return line[member.key()] == member.value(); });
    };
    if (lines.empty() || !same(lines.back())) lines.push_back(std::move(head));
    lines.back()["sequences"].push_back(s.sequence);
    lines.back()["flops_per_s"].push_back(s.speed.value());
  }
  return lines;
}

void attention_speeds(const JsonValue& v, std::vector<AttentionSpeed>& speeds) {
  v.only({"library", "pass", "causal", "head_dim", "sequences", "flops_per_s"});
  AttentionSpeed s;
  s.library = unwrap(parse_attention_library(v.text("library")), v, "library", AttentionLibrary::timed);
  if (s.library == AttentionLibrary::timed) v.reject("must be another library than the one that was timed", "library");
  const std::string pass = v.text("pass");
  if (pass != "forward" && pass != "backward") v.reject("must be \"forward\" or \"backward\"", "pass");
  s.pass = pass == "forward" ? Pass::forward : Pass::backward;
  s.causal = v.boolean("causal");
  if (!v.has("head_dim")) v.reject("is missing", "head_dim");
  s.head_dim = v.integer_or("head_dim", 1, 1);
  const auto numbers = [&](std::string_view key) {
    std::vector<double> all;
    v.each(key, [&](const JsonValue& number) { all.push_back(number.as_number(Sign::positive)); });
    return all;
  };
  const std::vector<double> lengths = numbers("sequences"), values = numbers("flops_per_s");
  if (lengths.size() != values.size() || lengths.empty())
    return v.reject("must hold a number for each of sequences", "flops_per_s");
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    s.sequence = std::llround(lengths[i]);
    s.speed = FlopsPerSecond{values[i]};
    speeds.push_back(s);
  }
}

}  // namespace

std::string write_device(const Device& device) {
  Line peaks = Line::object();
  for (const auto& [dtype, peak] : device.peak) peaks[std::string(to_string(dtype))] = peak.value();
  Line line{{"name", device.name},
            {"backend", device.backend == Backend::cuda ? "cuda" : "cpu"},
            {"peak_flops_per_s", peaks},
            {"memory_bandwidth_bytes_per_s", device.memory_bandwidth.value()},
            {"memory_bytes", device.memory.value()},
            {"cache_bytes", device.cache.value()},
            {"framework_base_bytes", device.framework_base.value()},
            {"dispatch_s", device.dispatch.value()}};
  for (const auto& [dtype, share] : device.unit_share) line["unit_share"][std::string(to_string(dtype))] = share;
  if (!device.architecture.empty()) line["architecture"] = device.architecture;
  if (device.multiprocessors > 0) line["multiprocessors"] = device.multiprocessors;
  if (device.board_power.value() > 0) line["board_power_w"] = device.board_power.value();
  if (device.boost_power.value() > 0) line["boost_power_w"] = device.boost_power.value();
  if (device.dispatch_error > 0) line["dispatch_error"] = device.dispatch_error;
  if (device.spread > 0) line["spread"] = device.spread;
  if (device.host_link.value() > 0) line["host_link_bytes_per_s"] = device.host_link.value();
  if (!device.attention_speeds.empty()) line["attention_speeds"] = attention_lines(device.attention_speeds);
  return line.dump(-1, ' ', false, Line::error_handler_t::replace);
}

Device read_device(const JsonValue& v) {
  v.only({"name", "backend", "architecture", "multiprocessors", "peak_flops_per_s", "unit_share",
          "memory_bandwidth_bytes_per_s", "memory_bytes", "cache_bytes", "board_power_w", "boost_power_w",
          "framework_base_bytes", "dispatch_s", "dispatch_error", "spread", "host_link_bytes_per_s",
          "attention_speeds"});
  Device d;
  d.name = v.text("name");
  const std::string backend = v.text("backend");
  if (backend != "cpu" && backend != "cuda") v.reject("must be \"cpu\" or \"cuda\"", "backend");
  d.backend = backend == "cpu" ? Backend::cpu : Backend::cuda;
  d.architecture = v.text_or("architecture", {});
  d.multiprocessors = v.integer_or("multiprocessors", 0, 0);
  v.members("peak_flops_per_s", [&](const std::string& name, const JsonValue& peak) {
    const auto dtype = parse_dtype(name);
    if (!dtype) return peak.reject("is not an element type");
    d.peak[*dtype] = FlopsPerSecond{peak.as_number(Sign::positive)};
  });
  v.members("unit_share", [&](const std::string& name, const JsonValue& share) {
    const auto dtype = parse_dtype(name);
    if (!dtype) return share.reject("is not an element type");
    d.unit_share[*dtype] = share.as_number(Sign::positive);
    if (d.unit_share[*dtype] > 1) share.reject("must not be above 1");
  });
  d.memory_bandwidth = BytesPerSecond{v.number("memory_bandwidth_bytes_per_s", Sign::positive)};
  d.memory = Bytes{v.number("memory_bytes", Sign::positive)};
  d.cache = Bytes{v.number_or("cache_bytes", Sign::not_negative, 0)};
  d.board_power = Watts{v.number_or("board_power_w", Sign::not_negative, 0)};
  d.boost_power = Watts{v.number_or("boost_power_w", Sign::not_negative, 0)};
  d.framework_base = Bytes{v.number_or("framework_base_bytes", Sign::not_negative, 0)};
  d.dispatch = Seconds{v.number_or("dispatch_s", Sign::not_negative, 0)};
  d.dispatch_error = v.number_or("dispatch_error", Sign::not_negative, 0);
  d.spread = v.number_or("spread", Sign::not_negative, 0);
  d.host_link = BytesPerSecond{v.number_or("host_link_bytes_per_s", Sign::not_negative, 0)};
  v.each("attention_speeds", [&](const JsonValue& row) { attention_speeds(row, d.attention_speeds); });
  return d;
}

}  // namespace sibyl::calibration_codec
