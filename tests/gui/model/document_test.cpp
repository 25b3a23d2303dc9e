// Every change can be undone and redone, and a dragged slider is one step.
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

#include "gui/model/document.h"
#include "tests/gui/model/tests.h"

using namespace sibyl::gui;

namespace {

void setBatch(Document& document, const char* batch, const QString& gesture = {}) {
  document.change(
      "batch", [&](Scenario& s) { s.set("--batch", batch); }, gesture);
}

std::optional<std::string> batch(const Document& document) { return document.current().option("--batch"); }

}  // namespace

class DocumentTest : public QObject {
  Q_OBJECT

 private slots:
  void changesAreUndoneAndRedone() {
    Document document;
    QSignalSpy changed(&document, &Document::changed);
    setBatch(document, "1");
    setBatch(document, "2");
    QCOMPARE(batch(document), std::optional<std::string>("2"));
    QCOMPARE(changed.count(), 2);
    document.undoStack().undo();
    QCOMPARE(batch(document), std::optional<std::string>("1"));
    document.undoStack().undo();
    QVERIFY(!batch(document));
    QVERIFY(document.clean());
    document.undoStack().redo();
    QCOMPARE(batch(document), std::optional<std::string>("1"));
  }

  // By undoing, too; and a baseline that is the scenario as it is now goes with it, but not one of before.
  void renamingIsTold() {
    Document document;
    document.add({}, "add");
    document.rename(1, "first");
    document.pin(1);
    QSignalSpy renamed(&document, &Document::renamed);
    document.rename(1, "second");
    QCOMPARE(renamed.takeFirst(), (QVariantList{"first", "second"}));
    QVERIFY(document.state().baseline == document.current());
    setBatch(document, "1");
    QVERIFY(renamed.isEmpty());
    document.rename(1, "third");
    QCOMPARE(document.state().baseline->name, std::string("second"));
    document.undoStack().undo();
    document.undoStack().undo();
    document.undoStack().undo();
    QCOMPARE(document.current().name, std::string("first"));
    QCOMPARE(document.state().baseline->name, std::string("first"));
    QCOMPARE(renamed.takeLast(), (QVariantList{"second", "first"}));
    document.load({}, {});
    QCOMPARE(renamed.count(), 2);  // second to third, and back
  }

  void noChangeIsNoStep() {
    Document document;
    setBatch(document, "1");
    setBatch(document, "1");
    QCOMPARE(document.undoStack().count(), 1);
  }

  void aGestureIsOneStep() {
    Document document;
    for (const char* value : {"1", "2", "4", "8"}) setBatch(document, value, "slider");
    QCOMPARE(document.undoStack().count(), 1);
    document.endGesture();
    setBatch(document, "16", "slider");
    QCOMPARE(document.undoStack().count(), 2);
    document.undoStack().undo();
    QCOMPARE(batch(document), std::optional<std::string>("8"));
    document.undoStack().undo();
    QVERIFY(!batch(document));
  }

  void aPauseEndsAGesture() {
    Document document;
    auto* pause = document.findChild<QTimer*>();
    QVERIFY(pause->interval() >= 500);  // for fingers
    pause->setInterval(0);
    setBatch(document, "1", "box");
    setBatch(document, "2", "box");
    QVERIFY(pause->isActive());
    QTRY_VERIFY(!pause->isActive());
    setBatch(document, "3", "box");
    QCOMPARE(document.undoStack().count(), 2);
    document.undoStack().undo();
    QCOMPARE(batch(document), std::optional<std::string>("2"));
  }

  // A slider whose handle is held is not let go by a pause.
  void aHeldGestureLastsUntilItIsEnded() {
    Document document;
    auto* pause = document.findChild<QTimer*>();
    pause->setInterval(0);
    setBatch(document, "1", "slider");
    document.holdGesture();
    setBatch(document, "2", "slider");
    QVERIFY(!pause->isActive());
    setBatch(document, "3", "slider");
    QCOMPARE(document.undoStack().count(), 2);
    document.endGesture();
    setBatch(document, "4", "slider");
    QVERIFY(pause->isActive());
    QCOMPARE(document.undoStack().count(), 3);
  }

  void aGestureThatComesBackIsNone() {
    Document document;
    setBatch(document, "1");
    setBatch(document, "2", "slider");
    setBatch(document, "1", "slider");
    QCOMPARE(document.undoStack().count(), 1);
  }

  void scenariosAreAddedNamedAndDeleted() {
    Document document;
    const std::string first = document.current().name;
    document.duplicate(0);
    QCOMPARE(document.count(), 2);
    QCOMPARE(document.state().current, 1);
    QVERIFY(document.current().name != first);
    document.rename(1, "  faster NICs ");
    QCOMPARE(document.current().name, std::string("faster NICs"));
    document.rename(1, "   ");  // no name at all
    QCOMPARE(document.current().name, std::string("faster NICs"));
    document.remove(0);
    QCOMPARE(document.count(), 1);
    QCOMPARE(document.current().name, std::string("faster NICs"));
    document.remove(0);  // the last one stays
    QCOMPARE(document.count(), 1);
    document.undoStack().undo();
    QCOMPARE(document.count(), 2);
    QCOMPARE(document.state().scenarios[0].name, first);
  }

  // Curves and choices of views name scenarios.
  void noTwoScenariosHaveOneName() {
    Document document;
    document.rename(0, "A");
    document.add({}, "add");
    document.rename(1, " A ");
    QCOMPARE(document.current().name, std::string("A 2"));
    document.rename(1, "A 2");  // its own
    QCOMPARE(document.current().name, std::string("A 2"));
    document.rename(1, "8");
    document.rename(0, "8");
    QCOMPARE(document.state().scenarios[0].name, std::string("8 2"));
    State byHand;
    byHand.scenarios.resize(3);
    byHand.scenarios[0].name = byHand.scenarios[1].name = "same";
    document.load(byHand, {});
    QCOMPARE(document.state().scenarios[0].name, std::string("same"));
    QCOMPARE(document.state().scenarios[1].name, std::string("same 2"));
    QCOMPARE(document.state().scenarios[2].name, std::string("Scenario 3"));
  }

  void undoingGoesWhereTheChangeWas() {
    Document document;
    document.duplicate(0);
    document.select(0);
    setBatch(document, "1");
    document.select(1);
    document.undoStack().undo();
    QCOMPARE(document.state().current, 0);
    QVERIFY(!batch(document));
  }

  // The baseline is what was pinned, whatever becomes of the scenario.
  void theBaselineStaysAsItWasPinned() {
    Document document;
    setBatch(document, "1");
    document.pin(0);
    setBatch(document, "2");
    QCOMPARE(document.state().baseline->option("--batch"), std::optional<std::string>("1"));
    document.unpin();
    QVERIFY(!document.state().baseline);
    document.undoStack().undo();
    QVERIFY(document.state().baseline.has_value());
  }

  void aProposalKeepsTheName() {
    Document document;
    document.rename(0, "mine");
    Scenario other;
    other.name = "theirs";
    other.model = "zoo:lenet";
    document.propose(other, "why");
    QCOMPARE(document.current().name, std::string("mine"));
    QCOMPARE(document.current().model, std::string("zoo:lenet"));
    QCOMPARE(document.undoStack().undoText(), QString("why"));
  }
};

std::unique_ptr<QObject> documentTest() { return std::make_unique<DocumentTest>(); }

#include "document_test.moc"
