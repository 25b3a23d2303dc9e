#include "base/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace sibyl {
namespace {

// The length of the UTF-8 character at the front of `text`, or 0 where there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

// Names come from the user's files and may hold any bytes; what is not UTF-8 is replaced.
std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const char c = text.front();
    if (length == 0)
      result += "\xEF\xBF\xBD";  // U+FFFD
    else if (c == '"' || c == '\\')
      result += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return result + '"';
}

std::string spelt(const TraceArgument& argument) {
  if (const auto* whole = std::get_if<std::int64_t>(&argument.value)) return fmt::format("{}", *whole);
  if (const auto* words = std::get_if<std::string>(&argument.value)) return in_quotes(*words);
  const double number = std::get<double>(argument.value);
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

std::string object(std::span<const TraceArgument> arguments, std::optional<int> micro_batch = {}) {
  std::string result = "{";
  const auto add = [&](const TraceArgument& argument) {
    result += fmt::format("{}{}:{}", result.size() > 1 ? "," : "", in_quotes(argument.name), spelt(argument));
  };
  std::ranges::for_each(arguments, add);
  if (micro_batch) add({"micro_batch", std::int64_t{*micro_batch}});
  return result + "}";
}

// To the nanosecond, so that a file is the same whatever the last bits of a sum are.
std::string microseconds(Seconds time) { return fmt::format("{:.3f}", time.value() * 1e6); }

std::string metadata(std::string_view what, int process, std::size_t thread, const TraceArgument& argument) {
  return fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{}}})", what, process, thread,
                     object({&argument, 1}));
}

std::string event(const TraceSpan& span, int process, std::size_t thread) {
  std::string text = fmt::format(R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{})",
                                 in_quotes(span.name()), in_quotes(span.category()), process, thread,
                                 microseconds(span.start), microseconds(span.end - span.start));
  if (!span.arguments().empty() || span.micro_batch)
    text += fmt::format(",\"args\":{}", object(span.arguments(), span.micro_batch));
  return text + "}";
}

}  // namespace

TraceSpan::TraceSpan(std::string name, std::string category, Seconds from, Seconds to,
                     std::vector<TraceArgument> arguments)
    : start(from),
      end(to),
      subject_(std::make_shared<const Subject>(Subject{std::move(name), std::move(category), std::move(arguments)})) {}

std::string trace_events(const TraceProcess& process) {
  const int id = 2 * process.rank + (process.source == TraceSource::measured ? 1 : 0);
  std::string text = metadata("process_name", id, 0, {"name", process.name});
  text += ",\n" + metadata("process_sort_index", id, 0, {"sort_index", std::int64_t{id}});
  for (std::size_t i = 0; i < process.tracks.size(); ++i) {
    const TraceTrack& track = process.tracks[i];
    const std::size_t thread = i + 1;
    text += ",\n" + metadata("thread_name", id, thread, {"name", track.name});
    text += ",\n" + metadata("thread_sort_index", id, thread, {"sort_index", static_cast<std::int64_t>(i)});
    for (const TraceSpan& span : track.spans) text += ",\n" + event(span, id, thread);
  }
  return text;
}

std::string trace_file(const std::vector<std::string>& events, const std::vector<TraceArgument>& about) {
  return fmt::format("{{\"traceEvents\":[\n{}\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{}}}\n",
                     fmt::join(events, ",\n"), object(about));
}

}  // namespace sibyl
