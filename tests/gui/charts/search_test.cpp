// Search and sensitivity: the library's own results, what they cost, and what is clicked is told.
#include <QJsonArray>
#include <QPushButton>

#include "gui/view/charts/search_view.h"
#include "gui/view/charts/sensitivity_view.h"
#include "tests/gui/charts/helpers.h"
#include "tests/gui/charts/tests.h"

using namespace sibyl;
using namespace sibyl::gui;
using namespace sibyl::gui::test;

class SearchTest : public QObject {
  Q_OBJECT

 private slots:
  void initTestCase() {
    for (const AnswerPointer& answer : {lenet_, pipeline_})
      QVERIFY2(answer->report, answer->report ? "" : to_string(answer->report.error()).c_str());
  }

  void theSearchIsTheLibrarysAndIsUsed() {
    SearchView view(nullptr);
    settle(view, lenet_);
    const SearchQuestion question = *searchQuestion(lenet_->study, {});
    const SearchResult result = *answer(question, {}, {});
    const SearchReport report{"", "", "", result, 1'000'000, 0};
    QCOMPARE(view.table()->rows, searchTable(report).rows);
    QVERIFY(said(view).contains(searchSummary(result)));
    QAbstractItemModel* model = tableOf(view)->model();
    QCOMPARE(model->rowCount(), static_cast<int>(result.best.size()));

    QSignalSpy proposed(&view, &View::scenarioProposed);
    tableOf(view)->setCurrentIndex(model->index(1, 0));
    for (QPushButton* button : view.findChildren<QPushButton*>())
      if (button->text() == "Use this strategy") button->click();
    QCOMPARE(proposed.size(), 1);
    const AnswerPointer used = answered(proposed[0][0].value<Scenario>());
    QVERIFY2(used->report, used->report ? "" : to_string(used->report.error()).c_str());
    QCOMPARE(used->report->prediction.step_time, result.best[1].step_time);
  }

  void theSearchIsLimitedAndSaysWhatIsWrong() {
    SearchControls controls;
    controls.memory = "1kB";
    QCOMPARE(answer(*searchQuestion(lenet_->study, controls), {}, {})->best.size(), std::size_t{0});
    controls.memory = "lots";
    QVERIFY(!searchQuestion(lenet_->study, controls));
    controls = {};
    controls.axes = QStringList{"data"};
    controls.devices = "2,4";
    const SearchResult replicas = *answer(*searchQuestion(lenet_->study, controls), {}, {});
    QVERIFY(!replicas.best.empty());
    for (const Candidate& c : replicas.best) QCOMPARE(c.strategy.devices(), c.strategy.data);
    SearchView view(nullptr);
    view.restoreViewState({{"memory", "lots"}});
    settle(view, lenet_);
    QVERIFY(said(view).contains("lots"));
  }

  void theSearchVariesWhatIsTicked() {
    SearchControls controls;
    const std::size_t usual = answer(*searchQuestion(lenet_->study, controls), {}, {})->size;
    SearchView view(nullptr);
    for (const SearchVariation& one : search_variations()) {
      const QString word = QString::fromLatin1(one.word.data(), static_cast<qsizetype>(one.word.size()));
      view.restoreViewState({{"vary", QJsonArray{word}}});
      QCOMPARE(view.viewState()["vary"].toArray(), QJsonArray{word});
    }
    controls.varied = QStringList{"bucket", "order"};
    view.restoreViewState({{"vary", QJsonArray::fromStringList(controls.varied)}});
    settle(view, lenet_);
    const SearchResult result = *answer(*searchQuestion(lenet_->study, controls), {}, {});
    QVERIFY(result.size > usual);
    QVERIFY2(said(view).contains(searchSummary(result)), qPrintable(said(view)));
    controls.varied = QStringList{"speed"};
    QVERIFY(!searchQuestion(lenet_->study, controls));
  }

