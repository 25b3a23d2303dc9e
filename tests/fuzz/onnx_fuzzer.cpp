// libFuzzer target: any bytes as an ONNX file give a graph or an Error, never a crash, a hang or a huge allocation.
#include <cstdint>

#include "models/onnx/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  sibyl::ImportOptions options;
  (void)sibyl::inspect_onnx_bytes(bytes, "fuzz.onnx", options);
  options.batch = 3;
  (void)sibyl::inspect_onnx_bytes(bytes, "fuzz.onnx", options);
  return 0;
}
