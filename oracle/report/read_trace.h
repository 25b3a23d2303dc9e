// Reads timelines: what `sibyl train --trace` and `sibyl trace` write (docs/formats/trace.md), and other Chrome traces
// as far as they are made of complete events (ph X), which is what profilers of training write.
//
// A process with an odd id is a measured one of rank (id - 1) / 2, as base/trace.h has it; one with an even id the
// predicted one of rank id / 2, unless its name says that it was measured. Tracks and processes come in order of their
// sort index, then of their id; spans in the file's order. Those of other files may overlap on one track. Other kinds
// of events are passed over; a file without any complete event is an Error. An Error's `where` is file and JSON path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/trace.h"

namespace sibyl {

// `file` stands for the source in messages.
Result<std::vector<TraceProcess>> parse_trace(std::string_view json, const std::string& file);
Result<std::vector<TraceProcess>> read_trace(const std::string& path);

}  // namespace sibyl
