// The calibrations and cluster files that come with Sibyl, compiled into the program, so that it runs wherever it is
// copied and a prediction reads nothing but what it was given. The list is generated from calibration/data and
// calibration/clusters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sibyl::shipped {

enum class Kind { calibration, cluster };

std::vector<std::string> names(Kind kind);  // sorted
std::optional<std::string_view> find(Kind kind, std::string_view name);

}  // namespace sibyl::shipped
