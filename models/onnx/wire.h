// A copy of an ONNX file without its large payloads, made on protobuf's wire format before protobuf reads it: so
// weights stored inside the file are never copied into memory, let alone decoded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sibyl::onnx_import {

// Nothing: the bytes are not well-formed protobuf (truncated, or not ONNX), or nest deeper than any model does.
std::optional<std::string> without_payloads(std::string_view model);

}  // namespace sibyl::onnx_import
