#include "calibration/shipped.h"

#include "calibration/shipped_files.h"

namespace sibyl::shipped {

std::vector<std::string> names(Kind kind) {
  std::vector<std::string> list;
  for (const File& file : files())
    if (file.kind == kind) list.emplace_back(file.name);
  return list;
}

std::optional<std::string_view> find(Kind kind, std::string_view name) {
  for (const File& file : files())
    if (file.kind == kind && file.name == name) return file.text;
  return std::nullopt;
}

}  // namespace sibyl::shipped
