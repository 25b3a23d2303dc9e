// Rows of published measurements.
#pragma once

#include "oracle/validate/published/row.h"

namespace sibyl::test {

inline published::Row row_of(int gpus, int per_node, const char* gpu, const char* intranode, const char* internode) {
  published::Row row;
  row.gpus = gpus;
  row.gpus_per_node = per_node;
  row.gpu = gpu;
  row.intranode = intranode;
  row.internode = internode;
  row.metric = published::Metric::iteration_time;
  row.global_batch = 8 * gpus;
  row.dp = gpus;
  return row;
}

}  // namespace sibyl::test