  // A strategy of the table takes back no change that was made since: not one that is not answered (or was stopped),
  // and not one that was. Another strategy of the table, prices and a name are no such change.
  void aStrategyIsUsedForTheScenarioItWasFoundFor() {
    SearchView view(nullptr);
    settle(view, lenet_);
    QPushButton *use = nullptr, *search = nullptr;
    for (QPushButton* button : view.findChildren<QPushButton*>()) {
      if (button->text() == "Use this strategy") use = button;
      if (button->text() == "Search") search = button;
    }
    QVERIFY(use != nullptr && search != nullptr && !use->isEnabled());  // nothing is picked
    QSignalSpy proposed(&view, &View::scenarioProposed);
    tableOf(view)->setCurrentIndex(tableOf(view)->model()->index(1, 0));
    QVERIFY(use->isEnabled());
    view.setStale(true);
    QVERIFY(!use->isEnabled() && !search->isEnabled());
    QTest::keyClick(tableOf(view), Qt::Key_Return);
    QCOMPARE(proposed.size(), 0);
    QVERIFY2(use->toolTip().contains("F5"), qPrintable(use->toolTip()));
    view.setStale(false);
    QVERIFY(use->isEnabled() && search->isEnabled());

    const auto becomes = [&](const Scenario& scenario) {
      view.showAnswer(answered(scenario), nullptr);
      coloursOf(view, {80, 80});  // what is drawn is what is shown
    };
    Scenario other = lenet();
    other.set("--precision", "bf16");
    becomes(other);
    QVERIFY(!use->isEnabled() && search->isEnabled());
    QVERIFY(said(view).contains("as it was") && use->toolTip().contains("search again"));
    other = lenet();
    other.set("--devices", "4");
    other.set("--batch", "512");
    becomes(other);
    QVERIFY(!use->isEnabled());

    becomes(lenet());
    use->click();
    QCOMPARE(proposed.size(), 1);
    Scenario same = proposed[0][0].value<Scenario>();
    same.name = "another";
    same.device_hour_price = 2;
    same.set("--batch", "512");  // 64 of each of eight devices, in other words
    becomes(same);
    QVERIFY(use->isEnabled() && !said(view).contains("as it was"));
  }

  // What was found for more devices than there are is run on more nodes of the same kind, and the rest of the table can
  // be used for that scenario, too.
  void aStrategyOfMoreDevicesTakesMoreNodes() {
    Scenario one_node = lenet();
    one_node.set("--nodes", "1");
    const AnswerPointer before = answered(one_node);
    QVERIFY(before->report);
    Strategy large = before->study->strategy;
    large.data = 32;
    const Scenario then = scenarioWith(one_node, *before->study->cluster, large);
    QCOMPARE(then.option("--nodes"), std::optional<std::string>("4"));
    const AnswerPointer after = answered(then);
    QVERIFY2(after->report, after->report ? "" : to_string(after->report.error()).c_str());
    QVERIFY(sameButForStrategy(*before->study, *after->study, true));
    QVERIFY(!sameButForStrategy(*before->study, *after->study, false));
    large.data = 8;
    QCOMPARE(scenarioWith(one_node, *before->study->cluster, large).option("--nodes"), one_node.option("--nodes"));
  }

  // By a click on its row or Enter, each once; arrows and points of the chart pick one, and so does a click where it
  // cannot be used, which says why. What the scenario has already is not used again.
  void aClickUsesAStrategy() {
    SearchView view(nullptr);
    view.resize(1200, 900);
    view.show();
    settle(view, lenet_);
    QTableView* table = tableOf(view);
    QPushButton* use = nullptr;
    for (QPushButton* button : view.findChildren<QPushButton*>())
      if (button->text() == "Use this strategy") use = button;
    const SearchResult result = *answer(*searchQuestion(lenet_->study, {}), {}, {});
    // The scenario is one of them: eight replicas, however that is written.
    const auto own = std::ranges::find_if(
        result.best, [this](const Candidate& c) { return hasStrategy(*lenet_->study, c.strategy); });
    QVERIFY(own != result.best.end() && own->strategy.data == 8);
    const int own_row = static_cast<int>(own - result.best.begin());
    const int one = own_row < 2 ? own_row + 1 : 0, next = one + 1;  // others than that
    QVERIFY(table->model()->rowCount() > next);
    const auto at = [table](int row) {
      table->scrollTo(table->model()->index(row, 0));
      return table->visualRect(table->model()->index(row, 0)).center();
    };
    const auto click = [&](int row) { QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, at(row)); };
    // As the window does: until what was proposed is answered, what is shown is of another question.
    std::vector<std::string> used;
    connect(&view, &View::scenarioProposed, this, [&](const Scenario& scenario) {
      used.push_back(strategy_words((*StudyReader().read(scenario))->strategy));
      view.setStale(true);
    });
    const auto words = [&](int row) { return strategy_words(result.best[static_cast<std::size_t>(row)].strategy); };
    std::vector<std::string> expected;

    click(own_row);
    QVERIFY(use->isEnabled() && used == expected);
    click(one);
    expected.push_back(words(one));
    QVERIFY(used == expected);
    click(next);  // the answer is not there
    QCOMPARE(table->currentIndex().row(), next);
    QVERIFY(used == expected);
    QVERIFY2(table->toolTip().contains("F5"), qPrintable(table->toolTip()));
    view.setStale(false);
    QVERIFY2(table->toolTip().contains("click"), qPrintable(table->toolTip()));
    click(next);
    QTest::mouseDClick(table->viewport(), Qt::LeftButton, {}, at(next));  // the second press of two
    QTest::mouseRelease(table->viewport(), Qt::LeftButton, {}, at(next));
    expected.push_back(words(next));
    QVERIFY(used == expected);
    view.setStale(false);
    QTest::keyClick(table, Qt::Key_Up);
    QCOMPARE(table->currentIndex().row(), one);
    QVERIFY(used == expected);
    QTest::keyClick(table, Qt::Key_Enter);
    expected.push_back(words(one));
    QVERIFY(used == expected);
    view.setStale(false);

