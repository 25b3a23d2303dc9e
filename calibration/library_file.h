// The key `library` of a cluster file: whose rules choose the algorithms of collectives. A name, or a list of rules of the
// user's own.
#pragma once

#include <string>

#include "base/result.h"
#include "netmodel/library.h"

namespace YAML {
class Node;
}

namespace sibyl {

// `file` names the text in errors, which carry "file:line".
Result<LibraryChoice> read_library(const YAML::Node& node, const std::string& file);

// The key with its value, in whole lines.
std::string library_text(const LibraryChoice& choice);

}  // namespace sibyl
