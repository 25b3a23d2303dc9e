// What predict, scale and whatif have in common: a model and a cluster, found as the options name them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/cluster.h"
#include "oracle/cli/arguments.h"
#include "oracle/report/report.h"
#include "oracle/strategy.h"

namespace sibyl::cli {

Option cluster_option();  // --cluster, which must be given
Option nodes_option();    // --nodes, which changes how many there are
Result<Cluster> read_cluster(const Arguments& arguments);

Option data_option();  // --data-from
Option framework_option();  // --framework
// All that says what is priced: cluster, devices, strategy, data, model.
std::vector<Option> study_options();
void read_data_source(const Arguments& arguments, Strategy& strategy);
Result<void> read_framework(const Arguments& arguments, Strategy& strategy);

// --devices; the whole cluster where neither it nor --parallel is given.
// --data-from is read, too.
Result<Strategy> read_strategy_for(const Arguments& arguments, const Cluster& cluster);

// The model imported with the batch that one device runs at once.
Result<Graph> load_graph_for(const Arguments& arguments, std::int64_t micro_batch);
std::int64_t micro_batch_of(const Strategy& strategy);

}  // namespace sibyl::cli
