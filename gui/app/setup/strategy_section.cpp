#include "gui/app/setup/strategy_section.h"

#include <QFormLayout>
#include <QHBoxLayout>

#include "base/quantity.h"
#include "gui/app/text.h"
#include "oracle/report/format.h"

namespace sibyl::gui {
namespace {

// As `sibyl search` asks it, for one number of devices.
Result<SearchResult> best_of(const Study& study, const Ticket& ticket) {
  SearchSpace space;
  space.fixed = study.strategy;
  // What the space says of these; the rest of them stays with the strategy that is asked from.
  space.fixed.zero_ranks = 0;
  space.fixed.recompute_every = space.fixed.recompute_together = 1;
  space.fixed.recompute_kinds.clear();
  space.devices = {study.strategy.devices()};
  SearchOptions options;
  options.cancelled = ticket.cancelled();
  options.progress = [&](std::size_t done, std::size_t total) { ticket.progress(done, total); };
  return search(*study.graph, space, *study.cluster, options);
}

}  // namespace

StrategySection::StrategySection(Document& document, QWidget* parent)
    : ScenarioSection(tr("Strategy"), document, parent),
      mesh_(new MeshEditor(document, this)),
      auto_(new QPushButton(tr("Find the best"), this)),
      progress_(new QProgressBar(this)),
      found_(new QLabel(this)),
      search_(this) {
  auto* form = new QFormLayout;
  form->setContentsMargins(0, 0, 0, 0);
  form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  const auto add = [&](const char* name, const QString& label, const QStringList& suggestions = {},
                       const QString& usual = {}) {
    fields_.push_back(new OptionField(predictOption(name), label, document, this, suggestions, usual));
    if (predictOption(name).value.empty())  // a box that says it itself
      form->addRow(fields_.back());
    else
      form->addRow(label, fields_.back());
    return fields_.back();
  };
  add("--micro-batches", tr("Micro-batches"), {"1", "2", "4", "8", "16", "32", "64"});
  schedule_ = add("--schedule", tr("Schedule"), {"gpipe", "interleaved:2", "interleaved:4", "zero-bubble"}, "1f1b");
  add("--zero", tr("ZeRO"), {"0", "1", "2", "3"});
  add("--reduce-each", tr("Reduce each micro-batch's gradients"));
  add("--backward-prefetch", tr("Gather blocks backward"));
  add("--recompute", tr("Recompute"), {"none", "selective", "full", "every:2", "groups:2"});
  add("--offload", tr("Offload"),
      {"optimizer", "optimizer:nvme", "activations", "activations:nvme", "optimizer,activations",
       "optimizer,parameters"},
      tr("nothing"));
  add("--compress", tr("Compress gradients"), {"none", "fp16", "bf16", "1bit", "2bit", "topk:0.01"});
  add("--order", tr("Order of axes"), {}, tr("as usual"));
  add("--stages", tr("Stages begin at"), {}, tr("balanced"));
  add("--split-until", tr("Split until"), {}, tr("as far as it goes"));
  body().addLayout(makeAuto());
  body().addWidget(mesh_);
  body().addLayout(form);
}

QLayout* StrategySection::makeAuto() {
  auto_->setObjectName(QStringLiteral("auto"));
  auto_->setAccessibleName(tr("Find the best strategy"));
  auto_->setToolTip(
      tr("Prices every way of splitting this model over these devices, and takes the one that is recommended:\n"
         "the simplest that takes at most 1 % longer than the fastest and is as fast, as far as is known. As `sibyl "
         "search` "
         "does."));
  auto_->setEnabled(false);
  progress_->hide();
  progress_->setAccessibleName(tr("Strategies looked at"));
  found_->setWordWrap(true);
  found_->setForegroundRole(QPalette::PlaceholderText);
  found_->hide();
  auto* row = new QHBoxLayout;
  row->addWidget(auto_);
  row->addWidget(progress_, 1);
  auto* all = new QVBoxLayout;
  all->addLayout(row);
  all->addWidget(found_);
  connect(auto_, &QPushButton::clicked, this, &StrategySection::findBest);
  connect(&search_, &LatestSignals::busyChanged, this, [this](bool busy) {
    auto_->setText(busy ? tr("Stop") : tr("Find the best"));
    progress_->setVisible(busy);
    progress_->setRange(0, 0);
    if (!busy) emit searchEnded();
  });
  connect(&search_, &LatestSignals::progressed, this, [this](quint64 done, quint64 total) {
    constexpr int parts = 1000;  // counts may be larger than an int
    if (done >= total) return progress_->setRange(0, 0);  // what formulas found best is simulated yet
    progress_->setRange(0, parts);
    progress_->setValue(static_cast<int>(parts * static_cast<double>(done) / static_cast<double>(total)));
  });
  return all;
}

void StrategySection::findBest() {
  if (search_.busy()) return search_.cancel();
  if (!study_) return;
  const Scenario asked = document().current();
  if (study_->scenario != asked) return say(tr("This question has no answer yet. Reloading (F5) asks it again."));
  search_.ask([study = study_](const Ticket& ticket) { return best_of(*study, ticket); },
              [this, asked](const Result<SearchResult>& result) { take(asked, result); },
              [this, asked](const Error& error) { take(asked, Failure(error)); });
}

void StrategySection::take(const Scenario& asked, const Result<SearchResult>& result) {
  if (!result) return say(errorText(result.error()));
  const QString size = text(grouped(static_cast<std::int64_t>(result->size)));
  if (result->best.empty()) return say(tr("None of %1 strategies fits in memory.").arg(size));
  const Candidate& best = result->recommended;
  document().propose(with_strategy(asked, best.strategy), tr("Take the best strategy"));
  say(tr("Best of %1: %2, %3").arg(size, text(strategy_words(best.strategy)), text(to_string(best.step_time))));
}

// Until the next change.
void StrategySection::say(const QString& message) {
  found_->setText(message);
  found_->show();
}

void StrategySection::showScenario(const Scenario& scenario) {
  // What is sought for another question is of no use to this one.
  if (search_.busy()) search_.cancel();
  found_->hide();
  mesh_->showScenario(scenario);
  for (OptionField* field : fields_) field->showScenario(scenario);
  schedule_->setEnabled(scenario.option("--parallel").value_or("").find("pipeline=") != std::string::npos);
}

void StrategySection::showAnswer(const Answer& answer) {
  study_ = answer.study;
  auto_->setEnabled(study_ != nullptr);
  if (answer.unchanged_cluster) mesh_->setClusterDevices(answer.unchanged_cluster->devices());
  const bool mine = !answer.report && (answer.wrong == Part::prediction ||
                                       (answer.wrong == Part::training && concernsStrategy(answer.report.error())));
  setError(mine ? errorText(answer.report.error()) : QString());
}

}  // namespace sibyl::gui
