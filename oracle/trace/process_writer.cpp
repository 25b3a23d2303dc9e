#include "oracle/trace/process_writer.h"

#include <fmt/format.h>

namespace sibyl {

ProcessWriter::ProcessWriter(int rank, int alike, const std::string& part, std::size_t number, Chain& chain)
    : process_{TraceSource::predicted, rank, {}, {}}, number_(static_cast<std::uint32_t>(number)), chain_(&chain) {
  process_.name = alike > 1 ? fmt::format("rank {} (and {} alike){}, predicted", rank, alike - 1, part)
                            : fmt::format("rank {}{}, predicted", rank, part);
  for (const std::string_view track : shown_tracks) process_.tracks.push_back({std::string(track), {}});
}

void ProcessWriter::show(std::string_view track, TraceSpan span) {
  process_.tracks[number_of(track)].spans.push_back(std::move(span));
}

std::size_t ProcessWriter::add(TrackNumber track, TraceSpan span, std::size_t after) {
  std::vector<TraceSpan>& all = process_.tracks[track].spans;
  const std::size_t link = chain_->add(span.end, after, SpanPlace{number_, track, all.size()});
  all.push_back(std::move(span));
  return link;
}

std::size_t ProcessWriter::add_waits(const Prediction& prediction, std::size_t last, Seconds begin) {
  const Seconds done = chain_->end(last), samples = prediction.breakdown.io;
  const Seconds end = begin + prediction.step_time, others = end - samples - done;
  if (others > negligible) last = add(host_track, {"wait for the slowest rank", "wait", done, done + others, {}}, last);
  if (samples > negligible) last = add(host_track, {"wait for samples", "wait", end - samples, end, {}}, last);
  return last;
}

}  // namespace sibyl
