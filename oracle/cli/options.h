// The vocabulary that Sibyl's programs share: models, strategies, batches and device counts as options are spelt, and
// how they are read. `sibyl`, `sibyl-train` and `sibyl-calibrate` say the same things in the same words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/graph.h"
#include "models/onnx/import.h"
#include "oracle/cli/arguments.h"
#include "oracle/strategy.h"

namespace sibyl::cli {

inline constexpr std::int64_t most_threads = 4096;  // of one rank

// "32": samples of one step over all devices. "32/device": samples of each device.
struct BatchSize {
  std::int64_t samples = 1;
  bool per_device = false;

  [[nodiscard]] std::int64_t global(int devices) const { return per_device ? samples * devices : samples; }
  bool operator==(const BatchSize&) const = default;
};
Result<BatchSize> parse_batch(std::string_view text);

// "8", "1,2,4", "1..64" or "1-64" (doubling: 1 2 4 … 64, the end always included), "4..16:4" (in steps of 4);
// ascending, unique.
Result<std::vector<int>> parse_device_counts(std::string_view text);

// "1,8,32": positive integers in the order given.
Result<std::vector<std::int64_t>> parse_integer_list(std::string_view text, std::string_view option);

// Groups of options, to be put into a Command.
std::vector<Option> model_options();  // --dim, --capacity-factor, --loss
std::vector<Option>
strategy_options();  // --batch --parallel --order --micro-batches --precision --optimizer --bucket --no-overlap
std::vector<Option> output_options();  // --json --color
// Those of `options` that were given, as --name=value words (flags as --name).
std::vector<std::string> given_words(const Arguments& arguments, const std::vector<Option>& options);
std::vector<Option> concatenated(std::vector<std::vector<Option>> groups);

// --dim and --loss. The batch is left to the caller.
Result<ImportOptions> read_import_options(const Arguments& arguments);

// The strategy that the options describe. `devices` is the count asked for (--devices), where the caller has one: it
// must agree with --parallel, and is the data-parallel degree where --parallel is absent.
Result<Strategy> read_strategy(const Arguments& arguments, std::optional<int> devices);
// All of it but the optimizer, of which some programs take several.
Result<Strategy> read_splitting(const Arguments& arguments, std::optional<int> devices);

// How reports call it: the path or zoo:NAME, "standard input" for "-".
std::string model_name(const std::string& model);

// `model`: a path to an ONNX file, "-" for standard input, or "zoo:NAME".
Result<Import> load_import(const std::string& model, const ImportOptions& options);
// The same, ready to be priced: an unsupported operation is an Error that names the first one.
Result<Graph> load_graph(const std::string& model, const ImportOptions& options);
// What --dim can bind of it. Not of standard input, which can be read but once.
Result<std::vector<OpenDimension>> load_dimensions(const std::string& model);

}  // namespace sibyl::cli
