#include "calibration/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "calibration/device_codec.h"
#include "calibration/json_reader.h"
#include "profiler/kernel_template.h"

namespace sibyl::calibration_codec {
namespace {

using Line = nlohmann::ordered_json;

std::string dump(const Line& value) { return value.dump(-1, ' ', false, Line::error_handler_t::replace); }

// ---- writing

class Sources {
 public:
  // Index of a citation; "measured here" (empty) has none.
  std::optional<std::size_t> index(const std::string& source) {
    if (source.empty()) return std::nullopt;
    const auto found = std::find(list_.begin(), list_.end(), source);
    if (found != list_.end()) return static_cast<std::size_t>(found - list_.begin());
    list_.push_back(source);
    return list_.size() - 1;
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  std::vector<std::string> list_;
};

Line kernel_line(const KernelSample& sample) {
  Line line{{"key", to_string(sample.key)}, {"time_s", sample.time.value()}};
  if (sample.spread > 0) line["spread"] = sample.spread;
  if (sample.runs > 0) line["runs"] = sample.runs;
  if (sample.workspace.value() > 0) line["workspace_bytes"] = sample.workspace.value();
  if (sample.kept.value() > 0) line["kept_bytes"] = sample.kept.value();
  if (sample.alone.value() > 0) line["alone_s"] = sample.alone.value();
  if (sample.cached.value() > 0) line["cached_s"] = sample.cached.value();
  return line;
}

Line point_to_point_line(const PointToPointSample& s) {
  Line line = {{"same_node", s.same_node},
               {"pairs", s.pairs},
               {"bytes", s.bytes.value()},
               {"time_s", s.time.value()},
               {"spread", s.spread}};
  if (s.both_ways) line["both_ways"] = true;
  return line;
}

Line pair_line(const PairSample& s) {
  Line line{{"from", s.from},           {"to", s.to},        {"same_node", s.same_node}, {"bytes", s.bytes.value()},
            {"time_s", s.time.value()}, {"spread", s.spread}};
  if (s.near != Nearness::unknown) line["near"] = to_string(s.near);
  return line;
}

Line collective_line(const CollectiveSample& s) {
  Line line{{"collective", to_string(s.collective)},
            {"algorithm", to_string(s.algorithm)},
            {"ranks_per_node", s.placement.ranks_per_node},
            {"nodes", s.placement.nodes},
            {"groups_per_node", s.placement.groups_per_node},
            {"bytes", s.bytes.value()},
            {"time_s", s.time.value()},
            {"spread", s.spread}};
  if (s.in_turn) line["in_turn"] = *s.in_turn;
  return line;
}

Line overlap_line(const OverlapSample& s) {
  Line line{{"compute_slowdown", s.compute_slowdown},
            {"communication_slowdown", s.communication_slowdown},
            {"spread", s.spread}};
  if (s.algorithm != Algorithm::automatic) line["algorithm"] = to_string(s.algorithm);
  if (s.message.value() > 0) line["message_s"] = s.message.value();
  return line;
}

Line meeting_line(const MeetingSample& s) {
  Line windows = Line::array();
  for (const MeetingSample::Window& w : s.windows)
    windows.push_back({{"computing_s", w.computing.value()}, {"late_s", w.late.value()}});
  return {{"ranks", s.ranks}, {"longer_s", s.longer.value()}, {"windows", std::move(windows)}};
}

template <class Sample, class ToLine>
std::string array(std::string_view name, const std::vector<Sample>& samples, const ToLine& to_line) {
  std::string text = fmt::format(",\n\"{}\": [", name);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    text += i == 0 ? "\n" : ",\n";
    text += dump(to_line(samples[i]));
  }
  return text + "]";
}

// ---- reading

std::string source_of(const JsonValue& value, const std::vector<std::string>& sources) {
  if (!value.is_integer("source")) return value.text_or("source", {});
  const auto index = static_cast<std::size_t>(value.integer_or("source", 0, 0));
  if (index < sources.size()) return sources[index];
  value.reject("is not an index into $.sources", "source");
  return {};
}

KernelSample kernel(const JsonValue& v, const std::vector<std::string>& sources) {
  v.only({"key", "time_s", "spread", "runs", "workspace_bytes", "kept_bytes", "alone_s", "cached_s", "source"});
  KernelSample sample;
  if (const std::string key = v.text("key"); !key.empty())
    sample.key = unwrap(parse_kernel_key(key), v, "key", KernelKey{});
  sample.time = Seconds{v.number("time_s", Sign::positive)};
  sample.spread = v.number_or("spread", Sign::not_negative, 0);
  sample.runs = v.integer_or("runs", 0, 0);
  sample.workspace = Bytes{v.number_or("workspace_bytes", Sign::not_negative, 0)};
  sample.kept = Bytes{v.number_or("kept_bytes", Sign::not_negative, 0)};
  sample.alone = Seconds{v.number_or("alone_s", Sign::positive, 0)};
  if (sample.alone > sample.time) v.reject("is more than with all ranks at the kernel, time_s", "alone_s");
  sample.cached = Seconds{v.number_or("cached_s", Sign::positive, 0)};
  if (sample.cached > sample.time) v.reject("is more than out of memory, time_s", "cached_s");
  sample.source = source_of(v, sources);
  return sample;
}

// One kernel a row: the sizes of the template, then the time.
void kernel_table(const JsonValue& v, const std::vector<std::string>& sources, std::vector<KernelSample>& kernels) {
  v.only({"key", "source", "rows"});
  const auto pattern = KernelTemplate::parse(v.text("key"));
  if (!pattern) return v.reject(pattern.error().message, "key");
  const std::string source = source_of(v, sources);
  std::vector<std::int64_t> sizes(pattern->size_count());
  v.each("rows", [&](const JsonValue& row) {
    const std::vector<double> numbers = row.as_numbers(Sign::positive);
    if (numbers.size() != sizes.size() + 1)
      return row.reject(fmt::format("must hold {} sizes and a time", sizes.size()));
    std::transform(numbers.begin(), numbers.end() - 1, sizes.begin(), [](double n) { return std::llround(n); });
    KernelSample& sample = kernels.emplace_back();
    sample.key = pattern->with(sizes);
    sample.time = Seconds{numbers.back()};
    sample.source = source;
  });
}

PointToPointSample point_to_point(const JsonValue& v) {
  v.only({"same_node", "pairs", "bytes", "time_s", "spread", "both_ways"});
  return {v.boolean("same_node"),
          v.integer_or("pairs", 1, 1),
          Bytes{v.number("bytes", Sign::not_negative)},
          Seconds{v.number("time_s", Sign::positive)},
          v.number_or("spread", Sign::not_negative, 0),
          v.has("both_ways") && v.boolean("both_ways")};
}

MeetingSample meeting(const JsonValue& v) {
  v.only({"ranks", "longer_s", "windows"});
  MeetingSample s{v.integer_or("ranks", 2, 2), Seconds{v.number_or("longer_s", Sign::not_negative, 0)}, {}};
  v.each("windows", [&](const JsonValue& w) {
    w.only({"computing_s", "late_s"});
    const Seconds computing{w.number("computing_s", Sign::positive)};
    if (!s.windows.empty() && computing <= s.windows.back().computing) w.reject("is not longer than the one before");
    s.windows.push_back({computing, Seconds{w.number("late_s", Sign::not_negative)}});
  });
  return s;
}

PairSample pair(const JsonValue& v) {
  v.only({"from", "to", "same_node", "bytes", "time_s", "spread", "near"});
  PairSample s{v.integer_or("from", 0, 0),
               v.integer_or("to", 0, 0),
               v.boolean("same_node"),
               Bytes{v.number("bytes", Sign::positive)},
               Seconds{v.number("time_s", Sign::positive)},
               v.number_or("spread", Sign::not_negative, 0)};
  s.near = unwrap(parse_nearness(v.text_or("near", "unknown")), v, "near", Nearness::unknown);
  if (s.from == s.to) v.reject("goes from a rank to itself");
  return s;
}

CollectiveSample collective(const JsonValue& v, const std::vector<std::string>& sources) {
  v.only({"collective", "algorithm", "ranks_per_node", "nodes", "groups_per_node", "bytes", "time_s", "spread",
          "in_turn", "source"});
  CollectiveSample s;
  s.collective = unwrap(parse_collective(v.text("collective")), v, "collective", Collective::all_reduce);
  s.algorithm = unwrap(parse_algorithm(v.text_or("algorithm", "automatic")), v, "algorithm", Algorithm::automatic);
  s.placement = {v.integer_or("ranks_per_node", 1, 1), v.integer_or("nodes", 1, 1),
                 v.integer_or("groups_per_node", 1, 1)};
  if (1.0 * s.placement.ranks_per_node * s.placement.nodes * s.placement.groups_per_node > most_devices)
    v.reject(fmt::format("has more than {} ranks", most_devices));
  s.bytes = Bytes{v.number("bytes", Sign::not_negative)};
  s.time = Seconds{v.number("time_s", Sign::positive)};
  s.spread = v.number_or("spread", Sign::not_negative, 0);
  if (v.has("in_turn")) s.in_turn = v.number("in_turn", Sign::positive);
  s.source = source_of(v, sources);
  return s;
}

std::map<std::string, std::string> texts(const JsonValue& root, std::string_view key) {
  std::map<std::string, std::string> map;
  root.members(key, [&](const std::string& name, const JsonValue& v) { map[name] = v.as_text(); });
  return map;
}

// Gradients are added up in place since 2.0 (pull request 90217).
bool before_torch_2(const std::map<std::string, std::string>& libraries) {
  const auto torch = libraries.find("libtorch");
  return torch != libraries.end() && (torch->second.starts_with("0.") || torch->second.starts_with("1."));
}

Calibration calibration(const JsonValue& root) {
  root.only({"schema",
             "date",
             "source",
             "machine",
             "libraries",
             "ranks_per_node",
             "threads",
             "one_machine",
             "device",
             "donors",
             "step_overhead_per_operation_s",
             "reads",
             "reuses",
             "lasting",
             "sources",
             "kernels",
             "kernel_tables",
             "point_to_point",
             "pairs",
             "collectives",
             "overlap",
             "meetings",
             "io",
             "steps"});
  Calibration c;
  c.machine = texts(root, "machine");
  c.libraries = texts(root, "libraries");
  c.date = root.text_or("date", {});
  c.source = root.text_or("source", {});
  c.ranks_per_node = root.integer_or("ranks_per_node", 1, 1);
  c.threads = root.integer_or("threads", 1, 1);
  c.one_machine = root.has("one_machine") && root.boolean("one_machine");
  root.object("device", [&](const JsonValue& v) { c.device = read_device(v); });
  c.device.sums_apart = before_torch_2(c.libraries);
  c.device.framework_assumed = !c.source.empty();  // no datasheet states it, and no published measurement
  c.step_overhead_per_operation = Seconds{root.number_or("step_overhead_per_operation_s", Sign::not_negative, 0)};
  root.each("reads", [&](const JsonValue& v) {
    v.only({"bytes", "time_s"});
    c.reads.push_back({Bytes{v.number("bytes", Sign::positive)}, Seconds{v.number("time_s", Sign::positive)}});
  });
  root.each("reuses", [&](const JsonValue& v) {
    v.only({"step_bytes", "distance_bytes", "bytes_per_s"});
    c.reuses.push_back({Bytes{v.number("step_bytes", Sign::positive)},
                        Bytes{v.number("distance_bytes", Sign::positive)},
                        BytesPerSecond{v.number("bytes_per_s", Sign::positive)}});
  });
  root.each("lasting", [&](const JsonValue& v) {
    v.only({"touches", "age_s", "bytes_per_s"});
    if (!v.has("touches")) v.reject("is missing", "touches");
    c.lasting.push_back({v.integer_or("touches", 0, 0), Seconds{v.number("age_s", Sign::not_negative)},
                         BytesPerSecond{v.number("bytes_per_s", Sign::positive)}});
  });
  std::vector<std::string> sources;
  root.each("sources", [&](const JsonValue& v) { sources.push_back(v.as_text()); });
  root.each("donors", [&](const JsonValue& v) { c.donors.push_back(v.as_text()); });
  root.each("kernels", [&](const JsonValue& v) { c.kernels.push_back(kernel(v, sources)); });
  root.each("kernel_tables", [&](const JsonValue& v) { kernel_table(v, sources, c.kernels); });
  root.each("point_to_point", [&](const JsonValue& v) { c.point_to_point.push_back(point_to_point(v)); });
  root.each("pairs", [&](const JsonValue& v) { c.pairs.push_back(pair(v)); });
  root.each("collectives", [&](const JsonValue& v) { c.collectives.push_back(collective(v, sources)); });
  root.each("overlap", [&](const JsonValue& v) {
    v.only({"compute_slowdown", "communication_slowdown", "spread", "algorithm", "message_s"});
    c.overlap.push_back(
        {v.number("compute_slowdown", Sign::positive), v.number("communication_slowdown", Sign::positive),
         v.number_or("spread", Sign::not_negative, 0),
         unwrap(parse_algorithm(v.text_or("algorithm", "automatic")), v, "algorithm", Algorithm::automatic),
         Seconds{v.number_or("message_s", Sign::not_negative, 0)}});
  });
  root.each("meetings", [&](const JsonValue& v) { c.meetings.push_back(meeting(v)); });
  root.each("io", [&](const JsonValue& v) {
    v.only({"write", "bytes", "time_s"});
    c.io.push_back(
        {v.boolean("write"), Bytes{v.number("bytes", Sign::positive)}, Seconds{v.number("time_s", Sign::positive)}});
  });
  root.each("steps", [&](const JsonValue& v) {
    v.only({"name", "predicted_s", "measured_s", "spread", "rounds"});
    c.steps.push_back({v.text("name"), Seconds{v.number("predicted_s", Sign::positive)},
                       Seconds{v.number("measured_s", Sign::positive)}, v.number_or("spread", Sign::not_negative, 0),
                       static_cast<int>(v.number_or("rounds", Sign::positive, 1))});
  });
  return c;
}

}  // namespace

std::string write(const Calibration& c) {
  Sources sources;
  auto cited = [&](Line line, const std::string& source) {
    if (const auto index = sources.index(source)) line["source"] = *index;
    return line;
  };
  const std::string kernels =
      array("kernels", c.kernels, [&](const KernelSample& s) { return cited(kernel_line(s), s.source); });
  const std::string collectives = array("collectives", c.collectives,
                                        [&](const CollectiveSample& s) { return cited(collective_line(s), s.source); });

  std::string text = fmt::format("{{\"schema\": {}", dump(schema));
  auto member = [&](std::string_view key, const Line& value) {
    text += fmt::format(",\n\"{}\": {}", key, dump(value));
  };
  member("date", c.date);
  member("source", c.source);
  member("machine", Line(c.machine));
  member("libraries", Line(c.libraries));
  member("ranks_per_node", c.ranks_per_node);
  member("threads", c.threads);
  if (c.one_machine) member("one_machine", true);
  text += fmt::format(",\n\"device\": {}", write_device(c.device));
  if (!c.donors.empty()) member("donors", Line(c.donors));
  member("step_overhead_per_operation_s", c.step_overhead_per_operation.value());
  if (!c.reads.empty())
    text += array("reads", c.reads, [](const ReadSample& s) {
      return Line{{"bytes", s.bytes.value()}, {"time_s", s.time.value()}};
    });
  if (!c.reuses.empty())
    text += array("reuses", c.reuses, [](const ReuseSample& s) {
      return Line{
          {"step_bytes", s.step.value()}, {"distance_bytes", s.distance.value()}, {"bytes_per_s", s.rate.value()}};
    });
  if (!c.lasting.empty())
    text += array("lasting", c.lasting, [](const LastingSample& s) {
      return Line{{"touches", s.touches}, {"age_s", s.age.value()}, {"bytes_per_s", s.rate.value()}};
    });
  text += array("sources", sources.list(), [](const std::string& s) { return Line(s); });
  text += kernels;
  text += array("point_to_point", c.point_to_point, point_to_point_line);
  if (!c.pairs.empty()) text += array("pairs", c.pairs, pair_line);
  text += collectives;
  text += array("overlap", c.overlap, overlap_line);
  if (!c.meetings.empty()) text += array("meetings", c.meetings, meeting_line);
  text += array("io", c.io, [](const IoSample& s) {
    return Line{{"write", s.write}, {"bytes", s.bytes.value()}, {"time_s", s.time.value()}};
  });
  text += array("steps", c.steps, [](const StepSample& s) {
    return Line{{"name", s.name},
                {"predicted_s", s.predicted.value()},
                {"measured_s", s.measured.value()},
                {"spread", s.spread},
                {"rounds", s.rounds}};
  });
  return text + "}\n";
}

Result<Calibration> read(std::string_view text, const std::string& file) {
  SIBYL_TRY(const JsonDocument document, JsonDocument::parse(text, file));
  const JsonValue root = document.root();
  // The version first: whatever else differs in a newer file, this is what to say.
  const std::string version = root.text("schema");
  if (!document.error() && version != schema)
    return fail(fmt::format("this Sibyl reads schema '{}', the file says '{}'", schema, version), file + ": $.schema",
                "calibrate again, or use the version of Sibyl that wrote it");
  Calibration c = calibration(root);
  if (document.error()) return Failure(*document.error());
  return c;
}

std::string write_kernel(const KernelSample& sample) {
  Line line = kernel_line(sample);
  if (!sample.source.empty()) line["source"] = sample.source;
  return dump(line);
}

Result<KernelSample> read_kernel(std::string_view line, const std::string& where) {
  SIBYL_TRY(const JsonDocument document, JsonDocument::parse(line, where));
  KernelSample sample = kernel(document.root(), {});
  if (document.error()) return Failure(*document.error());
  return sample;
}

}  // namespace sibyl::calibration_codec
