#include "gui/view/canvas/timeline_model.h"

#include <QTest>
#include <algorithm>

namespace sibyl::gui {
namespace {

Timeline::Processes processes(std::vector<TraceTrack> tracks, TraceSource source = TraceSource::predicted,
                              int rank = 0) {
  return std::make_shared<const std::vector<TraceProcess>>(
      std::vector<TraceProcess>{TraceProcess{source, rank, "rank", std::move(tracks)}});
}

TraceSpan span(std::string name, std::string category, double start, double end, bool critical = false) {
  TraceSpan result{std::move(name), std::move(category), Seconds{start}, Seconds{end}};
  result.critical = critical;
  return result;
}

// Span i from 2 i + 0.5 ms to 2 i + 1.5 ms: forward and backward in turn.
Timeline comb(std::size_t spans) {
  TraceTrack track{"compute", {}};
  for (std::size_t i = 0; i < spans; ++i) {
    const double start = 2e-3 * static_cast<double>(i) + 0.5e-3;
    track.spans.push_back(
        span("kernel " + std::to_string(i), i % 2 == 0 ? "forward" : "backward", start, start + 1e-3, i == 3));
  }
  return Timeline(processes({track}), nullptr);
}

}  // namespace

class TimelineModelTest : public QObject {
  Q_OBJECT

 private slots:
  // Twice as near at a quarter of the window: a quarter of what is seen still lies before it.
  void zoomKeepsTheTimeUnderThePointer() {
    const TimeWindow window = TimeWindow{4, 8}.zoomed(0.5, 5);
    QCOMPARE(window.begin, 4.5);
    QCOMPARE(window.end, 6.5);
  }

  void windowStaysOnTheStep() {
    const TimeWindow late = TimeWindow{9, 14}.limited(10);
    QCOMPARE(late.width(), 5.0);
    QCOMPARE(late.end, 10.2);  // a margin of 2 %
    const TimeWindow all = TimeWindow{-100, 100}.limited(10);
    QCOMPARE(all.begin, -0.2);
    QCOMPARE(all.end, 10.2);
    QVERIFY((TimeWindow{5, 5}.limited(10).width() > 0));
  }

  // 12 ms over at most 6 ticks: every 2 ms; zoomed in, labels say as many digits as the step needs.
  void ticksAreRoundAndToldApart() {
    const TimeTicks ticks = ticks_of({0, 12e-3}, 6);
    QCOMPARE(ticks.step, 2e-3);
    QCOMPARE(ticks.labels.size(), std::size_t{7});
    QCOMPARE(QString::fromStdString(ticks.labels[3]), QStringLiteral("6 ms"));
    const TimeTicks near = ticks_of({10e-3, 10.0011e-3}, 4);
    QCOMPARE(QString::fromStdString(near.labels[1]), QStringLiteral("10.0005 ms"));
  }

  void widePiecesAreSpans() {
    const Timeline timeline = comb(10);
    const auto pieces = timeline.pieces(0, {0, 20e-3}, 1e-5);
    QCOMPARE(pieces.size(), std::size_t{10});
    QCOMPARE(pieces[4].begin, 8.5e-3);
    QCOMPARE(pieces[4].last - pieces[4].first, std::size_t{1});
    QVERIFY(timeline.any_critical(0, pieces[3]) && !timeline.any_critical(0, pieces[4]));
  }

  // Pixels of 10 ms hold five spans each, of which 1 ms in 2 is busy but for the end: 5 ms of the 9 ms between the
  // first one's start and the last one's end. Every span is in one piece.
  void narrowSpansAreMerged() {
    const Timeline timeline = comb(1000);
    const auto pieces = timeline.pieces(0, {0, 2.0}, 10e-3);
    QCOMPARE(pieces.size(), std::size_t{200});
    std::size_t next = 0;
    for (const Piece& piece : pieces) {
      QCOMPARE(piece.first, next);
      next = piece.last;
    }
    QCOMPARE(next, std::size_t{1000});
    QVERIFY(std::abs(pieces[7].covered - 5.0 / 9.0) < 1e-9);
    // Of spans 35 to 39, three are backward.
    QCOMPARE(timeline.categories()[pieces[7].category], std::string("backward"));
  }

  // Beside many narrow ones a wide span is still drawn by itself.
  void wideSpansAreNotMerged() {
    TraceTrack track{"compute", {}};
    for (int i = 0; i < 5; ++i) track.spans.push_back(span("narrow", "forward", i * 1e-6, i * 1e-6 + 5e-7));
    track.spans.push_back(span("wide", "backward", 5e-6, 1e-3));
    const Timeline timeline(processes({track}), nullptr);
    const auto pieces = timeline.pieces(0, {0, 1e-3}, 1e-5);
    QCOMPARE(pieces.size(), std::size_t{2});
    QCOMPARE(pieces[1].first, std::size_t{5});
  }

