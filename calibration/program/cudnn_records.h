// What is known of a GPU's samples beyond what predictions use, as CSV beside the calibration: under which clocks and
// at which temperature each was taken and which engine was fastest (FILE.conditions.csv, appended as samples come);
// copies between host and device (FILE.transfers.csv); what a launch takes the host (FILE.launches.csv); the sweep's
// interpolation error (FILE.interpolation.csv).
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "profiler/cudnn/gpu.h"
#include "profiler/sweep/sweep.h"

namespace sibyl {

Result<void> append_condition(const std::filesystem::path& calibration, const cudnn::Timing& timing);
Result<void> write_transfers(const std::filesystem::path& calibration, const std::vector<cudnn::Transfer>& transfers);
Result<void> write_launches(const std::filesystem::path& calibration, Seconds launch);
Result<void> write_sweep_errors(const std::filesystem::path& calibration, const std::vector<SweepError>& errors);

// For people.
std::string sweep_errors_text(const std::vector<SweepError>& errors);

}  // namespace sibyl
