// `sibyl doctor network CLUSTER`: what limits a measured network, in words.
#pragma once

#include "oracle/cli/arguments.h"

namespace sibyl::cli {

std::vector<Option> doctor_network_options();  // --rated

// CLUSTER is the operand behind "network": a calibration's .json, or a cluster file that names one.
Result<int> doctor_network(const Arguments& arguments);

}  // namespace sibyl::cli
