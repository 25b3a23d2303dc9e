// What a search is asked, from a study and what the search view's controls say; without widgets.
#pragma once

#include <QString>
#include <QStringList>
#include <functional>
#include <memory>
#include <vector>

#include "gui/model/study.h"
#include "oracle/report/search_report.h"
#include "oracle/search/search.h"

namespace sibyl::gui {

struct SearchControls {
  QStringList axes = {"data", "tensor", "sequence", "pipeline"};  // as `sibyl search --axes` takes them
  QStringList varied;                                             // as `sibyl search --vary` takes them
  QString devices;                                                // "8", "8,16", "1..64"; empty: those of the scenario
  QString memory;                                                 // of a device, "60GiB"; empty: all it has
  int keep = 20;
};
const QStringList& searchableAxes();

struct SearchQuestion {
  std::shared_ptr<const Study> study;
  SearchSpace space;
  Cluster room;  // the cluster, with more nodes where more devices are asked for
  Bytes memory;
  std::size_t keep = 0;
};
// Fails as `sibyl search` does where a control cannot be read.
Result<SearchQuestion> searchQuestion(const std::shared_ptr<const Study>& study, const SearchControls& controls);
Result<SearchResult> answer(const SearchQuestion& question,
                            const std::function<void(std::size_t, std::size_t)>& progress,
                            const std::function<bool()>& cancelled);

// Then a strategy that was found for one can be used for the other, too. `any_devices`: the count may differ, as the
// search was told what counts to look at.
bool sameButForStrategy(const Study& one, const Study& other, bool any_devices);
// That runs this strategy: on more nodes of the same kind, where it takes more devices than the cluster has.
Scenario scenarioWith(Scenario scenario, const Cluster& cluster, const Strategy& strategy);
// Has it this strategy already, however its options are written?
bool hasStrategy(const Study& study, const Strategy& strategy);

// The best, with a first column that marks the recommended one and those that are as fast as far as is known; what is
// asked first comes first.
Table searchTable(const SearchReport& report);
// "1,234 strategies: 456 can be run, 78 are too large"
QString searchSummary(const SearchResult& result);

}  // namespace sibyl::gui
