// What predict, scale, whatif and the desktop have in common: a model and a cluster, found as the options name them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/cancelled.h"
#include "calibration/cluster.h"
#include "models/graph.h"
#include "oracle/cli/arguments.h"
#include "oracle/nearest_fit.h"
#include "oracle/report/report.h"
#include "oracle/strategy.h"

namespace sibyl::cli {

Option cluster_option();  // --cluster, which must be given
Option nodes_option();    // --nodes, which changes how many there are
std::vector<Option> machine_options();  // --devices-per-node, --device-type, which change what they are
Result<Cluster> read_cluster(const Arguments& arguments);

Option data_option();  // --data-from
Option framework_option();  // --framework
// All that says what is priced: cluster, devices, strategy, data, model.
std::vector<Option> study_options();
Option change_option();  // --set KEY=VALUE: parts of the cluster that are different
// The whole question of `sibyl predict`: both of these.
std::vector<Option> prediction_options();
void read_data_source(const Arguments& arguments, Strategy& strategy);
Result<void> read_framework(const Arguments& arguments, Strategy& strategy);

// --devices; the whole cluster where neither it nor --parallel is given.
// --data-from is read, too.
Result<Strategy> read_strategy_for(const Arguments& arguments, const Cluster& cluster);
// The cluster with what --set says of it, for a strategy that was read for it.
Result<Cluster> with_changes(const Arguments& arguments, Cluster cluster, const Strategy& strategy);

// The model imported with the batch that one device runs at once. `cancelled` ends it, with an Error of code
// interrupted.
Result<Graph> load_graph_for(const Arguments& arguments, std::int64_t micro_batch, const Cancelled& cancelled = {});
// Of a prediction that needs more memory than there is.
Failure does_not_fit(const Prediction& prediction, const std::string& model, const NearestFit& nearest);
// The first of what was found, as reports show it.
std::optional<NearestSetting> nearest_setting(const NearestFit& fit);

std::int64_t micro_batch_of(const Strategy& strategy);

}  // namespace sibyl::cli
