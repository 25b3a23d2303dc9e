// Calibrations as JSON text. The format is documented in docs/formats/calibration.md and calibration.schema.json beside
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "calibration/calibration.h"

namespace sibyl::calibration_codec {

inline constexpr std::string_view schema = "sibyl.calibration/1";

// One line per sample, so that files can be compared and cut with line tools.
std::string write(const Calibration& calibration);
// `file` names the text in errors, which carry the JSON path: "cluster.json: $.kernels[3].key".
Result<Calibration> read(std::string_view text, const std::string& file);

// One kernel sample on one line, without newline, as the journal keeps it.
std::string write_kernel(const KernelSample& sample);
Result<KernelSample> read_kernel(std::string_view line, const std::string& where);

}  // namespace sibyl::calibration_codec
