// Published timings of collectives against the network model.
//
// A row is one collective of one size on one machine; rows of one source, machine, algorithm and library are a series.
// It is judged twice. By the links: from the shipped calibration of its device (what was measured inside one node) and
// the rates that the source states of what joins nodes; a wire's latency, which no datasheet tells, is read off the
// three shortest messages of the series, which are not judged. By the other sizes: each half of a series, taken
// alternately, is predicted from the other half. Rows that the source itself does not vouch for (`trust` other than A),
// whose network is not stated or whose algorithm is not modelled are not priced and say why.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/table.h"
#include "netmodel/network.h"

namespace sibyl::published {

struct CollectiveRow {
  int line = 0;
  std::string source, gpu, intranode, internode, algorithm, library, trust;
  int gpus = 1, gpus_per_node = 1;  // taking part
  Collective collective = Collective::all_reduce;
  Bytes bytes;
  Seconds time;
};

// Columns: source, gpu, n_gpus, n_nodes, intranode, internode, collective, algo, message_bytes, time_us, library,
// trust; further ones are ignored. Rows without a size or a time (bandwidths alone) are left out. Errors name
// file:line.
Result<std::vector<CollectiveRow>> read_collective_rows(std::string_view csv, const std::string& file);

struct CollectiveVerdict {
  CollectiveRow row;
  std::string why_not;  // empty: it is priced
  Estimate predicted;   // by the links
  Seconds latency_of_adapter;
  std::optional<Estimate> from_others;  // by every other size of its series
  [[nodiscard]] bool priced() const { return why_not.empty(); }
  [[nodiscard]] double error() const { return predicted.time / row.time - 1; }
};

// In the rows' order.
std::vector<CollectiveVerdict> judge_collectives(const std::vector<CollectiveRow>& rows);

// One line for each series: "16 x A100-SXM4-80GB, 2 nodes, EFA v1 4x100Gb/s per node".
Table collectives_table(const std::vector<CollectiveVerdict>& verdicts);
Table collective_rows_table(const std::vector<CollectiveVerdict>& verdicts);
std::string collectives_json(const std::vector<CollectiveVerdict>& verdicts);

}  // namespace sibyl::published
