// Spans in words: for tooltips, the line below the timeline, the table of an area.
#pragma once

#include <QString>

#include "base/result.h"
#include "base/table.h"
#include "gui/view/canvas/timeline_model.h"

namespace sibyl::gui {

QString timeText(double seconds);                                 // "12.3 ms"
QString categoryTitle(const std::string& category);               // "Communication"
QString argumentText(const TraceArgument& argument);              // with its unit: "97.5 MiB"
QString spanSentence(const Timeline& timeline, SpanPlace place);  // one line
QString spanDetails(const Timeline& timeline, SpanPlace place);   // rich text: all that is known
Table spanTable(const Timeline& timeline);                        // a span a row
// What is wrong, where, and what to do about it.
QString errorSentence(const Error& error);

}  // namespace sibyl::gui
