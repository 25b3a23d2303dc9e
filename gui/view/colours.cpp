#include "gui/view/colours.h"

#include <QHash>
#include <array>

namespace sibyl::gui {
namespace {

constexpr std::array<QRgb, 8> on_light = {0xff0072b2, 0xffd55e00, 0xff009e73, 0xffcc79a7,
                                          0xffe69f00, 0xff56b4e9, 0xff8c6d31, 0xff7f7f7f};
constexpr std::array<QRgb, 8> on_dark = {0xff4aa3df, 0xffff8a4c, 0xff35c79a, 0xffe39ac2,
                                         0xffffbf3f, 0xff8ccdf3, 0xffc4a468, 0xffa8a8a8};

// Which of the eight a kind has. What means the same in time and in memory has the same.
int place(const QString& key) {
  static const QHash<QString, int> places = {{"forward", 0},
                                             {"backward", 5},
                                             {"optimizer", 3},
                                             {"communication", 1},
                                             {"communication_exposed", 1},
                                             {"communication_total", 4},
                                             {"bubble", 7},
                                             {"idle", 7},
                                             {"host", 6},
                                             {"io", 2},
                                             {"weights", 0},
                                             {"gradients", 5},
                                             {"activations", 2},
                                             {"workspace", 4},
                                             {"framework", 7},
                                             {"cached", 6},
                                             {"offload", 4},
                                             {"offload_exposed", 4},
                                             {"measured", 2},
                                             {"interpolated", 4},
                                             {"estimated", 1}};
  if (const auto found = places.find(key); found != places.end()) return *found;
  int sum = 0;
  for (const QChar c : key) sum = (sum * 31 + c.unicode()) % 8191;
  return sum % 8;
}

}  // namespace

bool isDark(const QPalette& palette) { return palette.color(QPalette::Window).lightnessF() < 0.5; }

QColor seriesColour(int n, const QPalette& palette) {
  const std::size_t index = static_cast<std::size_t>(((n % 8) + 8) % 8);
  return QColor(isDark(palette) ? on_dark[index] : on_light[index]);
}

QColor colourOf(const QString& key, const QPalette& palette) { return seriesColour(place(key), palette); }

QColor mixed(const QColor& from, const QColor& to, double share) {
  const auto part = [share](int a, int b) { return static_cast<int>(a + (b - a) * share + 0.5); };
  return {part(from.red(), to.red()), part(from.green(), to.green()), part(from.blue(), to.blue())};
}

QColor textOn(const QColor& background) {
  // Relative luminance (WCAG 2.1), with a plain square for its gamma.
  const auto linear = [](double c) { return c * c; };
  const double luminance =
      0.2126 * linear(background.redF()) + 0.7152 * linear(background.greenF()) + 0.0722 * linear(background.blueF());
  return luminance > 0.18 ? QColor(Qt::black) : QColor(Qt::white);
}

}  // namespace sibyl::gui
