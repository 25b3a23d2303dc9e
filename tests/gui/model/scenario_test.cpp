// Scenarios in the words of the command line, and read back with its parsers.
#include <QTest>

#include "gui/model/fuzzy.h"
#include "gui/model/study.h"
#include "oracle/search/space.h"
#include "tests/gui/model/tests.h"

using namespace sibyl;
using namespace sibyl::gui;

namespace {

Scenario resnet() {
  Scenario s;
  s.model = "zoo:resnet50";
  s.cluster = "dgx-a100";
  s.set("--devices", "8");
  s.set("--batch", "64/device");
  return s;
}

}  // namespace

class ScenarioTest : public QObject {
  Q_OBJECT

 private slots:
  void wordsAreThoseOfPredict() {
    Scenario s = resnet();
    s.options["--dim"] = {"a=1", "b=2"};
    s.set("--no-overlap", "");
    s.changes = {"nic.bandwidth=2x"};
    const std::vector<std::string> expected = {
        "--cluster=dgx-a100", "--batch=64/device",      "--devices=8", "--dim=a=1",   "--dim=b=2",
        "--no-overlap",       "--set=nic.bandwidth=2x", "--",          "zoo:resnet50"};
    QVERIFY(words(s) == expected);
  }

  void aPartOfTheClusterIsChangedInItsPlace() {
    Scenario s = resnet();
    s.changes = {"nic.bandwidth=2x", "nic.background=0.3"};
    s.set_change("nic.bandwidth", "4x");
    s.set_change("link.background", "0.1");
    QVERIFY(s.changes == (std::vector<std::string>{"nic.bandwidth=4x", "nic.background=0.3", "link.background=0.1"}));
    QCOMPARE(s.change("nic.background"), std::optional<std::string>("0.3"));
    QVERIFY(!s.change("nic"));  // a part of a name is no name
    s.set_change("nic.background", "");
    s.set_change("nic.latency", "");
    QVERIFY(s.changes == (std::vector<std::string>{"nic.bandwidth=4x", "link.background=0.1"}));
    QVERIFY(!s.change("nic.background"));
  }

  // Others on the network are a change like others: the cluster without it is kept, and read once.
  void aBackgroundIsOfTheCluster() {
    StudyReader reader;
    Scenario s = resnet();
    const auto quiet = *reader.read(s);
    s.set_change("nic.background", "0.3");
    const auto busy = *reader.read(s);
    QCOMPARE(busy->cluster->network.topology().spec().nic_background, 0.3);
    QCOMPARE(reader.unchanged_cluster()->network.topology().spec().nic_background, 0.0);
    QVERIFY(!strategy_on(*quiet, s));  // a formula for the quiet one says nothing of it
    s.set_change("nic.background", "1");
    const auto wrong = reader.read(s);
    QVERIFY(!wrong.has_value());
    QVERIFY(reader.wrong() == Part::cluster);
    QCOMPARE(wrong.error().message, std::string("a background is a share from 0 to 0.99"));
  }

  void whatAShellWouldReadOtherwiseIsQuoted() {
    Scenario s;
    s.model = "/tmp/it's a model.onnx";
    s.cluster = "my cluster.yaml";
    QCOMPARE(QString::fromStdString(command_line(s)),
             QStringLiteral("sibyl predict '--cluster=my cluster.yaml' -- '/tmp/it'\\''s a model.onnx'"));
  }

  // data=2 x tensor=4 of 8 devices; the step's batch of 8 x 64 = 512 samples stays.
  void aStrategyOfASearchBecomesItsOwn() {
    Strategy found;
    found.data = 2;
    found.tensor = 4;
    found.accumulation = 2;
    found.zero = 2;
    found.reduce_each = true;
    found.exchange = GradientExchange::at_end;
    found.compression = {Compression::Kind::top_k, 0.01};
    found.optimizer_tier = Tier::host;
    found.global_batch = 512;
    Scenario s = resnet();
    s.set("--recompute", "full");
    s.set("--offload", "activations:nvme");
    s.set("--overlap-tensor", "");
    s.set("--backward-prefetch", "post");
    s = with_strategy(s, found);
    QCOMPARE(s.option("--parallel"), std::optional<std::string>("data=2,tensor=4"));
    QCOMPARE(s.option("--micro-batches"), std::optional<std::string>("2"));
    QCOMPARE(s.option("--zero"), std::optional<std::string>("2"));
    QCOMPARE(s.option("--reduce-each"), std::optional<std::string>(""));
    QCOMPARE(s.option("--no-overlap"), std::optional<std::string>(""));
    QCOMPARE(s.option("--compress"), std::optional<std::string>("topk:0.01"));
    QCOMPARE(s.option("--offload"), std::optional<std::string>("optimizer"));
    QVERIFY(!s.option("--recompute"));
    QVERIFY(!s.option("--schedule"));
    QVERIFY(!s.option("--overlap-tensor"));
    QVERIFY(!s.option("--backward-prefetch"));
    QCOMPARE(s.option("--batch"), std::optional<std::string>("64/device"));
    found.data = 1;  // 4 devices: 64 each would be 256
    QCOMPARE(with_strategy(s, found).option("--batch"), std::optional<std::string>("512"));
  }

