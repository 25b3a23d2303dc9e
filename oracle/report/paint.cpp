#include "oracle/report/paint.h"

namespace sibyl {

std::string Paint::kind(char letter, const std::string& text) const {
  switch (letter) {
    case 'w': return wrapped("34", text);
    case 'g': return wrapped("36", text);
    case 'o': return wrapped("35", text);
    case 'a': return wrapped("32", text);
    case 's': return wrapped("33", text);
    case 'c': return wrapped("31", text);
    default: return wrapped("37", text);
  }
}

std::string indented(const std::string& text) {
  std::string result;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && c != '\n') result += "  ";
    result += c;
    line_begins = c == '\n';
  }
  return result;
}

}  // namespace sibyl
