// libFuzzer target: any bytes as a topology of another program give a Part or an Error, and what they make a cluster
// file of can be read.
#include <cstdint>
#include <cstdlib>

#include "calibration/import/cluster_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sibyl::import;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto part = read_part(text, "fuzz");
  if (!part) return 0;
  Wanted wanted;
  wanted.calibration = "t4";
  wanted.like.emplace();
  const auto cluster = cluster_text({{"fuzz", std::move(*part)}}, wanted);
  if (cluster && !sibyl::parse_cluster_file(*cluster, "made")) std::abort();
  return 0;
}
