// Whole files, with errors as values.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sibyl {

Result<std::string> read_file(const std::filesystem::path& path);

// Either the new text is there in full, also after a crash, or the old file is untouched: written beside it, synced,
// renamed.
Result<void> replace_file(const std::filesystem::path& path, std::string_view text);

// An owned POSIX file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;

  [[nodiscard]] int get() const { return fd_; }
  void close();

 private:
  int fd_;
};

// All of the text, then fsync.
Result<void> write_and_sync(const FileDescriptor& file, std::string_view text, const std::filesystem::path& path);

}  // namespace sibyl
