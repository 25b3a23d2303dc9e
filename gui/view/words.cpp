#include "gui/view/words.h"

namespace sibyl::gui {

QString titled(std::string_view text) {
  QString result = QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
  if (!result.isEmpty()) result[0] = result[0].toUpper();
  return result;
}

QString sentence(const Error& error) {
  QString text = titled(error.message);
  if (!error.where.empty()) text += " (" + QString::fromStdString(error.where) + ")";
  if (!text.endsWith('.')) text += '.';
  if (!error.hint.empty()) text += "\n" + titled(error.hint) + ".";
  return text;
}

}  // namespace sibyl::gui
