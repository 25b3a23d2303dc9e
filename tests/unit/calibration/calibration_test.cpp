#include "calibration/calibration.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "calibration/codec.h"
#include "example.h"
#include "tests/support/text.h"

namespace sibyl {
namespace {

using test::replaced;

namespace fs = std::filesystem;

class CalibrationFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("sibyl_calibration_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] fs::path file(const std::string& name) const { return folder_ / name; }

  fs::path folder_;
};

Error error_of(const std::string& text) {
  const auto result = calibration_codec::read(text, "x.json");
  EXPECT_FALSE(result);
  return result ? Error{} : result.error();
}

TEST_F(CalibrationFile, ComesBackAsItWas) {
  const Calibration c = example_calibration();
  ASSERT_TRUE(save_calibration(c, file("a.json")));
  const auto read = load_calibration(file("a.json"));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(read->machine, c.machine);
  EXPECT_EQ(read->libraries, c.libraries);
  EXPECT_EQ(read->date, c.date);
  EXPECT_EQ(read->source, c.source);
  EXPECT_EQ(read->ranks_per_node, 2);
  EXPECT_EQ(read->threads, 3);
  EXPECT_EQ(read->device.peak, c.device.peak);
  EXPECT_EQ(read->device.backend, Backend::cpu);
  EXPECT_EQ(read->device.board_power, Watts{250});
  EXPECT_EQ(read->device.boost_power, Watts{355});
  EXPECT_EQ(read->device.unit_share.at(DType::f16), 0.5);
  EXPECT_EQ(read->device.spread, 0.015);
  EXPECT_EQ(read->device.host_link, BytesPerSecond{2.4e10});
  EXPECT_EQ(read->step_overhead_per_operation, c.step_overhead_per_operation);
  ASSERT_EQ(read->reads.size(), 2U);
  EXPECT_EQ(read->reads[1].bytes, Bytes{6.6e7});
  EXPECT_EQ(read->reads[1].time, Seconds{5e-3});
  ASSERT_EQ(read->reuses.size(), 2U);
  EXPECT_EQ(read->reuses[1].step, Bytes{8e6});
  EXPECT_EQ(read->reuses[1].distance, Bytes{1e6});
  EXPECT_EQ(read->reuses[1].rate, BytesPerSecond{3e10});
  ASSERT_EQ(read->lasting.size(), 2U);
  EXPECT_EQ(read->lasting[0].touches, 1);
  EXPECT_EQ(read->lasting[1].touches, 2);
  EXPECT_EQ(read->lasting[1].age, Seconds{0.004});
  EXPECT_EQ(read->lasting[1].rate, BytesPerSecond{2e10});
  ASSERT_EQ(read->kernels.size(), 2U);
  EXPECT_EQ(read->kernels[0].key, c.kernels[0].key);
  EXPECT_EQ(read->kernels[0].time, c.kernels[0].time);
  EXPECT_EQ(read->kernels[0].alone, c.kernels[0].alone);
  EXPECT_EQ(read->kernels[1].alone, Seconds{});
  EXPECT_EQ(read->kernels[0].cached, c.kernels[0].cached);
  EXPECT_EQ(read->kernels[1].cached, Seconds{});
  EXPECT_TRUE(read->one_machine);
  EXPECT_EQ(read->kernels[0].source, "");
  EXPECT_EQ(read->kernels[1].source, "a paper");
  EXPECT_EQ(read->collectives[0].source, "another paper");
  EXPECT_EQ(read->collectives[0].placement, (GroupPlacement{2, 2, 1}));
  ASSERT_EQ(read->point_to_point.size(), 5U);
  EXPECT_FALSE(read->point_to_point[3].both_ways);
  EXPECT_TRUE(read->point_to_point[4].both_ways);
  ASSERT_EQ(read->pairs.size(), 2U);
  EXPECT_EQ(read->pairs[0].from, 4);
  EXPECT_EQ(read->pairs[0].to, 0);
  EXPECT_FALSE(read->pairs[0].same_node);
  EXPECT_EQ(read->pairs[0].time, Seconds{3e-2});
  EXPECT_EQ(read->pairs[0].near, Nearness::unknown);
  EXPECT_EQ(read->pairs[1].near, Nearness::socket);
  EXPECT_EQ(read->overlap.size(), 3U);
  ASSERT_EQ(read->meetings.size(), 1U);
  EXPECT_EQ(read->meetings[0].ranks, 4);
  EXPECT_EQ(read->meetings[0].longer, Seconds{1e-4});
  ASSERT_EQ(read->meetings[0].windows.size(), 2U);
  EXPECT_EQ(read->meetings[0].windows[1].computing, Seconds{4e-3});
  EXPECT_EQ(read->meetings[0].windows[1].late, Seconds{5e-4});
  EXPECT_TRUE(read->io[0].write);
  // All that is kept is in the text: writing again gives the same bytes.
  EXPECT_EQ(calibration_codec::write(*read), calibration_codec::write(c));
}

TEST_F(CalibrationFile, TellsHowItsLibtorchAddsGradientsUp) {
  Calibration c = example_calibration();
  const auto apart = [&](const char* version) {
    c.libraries["libtorch"] = version;
    return calibration_codec::read(calibration_codec::write(c), "x.json")->device.sums_apart;
  };
  EXPECT_TRUE(apart("1.13.0"));
  EXPECT_FALSE(apart("2.0.1"));
  EXPECT_FALSE(apart("11.0"));
  EXPECT_FALSE(calibration_codec::read(calibration_codec::write(example_calibration()), "x.json")->device.sums_apart);
}

TEST_F(CalibrationFile, HoldsOneSampleOnALine) {
  const std::string text = calibration_codec::write(example_calibration());
  EXPECT_NE(text.find("\n{\"key\":\"backward:11 linear[8x16,32x16]->[8x32]:f32\","), std::string::npos);
  EXPECT_NE(text.find("\n{\"key\":\"forward unary[64]->[64]:f32\","), std::string::npos);
}

TEST_F(CalibrationFile, SavingReplacesWholeAndLeavesNothingBeside) {
  std::ofstream(file("a.json")) << "old";
  ASSERT_TRUE(save_calibration(example_calibration(), file("a.json")));
  EXPECT_TRUE(load_calibration(file("a.json")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(CalibrationFile, SavingWhereItCannotIsAnErrorWithThePath) {
  const auto saved = save_calibration(example_calibration(), file("absent/a.json"));
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().where.find("absent/a.json"), std::string::npos);
}

TEST_F(CalibrationFile, AbsentFilesAndFoldersAreErrors) {
  EXPECT_NE(load_calibration(file("none.json")).error().where.find("none.json"), std::string::npos);
  EXPECT_FALSE(load_calibration(folder_));
}

TEST(CalibrationText, NamesThePlaceOfAnError) {
  const std::string good = calibration_codec::write(example_calibration());
  const struct {
    std::string from, to, where;
  } cases[] = {
      {"forward unary[64]->[64]:f32", "forward nonsense[64]->[64]:f32", "x.json: $.kernels[1].key"},
      {"\"time_s\":0.3333333333333333", "\"time_s\":-1", "x.json: $.kernels[0].time_s"},
      {"\"time_s\":0.3333333333333333", "\"time_s\":0", "x.json: $.kernels[0].time_s"},
      {"\"time_s\":0.3333333333333333", "\"time_s\":1e19", "x.json: $.kernels[0].time_s"},
      {"\"time_s\":0.3333333333333333", "\"time_s\":1e-19", "x.json: $.kernels[0].time_s"},
      {"\"time_s\":0.3333333333333333", "\"time_s\":\"fast\"", "x.json: $.kernels[0].time_s"},
      {"\"time_s\":0.3333333333333333,", "", "x.json: $.kernels[0].time_s"},
      {"\"alone_s\":0.25", "\"alone_s\":0.5", "x.json: $.kernels[0].alone_s"},
      {"\"alone_s\":0.25", "\"alone_s\":0", "x.json: $.kernels[0].alone_s"},
      {"\"cached_s\":0.125", "\"cached_s\":0.5", "x.json: $.kernels[0].cached_s"},
      {"\"runs\":11", "\"runs\":1.5", "x.json: $.kernels[0].runs"},
      {"\"runs\":11", "\"rums\":11", "x.json: $.kernels[0].rums"},
      {"\"source\":0", "\"source\":7", "x.json: $.kernels[1].source"},
      {"\"backend\":\"cpu\"", "\"backend\":\"abacus\"", "x.json: $.device.backend"},
      {"\"f64\":70000000000.0", "\"f64\":null", "x.json: $.device.peak_flops_per_s.f64"},
      {"\"f64\":70000000000.0", "\"f65\":1", "x.json: $.device.peak_flops_per_s.f65"},
      {"\"memory_bytes\":8000000000.0,", "", "x.json: $.device.memory_bytes"},
      {"\"dispatch_error\":0.5", "\"dispatch_error\":-1", "x.json: $.device.dispatch_error"},
      {"\"library\":\"flash2\"", "\"library\":\"flush\"", "x.json: $.device.attention_speeds[0].library"},
      {"\"library\":\"flash2\"", "\"library\":\"timed\"", "x.json: $.device.attention_speeds[0].library"},
      {"\"pass\":\"backward\"", "\"pass\":\"sideward\"", "x.json: $.device.attention_speeds[0].pass"},
      {"\"head_dim\":64,", "", "x.json: $.device.attention_speeds[0].head_dim"},
      {"\"head_dim\":64", "\"head_dim\":0", "x.json: $.device.attention_speeds[0].head_dim"},
      {"\"sequences\":[1024,2048]", "\"sequences\":[1024]", "x.json: $.device.attention_speeds[0].flops_per_s"},
      {"\"sequences\":[1024,2048]", "\"sequences\":[1024,-1]", "x.json: $.device.attention_speeds[0].sequences[1]"},
      {"\"collective\":\"all_gather\"", "\"collective\":\"gossip\"", "x.json: $.collectives[0].collective"},
      {"\"algorithm\":\"ring\"", "\"algorithm\":\"square\"", "x.json: $.collectives[0].algorithm"},
      {"\"nodes\":2,", "\"nodes\":0,", "x.json: $.collectives[0].nodes"},
      {"\"nodes\":2,", "\"nodes\":8388609,", "x.json: $.collectives[0]"},  // of 2 ranks: 2^24 and 2 more
      {"\"time_s\":0.005", "\"time_s\":0", "x.json: $.reads[1].time_s"},
      {"\"bytes_per_s\":30000000000.0", "\"bytes_per_s\":0", "x.json: $.reuses[1].bytes_per_s"},
      {"\"touches\":2", "\"touches\":-1", "x.json: $.lasting[1].touches"},
      {"\"age_s\":0.004", "\"age_s\":-1", "x.json: $.lasting[1].age_s"},
      {"\"same_node\":true", "\"same_node\":1", "x.json: $.point_to_point[0].same_node"},
      {"\"both_ways\":true", "\"both_ways\":2", "x.json: $.point_to_point[4].both_ways"},
      {"\"from\":4", "\"from\":-4", "x.json: $.pairs[0].from"},
      {"\"from\":4", "\"from\":0", "x.json: $.pairs[0]"},
      {"\"time_s\":0.03", "\"time_s\":0", "x.json: $.pairs[0].time_s"},
      {"\"near\":\"socket\"", "\"near\":\"desk\"", "x.json: $.pairs[1].near"},
      {"\"threads\": 3", "\"threads\": 99999999999", "x.json: $.threads"},
      {"\"cores\":\"2\"", "\"cores\":2", "x.json: $.machine.cores"},
      {"sibyl.calibration/1", "sibyl.calibration/2", "x.json: $.schema"},
  };
  for (const auto& c : cases) {
    const Error error = error_of(replaced(good, c.from, c.to));
    EXPECT_EQ(error.where, c.where) << c.to;
    EXPECT_EQ(error.code, ErrorCode::bad_input);
    EXPECT_FALSE(error.message.empty());
  }
}

TEST(CalibrationText, WrongKindsOfFileAreErrors) {
  for (const char* text :
       {"", "[]", "7", "{}", "null", "not json", "{\"schema\": \"sibyl.calibration/1\"}", "{\"schema\": 1}"})
    EXPECT_FALSE(calibration_codec::read(text, "x.json")) << text;
  const std::string good = calibration_codec::write(example_calibration());
  EXPECT_FALSE(calibration_codec::read(replaced(good, "0.3333333333333333", "NaN"), "x.json"));
  EXPECT_FALSE(calibration_codec::read(replaced(good, "0.3333333333333333", "1e999"), "x.json"));
}

TEST(CalibrationText, SaysThatAFileIsTruncatedAndOnWhichLine) {
  const std::string good = calibration_codec::write(example_calibration());
  const std::string half = good.substr(0, good.find("\"runs\""));
  const Error error = error_of(half);
  EXPECT_NE(error.message.find("truncated"), std::string::npos) << error.message;
  EXPECT_EQ(error.where, "x.json:" + std::to_string(1 + std::count(half.begin(), half.end(), '\n')));
}

const std::string device_alone =
    R"({"schema":"sibyl.calibration/1","device":{"name":"d","backend":"cuda","memory_bandwidth_bytes_per_s":1e12,"memory_bytes":1e9})";

TEST_F(CalibrationFile, HoldsTablesOfKernels) {
  const auto read = calibration_codec::read(
      device_alone + R"(,"sources":["a paper"],"kernel_tables":[{"key":"forward copy[$0x$1]->[$0x$1]:f32","source":0,)"
                     R"("rows":[[2,3,1e-6],[4,3,2e-6]]}]})",
      "x.json");
  ASSERT_TRUE(read) << to_string(read.error());
  ASSERT_EQ(read->kernels.size(), 2U);
  EXPECT_EQ(to_string(read->kernels[1].key), "forward copy[4x3]->[4x3]:f32");
  EXPECT_EQ(read->kernels[1].time, Seconds{2e-6});
  EXPECT_EQ(read->kernels[1].source, "a paper");
}

TEST_F(CalibrationFile, SaysWhereATableIsWrong) {
  const auto where = [](const std::string& tables) {
    return error_of(device_alone + ",\"kernel_tables\":[" + tables + "]}").where;
  };
  EXPECT_EQ(where(R"({"key":"forward copy[$0]->[$0]:f32","rows":[[2,1e-6],[2,3,1e-6]]})"),
            "x.json: $.kernel_tables[0].rows[1]");
  EXPECT_EQ(where(R"({"key":"forward copy[$0]->[$0]:f32","rows":[[2,-1]]})"), "x.json: $.kernel_tables[0].rows[0]");
  EXPECT_EQ(where(R"({"key":"forward abacus[$0]->[$0]:f32","rows":[]})"), "x.json: $.kernel_tables[0].key");
  EXPECT_EQ(where(R"({"key":"forward copy[$0]->[$0]:f32","rows":[7]})"), "x.json: $.kernel_tables[0].rows[0]");
}

TEST_F(CalibrationFile, RefusesADonorThatIsNotShipped) {
  std::ofstream(file("d.json")) << device_alone << R"(,"donors":["t4","abacus"]})";
  const auto read = load_calibration(file("d.json"));
  ASSERT_FALSE(read);
  EXPECT_TRUE(read.error().where.ends_with("d.json: $.donors[1]")) << read.error().where;
}

}  // namespace
}  // namespace sibyl
