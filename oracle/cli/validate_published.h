// `sibyl validate --published FILE`: predictions against measurements that others published.
#pragma once

#include <vector>

#include "base/result.h"
#include "oracle/cli/arguments.h"

namespace sibyl::cli {

std::vector<Option> published_options();  // --published, --source, --rows
// Gives the exit code.
Result<int> validate_published(const Arguments& arguments);

}  // namespace sibyl::cli
