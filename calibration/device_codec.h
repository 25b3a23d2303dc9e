// The "device" of a calibration as JSON text (docs/formats/calibration.md).
#pragma once

#include <string>

#include "calibration/json_reader.h"
#include "profiler/device.h"

namespace sibyl::calibration_codec {

std::string write_device(const Device& device);  // on one line
Device read_device(const JsonValue& value);

}  // namespace sibyl::calibration_codec
