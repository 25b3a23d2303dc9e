// kernels: what the shipped and the user's own calibrations hold of kernels, and how well they predict those they do
// not hold.
#include <fmt/format.h>

#include "base/quantity.h"
#include "calibration/device_names.h"
#include "calibration/leave_out.h"
#include "oracle/cli/console.h"
#include "oracle/cli/options.h"
#include "oracle/cli/verbs.h"
#include "oracle/report/format.h"
#include "oracle/report/table_json.h"

namespace sibyl::cli {
namespace {

using enum Column::Align;

Cell time(Seconds t) { return {to_string(t), plain_number(t.value())}; }

Result<Calibration> calibration_named(const std::string& name) {
  return name.ends_with(".json") ? load_calibration(name) : shipped_calibration(name);
}

Table covered(const std::string& name, const Calibration& calibration) {
  Table table;
  table.columns = {{"calibration", "calibration", left},
                   {"kernels", "kernels", left},
                   {"type", "type", left},
                   {"samples", "samples"},
                   {"from", "fastest_s"},
                   {"to", "slowest_s"},
                   {"median error %", "median_error"},
                   {"p90 %", "p90_error"}};
  for (const FamilyCoverage& f : kernel_table(calibration).coverage()) {
    const bool judged = f.samples >= 3;
    table.rows.push_back({name, f.name, std::string(to_string(f.dtype)), count_cell(f.samples), time(f.fastest),
                          time(f.slowest), judged ? percent_cell(f.median_error) : Cell(""),
                          judged ? percent_cell(f.p90_error) : Cell("")});
  }
  return table;
}

Table judged(const std::string& name, const std::vector<KernelErrors>& errors) {
  Table table;
  table.columns = {{"calibration", "calibration", left},
                   {"kernels", "kernels", left},
                   {"type", "type", left},
                   {"samples", "samples"},
                   {"median %", "median_error"},
                   {"mean %", "mean_error"},
                   {"p90 %", "p90_error"},
                   {"bias %", "bias"},
                   {"< 1 sd %", "within_one_sd"},
                   {"< 2 sd %", "within_two_sd"}};
  for (const KernelErrors& e : errors) {
    table.rows.push_back({name, e.kernels, std::string(to_string(e.dtype)), count_cell(e.count), percent_cell(e.median),
                          percent_cell(e.mean), percent_cell(e.p90), percent_cell(e.bias), percent_cell(e.within_one),
                          percent_cell(e.within_two)});
  }
  return table;
}

Result<Table> examined(const Arguments& arguments, const std::string& given) {
  SIBYL_TRY(const Calibration calibration, calibration_named(given));
  const std::string name = shipped_device(given).value_or(given);
  if (arguments.has("--leave-out")) return judged(name, left_out(calibration));
  if (arguments.has("--hide")) return judged(name, hidden(calibration, false));
  if (arguments.has("--hide-architecture")) return judged(name, hidden(calibration, true));
  if (const auto truth = arguments.text("--truth")) {
    SIBYL_TRY(const Calibration other, calibration_named(*truth));
    return judged(name, against(calibration, other));
  }
  return covered(name, calibration);
}

Result<int> run_kernels(const Arguments& arguments) {
  SIBYL_TRY(const OutputFormat format, output_format(arguments));
  int ways = 0;
  for (const char* way : {"--leave-out", "--hide", "--hide-architecture", "--truth"})
    ways += arguments.has(way) ? 1 : 0;
  if (ways > 1)
    return fail(ErrorCode::usage, "--leave-out, --hide, --hide-architecture and --truth: one of them at a time");
  const std::vector<std::string> names = arguments.operands().empty() ? shipped_calibrations() : arguments.operands();
  Table all;
  for (const std::string& name : names) {
    SIBYL_TRY(Table table, examined(arguments, name));
    all.columns = std::move(table.columns);
    std::ranges::move(table.rows, std::back_inserter(all.rows));
  }
  SIBYL_CHECK(print_table(all, table_json(all, "sibyl-kernels"), format));
  return 0;
}

}  // namespace

Verb kernels_verb() {
  Command c;
  c.name = "kernels";
  c.program = "sibyl kernels";
  c.summary = "show which kernels were measured on a device, and how well the others are predicted";
  c.operands = "[DEVICE|CALIBRATION.json]...";
  c.most_operands = 1000;
  c.examples = {
      {"sibyl kernels a100-sxm-80gb", "what was measured, and the leave-one-out error of each family"},
      {"sibyl kernels --leave-out h100-sxm machine.json", "each twentieth of the samples predicted from the others"},
      {"sibyl kernels --hide t4", "the whole device predicted from others, as if nobody had measured it"}};
  c.options = concatenated(
      {{{.name = "--leave-out", .help = "predict each twentieth of the samples from the rest, and show the errors"},
        {.name = "--hide", .help = "predict the samples from the datasheet and the donors alone, and show the errors"},
        {.name = "--hide-architecture", .help = "the same without the donors of the device's own architecture"},
        {.name = "--truth", .value = "DEVICE", .help = "predict the samples of this one that the calibration lacks"}},
       table_options(),
       output_options()});
  c.notes =
      "Without DEVICE, all that are shipped. Errors are of |predicted / measured - 1|; bias is the median of predicted "
      "/ "
      "measured, less 1; sd is the standard deviation that the prediction states, inside which 68 % (two: 95 %) should "
      "lie.";
  return {std::move(c), run_kernels};
}

}  // namespace sibyl::cli
