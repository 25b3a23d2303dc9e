// Items in a line as words are in a text: what has no room goes on in the next line. Of each line what can expand
// takes what is left, and all are as high as the highest. So a row of controls fits windows of any width.
#pragma once

#include <QLayout>
#include <memory>
#include <vector>

namespace sibyl::gui {

class FlowLayout : public QLayout {
  Q_OBJECT

 public:
  explicit FlowLayout(QWidget* parent = nullptr);  // no margins
  ~FlowLayout() override;

  void setGaps(int between, int lines);  // pixels
  void addStretch();                     // what follows goes to the right

  void addItem(QLayoutItem* item) override;
  [[nodiscard]] int count() const override { return static_cast<int>(items_.size()); }
  [[nodiscard]] QLayoutItem* itemAt(int index) const override;
  QLayoutItem* takeAt(int index) override;
  [[nodiscard]] Qt::Orientations expandingDirections() const override { return Qt::Horizontal; }
  [[nodiscard]] bool hasHeightForWidth() const override { return true; }
  [[nodiscard]] int heightForWidth(int width) const override { return place({0, 0, width, 0}, false); }
  [[nodiscard]] QSize sizeHint() const override;     // all in one line
  [[nodiscard]] QSize minimumSize() const override;  // one item a line
  void setGeometry(const QRect& area) override;

 private:
  int place(const QRect& area, bool moves) const;  // the height that it takes
  void move(std::size_t first, std::size_t end, const QRect& line, int rest) const;

  std::vector<std::unique_ptr<QLayoutItem>> items_;
  int gap_ = 6, line_gap_ = 4;
};

}  // namespace sibyl::gui
