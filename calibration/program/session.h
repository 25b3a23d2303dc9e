// The calibration file that a run adds to. Rank 0 holds it and is its only writer; the others know what it holds.
//
// Opening refuses a file measured on another machine or backend, with other libraries, ranks or threads: samples of two
// set-ups in one file would be read as one machine's. Refused, too, is one whose kernels were timed in another way, as
// a fact tells that one side alone has (which of cuDNN's engines); as long as it has none, it takes such facts on.
// A run of storage alone adds to a GPU's file of its machine, too, whatever timed the kernels there: it leaves them,
// and their journal, as they are. A network of processors would be taken for the GPUs' own there: a cluster file joins
// it to them.
// Kernel samples go through the journal as they come; everything else, and the journal's content, is saved by save(),
// which replaces the file at once.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "calibration/calibration.h"
#include "calibration/journal.h"
#include "calibration/program/ranks.h"

namespace sibyl {

// What is measured, and with what: all samples of a file have it in common.
struct Setup {
  std::map<std::string, std::string> machine, libraries;
  int threads = 1;
  Backend backend = Backend::cpu;
  bool storage_alone = false;  // is all that this run measures
};

class Session {
 public:
  // By all ranks; the file is rank 0's.
  static Result<Session> open(const Ranks& ranks, const std::filesystem::path& path, const Setup& setup);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // On rank 0 the content; elsewhere empty but for the machine it is of.
  [[nodiscard]] Calibration& calibration() { return calibration_; }
  // What the samples of a kernel took, in seconds; rank 0.
  [[nodiscard]] std::span<const double> times_of(const KernelKey& key) const;

  // Kernels that made the device fail, in this run or one before, and are not begun again: FILE.refused names them, of
  // this set-up, until somebody removes it. Rank 0.
  [[nodiscard]] bool is_left_out(const KernelKey& key) const { return left_out_.contains(to_string(key)); }
  [[nodiscard]] std::filesystem::path left_out_path() const { return path_.string() + ".refused"; }
  Result<void> leave_out(const KernelKey& key);

  Result<void> add(const KernelSample& sample);  // rank 0: journaled before it returns
  Result<void> write();                          // rank 0: the file as it now stands; the journal stays
  Result<void> save();                           // by all ranks

 private:
  Session(const Ranks& ranks, std::filesystem::path path) : ranks_(&ranks), path_(std::move(path)) {}
  Result<void> load(const Setup& setup);
  Result<void> open_journal();
  Result<void> read_left_out();

  const Ranks* ranks_;
  std::filesystem::path path_;
  Calibration calibration_;
  std::string identity_;
  std::optional<Journal> journal_;
  std::map<std::string, std::vector<double>> known_;  // times of each kernel
  std::set<std::string> left_out_;
};

}  // namespace sibyl
