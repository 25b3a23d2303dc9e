// Pictures of every view, light and dark, for people to look at: BUILD/screenshots/charts-KEY-light.png.
#include <QApplication>
#include <QDir>
#include <QStyle>
#include <QStyleFactory>

#include "gui/view/charts/views.h"
#include "tests/gui/charts/answers.h"

namespace sibyl::gui {

class PicturesTest : public QObject {
  Q_OBJECT

 private slots:
  void everyView_data() {
    QTest::addColumn<bool>("dark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
  }

  void everyView() {
    QFETCH(bool, dark);
    QApplication::setStyle(QStyleFactory::create("Fusion"));
    QApplication::setPalette(dark ? darkPalette() : QApplication::style()->standardPalette());
    const QString folder = QStringLiteral(SIBYL_BINARY_DIR) + "/screenshots/";
    QVERIFY(QDir().mkpath(folder));
    const AnswerPointer current = test::answered(test::pipeline());
    Scenario other = test::pipeline();
    other.set("--parallel", "data=4");
    other.clear("--micro-batches");
    const AnswerPointer baseline = test::answered(other);
    for (View* view : chartViews(nullptr)) {
      const std::unique_ptr<View> owned(view);
      view->restoreViewState({{"compared", QJsonArray{"zero1", "tensor"}}});
      view->resize(900, 600);
      view->show();
      test::settle(*view, current, baseline);
      QTest::qWait(100);
      QVERIFY(view->grab().save(folder + "charts-" + view->key() + (dark ? "-dark" : "-light") + ".png"));
      QImage figure(900, 600, QImage::Format_RGB32);
      QPainter painter(&figure);
      view->renderFigure(painter, figure.size());
      painter.end();
      QVERIFY(figure.save(folder + "figure-" + view->key() + (dark ? "-dark" : "-light") + ".png"));
    }
  }

 private:
  static QPalette darkPalette() {
    QPalette palette(QColor(53, 53, 53), QColor(42, 42, 42));
    palette.setColor(QPalette::Base, QColor(30, 30, 30));
    palette.setColor(QPalette::AlternateBase, QColor(40, 40, 40));
    palette.setColor(QPalette::Text, QColor(230, 230, 230));
    palette.setColor(QPalette::WindowText, QColor(230, 230, 230));
    palette.setColor(QPalette::ButtonText, QColor(230, 230, 230));
    palette.setColor(QPalette::PlaceholderText, QColor(150, 150, 150));
    return palette;
  }
};

}  // namespace sibyl::gui

QTEST_MAIN(sibyl::gui::PicturesTest)
#include "pictures_test.moc"
