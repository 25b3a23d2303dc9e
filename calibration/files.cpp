#include "calibration/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sibyl {
namespace {

Failure system_failure(std::string_view what, const std::filesystem::path& path) {
  return fail(fmt::format("cannot {}: {}", what, std::strerror(errno)), path.string());
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void FileDescriptor::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<std::string> read_file(const std::filesystem::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_failure("open", path);
  std::string text;
  std::string chunk(1 << 20, '\0');
  while (true) {
    const ssize_t n = ::read(file.get(), chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure("read", path);
    if (n == 0) return text;
    text.append(chunk, 0, static_cast<std::size_t>(n));
  }
}

Result<void> write_and_sync(const FileDescriptor& file, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure("write", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file.get()) != 0) return system_failure("sync", path);
  return {};
}

Result<void> replace_file(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path draft = path.string() + fmt::format(".{}.new", ::getpid());
  auto written = [&]() -> Result<void> {
    FileDescriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return system_failure("create", draft);
    SIBYL_CHECK(write_and_sync(file, text, draft));
    file.close();
    if (::rename(draft.c_str(), path.c_str()) != 0) return system_failure("replace", path);
    return {};
  }();
  if (!written) ::unlink(draft.c_str());
  if (!written) return written;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());  // makes the rename last; not every file system can
  return written;
}

}  // namespace sibyl
