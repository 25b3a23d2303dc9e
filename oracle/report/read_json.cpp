#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

#include "oracle/report/report.h"

namespace sibyl {
namespace {

using Json = nlohmann::ordered_json;

// A JSON value and where it stands, for messages. The first mistake is kept; reading goes on with harmless defaults,
// and the reader's caller asks once at the end.
class Reader {
 public:
  Reader(const Json& value, std::string path, Error* first) : value_(value), path_(std::move(path)), first_(first) {}

  Reader at(const std::string& key) const {
    static const Json nothing;
    if (!value_.is_object() || !value_.contains(key)) return missing(key), Reader(nothing, path_ + "." + key, first_);
    return Reader(value_[key], path_ + "." + key, first_);
  }
  Reader at(std::size_t index) const { return Reader(value_[index], fmt::format("{}[{}]", path_, index), first_); }
  [[nodiscard]] bool has(const std::string& key) const { return value_.is_object() && value_.contains(key); }

  [[nodiscard]] std::size_t array_size() const {
    if (!value_.is_array()) return wrong("a list"), 0;
    return value_.size();
  }
  [[nodiscard]] double number() const {
    constexpr double most = 1e18;  // beyond any machine, and within 64-bit integers
    if (!value_.is_number() || !(std::abs(value_.get<double>()) <= most)) return wrong("a number, at most 1e18"), 0;
    return value_.get<double>();
  }
  [[nodiscard]] double share() const {
    const double v = number();
    if (v < 0) return wrong("a share of at least 0"), 0;
    return v;
  }
  [[nodiscard]] std::int64_t integer(std::int64_t least) const {
    const bool fits =
        value_.is_number_integer() && (!value_.is_number_unsigned() || value_.get<std::uint64_t>() <= INT64_MAX);
    if (!fits || value_.get<std::int64_t>() < least)
      return wrong(fmt::format("an integer of at least {}", least)), least;
    return value_.get<std::int64_t>();
  }
  [[nodiscard]] int small_integer(int least) const {
    const std::int64_t v = integer(least);
    if (v > std::numeric_limits<int>::max()) return wrong("a smaller integer"), least;
    return static_cast<int>(v);
  }
  [[nodiscard]] std::string text() const {
    if (!value_.is_string()) return wrong("text"), std::string();
    return value_.get<std::string>();
  }
  [[nodiscard]] bool boolean() const {
    if (!value_.is_boolean()) return wrong("true or false"), false;
    return value_.get<bool>();
  }
  void wrong(const std::string& expected) const { note(fmt::format("should be {}", expected), path_); }

 private:
  void missing(const std::string& key) const { note(fmt::format("'{}' is missing", key), path_); }
  void note(std::string message, const std::string& path) const {
    if (first_->message.empty()) *first_ = Error{ErrorCode::bad_input, std::move(message), path, {}};
  }

