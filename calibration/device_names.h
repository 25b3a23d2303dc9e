// What people call the devices whose calibrations are shipped: "NVIDIA A100-SXM4-80GB", "K80 (half-board GK210)",
// "RTX-6000-Ada".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sibyl {

// The shipped calibration of the device that `text` names; upper case, punctuation and vendors' names do not matter,
// nor what stands in brackets where the rest is enough. Nothing where it is none, or where the name does not tell which
// (an "A100" may be any of four).
std::optional<std::string> shipped_device(std::string_view text);

}  // namespace sibyl
