#include "calibration/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "calibration/codec.h"

namespace sibyl {
namespace {

std::string header(const std::string& identity) {
  return nlohmann::ordered_json{{"schema", "sibyl.journal/1"}, {"identity", identity}}.dump(
      -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

struct Recovered {
  std::vector<KernelSample> samples;
  std::size_t sound_bytes = 0;  // up to the end of the last whole line
};

Result<Recovered> recover(std::string_view text, const std::string& identity, const std::string& file) {
  Recovered result;
  for (int number = 1; result.sound_bytes < text.size(); ++number) {
    const std::size_t end = text.find('\n', result.sound_bytes);
    if (end == std::string_view::npos) break;  // torn
    const std::string_view line = text.substr(result.sound_bytes, end - result.sound_bytes);
    if (number == 1 && line != header(identity))
      return fail("this journal was written by another set-up", file, "remove it, or calibrate into another file");
    if (number > 1) {
      SIBYL_TRY(KernelSample sample, calibration_codec::read_kernel(line, fmt::format("{}:{}", file, number)));
      result.samples.push_back(std::move(sample));
    }
    result.sound_bytes = end + 1;
  }
  return result;
}

}  // namespace

std::filesystem::path journal_path(const std::filesystem::path& calibration) {
  return calibration.string() + ".journal";
}

Journal::Journal(std::filesystem::path path, FileDescriptor file, std::vector<KernelSample> recovered)
    : path_(std::move(path)), file_(std::move(file)), recovered_(std::move(recovered)) {}

Result<Journal> Journal::open(const std::filesystem::path& path, const std::string& identity) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (file.get() < 0) return fail(fmt::format("cannot open: {}", std::strerror(errno)), path.string());
  SIBYL_TRY(const std::string text, read_file(path));
  SIBYL_TRY(Recovered found, recover(text, identity, path.string()));
  if (found.sound_bytes < text.size() && ::ftruncate(file.get(), static_cast<off_t>(found.sound_bytes)) != 0)
    return fail(fmt::format("cannot cut off a torn line: {}", std::strerror(errno)), path.string());
  if (found.sound_bytes == 0) SIBYL_CHECK(write_and_sync(file, header(identity) + "\n", path));
  return Journal(path, std::move(file), std::move(found.samples));
}

Result<void> Journal::append(const KernelSample& sample) {
  return write_and_sync(file_, calibration_codec::write_kernel(sample) + "\n", path_);
}

Result<void> Journal::remove() {
  file_.close();
  std::error_code problem;
  std::filesystem::remove(path_, problem);
  if (problem) return fail("cannot remove: " + problem.message(), path_.string());
  return {};
}

}  // namespace sibyl
