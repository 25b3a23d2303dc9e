#include "oracle/validate/ranking.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace sibyl {
namespace {

using Group = std::vector<const Validated*>;

double standard_error(const TrainingRun& run) {
  const double of_median = 1.25 * run.spread / std::sqrt(std::max(1, run.steps));
  return run.step_time.value() * std::hypot(of_median, run.drift / std::sqrt(run.rounds));
}

bool differ(const TrainingRun& a, const TrainingRun& b) {
  return std::abs((a.step_time - b.step_time).value()) > 2 * std::hypot(standard_error(a), standard_error(b));
}

std::vector<std::string> by(Group cases, auto&& time) {
  std::ranges::stable_sort(cases, {}, time);
  std::vector<std::string> ways;
  for (const Validated* one : cases) ways.push_back(one->way);
  return ways;
}

void compare(const Validated& fast, const Validated& slow, Ranking& ranking) {
  if (!differ(fast.measurement, slow.measurement)) return;
  const bool right = fast.prediction.step_time < slow.prediction.step_time;
  const bool told =
      told_apart(fast.prediction.step_time, fast.prediction.error, slow.prediction.step_time, slow.prediction.error);
  ++ranking.pairs;
  if (right) ++ranking.right;
  if (told) ++ranking.told;
  if (told && right) ++ranking.told_right;
  if (!right) ranking.wrong.push_back(fmt::format("{} before {}{}", slow.way, fast.way, told ? "" : " (called equal)"));
}

Ranking ranking_of(const Group& cases) {
  Ranking ranking;
  ranking.work = cases.front()->work;
  ranking.measured = by(cases, [](const Validated* v) { return v->measurement.step_time; });
  ranking.predicted = by(cases, [](const Validated* v) { return v->prediction.step_time; });
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (std::size_t j = i + 1; j < cases.size(); ++j) {
      const bool in_order = cases[i]->measurement.step_time < cases[j]->measurement.step_time;
      compare(*cases[in_order ? i : j], *cases[in_order ? j : i], ranking);
    }
  return ranking;
}

}  // namespace

std::vector<Ranking> rankings(const std::vector<Validated>& cases) {
  std::vector<Group> groups;
  for (const Validated& one : cases) {
    const auto known = std::ranges::find(groups, one.work, [](const Group& group) { return group.front()->work; });
    if (known == groups.end())
      groups.push_back({&one});
    else
      known->push_back(&one);
  }
  std::vector<Ranking> result;
  for (const Group& group : groups)
    if (group.size() > 1) result.push_back(ranking_of(group));
  return result;
}

Table to_table(const std::vector<Ranking>& rankings) {
  using Align = Column::Align;
  Table table{{{"model", "work", Align::left},
               {"as measured, the fastest first", "measured_order", Align::left},
               {"as predicted", "predicted_order", Align::left},
               {"pairs right", "pairs_right", Align::right},
               {"of those that differ", "pairs", Align::right},
               {"told apart", "told_apart", Align::right},
               {"wrong", "wrong", Align::left}},
              {}};
  for (const Ranking& r : rankings)
    table.rows.push_back({r.work, fmt::format("{}", fmt::join(r.measured, "; ")),
                          r.measured == r.predicted ? "the same" : fmt::format("{}", fmt::join(r.predicted, "; ")),
                          std::to_string(r.right), std::to_string(r.pairs), std::to_string(r.told),
                          fmt::format("{}", fmt::join(r.wrong, "; "))});
  return table;
}

std::string summary_sentence(const std::vector<Ranking>& rankings) {
  int pairs = 0, right = 0, told = 0, told_right = 0, models = 0, whole = 0;  // models whose strategies differ at all
  for (const Ranking& r : rankings) {
    if (r.pairs == 0) continue;
    pairs += r.pairs, right += r.right, told += r.told, told_right += r.told_right, ++models;
    if (r.wrong.empty()) ++whole;
  }
  return fmt::format(
      "Order of strategies: right for {} of {} models; of {} pairs whose times differ by more than noise, {} are "
      "predicted in their order. {} of them are told apart, {} of these rightly.",
      whole, models, pairs, right, told, told_right);
}

}  // namespace sibyl
