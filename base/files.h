// Whole files and standard output, with errors as values.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sibyl {

// Fails on what is larger than `most` bytes: an endless device must not eat the memory.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t most = std::size_t{1} << 30);
Result<std::string> read_standard_input();

// Either the new text is there in full, also after a crash, or the old file is untouched: written beside it, synced,
// renamed. A link stays, and what it names is replaced; a pipe or a device is written to.
Result<void> replace_file(const std::filesystem::path& path, std::string_view text);

// Whether a file can be made or replaced there, as far as can be told without doing it: to be asked before long work.
Result<void> check_writable(const std::filesystem::path& path);

// To standard output, and through to where it goes. Fails where it cannot be written (a full disk).
Result<void> print(std::string_view text);

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
