// One mapping of a YAML file: keys declared with what reads their values, everything else an error with file and line.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace YAML {
class Node;
}

namespace sibyl {

class YamlMapping {
 public:
  YamlMapping(std::string file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  using Read = std::function<Result<void>(const YAML::Node&)>;
  void key(std::string key, Read read, bool required = false) {
    entries_.push_back({std::move(key), std::move(read), required, false, {}});
  }

  // `parse`: std::string -> Result<T>. `target` must live until read() has returned, and so must this.
  template <class T, class Parse>
  void scalar(std::string of_key, T& target, Parse parse, bool required = false) {
    key(
        std::move(of_key),
        [this, &target, parse](const YAML::Node& node) -> Result<void> {
          SIBYL_TRY(const std::string text, single_value(node));
          auto value = parse(text);
          if (!value) return fail(value.error().message, where(node), value.error().hint);
          target = std::move(*value);
          return {};
        },
        required);
  }
  void mapping(std::string of_key, YamlMapping& inner, bool required = false);
  // A list of whole numbers of at least 1, or one of them.
  void counts(std::string of_key, std::vector<int>& target, bool required = false);

  Result<void> read(const YAML::Node& node);

  // The place of a key that was given.
  [[nodiscard]] std::optional<std::string> given(std::string_view key) const;
  [[nodiscard]] std::string where(const YAML::Node& node) const;
  [[nodiscard]] Result<std::string> single_value(const YAML::Node& node) const;
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  struct Entry {
    std::string key;
    Read read;
    bool required;
    bool seen;
    std::string where = {};
  };
  Result<void> read_member(const YAML::Node& key_node, const YAML::Node& value);

  std::string file_, name_;
  std::vector<Entry> entries_;
};

// Scalars as cluster files write them.
Result<std::string> parse_text(const std::string& text);
Result<int> parse_count(const std::string& text);      // a whole number of at least 1
Result<double> parse_factor(const std::string& text);  // 1 to 1e6
Result<double> parse_share(const std::string& text);   // 0 to 1
Result<bool> parse_yes_or_no(const std::string& text);

}  // namespace sibyl
