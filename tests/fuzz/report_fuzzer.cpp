// libFuzzer target: any bytes as a prediction or a scaling study give a report or an Error. A report can be spelt in every
// way, and its JSON is read again.
#include <cstdint>
#include <cstdlib>

#include "oracle/report/report.h"

namespace sibyl {
namespace {

template <class Report>
std::string spelt(const Report& report) {
  (void)to_text(report, {});
  (void)to_html(report);
  (void)csv(to_table(report));
  return to_json(report);
}

void check(std::string_view text) {
  const std::string file = "fuzz.json";
  if (const auto prediction = parse_prediction(text, file)) {
    const auto again = parse_prediction(spelt(*prediction), file);
    if (!again || to_json(*again) != to_json(*prediction)) std::abort();
    (void)comparison_text(*prediction, *again, {});
  }
  if (const auto study = parse_scale(text, file))
    if (!parse_scale(spelt(*study), file)) std::abort();
}

}  // namespace
}  // namespace sibyl

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sibyl::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
