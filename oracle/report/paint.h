// Colour for terminals, or the same text without it.
#pragma once

#include <string>

#include "oracle/report/report.h"

namespace sibyl {

class Paint {
 public:
  explicit Paint(TextStyle style) : on_(style.color) {}

  [[nodiscard]] std::string bold(const std::string& text) const { return wrapped("1", text); }
  [[nodiscard]] std::string heading(const std::string& text) const { return wrapped("1;36", text); }
  [[nodiscard]] std::string alarm(const std::string& text) const { return wrapped("1;31", text); }
  [[nodiscard]] std::string bar(const std::string& text) const { return wrapped("34", text); }
  // A kind of memory always has the same colour.
  [[nodiscard]] std::string kind(char letter, const std::string& text) const;

 private:
  [[nodiscard]] std::string wrapped(const char* code, const std::string& text) const {
    return on_ && !text.empty() ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
  }
  bool on_;
};

// Two spaces before every line.
std::string indented(const std::string& text);

}  // namespace sibyl
