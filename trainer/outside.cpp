#include "trainer/outside.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>

namespace sibyl::trainer {
namespace {

Failure refused(std::string_view what, int error, const std::filesystem::path& folder) {
  return fail(fmt::format("{}: cannot {} for what is offloaded: {}", folder.string(), what, std::strerror(error)),
              "--offload-folder");
}

[[noreturn]] void broken(std::string_view what, const std::filesystem::path& folder) {
  throw std::runtime_error(fmt::format("{}: cannot {} what is offloaded: {}", folder.string(), what,
                                       errno == 0 ? "it has shrunk" : std::strerror(errno)));
}

Result<FileDescriptor> nameless_file(std::int64_t bytes, const std::filesystem::path& folder) {
  std::error_code unknown;
  // Where a file system cannot set room aside, that is done by writing: not into too little of it.
  const std::filesystem::space_info space = std::filesystem::space(folder, unknown);
  if (!unknown && space.available < static_cast<std::uintmax_t>(bytes))
    return refused(fmt::format("set aside {} bytes", bytes), ENOSPC, folder);
  std::string name = (folder / ".sibyl-offload-XXXXXX").string();
  FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file.get() < 0) return refused("create a file", errno, folder);
  ::unlink(name.c_str());
  // Not after an hour of training.
  if (const int error = bytes > 0 ? ::posix_fallocate(file.get(), 0, bytes) : 0; error != 0)
    return refused(fmt::format("set aside {} bytes", bytes), error, folder);
  return file;
}

}  // namespace

Result<Outside> Outside::make(Tier tier, std::int64_t bytes, const std::filesystem::path& folder) {
  Outside outside;
  if (tier != Tier::nvme) {
    try {
      outside.memory_.resize(static_cast<std::size_t>(bytes));
    } catch (const std::exception&) {
      return fail(ErrorCode::infeasible, fmt::format("the host has no {} bytes for what is offloaded", bytes),
                  "--offload", "nvme in place of host");
    }
    return outside;
  }
  std::error_code none;
  outside.folder_ = folder.empty() ? std::filesystem::temp_directory_path(none) : folder;
  SIBYL_TRY(outside.file_, nameless_file(bytes, outside.folder_));
  return outside;
}

void Outside::write(std::int64_t at, std::span<const std::byte> bytes) {
  if (file_.get() < 0) {
    std::ranges::copy(bytes, memory_.begin() + at);
    return;
  }
  while (!bytes.empty()) {
    errno = 0;
    const ssize_t n = ::pwrite(file_.get(), bytes.data(), bytes.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) broken("write", folder_);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    at += n;
  }
}

void Outside::read(std::int64_t at, std::span<std::byte> bytes) const {
  if (file_.get() < 0) {
    std::copy_n(memory_.begin() + at, bytes.size(), bytes.begin());
    return;
  }
  const auto size = static_cast<std::int64_t>(bytes.size());
  while (!bytes.empty()) {
    errno = 0;
    const ssize_t n = ::pread(file_.get(), bytes.data(), bytes.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) broken("read", folder_);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    at += n;
  }
  forget(at - size, size);
}

void Outside::forget(std::int64_t at, std::int64_t bytes) const {
  const std::int64_t first = at / page * page;
  ::posix_fadvise(file_.get(), first, next_page(at + bytes) - first, POSIX_FADV_DONTNEED);
}

void Outside::settle(std::int64_t at, std::int64_t bytes) const {
  if (file_.get() < 0) return;
  errno = 0;
  if (::fdatasync(file_.get()) != 0) broken("write", folder_);
  forget(at, bytes);
}

}  // namespace sibyl::trainer