    // In the chart another is picked than is current in the table, whose row can be clicked on all the same.
    auto* plot = view.findChild<Plot*>();
    emit plot->plottableClick(plot->plottable(0), 0, nullptr);
    QCoreApplication::processEvents();
    QVERIFY(used == expected && use->isEnabled());
    click(one);
    expected.push_back(words(one));
    QVERIFY(used == expected);
  }

  // Device-hours of the epoch that the scenario names; what a device-hour costs makes them money. No new search.
  void theSearchSaysWhatEachStrategyCosts() {
    Scenario asked = lenet();
    asked.epoch_samples = 51'200;  // 100 steps of 512
    const AnswerPointer epoch = answered(asked);
    SearchView view(nullptr);
    settle(view, epoch);
    const auto column = [&](const std::string& key) {
      const std::vector<Column> columns = view.table()->columns;
      return static_cast<std::size_t>(std::ranges::find(columns, key, &Column::key) - columns.begin());
    };
    const SearchResult found = *answer(*searchQuestion(epoch->study, {}), {}, {});
    const double hours = 100 * found.best[0].step_time.value() * 8 / 3600;
    const std::size_t of_hours = column("device_hours");
    QVERIFY(of_hours < view.table()->columns.size());
    QVERIFY(std::abs(std::stod(view.table()->rows[0][of_hours].value) - hours) < 1e-9 * hours);
    QCOMPARE(column("cost"), view.table()->columns.size());
    asked.device_hour_price = 2;
    view.showAnswer(answered(asked), nullptr);
    QVERIFY(!view.busy());
    view.restoreViewState({{"cost", true}});
    view.resize(900, 600);
    QVERIFY(coloursOf(view, {800, 500}) > 8);
    const std::size_t of_cost = column("cost");
    QVERIFY(of_cost < view.table()->columns.size());
    QVERIFY(std::abs(std::stod(view.table()->rows[0][of_cost].value) - 2 * hours) < 1e-9 * hours);
    Plot* plot = view.findChild<Plot*>();
    QCOMPARE(plot->yAxis->label(), QString("Cost of an epoch"));
    const auto first = plot->graph(plot->graphCount() - 1)->data()->constBegin();
    QVERIFY(std::abs(first->value - 2 * 100 * first->key * 8 / 3600) < 1e-9);
  }

  void theTornadoIsTheLibrarys() {
    SensitivityView view(nullptr);
    settle(view, lenet_);
    const auto expected = sensitivities(*lenet_->study->graph, lenet_->study->strategy, *lenet_->study->cluster);
    QVERIFY(expected);
    QCOMPARE(view.table()->rows, to_table(SensitivityReport{"", "", *expected}).rows);
    const Tornado tornado = tornadoOf(*expected);
    QCOMPARE(tornado.shown.size() + tornado.without_effect.size() + tornado.not_varied.size(), expected->inputs.size());
    QVERIFY(!tornado.shown.empty());
    Plot* plot = view.findChild<Plot*>();
    QCOMPARE(plot->plottableCount(), static_cast<int>(2 * tornado.shown.size()));
    QVERIFY(said(view).contains(QString::fromStdString(tornado.without_effect.front()->title)));
    // Beside its bars an input stands as people call it, with what it is here; the pointer tells how --set does.
    view.resize(900, 600);
    view.show();
    plot->replot();
    const auto names = plot->yAxis->ticker().dynamicCast<QCPAxisTickerText>()->ticks();
    QCOMPARE(static_cast<std::size_t>(names.size()), tornado.shown.size());
    for (std::size_t n = 0; n < tornado.shown.size(); ++n) {
      const Sensitivity& input = *tornado.shown[n];
      const double y = -static_cast<double>(n);
      QVERIFY(!input.title.empty() && !input.now.empty());
      QVERIFY2(names[y].contains(QString::fromStdString(input.now)), qPrintable(names[y]));
      const QString told = plot->explanationAt({2, plot->yAxis->coordToPixel(y)});
      QVERIFY2(told.contains("--set " + QString::fromStdString(input.name)), qPrintable(told));
    }
  }

 private:
  AnswerPointer lenet_ = lenetAnswer(), pipeline_ = pipelineAnswer();
};

std::unique_ptr<QObject> searchTest() { return std::make_unique<SearchTest>(); }

#include "search_test.moc"