  const Json& value_;
  std::string path_;
  Error* first_;
};

Seconds seconds(const Reader& r) {
  const double v = r.number();
  if (v < 0) r.wrong("a time of at least 0");
  return Seconds{v};
}
Bytes bytes(const Reader& r) {
  const double v = r.number();
  if (v < 0) r.wrong("a size of at least 0");
  return Bytes{v};
}

Estimate estimate(const Reader& r) {
  Estimate e{seconds(r.at("time_s")), r.at("relative_error").share(), Provenance::estimated};
  const std::string provenance = r.at("provenance").text();
  if (provenance == "measured") {
    e.provenance = Provenance::measured;
  } else if (provenance == "interpolated") {
    e.provenance = Provenance::interpolated;
  } else if (provenance != "estimated") {
    r.at("provenance").wrong("measured, interpolated or estimated");
  }
  return e;
}

// What files written before it was there do not say.
void read_more_of_plan(const Reader& r, Prediction& p) {
  if (r.has("bytes_sent"))
    for (const BytesSentPart& part : bytes_sent_parts)
      p.bytes_by_kind.*part.value = r.at("bytes_sent").at(std::string(part.key)).integer(0);
  if (r.has("zero")) p.zero = r.at("zero").small_integer(0);
  if (r.has("zero_ranks")) p.zero_ranks = r.at("zero_ranks").small_integer(0);
  if (r.has("reduce_each")) p.reduce_each = r.at("reduce_each").boolean();
  if (r.has("gather_late")) p.gather_late = r.at("gather_late").boolean();
  if (r.has("offload")) p.offload = r.at("offload").text();
  if (r.has("recompute")) p.recompute = r.at("recompute").text();
  if (r.has("order")) p.order = r.at("order").text();
  if (r.has("split_until")) p.split_until = r.at("split_until").text();
  if (r.has("clip")) p.clip = r.at("clip").number();
  if (r.has("batch_norm")) p.batch_norm = r.at("batch_norm").text();
  if (r.has("compress")) p.compress = r.at("compress").text();
  if (r.has("half_weights")) p.half_weights = r.at("half_weights").boolean();
  if (r.has("fp32_gradients")) p.fp32_gradients = r.at("fp32_gradients").boolean();
  if (r.has("context_exchange")) p.context_exchange = r.at("context_exchange").text();
  if (r.has("overlap_tensor")) p.overlap_tensor = r.at("overlap_tensor").boolean();
  if (r.has("dropless")) p.dropless = r.at("dropless").boolean();
  if (r.has("whole_experts")) p.whole_experts = r.at("whole_experts").boolean();
  if (r.has("fused_update")) p.fused_update = r.at("fused_update").boolean();
  if (r.has("written_update")) p.written_update = r.at("written_update").boolean();
  if (r.has("fused_norms")) p.fused_norms = r.at("fused_norms").boolean();
  if (r.has("fused_pointwise")) p.fused_pointwise = r.at("fused_pointwise").boolean();
  if (r.has("converted_images")) p.converted_images = r.at("converted_images").boolean();
  if (r.has("converted_norms")) p.converted_norms = r.at("converted_norms").boolean();
  if (r.has("attention")) p.attention = r.at("attention").text();
}

void read_plan(const Reader& r, Prediction& p) {
  p.devices = r.at("devices").small_integer(1);
  p.nodes = r.at("nodes").small_integer(1);
  p.parallel = r.at("parallel").text();
  p.global_batch = r.at("global_batch").integer(1);
  p.micro_batch = r.at("micro_batch").integer(1);
  p.micro_batches = r.at("micro_batches").integer(1);
  p.precision = r.at("precision").text();
  p.optimizer = r.at("optimizer").text();
  p.buckets = r.at("buckets").small_integer(0);
  p.algorithm = r.at("algorithm").text();
  p.bytes_sent = r.at("bytes_sent_per_rank").integer(0);
  read_more_of_plan(r, p);
  if (r.has("framework")) p.framework = r.at("framework").text();
  if (r.has("bucket_bytes"))
    for (std::size_t i = 0; i < r.at("bucket_bytes").array_size(); ++i)
      p.bucket_bytes.push_back(r.at("bucket_bytes").at(i).integer(0));
  if (!r.has("stages")) return;
  p.schedule = r.at("schedule").text();
  const Reader stages = r.at("stages");
  for (std::size_t i = 0; i < stages.array_size(); ++i) {
    const Reader s = stages.at(i);
    p.stages.push_back({s.at("first").text(), s.at("coordinate").small_integer(0), seconds(s.at("forward_s")),
                        seconds(s.at("backward_s")), s.at("bytes_sent").integer(0), bytes(s.at("memory_bytes")),
                        seconds(s.at("bubble_s"))});
  }
}

// Files written before limits were named are still read.
void read_limits(const Reader& r, Prediction& p) {
  if (!r.has("limits")) return;
  const Reader limits = r.at("limits");
  for (std::size_t i = 0; i < limits.array_size(); ++i) {
    const Reader l = limits.at(i);
    p.limits.push_back({l.at("name").text(), l.at("where").text(), l.at("value").number(), l.at("unit").text(),
                        l.at("share").share(), l.at("relief").text()});
  }
}

// What the other keys do not tell. Files written before they were listed are still read.
void read_assumed(const Reader& r, Prediction& p) {
  if (!r.has("assumed")) return;
  const std::vector<std::string> told = assumptions(p);
  const Reader list = r.at("assumed");
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    std::string sentence = list.at(i).text();
    if (std::ranges::find(told, sentence) == told.end()) p.assumed.push_back(std::move(sentence));
  }
}

Prediction read_prediction(const Reader& r) {
  Prediction p;
  p.step_time = seconds(r.at("step_time_s"));
  if (const Reader interval = r.at("interval_s"); interval.array_size() == 2) {
    p.interval_low = seconds(interval.at(std::size_t{0}));
    p.interval_high = seconds(interval.at(std::size_t{1}));
  } else {
    interval.wrong("a list of two numbers");
  }
  p.throughput = r.at("throughput_samples_per_s").share();
  const Reader memory = r.at("memory_bytes"), breakdown = r.at("breakdown_s"), provenance = r.at("provenance");
  p.memory.total = bytes(memory.at("total"));
  for (const MemoryPart& part : memory_parts()) p.memory.*part.value = bytes(memory.at(std::string(part.key)));
  if (memory.has("reserved")) p.memory.reserved = bytes(memory.at("reserved"));
  p.memory_capacity = bytes(r.at("memory_capacity_bytes"));
  p.fits = r.at("fits").boolean();
  if (r.has("host_memory_bytes")) p.host_memory = bytes(r.at("host_memory_bytes"));
  if (r.has("storage_bytes")) p.storage = bytes(r.at("storage_bytes"));
  for (const TimePart& part : time_parts()) {
    const bool later = part.key == "io_total" || !part.always;  // files written before it was there are still read
    if (const std::string key(part.key); !later || breakdown.has(key))
      p.breakdown.*part.value = seconds(breakdown.at(key));
  }
  const Reader bottleneck = r.at("bottleneck");
  p.bottleneck = {bottleneck.at("name").text(), bottleneck.at("share").share(), bottleneck.at("relief").number()};
  if (bottleneck.has("relieved_by")) p.bottleneck.relieved_by = bottleneck.at("relieved_by").text();
  p.provenance = {provenance.at("measured").share(), provenance.at("interpolated").share(),
                  provenance.at("estimated").share()};
  read_limits(r, p);
  read_plan(r.at("plan"), p);
  const Reader operations = r.at("operations");
  for (std::size_t i = 0; i < operations.array_size(); ++i) {
    const Reader o = operations.at(i);
    p.operations.push_back(
        {o.at("name").text(), o.at("kind").text(), estimate(o.at("forward")), estimate(o.at("backward"))});
  }
  read_assumed(r, p);
  if (r.has("without_effect")) {
    const Reader list = r.at("without_effect");
    for (std::size_t i = 0; i < list.array_size(); ++i) p.without_effect.push_back(list.at(i).text());
  }
  return p;
}

std::optional<NearestSetting> read_nearest(const Reader& r) {
  if (!r.has("nearest")) return std::nullopt;
  const Reader n = r.at("nearest");
  return NearestSetting{n.at("words").text(), n.at("devices").small_integer(1), n.at("global_batch").integer(1),
                        bytes(n.at("memory_bytes"))};
}

Result<Json> parse(std::string_view text, const std::string& file) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    const std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, …"
    const std::size_t end = what.find("] ");
    return fail("is not JSON", file, std::string(end == std::string_view::npos ? what : what.substr(end + 2)));
  }
}

