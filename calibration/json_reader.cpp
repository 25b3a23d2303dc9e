#include "calibration/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sibyl {
namespace {

using nlohmann::json;

const json& as_json(const void* value) { return *static_cast<const json*>(value); }

// Nothing that is measured is further from 1 in its SI unit, and sums and products of what is within stay finite.
constexpr double greatest = 1e18;
constexpr double smallest = 1e-18;

std::string_view sign_text(Sign sign) {
  return sign == Sign::positive       ? "a positive number, from 1e-18 to 1e18"
         : sign == Sign::not_negative ? "a number from 0 to 1e18"
                                      : "a number from -1e18 to 1e18";
}

bool is_within(double number, Sign sign) {
  if (!(std::abs(number) <= greatest)) return false;  // nor a NaN
  return sign == Sign::any || (sign == Sign::not_negative ? number >= 0 : number >= smallest);
}

}  // namespace

struct JsonDocument::State {
  json root;
  std::string file;
  std::optional<Error> error;
};

JsonDocument::JsonDocument(std::unique_ptr<State> state) : state_(std::move(state)) {}
JsonDocument::~JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;

Result<JsonDocument> JsonDocument::parse(std::string_view text, const std::string& file) {
  auto state = std::make_unique<State>();
  state->file = file;
  try {
    state->root = json::parse(text);
  } catch (const json::parse_error& problem) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(problem.byte, text.size()));
    return fail(problem.byte > text.size() ? "the JSON ends too early: the file is truncated"
                                           : "not valid JSON: text that does not belong here",
                fmt::format("{}:{}", file, 1 + std::count(text.begin(), end, '\n')));
  } catch (const json::exception&) {
    return fail("not valid JSON: a number is too large", file);
  }
  return JsonDocument(std::move(state));
}

JsonValue JsonDocument::root() const { return {*this, &state_->root, nullptr, "$", 0}; }
const std::optional<Error>& JsonDocument::error() const { return state_->error; }

std::string JsonValue::path() const {
  if (parent_ == nullptr) return "$";
  if (key_.empty()) return fmt::format("{}[{}]", parent_->path(), index_);
  return fmt::format("{}.{}", parent_->path(), key_);
}

void JsonValue::reject(std::string message, std::string_view key) const {
  auto& error = document_->state_->error;
  if (error) return;
  const std::string place = key.empty() ? path() : fmt::format("{}.{}", path(), key);
  error = Error{ErrorCode::bad_input, std::move(message), fmt::format("{}: {}", document_->state_->file, place), {}};
}

const void* JsonValue::find(std::string_view key, bool required) const {
  const json& value = as_json(value_);
  if (!value.is_object()) {
    reject("must be an object");
    return nullptr;
  }
  const auto found = value.find(key);
  if (found != value.end()) return &*found;
  if (required) reject("is missing", key);
  return nullptr;
}

double JsonValue::checked(const void* value, Sign sign, std::string_view key) const {
  const json& v = as_json(value);
  const double number = v.is_number() ? v.get<double>() : std::nan("");
  const bool valid = is_within(number, sign);
  if (!valid) reject(fmt::format("must be {}", sign_text(sign)), key);
  return valid ? number : 1.0;
}

double JsonValue::number(std::string_view key, Sign sign) const {
  const void* value = find(key, true);
  return value != nullptr ? checked(value, sign, key) : 1.0;
}
double JsonValue::number_or(std::string_view key, Sign sign, double absent) const {
  const void* value = find(key, false);
  return value != nullptr ? checked(value, sign, key) : absent;
}
int JsonValue::integer_or(std::string_view key, int least, int absent) const {
  const void* value = find(key, false);
  if (value == nullptr) return absent;
  const json& v = as_json(value);
  constexpr std::int64_t most = 1'000'000'000;
  if (v.is_number_integer() && v.get<double>() >= least && v.get<double>() <= most) return v.get<int>();
  reject(fmt::format("must be a whole number from {} to {}", least, most), key);
  return absent;
}
bool JsonValue::boolean(std::string_view key) const {
  const void* value = find(key, true);
  if (value != nullptr && as_json(value).is_boolean()) return as_json(value).get<bool>();
  reject("must be true or false", key);
  return false;
}
std::string JsonValue::text(std::string_view key) const {
  return find(key, true) != nullptr ? text_or(key, {}) : std::string{};
}
std::string JsonValue::text_or(std::string_view key, std::string absent) const {
  const void* value = find(key, false);
  if (value == nullptr) return absent;
  if (as_json(value).is_string()) return as_json(value).get<std::string>();
  reject("must be a string", key);
  return absent;
}
bool JsonValue::has(std::string_view key) const { return find(key, false) != nullptr; }
bool JsonValue::is_integer(std::string_view key) const {
  const void* value = find(key, false);
  return value != nullptr && as_json(value).is_number_integer();
}

std::string JsonValue::as_text() const {
  if (as_json(value_).is_string()) return as_json(value_).get<std::string>();
  reject("must be a string");
  return {};
}
double JsonValue::as_number(Sign sign) const { return checked(value_, sign, {}); }
std::vector<double> JsonValue::as_numbers(Sign sign) const {
  std::vector<double> numbers;
  const json& array = as_json(value_);
  if (!array.is_array()) {
    reject("must be an array of numbers");
    return numbers;
  }
  numbers.reserve(array.size());
  for (const json& element : array) numbers.push_back(checked(&element, sign, {}));
  return numbers;
}

void JsonValue::object(std::string_view key, const std::function<void(const JsonValue&)>& read) const {
  const void* value = find(key, true);
  if (value == nullptr) return;
  if (!as_json(value).is_object()) return reject("must be an object", key);
  read(JsonValue(*document_, value, this, key, 0));
}

void JsonValue::each(std::string_view key, const std::function<void(const JsonValue&)>& read) const {
  const void* value = find(key, false);
  if (value == nullptr) return;
  if (!as_json(value).is_array()) return reject("must be an array", key);
  const JsonValue array(*document_, value, this, key, 0);
  std::size_t index = 0;
  for (const json& element : as_json(value)) {
    read(JsonValue(*document_, &element, &array, {}, index++));
    if (document_->error()) return;
  }
}

void JsonValue::members(std::string_view key,
                        const std::function<void(const std::string&, const JsonValue&)>& read) const {
  const void* value = find(key, false);
  if (value == nullptr) return;
  if (!as_json(value).is_object()) return reject("must be an object", key);
  const JsonValue object(*document_, value, this, key, 0);
  for (const auto& [name, member] : as_json(value).items())
    read(name, JsonValue(*document_, &member, &object, name, 0));
}

void JsonValue::only(std::initializer_list<std::string_view> keys) const {
  const json& value = as_json(value_);
  if (!value.is_object()) return reject("must be an object");
  for (const auto& [name, member] : value.items())
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) return reject("is not a known key", name);
}

}  // namespace sibyl
