// An XML text as plain values, for readers that want the line of every element. Entities and CDATA are resolved;
// comments and processing instructions are left out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sibyl::import {

struct Element {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::vector<Element> children;
  std::string where;  // file:line

  [[nodiscard]] std::optional<std::string> text(const std::string& attribute) const;
  [[nodiscard]] Result<std::string> required(const std::string& attribute) const;
  // The whole attribute as a number from `least` to 1e9; nothing where there is none.
  [[nodiscard]] Result<std::optional<double>> number(const std::string& attribute, double least) const;
};

// The root. Nested deeper than 64 elements is an Error: no machine is.
Result<Element> parse_xml(std::string_view text, const std::string& file);

}  // namespace sibyl::import
