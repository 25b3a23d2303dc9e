#include "base/table.h"

#include <gmock/gmock.h>

#include "base/progress.h"

namespace sibyl {
namespace {

using testing::HasSubstr;

Table sample() {
  using enum Column::Align;
  return {.columns = {{"layer", "name", left}, {"time", "time_s"}, {"", "note", left}},
          .rows = {{"conv, \"first\"", Cell("12.3 ms", "0.0123"), Cell("", "a|b")},
                   {"fc", Cell("± 1 us", "1e-06"), Cell("", "")}}};
}

TEST(Table, AlignsByWhatIsSeen) {
  // "±" is two bytes and one character; the column without title and text is for CSV alone.
  EXPECT_EQ(aligned_text(sample()),
            "layer             time\n"
            "-------------  -------\n"
            "conv, \"first\"  12.3 ms\n"
            "fc              ± 1 us\n");
}

TEST(Table, CsvHoldsValuesAndQuotesThem) {
  EXPECT_EQ(csv(sample()), "name,time_s,note\n\"conv, \"\"first\"\"\",0.0123,a|b\nfc,1e-06,\n");
}

TEST(Table, MarkdownMarksTheAlignmentAndEscapesBars) {
  Table table = sample();
  table.rows[1][0] = "a|b";
  EXPECT_EQ(markdown(table), "| layer | time |\n| --- | ---: |\n| conv, \"first\" | 12.3 ms |\n| a\\|b | ± 1 us |\n");
}

TEST(PlainNumber, IsTheShortestThatReadsBack) {
  EXPECT_EQ(plain_number(0.1), "0.1");
  EXPECT_EQ(plain_number(8589934592.0), "8589934592");
  EXPECT_EQ(plain_number(1.0 / 0.0), "");
}

TEST(ProgressBar, ShowsShareAndTimeLeft) {
  // A quarter done in 10 s: three times as long is left.
  const std::string bar = progress_bar("measuring", 25, 100, Seconds{10}, "conv", 200);
  EXPECT_THAT(bar, HasSubstr("measuring [======>                 ]  25 %  25/100"));
  EXPECT_THAT(bar, HasSubstr("ETA 30.0 s  conv"));
  EXPECT_THAT(progress_bar("x", 100, 100, Seconds{10}, "", 200), HasSubstr("100 %  100/100  in 10.0 s"));
  EXPECT_THAT(progress_bar("x", 0, 0, Seconds{0}, "", 200), HasSubstr("100 %"));
  EXPECT_EQ(display_width(progress_bar("measuring", 25, 100, Seconds{10}, "a long name that does not fit", 40)), 40u);
}

TEST(Progress, PrintsALineForEveryTenthOffATerminal) {
  char* text = nullptr;
  std::size_t size = 0;
  FILE* out = open_memstream(&text, &size);
  {
    Progress progress("measuring", 40, ProgressStyle::lines, out, Seconds{0});
    Progress soon_done("nothing", 40, ProgressStyle::lines, out, Seconds{1e9});
    soon_done.report(40);
    for (std::size_t i = 0; i <= 40; ++i) progress.report(i);
  }
  std::fclose(out);
  const std::string printed(text, size);
  std::free(text);
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 10);
  EXPECT_THAT(printed, HasSubstr("measuring: 10 % (4/40) ETA "));
  EXPECT_EQ(printed.find('\r'), std::string::npos);
}

}  // namespace
}  // namespace sibyl
