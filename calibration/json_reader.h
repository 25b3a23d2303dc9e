// Reads JSON text field by field, remembering where it is, so that an error can say "$.kernels[3].time_s". The first
// error sticks: later reads return defaults, and the caller asks error() once at the end. Objects are checked for keys
// that nobody knows. No JSON type shows here.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace sibyl {

enum class Sign { any, not_negative, positive };

class JsonDocument;

// A value inside a document, which must outlive it.
class JsonValue {
 public:
  // Members of an object; `required` ones that are absent are errors, others return the default.
  double number(std::string_view key, Sign sign) const;
  double number_or(std::string_view key, Sign sign, double absent) const;
  int integer_or(std::string_view key, int least, int absent) const;
  bool boolean(std::string_view key) const;
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string absent) const;
  [[nodiscard]] bool has(std::string_view key) const;
  [[nodiscard]] bool is_integer(std::string_view key) const;
  void object(std::string_view key, const std::function<void(const JsonValue&)>& read) const;
  // Each element of an array, or each member of an object, in the file's order; an absent one is empty.
  void each(std::string_view key, const std::function<void(const JsonValue&)>& read) const;
  void members(std::string_view key, const std::function<void(const std::string&, const JsonValue&)>& read) const;

  // This value itself.
  [[nodiscard]] std::string as_text() const;
  [[nodiscard]] double as_number(Sign sign) const;
  [[nodiscard]] std::vector<double> as_numbers(Sign sign) const;

  void only(std::initializer_list<std::string_view> keys) const;
  void reject(std::string message, std::string_view key = {}) const;

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument& document, const void* value, const JsonValue* parent, std::string_view key,
            std::size_t index)
      : document_(&document), value_(value), parent_(parent), key_(key), index_(index) {}
  [[nodiscard]] std::string path() const;
  [[nodiscard]] const void* find(std::string_view key, bool required) const;
  [[nodiscard]] double checked(const void* value, Sign sign, std::string_view key) const;

  const JsonDocument* document_;
  const void* value_;
  const JsonValue* parent_;
  std::string_view key_;
  std::size_t index_;
};

class JsonDocument {
 public:
  static Result<JsonDocument> parse(std::string_view text, const std::string& file);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;

  [[nodiscard]] JsonValue root() const;
  [[nodiscard]] const std::optional<Error>& error() const;

 private:
  friend class JsonValue;
  struct State;
  explicit JsonDocument(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What a parser made of a member's text; its error is the member's, and `otherwise` stands in.
template <class T>
T unwrap(Result<T> result, const JsonValue& value, std::string_view key, T otherwise) {
  if (result) return std::move(*result);
  value.reject(result.error().message, key);
  return otherwise;
}

}  // namespace sibyl
