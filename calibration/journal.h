// A Journal keeps kernel samples as they are measured, one JSON line each, synced to disk before append() returns: a
// run that is killed loses nothing. Its first line says what it belongs to (`identity`: machine, ranks, libraries), so
// that samples of another set-up are never taken for this one's. A torn last line, from a kill in mid-write, is
// dropped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/files.h"
#include "profiler/kernel_table.h"

namespace sibyl {

class Journal {
 public:
  // Opens or creates. What an earlier run left is in recovered(). An Error if the journal has another identity, or is
  // damaged before its last line.
  static Result<Journal> open(const std::filesystem::path& path, const std::string& identity);

  [[nodiscard]] const std::vector<KernelSample>& recovered() const { return recovered_; }
  Result<void> append(const KernelSample& sample);
  // Once its samples stand in a saved calibration.
  Result<void> remove();

 private:
  Journal(std::filesystem::path path, FileDescriptor file, std::vector<KernelSample> recovered);
  std::filesystem::path path_;
  FileDescriptor file_;
  std::vector<KernelSample> recovered_;
};

// The journal that goes with a calibration file: "machine.json" -> "machine.json.journal".
std::filesystem::path journal_path(const std::filesystem::path& calibration);

}  // namespace sibyl
