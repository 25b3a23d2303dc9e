// How devices share the work: their number, and a factor for each axis; data has what the others leave. A factor steps
// to the next one that divides.
#pragma once

#include <QCheckBox>
#include <QLabel>
#include <QSpinBox>
#include <QWidget>
#include <map>

#include "gui/model/document.h"
#include "oracle/strategy.h"

namespace sibyl::gui {

// A spin box whose steps are the divisors of a number.
class FactorBox : public QSpinBox {
  Q_OBJECT

 public:
  explicit FactorBox(QWidget* parent);
  void setProduct(int product) { product_ = product; }  // that the factor is to divide
  void stepBy(int steps) override;

 protected:
  [[nodiscard]] StepEnabled stepEnabled() const override;

 private:
  [[nodiscard]] int next(int from, int direction) const;  // 0: there is none
  int product_ = 1;
};

class MeshEditor : public QWidget {
  Q_OBJECT

 public:
  MeshEditor(Document& document, QWidget* parent);

  void showScenario(const Scenario& scenario);
  void setClusterDevices(int devices);  // what there are where nobody says how many

 private:
  void makeFactor(MeshAxis axis, const QString& label, const QString& meaning);
  void takeDevices(int devices);
  void takeFactor(MeshAxis axis, int factor);
  void takeSequence(bool split);
  // Writes the mesh in the words of the command line.
  void write(const QString& why, const Strategy& mesh, int devices, const QString& gesture);

  Document& document_;
  int cluster_devices_ = 1;
  QSpinBox* devices_;
  QLabel* data_;
  QCheckBox* sequence_;
  std::map<MeshAxis, FactorBox*> factors_;
};

}  // namespace sibyl::gui
