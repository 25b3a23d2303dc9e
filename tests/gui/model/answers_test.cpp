// Answers come from the library, the newest request wins, and a bad scenario is an answer, too.
#ifdef __linux__
#include <sys/resource.h>
#endif

#include <QSemaphore>
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <new>
#include <stdexcept>

#include "gui/model/answers.h"
#include "oracle/predict.h"
#include "tests/gui/model/tests.h"

using namespace sibyl;
using namespace sibyl::gui;

namespace {

constexpr int patience_ms = 120'000;

Scenario mlp(const std::string& batch) {
  Scenario s;
  s.model = "zoo:lenet";
  s.cluster = "dgx-a100";
  s.set("--devices", "8");
  s.set("--batch", batch);
  return s;
}

struct Got {
  AnswerPointer current, baseline;
};

}  // namespace

class AnswersTest : public QObject {
  Q_OBJECT

 private slots:
  void theyAreThoseOfTheLibrary() {
    Answers answers;
    std::vector<Got> got;
    connect(&answers, &Answers::answered, this, [&](const AnswerPointer& c, const AnswerPointer& b) {
      got.push_back({c, b});
    });
    answers.ask(mlp("64/device"), mlp("32/device"));
    QVERIFY(answers.stale());
    QTRY_VERIFY_WITH_TIMEOUT(!answers.stale(), patience_ms);
    QCOMPARE(got.size(), std::size_t{1});
    const Answer& answer = *got[0].current;
    QVERIFY(answer.report.has_value());
    const auto asked = predict(*answer.study->graph, answer.study->strategy, *answer.study->cluster);
    QCOMPARE(answer.report->prediction.step_time.value(), asked->step_time.value());
    QCOMPARE(answer.report->model, std::string("zoo:lenet"));
    QCOMPARE(got[0].baseline->scenario.option("--batch"), std::optional<std::string>("32/device"));
  }

  // A model is imported once, whatever batches are asked about: the answer is that of a model imported for the batch.
  void anotherBatchIsThatOfAModelImportedForIt() {
    StudyReader one;
    QVERIFY(one.read(mlp("64/device")).has_value());
    const auto kept = one.read(mlp("24/device"));
    const auto fresh = StudyReader().read(mlp("24/device"));
    QVERIFY(kept.has_value() && fresh.has_value());
    QCOMPARE((*kept)->graph->batch(), std::int64_t{64});
    QCOMPARE((*fresh)->graph->batch(), std::int64_t{24});
    const auto of_kept = predict(*(*kept)->graph, (*kept)->strategy, *(*kept)->cluster);
    const auto of_fresh = predict(*(*fresh)->graph, (*fresh)->strategy, *(*fresh)->cluster);
    QCOMPARE(of_kept->step_time.value(), of_fresh->step_time.value());
    QCOMPARE(of_kept->memory.needed().value(), of_fresh->memory.needed().value());
  }

  // A formula's answer comes before the exact one, and is near it; where there is no formula, or the question is about
  // another graph or cluster, there is none.
  void aFormulaAnswersFirst() {
    Answers answers;
    std::vector<double> first, exact;
    connect(&answers, &Answers::foreseen, this, [&](const Foreseen& f) {
      first.push_back(f.answer.step_time.value());
      QCOMPARE(f.answer.throughput, static_cast<double>(f.strategy.global_batch) / first.back());
    });
    connect(&answers, &Answers::answered, this,
            [&](const AnswerPointer& c) { exact.push_back(c->report->prediction.step_time.value()); });
    const auto ask = [&](const Scenario& scenario) {
      answers.ask(scenario, std::nullopt);
      QTRY_VERIFY_WITH_TIMEOUT(!answers.stale(), patience_ms);
    };
    ask(mlp("64/device"));
    QCOMPARE(first.size(), std::size_t{0});  // nothing is known to answer on
    Scenario without = mlp("64/device");
    without.set("--framework", "pytorch-ddp");
    ask(without);
    Scenario elsewhere = mlp("64/device");
    elsewhere.cluster = "abci-v100";
    ask(elsewhere);
    Scenario changed = mlp("64/device");
    changed.changes = {"device.flops=2x"};
    ask(changed);
    QCOMPARE(first.size(), std::size_t{0});
    QCOMPARE(exact.size(), std::size_t{4});
    changed.set("--batch", "96/device");
    for (int tries = 0; tries < 20 && first.empty(); ++tries) {  // the exact answer may win
      changed.set("--batch", std::to_string(96 + 8 * tries) + "/device");
      ask(changed);
    }
    QVERIFY(!first.empty());
    QVERIFY(std::abs(first.back() / exact.back() - 1) < 0.1);
  }

  void theNewestWins() {
    Answers answers;
    AnswerPointer last;
    int count = 0;
    connect(&answers, &Answers::answered, this, [&](const AnswerPointer& c) { last = c, ++count; });
    constexpr int requests = 50;
    for (int i = 1; i <= requests; ++i) answers.ask(mlp(std::to_string(8 * i)), std::nullopt);
    QTRY_VERIFY_WITH_TIMEOUT(!answers.stale(), patience_ms);
    QCOMPARE(last->scenario.option("--batch"), std::optional<std::string>(std::to_string(8 * requests)));
    QVERIFY2(count <= 2, "the ones between are left out");
  }