  void aStudyIsWhatTheWordsSay() {
    StudyReader reader;
    Scenario s = resnet();
    s.changes = {"device.memory=100GB"};
    const auto study = reader.read(s);
    QVERIFY2(study.has_value(), study ? "" : to_string(study.error()).c_str());
    QCOMPARE((*study)->strategy.data, 8);
    QCOMPARE((*study)->strategy.global_batch, 512);
    QCOMPARE((*study)->graph->batch(), 64);
    QCOMPARE((*study)->cluster->kernels.device().memory.value(), 100e9);
    QVERIFY(reader.unchanged_cluster()->kernels.device().memory.value() != 100e9);
    QVERIFY(reader.wrong() == Part::none);
  }

  void whatDoesNotChangeIsReadOnce() {
    StudyReader reader;
    Scenario s = resnet();
    const auto first = *reader.read(s);
    s.set("--optimizer", "adam");
    const auto second = *reader.read(s);
    QVERIFY(first->graph == second->graph);
    QVERIFY(first->cluster == second->cluster);
    s.set("--batch", "32/device");
    QVERIFY((*reader.read(s))->graph == first->graph);  // a graph holds for any batch
    s.model = "zoo:resnet18";
    QVERIFY((*reader.read(s))->graph != first->graph);
  }

  void anErrorNamesItsPart_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("cluster");
    QTest::addColumn<QString>("batch");
    QTest::addColumn<int>("part");
    QTest::newRow("no model") << ""
                              << "dgx-a100"
                              << "8" << static_cast<int>(Part::model);
    QTest::newRow("no such model") << "zoo:resnet5"
                                   << "dgx-a100"
                                   << "8" << static_cast<int>(Part::model);
    QTest::newRow("no such cluster") << "zoo:resnet50"
                                     << "banana"
                                     << "8" << static_cast<int>(Part::cluster);
    QTest::newRow("bad batch") << "zoo:resnet50"
                               << "dgx-a100"
                               << "many" << static_cast<int>(Part::training);
  }
  void anErrorNamesItsPart() {
    QFETCH(QString, model);
    QFETCH(QString, cluster);
    QFETCH(QString, batch);
    QFETCH(int, part);
    StudyReader reader;
    Scenario s;
    s.model = model.toStdString();
    s.cluster = cluster.toStdString();
    s.set("--batch", batch.toStdString());
    const auto study = reader.read(s);
    QVERIFY(!study.has_value());
    QCOMPARE(static_cast<int>(reader.wrong()), part);
    QVERIFY(!study.error().message.empty());
  }

  void openDimensionsAreKnown() {
    StudyReader reader;
    Scenario s = resnet();
    s.model = "zoo:gpt2";
    QVERIFY(reader.read(s).has_value());
    QVERIFY(reader.dimensions() == (std::vector<OpenDimension>{{"seq", 1024}}));
  }

  // Letters out of order are no match; letters that begin words are a better one.
  void commandsAreFoundByAFewLetters() {
    QVERIFY(fuzzyScore(u"ccl", u"Copy as command line").has_value());
    QVERIFY(!fuzzyScore(u"lcc", u"Copy as command line").has_value());
    QVERIFY(*fuzzyScore(u"sa", u"Save as…") > *fuzzyScore(u"sa", u"Restore default layout"));
    QVERIFY(*fuzzyScore(u"exp", u"Export…") > *fuzzyScore(u"exp", u"Reexamine parts"));
    QVERIFY(fuzzyScore(u"", u"Anything").has_value());
    QVERIFY(!fuzzyScore(u"x", u"").has_value());
  }
};

std::unique_ptr<QObject> scenarioTest() { return std::make_unique<ScenarioTest>(); }

#include "scenario_test.moc"
