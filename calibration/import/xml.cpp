#include "calibration/import/xml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <pugixml.hpp>

namespace sibyl::import {
namespace {

constexpr int deepest = 64;
constexpr double most = 1e9;  // of any figure: beyond all machines

// Lines of a text by offset.
class Lines {
 public:
  Lines(std::string_view text, std::string file) : file_(std::move(file)) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') ends_.push_back(i);
  }
  [[nodiscard]] std::string where(std::ptrdiff_t offset) const {
    const auto at = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, offset));
    return fmt::format("{}:{}", file_, std::lower_bound(ends_.begin(), ends_.end(), at) - ends_.begin() + 1);
  }

 private:
  std::string file_;
  std::vector<std::size_t> ends_;
};

Result<Element> element_of(const pugi::xml_node& node, const Lines& lines, int depth) {
  Element element;
  element.name = node.name();
  element.where = lines.where(node.offset_debug());
  if (depth > deepest) return fail(fmt::format("<{}> is nested too deep", element.name), element.where);
  for (const pugi::xml_attribute& attribute : node.attributes())
    element.attributes[attribute.name()] = attribute.value();
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() != pugi::node_element) continue;
    SIBYL_TRY(Element inner, element_of(child, lines, depth + 1));
    element.children.push_back(std::move(inner));
  }
  return element;
}

}  // namespace

std::optional<std::string> Element::text(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  return found == attributes.end() ? std::nullopt : std::optional(found->second);
}

Result<std::string> Element::required(const std::string& attribute) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return fail(fmt::format("<{}> lacks '{}'", name, attribute), where);
  return found->second;
}

Result<std::optional<double>> Element::number(const std::string& attribute, double least) const {
  const auto found = attributes.find(attribute);
  if (found == attributes.end()) return std::nullopt;
  const std::string& value = found->second;
  double number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem != std::errc{} || end != value.data() + value.size() || !(number >= least && number <= most))
    return fail(fmt::format("<{}>: {} is '{}', not a number from {} to {}", name, attribute, value, least, most),
                where);
  return number;
}

Result<Element> parse_xml(std::string_view text, const std::string& file) {
  const Lines lines(text, file);
  pugi::xml_document document;
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed) return fail(fmt::format("not valid XML: {}", parsed.description()), lines.where(parsed.offset));
  const pugi::xml_node root = document.document_element();
  if (!root) return fail("the XML has no element", lines.where(0));
  return element_of(root, lines, 1);
}

}  // namespace sibyl::import
