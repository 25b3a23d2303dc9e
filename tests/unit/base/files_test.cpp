#include "base/files.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace sibyl {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::ptrdiff_t count() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  fs::path folder_ = fs::temp_directory_path() / ("sibyl_files_" + std::to_string(::getpid()));
};

TEST_F(Files, AreReplacedWhole) {
  ASSERT_TRUE(replace_file(folder_ / "a", "a longer text"));
  ASSERT_TRUE(replace_file(folder_ / "a", "short"));
  EXPECT_EQ(read_file(folder_ / "a").value(), "short");
  EXPECT_EQ(count(), 1) << "nothing is left beside it";
}

TEST_F(Files, BehindALinkAreReplacedAndTheLinkStays) {
  ASSERT_TRUE(replace_file(folder_ / "target", "old"));
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(replace_file(folder_ / "link", "new"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_file(folder_ / "target").value(), "new");
}

// A rename onto a device would put a plain file in its place.
TEST_F(Files, ThatAreDevicesAreWrittenTo) {
  const fs::path full = folder_ / "full";
  fs::create_symlink("/dev/full", full);
  const auto written = replace_file(full, "text");
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("No space left"));
  EXPECT_EQ(written.error().where, full.string());
  const fs::path nothing = folder_ / "null";
  fs::create_symlink("/dev/null", nothing);
  EXPECT_TRUE(replace_file(nothing, "text"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, WithoutEndAreRefused) {
  const auto read = read_file("/dev/zero", 4096);
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("larger than 4096 bytes"));
}

TEST_F(Files, SayWhatIsWrongAndWhere) {
  for (const fs::path& path : {folder_, folder_ / "absent" / "a"}) {
    const auto writable = check_writable(path);
    ASSERT_FALSE(writable) << path;
    EXPECT_EQ(writable.error().where, path.string());
    const auto written = replace_file(path, "text");
    ASSERT_FALSE(written) << path;
    EXPECT_EQ(written.error().where, path.string());
    const auto read = read_file(path);
    ASSERT_FALSE(read) << path;
    EXPECT_EQ(read.error().where, path.string());
  }
  EXPECT_TRUE(check_writable(folder_ / "new"));
  EXPECT_EQ(count(), 0) << "asking makes nothing";
}

}  // namespace
}  // namespace sibyl
