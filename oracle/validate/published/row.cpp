#include "oracle/validate/published/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "netmodel/network.h"
#include "oracle/validate/published/cells.h"

namespace sibyl::published {
namespace {

constexpr std::array<std::pair<std::string_view, Metric>, 7> metrics = {{
    {"throughput", Metric::throughput},
    {"throughput_per_gpu", Metric::throughput_per_gpu},
    {"iteration_time", Metric::iteration_time},
    {"fwd_bwd_time", Metric::fwd_bwd_time},
    {"memory_activations", Metric::memory_activations},
    {"memory", Metric::memory},
    {"memory_gib", Metric::memory},
}};

Result<Architecture> architecture_of(const std::string& text, const std::string& where) {
  Architecture architecture;
  if (is_not_stated(text)) return architecture;
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object())
    return fail("arch_params is not a JSON object", where, R"(write it like {"layers": 24, "hidden": 1024})");
  for (const auto& [key, value] : json.items()) {
    if (value.is_boolean()) architecture.set(key, value.get<bool>());
    if (value.is_number()) architecture.set(key, value.get<double>());
    if (value.is_string()) architecture.set(key, value.get<std::string>());
  }
  return architecture;
}

Result<Row> read_row(const Cells& cells, int line) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  Row row;
  row.line = line;
  SIBYL_TRY(row.source, cells.required("source"));
  SIBYL_TRY(row.model, cells.required("model"));
  SIBYL_TRY(row.gpu, cells.required("gpu"));
  SIBYL_TRY(row.metric_name, cells.required("metric"));
  for (const auto& [name, metric] : metrics)
    if (name == row.metric_name) row.metric = metric;
  SIBYL_TRY(const std::optional<double> value, cells.number("value"));
  if (!value || *value <= 0) return fail("value must be a number above 0", cells.where());
  row.value = *value;
  SIBYL_TRY(row.architecture, architecture_of(cells.text("arch_params"), cells.where()));
  SIBYL_TRY(const auto gpus, cells.integer("n_gpus", 1, most_devices));
  row.gpus = static_cast<int>(gpus.value_or(0));
  SIBYL_TRY(row.gpus_per_node, cells.integer("gpus_per_node", 1, most_devices));
  SIBYL_TRY(row.global_batch, cells.integer("global_batch", 1, most));
  SIBYL_TRY(row.micro_batch, cells.integer("micro_batch", 1, most));
  for (const auto& [column, degree] : std::initializer_list<std::pair<const char*, std::optional<std::int64_t>*>>{
           {"dp", &row.dp}, {"tp", &row.tp}, {"pp", &row.pp}, {"vpp", &row.vpp}, {"ep", &row.ep}, {"cp", &row.cp}}) {
    SIBYL_TRY(*degree, cells.integer(column, 1, most_devices));
  }
  SIBYL_TRY(row.zero, cells.integer("zero", 0, 3));
  SIBYL_TRY(const auto sp, cells.integer("sp", 0, most_devices));
  row.sp = sp.value_or(0) > 0;
  for (const auto& [column, text] :
       std::initializer_list<std::pair<const char*, std::string*>>{{"family", &row.family},
                                                                   {"precision", &row.precision},
                                                                   {"framework", &row.framework},
                                                                   {"intranode", &row.intranode},
                                                                   {"internode", &row.internode},
                                                                   {"recompute", &row.recompute},
                                                                   {"notes", &row.notes},
                                                                   {"unit", &row.unit},
                                                                   {"seq_or_image", &row.image},
                                                                   {"other_parallel", &row.other_parallel},
                                                                   {"optimizer", &row.optimizer}})
    *text = cells.text(column);
  if (!row.image.empty() &&
      std::all_of(row.image.begin(), row.image.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    SIBYL_TRY(row.sequence_length, cells.integer("seq_or_image", 1, most));
  }
  return row;
}

}  // namespace

std::optional<double> Architecture::number(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end() || !std::holds_alternative<double>(found->second)) return std::nullopt;
  return std::get<double>(found->second);
}

std::optional<std::int64_t> Architecture::integer(const std::string& key) const {
  constexpr double most = 1e15;
  const std::optional<double> value = number(key);
  if (!value || *value != std::floor(*value) || *value < 1 || *value > most) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::string Architecture::text(const std::string& key) const {
  const auto found = values_.find(key);
  const auto* word = found == values_.end() ? nullptr : std::get_if<std::string>(&found->second);
  return word ? *word : std::string{};
}

bool Architecture::flag(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  if (const auto* yes = std::get_if<bool>(&found->second)) return *yes;
  return number(key).value_or(0) != 0;
}

std::string_view to_string(Metric metric) {
  for (const auto& [name, value] : metrics)
    if (value == metric) return name;
  return {};
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool says_word(const std::string& text, std::string_view word) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const std::string lower = lower_case(text);
  for (std::size_t at = lower.find(word); at != std::string::npos; at = lower.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !is_letter(lower[at - 1]);
    if (begins && (end == lower.size() || !is_letter(lower[end]))) return true;
  }
  return false;
}

std::string normalized(std::string_view name) {
  std::string result = lower_case(name);
  std::erase_if(result, [](char c) { return !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')); });
  return result;
}

Result<std::vector<Row>> read_rows(std::string_view csv, const std::string& file) {
  SIBYL_TRY(const Csv table, parse_csv(csv, file));
  SIBYL_CHECK(require_columns(table, {"source", "model", "gpu", "n_gpus", "metric", "value"}, file));
  std::vector<Row> rows;
  for (const CsvRecord& record : table.records) {
    SIBYL_TRY(Row row, read_row(Cells(table.header, record, file), record.line));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace sibyl::published
