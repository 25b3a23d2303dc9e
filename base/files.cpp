#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace sibyl {
namespace {

namespace fs = std::filesystem;

Failure system_failure(std::string_view what, const fs::path& path) {
  return fail(fmt::format("cannot {}: {}", what, std::strerror(errno)), path.string());
}

// Pipes, devices and some file systems cannot, and say so.
bool sync(const FileDescriptor& file) { return ::fsync(file.get()) == 0 || errno == EINVAL || errno == EROFS; }

Result<std::string> read_all(int file, const fs::path& path, std::size_t most) {
  std::string text;
  std::string chunk(1 << 20, '\0');
  while (text.size() <= most) {
    const ssize_t n = ::read(file, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure("read", path);
    if (n == 0) return text;
    text.append(chunk, 0, static_cast<std::size_t>(n));
  }
  return fail(fmt::format("is larger than {} bytes", most), path.string());
}

Result<void> replace_whole(const fs::path& path, std::string_view text) {
  const fs::path draft = path.string() + fmt::format(".{}.new", ::getpid());
  auto written = [&]() -> Result<void> {
    FileDescriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return system_failure("create", path);
    SIBYL_CHECK(write_and_sync(file, text, path));
    file.close();
    if (::rename(draft.c_str(), path.c_str()) != 0) return system_failure("replace", path);
    return {};
  }();
  if (!written) ::unlink(draft.c_str());
  if (!written) return written;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const FileDescriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());  // makes the rename last; not every file system can
  return written;
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

Result<std::string> read_file(const fs::path& path, std::size_t most) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_failure("open", path);
  return read_all(file.get(), path, most);
}

Result<std::string> read_standard_input() { return read_all(STDIN_FILENO, "standard input", std::size_t{1} << 30); }

Result<void> write_and_sync(const FileDescriptor& file, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure("write", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (!sync(file)) return system_failure("sync", path);
  return {};
}

Result<void> check_writable(const fs::path& path) {
  std::error_code problem;
  if (fs::is_directory(path, problem)) return fail("cannot write: is a folder", path.string());
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (::access(folder.c_str(), W_OK) != 0 || (fs::exists(path, problem) && ::access(path.c_str(), W_OK) != 0))
    return system_failure("write", path);
  return {};
}

Result<void> print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  return system_failure("write", "standard output");
}

Result<void> replace_file(const fs::path& path, std::string_view text) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  if (!fs::exists(status)) return replace_whole(path, text);
  if (fs::is_regular_file(status)) return replace_whole(fs::canonical(path, problem), text);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return system_failure("write", path);
  return write_and_sync(file, text, path);
}

}  // namespace sibyl
