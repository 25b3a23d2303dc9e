// Reading and writing quantities as people write them.
//
// Reading: "25MiB", "1.5 GB", "100Gb/s" (bits), "12.5GB/s" (bytes), "3us", "2.5 ms", "1h", "312TFLOP/s", "64". kB MB GB TB are
// powers of 1000, KiB MiB GiB TiB powers of 1024; a lower-case b is bits in rates only. A bare number is in SI
// units. Negative, non-finite or unknown input is an Error that quotes the text and lists accepted forms.
//
// Writing: three significant digits and the unit that keeps the number between 1 and 1000 ("12.3 ms", "97.5 MiB",
// "12.5 GB/s", "4.09 GFLOP").
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace sibyl {

Result<Bytes> parse_bytes(std::string_view text);
Result<Seconds> parse_seconds(std::string_view text);
Result<BytesPerSecond> parse_bytes_per_second(std::string_view text);
Result<FlopsPerSecond> parse_flops_per_second(std::string_view text);

std::string to_string(Seconds t);
std::string to_string(Bytes b);  // binary prefixes: memory
std::string to_string(BytesPerSecond r);
std::string to_string(Flops f);
std::string to_string(FlopsPerSecond r);
std::string with_prefix(double value, std::string_view unit);  // "25.6 M" for counts: with_prefix(25557032, "")

}  // namespace sibyl
