#include "oracle/cli/arguments.h"

#include <gmock/gmock.h>

namespace sibyl::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Command command() {
  Command c;
  c.name = "predict";
  c.program = "sibyl predict";
  c.summary = "say how long a step takes";
  c.operands = "MODEL";
  c.examples = {{"sibyl predict m.onnx", "prices it"}};
  c.options = {{.name = "--devices", .value = "N", .help = "how many"},
               {.name = "--micro-batches", .value = "N", .help = "parts", .fallback = "1", .alias = "--accumulation"},
               {.name = "--dim", .value = "NAME=SIZE", .help = "binds", .repeatable = true},
               {.name = "--color", .value = "WHEN", .help = "colour", .fallback = "auto", .choices = {"auto", "never"}},
               {.name = "--output", .value = "FILE", .help = "where to", .letter = 'o'},
               {.name = "--bucket", .value = "SIZE", .help = "size"},
               {.name = "--json", .help = "JSON"}};
  c.least_operands = 1;
  c.most_operands = 1;
  return c;
}

Result<Arguments> parse(std::vector<std::string> words) { return Arguments::parse(command(), words); }

Error error_of(const Result<Arguments>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error{} : result.error();
}

TEST(Arguments, ReadsBothSpellingsOfAValue) {
  const auto a = parse({"m.onnx", "--devices", "4", "--color=never", "-o", "out.json", "--json"});
  ASSERT_TRUE(a.has_value());
  EXPECT_THAT(a->operands(), ElementsAre("m.onnx"));
  EXPECT_EQ(a->integer("--devices", 1).value(), 4);
  EXPECT_EQ(a->text("--color"), "never");
  EXPECT_EQ(a->text("--output"), "out.json");
  EXPECT_TRUE(a->has("--json"));
}

TEST(Arguments, FallsBackWhereNothingIsGiven) {
  const auto a = parse({"-"});
  ASSERT_TRUE(a.has_value());
  EXPECT_THAT(a->operands(), ElementsAre("-"));
  EXPECT_EQ(a->text("--color"), "auto");
  EXPECT_EQ(a->integer("--micro-batches", 1).value(), 1);
  EXPECT_EQ(a->integer("--devices", 1).value(), std::nullopt);
  EXPECT_FALSE(a->has("--color"));
}

TEST(Arguments, AnAliasIsTheSameOption) {
  const auto a = parse({"m", "--accumulation", "8"});
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->integer("--micro-batches", 1).value(), 8);
}

TEST(Arguments, RepeatableOptionsKeepTheirOrder) {
  const auto a = parse({"m", "--dim", "seq=8", "--dim", "width=2"});
  ASSERT_TRUE(a.has_value());
  EXPECT_THAT(a->all("--dim"), ElementsAre("seq=8", "width=2"));
}

TEST(Arguments, DoubleDashEndsTheOptions) {
  const auto a = parse({"--", "--devices"});
  ASSERT_TRUE(a.has_value());
  EXPECT_THAT(a->operands(), ElementsAre("--devices"));
}

TEST(Arguments, AMistypedOptionIsSuggested) {
  const Error error = error_of(parse({"m", "--devcies", "4"}));
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_THAT(error.message, HasSubstr("--devcies"));
  EXPECT_EQ(error.hint, "did you mean --devices?");
}

TEST(Arguments, MistakesNameTheOption) {
  EXPECT_THAT(error_of(parse({"m", "--devices"})).message, HasSubstr("--devices needs a value"));
  EXPECT_THAT(error_of(parse({"m", "--devices", "--json"})).message, HasSubstr("--devices needs a value"));
  EXPECT_THAT(error_of(parse({"m", "--json=1"})).message, HasSubstr("--json takes no value"));
  EXPECT_THAT(error_of(parse({"m", "--color", "blue"})).hint, HasSubstr("auto, never"));
  EXPECT_THAT(error_of(parse({"m", "--devices", "1", "--devices=2"})).message, HasSubstr("given twice"));
  EXPECT_THAT(error_of(parse({})).message, HasSubstr("needs MODEL"));
  EXPECT_THAT(error_of(parse({"a", "b"})).message, HasSubstr("'b'"));
}

TEST(Arguments, TypedValuesThatCannotBeReadAreUsageErrors) {
  const auto a = parse({"m", "--devices", "four", "--bucket", "25 apples"});
  ASSERT_TRUE(a.has_value());
  const auto devices = a->integer("--devices", 1);
  ASSERT_FALSE(devices.has_value());
  EXPECT_EQ(devices.error().code, ErrorCode::usage);
  const auto bucket = a->bytes("--bucket");
  ASSERT_FALSE(bucket.has_value());
  EXPECT_EQ(bucket.error().code, ErrorCode::usage);
  EXPECT_EQ(bucket.error().where, "--bucket");
}

TEST(Arguments, HelpNeedsNoOperand) {
  const auto a = parse({"--help"});
  ASSERT_TRUE(a.has_value());
  EXPECT_TRUE(a->help());
}

TEST(Help, OpensWithExamples) {
  const std::string text = help_text(command());
  EXPECT_TRUE(text.starts_with("Examples:\n  sibyl predict m.onnx\n"));
  EXPECT_THAT(text, HasSubstr("Say how long a step takes."));
  EXPECT_THAT(text, HasSubstr("-o, --output FILE"));
  EXPECT_THAT(text, HasSubstr("also --accumulation"));
}

TEST(Nearest, FindsSwapsOmissionsAndBeginnings) {
  const std::vector<std::string> verbs = {"inspect", "predict", "scale", "compare", "export"};
  EXPECT_EQ(nearest("perdict", verbs), "predict");
  EXPECT_EQ(nearest("predit", verbs), "predict");
  EXPECT_EQ(nearest("comp", verbs), "compare");
  EXPECT_EQ(nearest("banana", verbs), std::nullopt);
}

TEST(ParseInteger, TakesPlainDigitsOnly) {
  EXPECT_EQ(parse_integer("12", "x", 1).value(), 12);
  for (const char* bad : {"", "0", "-3", "1.5", "1e3", "0x10", "7 ", "99999999999999999999"})
    EXPECT_FALSE(parse_integer(bad, "x", 1).has_value()) << bad;
}

}  // namespace
}  // namespace sibyl::cli
