#include "oracle/report/read_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/files.h"

namespace sibyl {
namespace {

using Json = nlohmann::ordered_json;

constexpr double longest = 1e12;  // microseconds: eleven days, beyond any step

struct ReadTrack {
  std::int64_t order = 0;
  std::string name;
  std::vector<TraceSpan> spans;
};

struct ReadProcess {
  std::int64_t order = 0;
  std::string name;
  std::map<std::int64_t, ReadTrack> tracks;  // by thread id
};

class TraceReader {
 public:
  explicit TraceReader(std::string file) : file_(std::move(file)) {}

  Result<std::vector<TraceProcess>> read(const Json& events) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      where_ = fmt::format("{}: $.traceEvents[{}]", file_, i);
      if (!events[i].is_object()) return fail("should be an event", where_);
      const Json& event = events[i];
      const std::string phase = text(event, "ph").value_or("");
      if (phase == "M") SIBYL_CHECK(describe(event));
      if (phase == "X") SIBYL_CHECK(add(event));
    }
    if (spans_ == 0)
      return fail("has no complete events (ph X)", file_, "`sibyl train … --trace FILE` writes a timeline that has");
    return processes();
  }

 private:
  static std::optional<std::string> text(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return {};
    return found->get<std::string>();
  }

  static std::optional<std::int64_t> whole(const Json& value) {
    constexpr double most = 9e15;  // every whole number up to here is a double
    if (!value.is_number() || !(std::abs(value.get<double>()) <= most)) return {};
    return static_cast<std::int64_t>(value.get<double>());
  }

  // Some files number only some; what they leave out is 0.
  Result<std::int64_t> id(const Json& event, const char* key) const {
    const auto found = event.find(key);
    if (found == event.end()) return 0;
    if (const auto number = whole(*found)) return *number;
    return fail("should be a whole number", fmt::format("{}.{}", where_, key));
  }

  Result<double> microseconds(const Json& event, const char* key) const {
    const auto found = event.find(key);
    if (found == event.end()) return fail(fmt::format("'{}' is missing", key), where_);
    if (!found->is_number() || !(std::abs(found->get<double>()) <= longest))
      return fail("should be a time in microseconds", fmt::format("{}.{}", where_, key));
    return found->get<double>();
  }

  Result<void> describe(const Json& event) {
    SIBYL_TRY(const std::int64_t process, id(event, "pid"));
    SIBYL_TRY(const std::int64_t thread, id(event, "tid"));
    const auto found = event.find("args");
    if (found == event.end() || !found->is_object()) return {};
    const std::string what = text(event, "name").value_or("");
    const std::string name = text(*found, "name").value_or("");
    const std::int64_t order = found->contains("sort_index") ? whole((*found)["sort_index"]).value_or(0) : 0;
    if (what == "process_name") processes_[process].name = name;
    if (what == "process_sort_index") processes_[process].order = order;
    if (what == "thread_name") processes_[process].tracks[thread].name = name;
    if (what == "thread_sort_index") processes_[process].tracks[thread].order = order;
    return {};
  }

  Result<void> add(const Json& event) {
    SIBYL_TRY(const std::int64_t process, id(event, "pid"));
    SIBYL_TRY(const std::int64_t thread, id(event, "tid"));
    SIBYL_TRY(const double start, microseconds(event, "ts"));
    SIBYL_TRY(const double duration, microseconds(event, "dur"));
    if (duration < 0) return fail("should not be negative", where_ + ".dur");
    std::vector<TraceArgument> list;
    std::optional<int> micro_batch;
    const auto arguments = event.find("args");
    if (arguments != event.end() && arguments->is_object()) read(*arguments, list, micro_batch);
    std::vector<TraceSpan>& spans = processes_[process].tracks[thread].spans;
    spans.emplace_back(text(event, "name").value_or(""), text(event, "cat").value_or(""), Seconds{start * 1e-6},
                       Seconds{(start + duration) * 1e-6}, std::move(list));
    spans.back().micro_batch = micro_batch;
    ++spans_;
    return {};
  }

  static void read(const Json& arguments, std::vector<TraceArgument>& list, std::optional<int>& micro_batch) {
    for (const auto& [name, value] : arguments.items()) {
      const std::optional<std::int64_t> number = whole(value);
      if (name == "micro_batch" && number && std::in_range<int>(*number))
        micro_batch = static_cast<int>(*number);
      else
        list.push_back(argument(name, value));
    }
  }

  static TraceArgument argument(const std::string& name, const Json& value) {
    if (value.is_number_integer() && whole(value)) return {name, *whole(value)};
    if (value.is_number()) return {name, value.get<double>()};
    if (value.is_string()) return {name, value.get<std::string>()};
    if (value.is_boolean()) return {name, std::string(value.get<bool>() ? "true" : "false")};
    return {name, std::string(value.is_null() ? "" : "…")};  // lists and objects, however deep
  }

  std::vector<TraceProcess> processes() {
    std::vector<std::pair<std::int64_t, TraceProcess>> ordered;
    for (auto& [id, read] : processes_) {
      TraceProcess process = process_of(id, read);
      if (!process.tracks.empty()) ordered.emplace_back(read.order, std::move(process));
    }
    std::ranges::stable_sort(ordered, {}, [](const auto& one) { return one.first; });
    std::vector<TraceProcess> result;
    for (auto& [order, process] : ordered) result.push_back(std::move(process));
    return result;
  }

  static TraceProcess process_of(std::int64_t id, ReadProcess& read) {
    constexpr std::int64_t most_ranks = 1 << 24;
    const bool measured = id % 2 != 0 || read.name.find("measured") != std::string::npos;
    TraceProcess process{measured ? TraceSource::measured : TraceSource::predicted, 0, read.name, {}};
    process.rank = static_cast<int>(std::clamp<std::int64_t>(id / 2, 0, most_ranks));
    if (process.name.empty()) process.name = fmt::format("process {}", id);
    std::vector<std::pair<std::int64_t, TraceTrack>> tracks;
    for (auto& [thread, track] : read.tracks)
      if (!track.spans.empty())
        tracks.emplace_back(track.order, TraceTrack{track.name.empty() ? fmt::format("thread {}", thread) : track.name,
                                                    std::move(track.spans)});
    std::ranges::stable_sort(tracks, {}, [](const auto& one) { return one.first; });
    for (auto& [order, track] : tracks) process.tracks.push_back(std::move(track));
    return process;
  }

  std::string file_, where_;
  std::map<std::int64_t, ReadProcess> processes_;
  std::size_t spans_ = 0;
};

}  // namespace

Result<std::vector<TraceProcess>> parse_trace(std::string_view json, const std::string& file) {
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr, false);
  const bool listed = parsed.is_object() && parsed.contains("traceEvents") && parsed["traceEvents"].is_array();
  if (!listed && !parsed.is_array())
    return fail("is not a trace: it has no \"traceEvents\"", file, "`sibyl train … --trace FILE` writes one");
  return TraceReader(file).read(listed ? parsed["traceEvents"] : parsed);
}

Result<std::vector<TraceProcess>> read_trace(const std::string& path) {
  SIBYL_TRY(const std::string text, read_file(path));
  return parse_trace(text, path);
}

}  // namespace sibyl
