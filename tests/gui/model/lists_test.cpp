// Qt's own judge of item models, while the models change.
#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>

#include "gui/model/scenario_list.h"
#include "gui/model/table_model.h"
#include "tests/gui/model/tests.h"

using namespace sibyl;
using namespace sibyl::gui;

class ListsTest : public QObject {
  Q_OBJECT

 private slots:
  void scenarios() {
    Document document;
    ScenarioList list(document);
    const QAbstractItemModelTester judge(&list, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(list.rowCount(), 1);
    document.duplicate(0);
    QCOMPARE(list.rowCount(), 2);
    QVERIFY(list.setData(list.index(0), "mine", Qt::EditRole));
    QCOMPARE(list.data(list.index(0), Qt::DisplayRole).toString(), QString("mine"));
    QVERIFY(!list.setData(list.index(0), " ", Qt::EditRole));
    document.pin(0);
    QVERIFY(list.data(list.index(0), ScenarioList::PinnedRole).toBool());
    QVERIFY(!list.data(list.index(1), ScenarioList::PinnedRole).toBool());
    QCOMPARE(list.data(list.index(0), Qt::DisplayRole).toString(), QString("mine (pinned)"));
    QCOMPARE(list.data(list.index(0), Qt::EditRole).toString(), QString("mine"));
    QVERIFY(!list.data(list.index(1), Qt::DisplayRole).toString().contains("pinned"));
    document.select(0);
    document.change("", [](Scenario& scenario) { scenario.set("--batch", "3"); });
    QCOMPARE(list.data(list.index(0), Qt::DisplayRole).toString(), QString("mine"));  // no longer as it was pinned
    document.undoStack().setIndex(0);
    QCOMPARE(list.rowCount(), 1);
    document.undoStack().setIndex(document.undoStack().count());
    QCOMPARE(list.rowCount(), 2);
  }

  void tables() {
    TableModel model;
    const QAbstractItemModelTester judge(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QCOMPARE(model.rowCount(), 0);
    model.setTable({.columns = {{"name", "name", Column::Align::left}, {"time", "time_s"}},
                    .rows = {{"a", Cell("12 ms", "0.012")}, {"b", Cell("9 ms", "0.009")}}});
    QCOMPARE(model.rowCount(), 2);
    QCOMPARE(model.columnCount(), 2);
    QCOMPARE(model.data(model.index(0, 1), Qt::DisplayRole).toString(), QString("12 ms"));
    QCOMPARE(model.data(model.index(0, 1), TableModel::ValueRole).toDouble(), 0.012);
    QCOMPARE(model.data(model.index(1, 0), TableModel::ValueRole).toString(), QString("b"));
    QCOMPARE(model.headerData(1, Qt::Horizontal, Qt::DisplayRole).toString(), QString("Time"));
    model.setTable({});
    QCOMPARE(model.rowCount(), 0);
  }
};

std::unique_ptr<QObject> listsTest() { return std::make_unique<ListsTest>(); }

#include "lists_test.moc"
