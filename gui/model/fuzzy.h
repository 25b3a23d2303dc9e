// Finding a command by a few of its letters.
#pragma once

#include <QStringView>
#include <optional>

namespace sibyl::gui {

// Higher is better; nothing where the letters of `pattern` do not all occur in `text`, in their order, whatever their
// case. Letters that begin words or follow each other count more, gaps a little less.
std::optional<int> fuzzyScore(QStringView pattern, QStringView text);

}  // namespace sibyl::gui
