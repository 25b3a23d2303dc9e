// A copy of an ONNX file without its large payloads, made on protobuf's wire format before protobuf reads it: so
// weights stored inside the file are never copied into memory, let alone decoded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/cancelled.h"

namespace sibyl::onnx_import {

// Where the raw_data of the main graph's initializers lie in the file, by name, kept or left out.
using Payloads = std::map<std::string_view, std::string_view>;

// Nothing: the bytes are not well-formed protobuf (truncated, or not ONNX), or nest deeper than any model does; or it
// was cancelled.
std::optional<std::string> without_payloads(std::string_view model, Payloads* payloads = nullptr,
                                            const Cancelled& cancelled = {});

}  // namespace sibyl::onnx_import
