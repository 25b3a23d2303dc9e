#include "calibration/program/storage.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/files.h"
#include "base/statistics.h"
#include "profiler/torch/timing.h"

namespace sibyl {
namespace {

constexpr std::size_t block = 4 << 20;

Failure trouble(std::string_view what, const std::filesystem::path& file) {
  return fail(fmt::format("cannot {}: {}", what, std::strerror(errno)), file.string());
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The file is removed also where measuring fails half-way.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& folder)
      : path_(folder / fmt::format(".sibyl-storage-{}", ::getpid())) {}
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

Result<double> write_time(const std::filesystem::path& path, std::size_t bytes, std::vector<char>& buffer) {
  const double start = now();
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file.get() < 0) return trouble("create a file", path);
  for (std::size_t written = 0; written < bytes;) {
    const ssize_t n = ::write(file.get(), buffer.data(), std::min(buffer.size(), bytes - written));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return trouble("write", path);
    written += static_cast<std::size_t>(n);
  }
  if (::fsync(file.get()) != 0) return trouble("sync", path);
  return now() - start;
}

Result<double> read_time(const std::filesystem::path& path, std::size_t bytes, std::vector<char>& buffer) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return trouble("open", path);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  const double start = now();
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return trouble("read", path);
    done += static_cast<std::size_t>(n);
  }
  return now() - start;
}

}  // namespace

Result<std::vector<IoSample>> measure_storage(const std::filesystem::path& folder, Bytes largest) {
  const TemporaryFile file(folder);
  std::vector<char> buffer(block);
  // Not zeros: some storage does not write those.
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<char>((i * 2654435761U) >> 13);
  std::vector<IoSample> samples;
  for (const double share : {1.0 / 256, 1.0 / 16, 1.0}) {
    const auto bytes = static_cast<std::size_t>(std::max(1.0, largest.value() * share));
    std::array<double, 3> writes{}, reads{};
    for (std::size_t i = 0; i < writes.size(); ++i) {
      SIBYL_TRY(writes[i], write_time(file.path(), bytes, buffer));
      SIBYL_TRY(reads[i], read_time(file.path(), bytes, buffer));
    }
    const Bytes size{static_cast<double>(bytes)};
    samples.push_back({true, size, Seconds{median(writes)}});
    samples.push_back({false, size, Seconds{median(reads)}});
  }
  return samples;
}

}  // namespace sibyl