  void whatIsWrongIsAnswered() {
    Answers answers;
    AnswerPointer last;
    connect(&answers, &Answers::answered, this, [&](const AnswerPointer& c) { last = c; });
    Scenario wrong = mlp("64/device");
    wrong.set("--parallel", "tensor=3");
    answers.ask(wrong, std::nullopt);
    QTRY_VERIFY_WITH_TIMEOUT(!answers.stale(), patience_ms);
    QVERIFY(!last->report.has_value());
    QVERIFY(last->wrong == Part::training);
    QVERIFY(last->unchanged_cluster != nullptr);
  }

  // A job that is dropped while it works does not deliver; the one behind it does.
  void aDroppedJobDeliversNothing() {
    Latest<int> latest;
    QSemaphore begun, go;
    std::vector<int> delivered;
    bool dropped = false;
    latest.ask(
        [&](const Ticket& ticket) {
          begun.release();
          go.acquire();
          dropped = ticket.dropped();
          return 1;
        },
        [&](int value) { delivered.push_back(value); }, [](const Error&) {});
    begun.acquire();
    latest.ask([](const Ticket&) { return 2; }, [&](int value) { delivered.push_back(value); }, [](const Error&) {});
    go.release();
    QTRY_VERIFY_WITH_TIMEOUT(!latest.busy(), patience_ms);
    QVERIFY(dropped);
    QVERIFY(delivered == std::vector<int>{2});
  }

  // The thread of the window stays as it was.
  void whatIsLessUrgentLeavesTheProcessorsToOthers() {
#ifdef __linux__
    const int usual = getpriority(PRIO_PROCESS, 0);
    std::vector<int> niceness;
    for (const Urgency urgency : {Urgency::later, Urgency::first, Urgency::soon}) {
      Latest<int> latest(nullptr, urgency);
      latest.ask([](const Ticket&) { return getpriority(PRIO_PROCESS, 0); },
                 [&](int value) { niceness.push_back(value - usual); }, [](const Error&){});
      QTRY_VERIFY_WITH_TIMEOUT(!latest.busy(), patience_ms);
    }
    if (usual <= 9) QVERIFY(niceness == (std::vector<int>{10, 0, 5}));  // at most 19
    QCOMPARE(getpriority(PRIO_PROCESS, 0), usual);
#else
    QSKIP("threads have no urgency of their own here");
#endif
  }

  // It ends neither the program nor the thread: the next one is done.
  void aJobThatThrowsIsAnError() {
    Latest<int> latest;
    QStringList said;
    const auto told = [&](const Error& error) { said << QString::fromStdString(error.message); };
    const auto wait = [&] { QTRY_VERIFY_WITH_TIMEOUT(!latest.busy(), patience_ms); };
    latest.ask([](const Ticket&) -> int { throw std::bad_alloc(); }, [](int) { QFAIL("there is no result"); }, told);
    wait();
    latest.ask([](const Ticket&) -> int { throw std::out_of_range("at 7"); }, [](int) { QFAIL("none here"); }, told);
    wait();
    QCOMPARE(said.size(), 2);
    QVERIFY2(said[0].contains("not enough memory"), qPrintable(said[0]));
    QVERIFY2(said[1].contains("bug in Sibyl: at 7"), qPrintable(said[1]));
    int delivered = 0;
    latest.ask([](const Ticket&) { return 3; }, [&](int value) { delivered = value; }, told);
    wait();
    QCOMPARE(delivered, 3);
  }

  // Wherever it was given up: neither a model nor a baseline is left half read.
  void whatIsGivenUpIsAskedAnew() {
    StudyReader reader;
    const auto given_up = reader.read(mlp("64/device"), [] { return true; });
    QVERIFY(!given_up.has_value() && given_up.error().code == ErrorCode::interrupted);
    QVERIFY(reader.read(mlp("64/device")).has_value());
    for (const int later_ms : {0, 1, 2, 4, 8}) {
      Answers answers;
      std::vector<Got> got;
      answers.ask(mlp("64/device"), mlp("32/device"));
      QTest::qSleep(later_ms);
      answers.drop();
      connect(&answers, &Answers::answered, this, [&](const AnswerPointer& c, const AnswerPointer& b) {
        got.push_back({c, b});
      });
      answers.ask(mlp("64/device"), mlp("32/device"));
      QTRY_VERIFY_WITH_TIMEOUT(!answers.stale(), patience_ms);
      QCOMPARE(got.size(), std::size_t{1});
      QVERIFY(got[0].current->report.has_value() && got[0].baseline->report.has_value());
    }
  }

  void whatIsNotWantedAnyMoreIsNotAnswered() {
    Answers answers;
    std::vector<AnswerPointer> got;
    connect(&answers, &Answers::answered, this, [&](const AnswerPointer& c) { got.push_back(c); });
    answers.ask(mlp("64/device"), std::nullopt);
    answers.ask(mlp("32/device"), std::nullopt);
    answers.drop();
    QVERIFY(!answers.stale());
    answers.ask(mlp("16/device"), std::nullopt);
    QTRY_VERIFY_WITH_TIMEOUT(!answers.stale(), patience_ms);
    QCOMPARE(got.size(), std::size_t{1});
    QCOMPARE(got[0]->scenario.option("--batch"), std::optional<std::string>("16/device"));
  }
};

std::unique_ptr<QObject> answersTest() { return std::make_unique<AnswersTest>(); }

#include "answers_test.moc"