  void onlyWhatIsSeenIsGiven() {
    const auto pieces = comb(1000).pieces(0, {0.101, 0.110}, 1e-6);
    QCOMPARE(pieces.front().first, std::size_t{50});  // 100.5 to 101.5 ms
    QCOMPARE(pieces.back().first, std::size_t{54});   // 108.5 to 109.5 ms
  }

  void pointingFindsTheSpan() {
    const Timeline timeline = comb(10);
    QCOMPARE(timeline.span_at(0, 5e-3, 0)->span, std::size_t{2});
    QVERIFY(!timeline.span_at(0, 6e-3, 1e-4));                           // between two
    QCOMPARE(timeline.span_at(0, 6.45e-3, 1e-4)->span, std::size_t{3});  // just before one
    QCOMPARE(timeline.span_at(0, 5.55e-3, 1e-4)->span, std::size_t{2});  // just behind one
    QVERIFY(!timeline.span_at(1, 5e-3, 1));
  }

  // From 0.75 ms to 5 ms: three quarters of span 0, all of span 1, half of span 2.
  void totalsAreCutAtTheAreasEdges() {
    const auto totals = comb(10).totals({{0.75e-3, 5e-3}, 0, 0});
    QCOMPARE(totals.size(), std::size_t{2});
    QCOMPARE(totals[0].spans, std::size_t{2});
    QVERIFY(std::abs(totals[0].seconds - 1.25e-3) < 1e-12);
    QCOMPARE(totals[1].spans, std::size_t{1});
    QVERIFY(std::abs(totals[1].seconds - 1e-3) < 1e-12);
  }

  void overlappingSpansLieBelowEachOther() {
    const TraceTrack track{
        "communication",
        {span("b", "communication", 1, 3), span("a", "communication", 0, 2), span("c", "communication", 2, 4)}};
    const Timeline timeline(processes({track}), nullptr);
    QCOMPARE(timeline.rows().size(), std::size_t{2});
    QCOMPARE(timeline.rows()[0].spans.size(), std::size_t{2});  // a and c
    QCOMPARE(timeline.rows()[1].title, std::string("communication (2)"));
  }

  void ranksStandBesideTheirMeasuredOnes() {
    const TraceTrack track{"compute", {span("a", "forward", 0, 1)}};
    std::vector<TraceProcess> predicted, measured;
    for (const int rank : {0, 1}) {
      predicted.push_back({TraceSource::predicted, rank, "p" + std::to_string(rank), {track}});
      measured.push_back({TraceSource::measured, rank, "m" + std::to_string(rank), {track}});
    }
    const Timeline timeline(std::make_shared<const std::vector<TraceProcess>>(predicted),
                            std::make_shared<const std::vector<TraceProcess>>(measured));
    std::string order;
    for (const Timeline::Group& group : timeline.groups()) order += group.title + " ";
    QCOMPARE(order, std::string("p0 m0 p1 m1 "));
    QCOMPARE(timeline.end(TraceSource::measured), 1.0);
  }

  void searchGoesRound() {
    const Timeline timeline = comb(30);
    const SpanMatches matches(timeline, [](const std::string& name) { return name.ends_with("7"); });
    QCOMPARE(matches.places().size(), std::size_t{3});  // 7, 17, 27
    QCOMPARE(matches.first_from(timeline, 15e-3), std::size_t{1});
    QCOMPARE(matches.first_from(timeline, 1.0), std::size_t{0});
    QVERIFY(matches.any(0, {0, 1, 5, 10, 0, 1}));
    QVERIFY(!matches.any(0, {0, 1, 8, 17, 0, 1}));
  }

  void operationsAreReadFromNames() {
    QCOMPARE(operation_of(span("conv1 forward", "forward", 0, 1)), std::string("conv1"));
    QCOMPARE(operation_of(span("recompute h.0 forward", "forward", 0, 1)), std::string("h.0"));
    QCOMPARE(operation_of(span("launch fc backward weight", "wait", 0, 1)), std::string("fc"));
    QCOMPARE(operation_of(span("all-reduce bucket 0", "communication", 0, 1)), std::string());
    QCOMPARE(operation_of(span("optimizer", "optimizer", 0, 1)), std::string());
  }
};

}  // namespace sibyl::gui

QTEST_APPLESS_MAIN(sibyl::gui::TimelineModelTest)
#include "timeline_model_test.moc"