Result<std::string> schema_of(const Json& json, const std::string& file) {
  if (json.is_object() && json.contains("schema") && json["schema"].is_string())
    return json["schema"].get<std::string>();
  return fail("is not a file of Sibyl's: it has no \"schema\"", file,
              "`sibyl predict --json` and `sibyl scale --json` write them");
}

Result<Json> parse_as(std::string_view text, const std::string& file, std::string_view schema) {
  SIBYL_TRY(Json json, parse(text, file));
  SIBYL_TRY(const std::string found, schema_of(json, file));
  if (found != schema) return fail(fmt::format("is a {} file; {} was expected", found, schema), file);
  if (!json.contains("version") || json["version"] != 1)
    return fail("has a version that this Sibyl does not know", file + ": $.version", "version 1 is known");
  return json;
}

Failure with_file(Error error, const std::string& file) {
  error.where = file + ": " + error.where;
  return Failure(std::move(error));
}

}  // namespace

Result<ReportKind> report_kind(std::string_view text, const std::string& file) {
  SIBYL_TRY(const Json json, parse(text, file));
  SIBYL_TRY(const std::string schema, schema_of(json, file));
  if (schema == "sibyl-prediction") return ReportKind::prediction;
  if (schema == "sibyl-scale") return ReportKind::scale;
  return fail(fmt::format("is a {} file; sibyl-prediction or sibyl-scale was expected", schema), file);
}

Result<PredictionReport> parse_prediction(std::string_view text, const std::string& file) {
  SIBYL_TRY(const Json json, parse_as(text, file, "sibyl-prediction"));
  Error first;
  const Reader r(json, "$", &first);
  PredictionReport report{r.at("model").text(), r.at("cluster").text(), read_prediction(r), {}};
  if (r.has("options")) {
    const Reader options = r.at("options");
    for (std::size_t i = 0; i < options.array_size(); ++i) report.options.push_back(options.at(i).text());
  }
  report.nearest = read_nearest(r);
  if (!first.message.empty()) return with_file(std::move(first), file);
  return report;
}

Result<ScaleReport> parse_scale(std::string_view text, const std::string& file) {
  SIBYL_TRY(const Json json, parse_as(text, file, "sibyl-scale"));
  Error first;
  const Reader r(json, "$", &first);
  ScaleReport report{r.at("model").text(), r.at("cluster").text(), Scaling::weak, {}};
  const std::string scaling = r.at("scaling").text();
  if (scaling == "strong") report.scaling = Scaling::strong;
  if (scaling != "strong" && scaling != "weak") r.at("scaling").wrong("weak or strong");
  const Reader points = r.at("points");
  for (std::size_t i = 0; i < points.array_size(); ++i) {
    const Reader point = points.at(i);
    ScalePoint& read = report.points.emplace_back();
    read.devices = point.at("devices").small_integer(1);
    if (point.has("error")) {
      const Reader error = point.at("error");
      read.prediction =
          fail(ErrorCode::infeasible, error.at("message").text(), error.at("where").text(), error.at("hint").text());
    } else {
      read.prediction = read_prediction(point.at("prediction"));
      read.efficiency = point.at("efficiency").share();
    }
  }
  report.nearest = read_nearest(r);
  if (!first.message.empty()) return with_file(std::move(first), file);
  return report;
}

}  // namespace sibyl
