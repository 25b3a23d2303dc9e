// How long a frame of the timeline takes with 200,000 spans: QT_QPA_PLATFORM=offscreen canvas_bench. At 60 frames a
// second there are 16.7 ms for one.
#include <benchmark/benchmark.h>

#include <QGuiApplication>
#include <QImage>
#include <QPainter>

#include "gui/view/canvas/graph_layout.h"
#include "gui/view/canvas/timeline_painter.h"

namespace sibyl::gui {
namespace {

constexpr int rows = 16;
constexpr std::size_t spans = 200'000 / rows;

// Spans of 1 to 9 us, one behind another, on each of 16 tracks.
const Timeline& timeline() {
  static const Timeline made = [] {
    TraceProcess process{TraceSource::predicted, 0, "rank 0", {}};
    const char* const categories[] = {"forward", "backward", "communication"};
    for (int r = 0; r < rows; ++r) {
      TraceTrack track{"stream " + std::to_string(r), {}};
      double time = 0;
      for (std::size_t i = 0; i < spans; ++i) {
        const double duration = 1e-6 * static_cast<double>(1 + (i * 7 + static_cast<std::size_t>(r)) % 9);
        track.spans.emplace_back("layer" + std::to_string(i % 300) + ".conv forward", categories[i / 40 % 3],
                                 Seconds{time}, Seconds{time + duration});
        track.spans.back().critical = i % 5 == 0;
        time += duration * 1.1;
      }
      process.tracks.push_back(std::move(track));
    }
    return Timeline(std::make_shared<const std::vector<TraceProcess>>(std::vector{std::move(process)}), nullptr);
  }();
  return made;
}

// A window of 1920 x 1080; `share` of the step is seen, its place moving from frame to frame.
void paint_frame(benchmark::State& state, double share) {
  const Timeline& shown = timeline();
  const QFont font;
  const QPalette palette;
  const TimelineRows places(shown, font, 1080);
  QImage image(1920, 1080, QImage::Format_RGB32);
  TimelineLook look;
  double begin = 0;
  for (auto _ : state) {
    begin = begin + share > 1 ? 0 : begin + share / 50;
    look.window = {begin * shown.end(), (begin + share) * shown.end()};
    QPainter painter(&image);
    paintTimeline(painter, image.size(), shown, places, look, palette, font);
  }
}
BENCHMARK_CAPTURE(paint_frame, all_of_it, 1.0)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(paint_frame, a_tenth, 0.1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(paint_frame, a_thousandth, 0.001)->Unit(benchmark::kMillisecond);

void point_at_spans(benchmark::State& state) {
  const Timeline& shown = timeline();
  double time = 0;
  for (auto _ : state) {
    time = time > shown.end() ? 0 : time + 1.7e-4;
    benchmark::DoNotOptimize(shown.span_at(3, time, 1e-6));
  }
}
BENCHMARK(point_at_spans);

void total_of_everything(benchmark::State& state) {
  const Timeline& shown = timeline();
  for (auto _ : state) benchmark::DoNotOptimize(shown.totals({{0, shown.end()}, 0, rows - 1}));
}
BENCHMARK(total_of_everything)->Unit(benchmark::kMillisecond);

// A chain with a shortcut around every third node.
void lay_out_graph(benchmark::State& state) {
  const auto nodes = static_cast<std::size_t>(state.range(0));
  const std::vector<LayoutBox> sizes(nodes, LayoutBox{0, 0, 200, 50});
  std::vector<LayoutEdge> edges;
  for (std::size_t i = 0; i + 1 < nodes; ++i) edges.push_back({i, i + 1});
  for (std::size_t i = 0; i + 3 < nodes; i += 3) edges.push_back({i, i + 3});
  for (auto _ : state) benchmark::DoNotOptimize(lay_out(sizes, edges));
}
BENCHMARK(lay_out_graph)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sibyl::gui

int main(int argc, char** argv) {
  QGuiApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
