#include "oracle/validate/goals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "oracle/validate/ranking.h"

namespace sibyl {
namespace {

std::string size_of(double fraction) { return fmt::format("{:.1f} %", std::abs(fraction) * 100); }
std::string more_than(double limit) { return ", more than " + size_of(limit); }

// The case that is off by most.
template <class Error>
const Validated& worst(const std::vector<Validated>& cases, Error error) {
  return *std::ranges::max_element(cases, {}, [&](const Validated& v) { return std::abs((v.*error)()); });
}

void judge_time(const std::vector<Validated>& cases, const Goals& goals, std::vector<std::string>& sentences) {
  const Validated& longest = worst(cases, &Validated::time_error);
  if (goals.most && std::abs(longest.time_error()) > *goals.most)
    sentences.push_back(fmt::format("a step time is off by {}{} ({})", size_of(longest.time_error()),
                                    more_than(*goals.most), longest.name));
  const double mean = summarize(cases).mean_time_error;
  if (goals.mean && mean > *goals.mean)
    sentences.push_back(fmt::format("step times are off by {} in the mean{}", size_of(mean), more_than(*goals.mean)));
  const std::vector<StrategySummary> strategies = by_strategy(cases);
  const StrategySummary& least_right = *std::ranges::max_element(strategies, {}, &StrategySummary::mean_error);
  if (goals.strategy_mean && least_right.mean_error > *goals.strategy_mean)
    sentences.push_back(fmt::format("step times of {} are off by {} in the mean{}", least_right.kind,
                                    size_of(least_right.mean_error), more_than(*goals.strategy_mean)));
}

void judge_order(const std::vector<Validated>& cases, int most_wrong, std::vector<std::string>& sentences) {
  int told = 0, wrong = 0;
  for (const Ranking& ranking : rankings(cases)) told += ranking.told, wrong += ranking.told - ranking.told_right;
  if (wrong > most_wrong)
    sentences.push_back(
        fmt::format("of {} pair{} of strategies that are told apart {} {} predicted in the wrong order{}", told,
                    told == 1 ? "" : "s", wrong, wrong == 1 ? "is" : "are",
                    most_wrong > 0 ? fmt::format(", more than {}", most_wrong) : ""));
}

}  // namespace

std::vector<std::string> missed(const std::vector<Validated>& cases, const Goals& goals) {
  std::vector<std::string> sentences;
  if (cases.empty()) return sentences;
  judge_time(cases, goals, sentences);
  const Validated& fullest = worst(cases, &Validated::memory_error);
  if (goals.memory && std::abs(fullest.memory_error()) > *goals.memory)
    sentences.push_back(fmt::format("memory is off by {}{} ({})", size_of(fullest.memory_error()),
                                    more_than(*goals.memory), fullest.name));
  if (goals.wrong_pairs) judge_order(cases, *goals.wrong_pairs, sentences);
  if (!summarize(cases).bytes_agree) sentences.emplace_back("bytes sent differ from bytes predicted");
  return sentences;
}

std::vector<StrategySummary> by_strategy(const std::vector<Validated>& cases) {
  std::vector<StrategySummary> strategies;
  for (const Validated& one : cases) {
    auto own = std::ranges::find(strategies, one.kind, &StrategySummary::kind);
    if (own == strategies.end()) own = strategies.insert(strategies.end(), StrategySummary{.kind = one.kind});
    ++own->cases;
    own->bias += one.time_error();
    own->mean_error += std::abs(one.time_error());
    own->max_error = std::max(own->max_error, std::abs(one.time_error()));
  }
  for (StrategySummary& each : strategies) {
    each.bias /= static_cast<double>(each.cases);
    each.mean_error /= static_cast<double>(each.cases);
  }
  return strategies;
}

Table to_table(const std::vector<StrategySummary>& strategies) {
  using Align = Column::Align;
  Table table{{{"strategy", "strategy", Align::left},
               {"cases", "cases", Align::right},
               {"mean", "mean_time_error", Align::right},
               {"bias", "bias", Align::right},
               {"at most", "max_time_error", Align::right}},
              {}};
  for (const StrategySummary& s : strategies)
    table.rows.push_back({s.kind, std::to_string(s.cases), size_of(s.mean_error),
                          fmt::format("{:+.1f} %", s.bias * 100), size_of(s.max_error)});
  return table;
}

}  // namespace sibyl
