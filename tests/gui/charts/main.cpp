#include <QApplication>
#include <QTest>

#include "tests/gui/charts/tests.h"

int main(int count, char** words) {
  QApplication application(count, words);
  int failures = 0;
  for (const auto& make : {breakdownTest, memoryTest, scalingTest, searchTest, chartViewsTest}) {
    const auto test = make();
    failures += QTest::qExec(test.get(), count, words);
  }
  return failures;
}
