#include <QGuiApplication>
#include <QTest>

#include "tests/gui/model/tests.h"

int main(int count, char** words) {
  QGuiApplication application(count, words);
  int failures = 0;
  for (const auto& make : {scenarioTest, documentTest, sessionTest, answersTest, listsTest}) {
    const auto test = make();
    failures += QTest::qExec(test.get(), count, words);
  }
  return failures;
}
