// libFuzzer target: any bytes as a trace give processes or an Error. What was read is spelt as events and read again.
#include <cstdint>
#include <cstdlib>

#include "oracle/report/read_trace.h"

namespace sibyl {
namespace {

void check(std::string_view text) {
  const auto processes = parse_trace(text, "fuzz.json");
  if (!processes) return;
  std::vector<std::string> events;
  std::size_t spans = 0, again = 0;
  for (const TraceProcess& process : *processes) {
    events.push_back(trace_events(process));
    for (const TraceTrack& track : process.tracks) spans += track.spans.size();
  }
  const auto reread = parse_trace(trace_file(events, {}), "fuzz.json");
  if (!reread) std::abort();
  for (const TraceProcess& process : *reread)
    for (const TraceTrack& track : process.tracks) again += track.spans.size();
  if (spans != again) std::abort();
}

}  // namespace
}  // namespace sibyl

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sibyl::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
